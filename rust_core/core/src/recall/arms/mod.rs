//! The arms of a recall: each ranks the memories that pass the filter by one kind of evidence.

pub(crate) mod external;
pub(crate) mod keyword;
pub(crate) mod semantic;
pub(crate) mod temporal;

use std::borrow::Cow;
use std::time::Instant;

use super::Recall;
use super::filtered_scores::FilteredScores;
use super::score_stats::ScoreStats;
use crate::topk::{Scored, Selection, by_id};

/// The arm that compares embeddings.
pub const SEMANTIC: &str = "semantic";
/// The arm that searches words.
pub const KEYWORD: &str = "keyword";
/// The arm that compares event times with windows.
pub const TEMPORAL: &str = "temporal";

/// The ranking of one arm.
#[derive(Debug)]
pub(crate) struct Arm {
    pub(crate) name: Cow<'static, str>,
    pub(crate) micros: f64,
    /// Best first, at most the request's depth.
    pub(crate) ranked: Vec<Scored>,
    pub(crate) stats: ScoreStats,
    /// Index into the request's external lists.
    pub(crate) external: Option<usize>,
}

impl Arm {
    /// An arm without a ranking, whose scores took the time since `start`.
    pub(crate) fn new(name: &'static str, start: Instant) -> Self {
        Self {
            name: Cow::Borrowed(name),
            micros: micros_since(start),
            ranked: Vec::new(),
            stats: ScoreStats::default(),
            external: None,
        }
    }

    /// Sets the statistics over all memories that pass.
    pub(crate) fn measure(&mut self, scores: &FilteredScores<'_>, recall: Recall<'_>) {
        self.stats = scores.stats(recall.allowed);
    }

    /// Ranks the best memories with a score above `floor`.
    pub(crate) fn rank(
        &mut self,
        scores: &FilteredScores<'_>,
        floor: f32,
        recall: Recall<'_>,
        selection: &mut Selection,
    ) {
        let ids = &recall.index.columns.memory_id;
        let ties = |a, b| by_id(a, b, ids);
        let depth = recall.request.depth;
        scores.top(selection, (floor, depth), ties, &mut self.ranked);
    }
}

/// The scores of one arm over all memories.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ArmScores<'a> {
    /// By row; of no use where every version is one row.
    pub(crate) rows: &'a [f32],
    pub(crate) versions: &'a [f32],
}

/// The scores of the arms that score every memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scores<'a> {
    pub(crate) semantic: ArmScores<'a>,
    pub(crate) keyword: ArmScores<'a>,
    /// By version.
    pub(crate) temporal: &'a [f32],
}

impl<'a> Scores<'a> {
    /// The scores by version of `arm`; empty for an external list.
    pub(crate) fn of(self, arm: &Arm) -> &'a [f32] {
        match (arm.external, &*arm.name) {
            (None, SEMANTIC) => self.semantic.versions,
            (None, KEYWORD) => self.keyword.versions,
            (None, TEMPORAL) => self.temporal,
            _ => &[],
        }
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
