//! What each arm says of the memories that pass the filter.

use std::borrow::Cow;
use std::time::Instant;

use hashbrown::HashSet;

use crate::api::RecallRequest;
use crate::dense::Plan;
use crate::index::Index;
use crate::lexical::LexicalIndex;
use crate::recall::filter::Allowed;
use crate::topk::{Scored, Selection, by_id};
use astrocyte_text::analysis::AnalyzedQuery;

use super::buffers::ArmScores;
pub(crate) mod semantic;
pub(crate) mod temporal;

use super::filtered_scores::FilteredScores;
use super::score_stats::ScoreStats;
use semantic::best_rows;

/// The arm that compares embeddings.
pub const SEMANTIC: &str = "semantic";
/// The arm that searches words.
pub const KEYWORD: &str = "keyword";
/// The arm that compares event times with windows.
pub const TEMPORAL: &str = "temporal";

/// Reading rows one by one costs about half as much again as reading all in order, so a filter that leaves less than
/// this share of the rows (in percent) is met row by row.
const GATHER_PERCENT: u64 = 60;
/// The plan for what passes, and its description. Rows of removed versions do not count: they are gone after a restart.
pub(crate) fn plan(allowed: Allowed<'_>, state: &Index) -> (Plan, String) {
    let (few, all) = (allowed.rows.len(), state.rows() - state.dead_rows);
    let (plan, name) = if u64::from(few) * 100 < u64::from(all) * GATHER_PERCENT {
        (Plan::Gather, "gather")
    } else {
        (Plan::Scan, "scan")
    };
    (plan, format!("{name}: {few} of {all} rows"))
}

/// An arm's ranking.
#[derive(Debug)]
pub(crate) struct Arm {
    pub(crate) name: Cow<'static, str>,
    pub(crate) micros: f64,
    /// Best first, at most the request's depth.
    pub(crate) ranked: Vec<Scored>,
    pub(crate) spread: ScoreStats,
    /// Index into the request's outside lists.
    pub(crate) external: Option<usize>,
}

/// Scores by version of the arms that know every memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scores<'a> {
    pub(crate) semantic: &'a [f32],
    pub(crate) keyword: &'a [f32],
    pub(crate) temporal: &'a [f32],
}

impl<'a> Scores<'a> {
    /// The scores of the arm with this name; none for an arm from outside.
    pub(crate) fn of(self, arm: &Arm) -> &'a [f32] {
        match (arm.external, &*arm.name) {
            (None, SEMANTIC) => self.semantic,
            (None, KEYWORD) => self.keyword,
            (None, TEMPORAL) => self.temporal,
            _ => &[],
        }
    }
}

impl Arm {
    pub(crate) fn new(name: &'static str, start: Instant) -> Self {
        Self {
            name: Cow::Borrowed(name),
            micros: micros_since(start),
            ranked: Vec::new(),
            spread: ScoreStats::default(),
            external: None,
        }
    }

    /// Takes the spread of all memories, and the best `depth` of them.
    pub(crate) fn rank(
        &mut self,
        state: &Index,
        allowed: Allowed<'_>,
        depth: usize,
        scores: Scores<'_>,
        selection: &mut Selection,
    ) {
        let start = Instant::now();
        let passing = FilteredScores::of(scores.of(self), allowed);
        self.spread = passing.spread(allowed);
        // The semantic arm is ranked after all others, for what they propose.
        let floor = match &*self.name {
            SEMANTIC => None,
            KEYWORD => Some(0.0),
            // Most memories are outside a window: only those nearer to it than usual are proposed.
            _ => Some(self.spread.mean as f32),
        };
        if let Some(floor) = floor {
            let ids = &state.columns.memory_id;
            let ties = |a, b| by_id(a, b, ids);
            passing.top(selection, (floor, depth), ties, &mut self.ranked);
        }
        self.micros += micros_since(start);
    }
}

/// Fills `versions` with what the arms rank.
pub(crate) fn proposed(arms: &[Arm], versions: &mut Vec<u32>) {
    versions.clear();
    versions.extend(arms.iter().flat_map(|arm| &arm.ranked).map(|hit| hit.1));
}

pub(crate) fn micros_since(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e6
}

/// Fills `scores` with BM25 scores, 0 where nothing matches or the filter does not let pass.
pub(crate) fn keyword(
    state: &Index,
    allowed: Allowed<'_>,
    words: &AnalyzedQuery,
    scores: &mut ArmScores,
) {
    // What the thread's last bank left is wiped in either array: the one that is empty stands for the other.
    scores.rows.clear();
    scores.versions.clear();
    let rows = if state.is_flat() {
        &mut scores.versions
    } else {
        &mut scores.rows
    };
    rows.resize(state.rows() as usize, 0.0);
    state.lexical.score(words, allowed.rows, rows);
    if !state.is_flat() {
        best_rows(
            state,
            allowed.versions,
            0.0,
            &scores.rows,
            &mut scores.versions,
        );
    }
}

/// Adds an arm per outside list and returns how many ids this bank does not hold.
pub(crate) fn external(
    state: &Index,
    allowed: Allowed<'_>,
    request: &RecallRequest,
    arms: &mut Vec<Arm>,
) -> u32 {
    let mut unknown = 0;
    for (index, list) in request.external.iter().enumerate() {
        let start = Instant::now();
        let mut ranked: Vec<Scored> = Vec::with_capacity(list.hits.len());
        let mut known = HashSet::with_capacity(list.hits.len());
        for (id, score) in &list.hits {
            let (mut is_here, mut passing) = (false, None);
            for version in state.columns.versions_of(id) {
                is_here = true;
                if allowed.versions.contains(version) {
                    passing = passing.max(Some(version));
                }
            }
            unknown += u32::from(!is_here);
            if let Some(version) = passing
                && known.insert(version)
            {
                ranked.push((*score as f32, version));
            }
        }
        ranked.truncate(request.depth);
        let mut arm = Arm::new(SEMANTIC, start);
        arm.name = Cow::Owned(list.name.clone());
        (arm.ranked, arm.external) = (ranked, Some(index));
        arms.push(arm);
    }
    unknown
}
