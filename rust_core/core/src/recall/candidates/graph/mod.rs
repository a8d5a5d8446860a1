//! Candidates of a bank with graphs: rows that graphs and rare words propose, and nothing that grows with the bank.
//!
//! Each arm proposes rows. Their versions and their neighbours in conversations are scored as a scan would score them;
//! mean and deviation over all memories come from a sample ([`estimate`]). The keyword score of a candidate is that of
//! the scan to the bit, and so is its cosine where it may be among the best.

mod estimate;
mod nearest;
mod quality_sample;
mod rare_words;
mod scored;
mod sparse_scores;

use std::time::Instant;

use super::Candidates;
use crate::api::Result;
use crate::dense::NO_SCORE;
use crate::index::neighbours::lookup::Neighbours;
use crate::recall::Recall;
use crate::recall::arms::{self, Arm, KEYWORD, SEMANTIC, Scores, TEMPORAL};
use crate::recall::context_window::lending;
use crate::recall::planner::Plan;
use crate::topk::{Scored, better_first};
use astrocyte_text::analysis::AnalyzedQuery;
use nearest::NearestBuffers;
pub(crate) use quality_sample::{Comparison, SearchSample};
use scored::{ScoredVersions, WithNeighbours, make_exact};
use sparse_scores::{SparseScores, Words};

/// Buffers of a recall by graphs, kept from one to the next.
#[derive(Debug, Default)]
pub(crate) struct GraphBuffers {
    scores: SparseScores,
    found: rare_words::Found,
    nearest: NearestBuffers,
    fresh: Vec<u32>,
}

/// The candidates of one recall.
pub(crate) struct GraphCandidates<'a> {
    recall: Recall<'a>,
    plan: Plan,
    /// True if the search is to be compared with a scan.
    compared: bool,
    /// True if a second thread may be taken.
    alone: bool,
    versions: ScoredVersions<'a>,
    found: &'a mut rare_words::Found,
    nearest: &'a mut NearestBuffers,
    fresh: &'a mut Vec<u32>,
    /// Rows that the arms propose and that are not ranked yet.
    proposed: Vec<u32>,
    /// The words of the request, then those of feedback.
    words: Vec<Words>,
    /// Versions from which mean and deviation are estimated.
    sample: WithNeighbours,
    /// Versions that the arms propose and their neighbours, ascending.
    chosen: WithNeighbours,
    search: Option<SearchSample>,
}

impl<'a> GraphCandidates<'a> {
    pub(crate) fn new(
        recall: Recall<'a>,
        plan: Plan,
        compared: bool,
        alone: bool,
        buffers: &'a mut GraphBuffers,
    ) -> Self {
        let GraphBuffers {
            scores,
            found,
            nearest,
            fresh,
        } = buffers;
        scores.grow(recall.index);
        let any = recall.index.conversations.session_count() > 0;
        Self {
            recall,
            plan,
            compared,
            alone,
            versions: ScoredVersions {
                index: recall.index,
                allowed: recall.allowed,
                scores,
                windows: recall.request.context_windows && any,
                linked: false,
            },
            found,
            nearest,
            fresh,
            proposed: Vec::new(),
            words: Vec::new(),
            sample: WithNeighbours::new(),
            chosen: WithNeighbours::new(),
            search: None,
        }
    }

    /// Cleans the buffers for the next recall. Returns the sample of the graph search that is to be compared with a
    /// scan.
    pub(crate) fn finish(self) -> Option<SearchSample> {
        self.versions.scores.wipe(self.recall.index);
        self.found.sums.clear();
        self.search
    }

    /// Takes versions among the chosen.
    fn choose(&mut self, versions: impl Iterator<Item = u32>) {
        self.fresh.clear();
        let chosen = &self.chosen;
        self.fresh
            .extend(versions.filter(|&version| place(chosen, version).is_err()));
        self.fresh.sort_unstable();
        self.fresh.dedup();
        let versions = self.fresh.iter().copied();
        let added = self.versions.with_neighbours(versions, SparseScores::ask);
        self.chosen.extend(added);
        self.chosen.sort_by_key(|&(version, _)| version);
    }

    /// Takes among the chosen what the arms rank or propose, and its neighbours, which share its score.
    fn choose_proposed(&mut self, arms: &[Arm]) {
        let index = self.recall.index;
        let ranked = arms
            .iter()
            .filter(|arm| arm.external.is_some() || arm.name == TEMPORAL);
        self.choose(ranked.flat_map(|arm| &arm.ranked).map(|hit| hit.1));
        let proposed = std::mem::take(&mut self.proposed);
        let versions = || proposed.iter().map(|&row| index.version_of(row));
        self.choose(versions());
        let of = |version| self.chosen.get(place(&self.chosen, version).ok()?);
        let beside: Vec<Neighbours> = versions().filter_map(of).map(|one| one.1).collect();
        self.choose(beside.into_iter().flat_map(Neighbours::iter));
    }

    /// Scores the chosen and ranks the arms over them.
    fn rank_chosen(&mut self, arms: &mut [Arm]) -> Result<()> {
        let start = Instant::now();
        self.choose_proposed(arms);
        let Recall {
            index,
            request,
            query,
            allowed,
        } = self.recall;
        let versions = &mut self.versions;
        let holders = self.found.holders(index);
        let whole = self.sample.len() == allowed.versions.len() as usize;
        let unread = !whole
            && self
                .words
                .iter()
                .any(|words| words.unread().next().is_some());
        if unread {
            for version in self.sample.iter().flat_map(|&(one, near)| near.with(one)) {
                versions.scores.sampled.insert(version);
            }
        }
        let closely = if whole {
            Vec::new()
        } else {
            estimate::examine_closely(versions, &holders, unread)
        };
        let quantised = query.vector.as_ref().map(|(_, quantised)| quantised);
        versions
            .scores
            .evaluate(index, quantised, &self.words, self.alone);
        if let Some((unit, quantised)) = &query.vector {
            make_exact(
                versions,
                (unit, quantised),
                request.exact_head(),
                &self.chosen,
            )?;
        }
        let stats = [
            estimate::semantic(versions, &self.sample),
            estimate::keyword(versions, &self.sample, &holders, &closely),
        ];
        let smoothed = versions.smooth(&self.chosen);
        for arm in &mut *arms {
            let (which, floor) = match (&*arm.name, arm.external) {
                (SEMANTIC, None) => (0, NO_SCORE),
                (KEYWORD, None) => (1, 0.0),
                _ => continue,
            };
            let scored = self.chosen.iter().zip(&smoothed);
            let scored = scored.map(|(&(version, _), scores)| (scores[which], version));
            arm.ranked = scored.filter(|&(score, _)| score > floor).collect();
            keep_best(&mut arm.ranked, self.recall);
            arm.stats = stats[which];
        }
        if let Some(arm) = arms.first_mut() {
            arm.micros += arms::micros_since(start);
        }
        Ok(())
    }
}

impl Candidates for GraphCandidates<'_> {
    fn search(&mut self) -> Vec<Arm> {
        let Self {
            recall,
            plan,
            alone,
            versions,
            found,
            nearest,
            ..
        } = self;
        let query = recall.query;
        let mut sample = WithNeighbours::new();
        // Neither touches what the other changes. A thread more pays only where a processor is idle, and has to wake
        // first.
        let beside = *alone && query.vector.is_some() && query.words.is_some();
        let (near, keyword) = both(
            beside,
            || semantic_arm(*recall, plan, *alone, nearest),
            // The graph search lasts longer, so the sample goes with the words. Alone they may take a second thread.
            || {
                sample = score_sample(*recall, versions);
                keyword_arm(*recall, *alone && !beside, found)
            },
        );
        self.sample = sample;
        let mut arms = Vec::with_capacity(3 + recall.request.external.len());
        if let Some((arm, rows)) = near {
            arms.push(arm);
            self.proposed = rows;
        }
        if self.compared {
            self.search = Some(SearchSample::new(self.recall, &self.proposed));
        }
        if let Some((arm, rows, words)) = keyword {
            arms.push(arm);
            self.proposed.extend(rows);
            self.words.push(words);
        }
        arms
    }

    fn rank(&mut self, arms: &mut [Arm]) -> Result<()> {
        self.rank_chosen(arms)
    }

    fn extend(&mut self, arms: &mut [Arm], further: &AnalyzedQuery) -> Result<()> {
        if further.is_empty() {
            return Ok(());
        }
        let words = rare_words::find(
            self.recall,
            further,
            self.alone,
            self.found,
            &mut self.proposed,
        );
        self.words.push(words);
        self.rank_chosen(arms)
    }

    fn scores<'a>(&'a self, temporal: &'a [f32]) -> Scores<'a> {
        Scores {
            semantic: self.versions.scores.semantic(),
            keyword: self.versions.scores.keyword(),
            temporal,
        }
    }

    fn shares(&self) -> bool {
        self.versions.linked
    }

    fn sharing(&self, version: u32) -> [u32; 4] {
        lending::sharing(self.recall, version)
    }

    fn own(&self, version: u32) -> [f32; 2] {
        let SparseScores { dense, lexical, .. } = &*self.versions.scores;
        let rows = self.recall.index.rows_of(version);
        let words = &lexical.rows.values[rows.start as usize..rows.end as usize];
        [
            dense.versions.values[version as usize],
            arms::semantic::of_rows(words, 0.0),
        ]
    }

    fn own_feedback(&self, version: u32) -> f32 {
        let [_, own] = self.own(version);
        self.versions.scores.lexical.versions.values[version as usize] - own
    }

    fn plan(&self) -> String {
        let index = self.recall.index;
        format!(
            "{}{}{}",
            self.plan,
            index.lexical.method(),
            index.tier_note()
        )
    }
}

/// The place of a version among the chosen, or the place at which it would be.
fn place(chosen: &WithNeighbours, version: u32) -> std::result::Result<usize, usize> {
    chosen.binary_search_by_key(&version, |&(one, _)| one)
}

/// Keeps the best of a ranking, as many as the request's depth, in order.
fn keep_best(ranked: &mut Vec<Scored>, recall: Recall<'_>) {
    let ids = &recall.index.columns.memory_id;
    let better = |a: &Scored, b: &Scored| better_first(*a, *b, ids);
    let depth = recall.request.depth;
    if depth < ranked.len() {
        ranked.select_nth_unstable_by(depth, better);
        ranked.truncate(depth);
    }
    ranked.sort_unstable_by(better);
}

/// Runs both; where `spread`, the second on a thread of the pool.
fn both<A, B: Send>(
    spread: bool,
    here: impl FnOnce() -> A,
    there: impl FnOnce() -> B + Send,
) -> (A, B) {
    if !spread {
        return (here(), there());
    }
    let mut other = None;
    let own = rayon::in_place_scope(|scope| {
        scope.spawn(|_| other = Some(there()));
        here()
    });
    (own, other.expect("a scope ends after what it spawned"))
}

/// The semantic arm and the rows near to the query's vector, where it has one.
fn semantic_arm(
    recall: Recall<'_>,
    plan: &Plan,
    spread: bool,
    buffers: &mut NearestBuffers,
) -> Option<(Arm, Vec<u32>)> {
    let (_, query) = recall.query.vector.as_ref()?;
    let start = Instant::now();
    let rows = nearest::propose(recall, plan, query, spread, buffers);
    Some((Arm::new(SEMANTIC, start), rows))
}

/// The keyword arm, the rows that hold the query's words, and the words, where it has some.
fn keyword_arm(
    recall: Recall<'_>,
    spread: bool,
    found: &mut rare_words::Found,
) -> Option<(Arm, Vec<u32>, Words)> {
    let query = recall.query.words.as_ref()?;
    let start = Instant::now();
    let mut rows = Vec::new();
    let words = rare_words::find(recall, query, spread, found, &mut rows);
    Some((Arm::new(KEYWORD, start), rows, words))
}

/// Every n-th version that passes, with its cosine: the sample from which the statistics of the arms are estimated. It
/// does not depend on what the arms propose.
fn score_sample(recall: Recall<'_>, versions: &mut ScoredVersions<'_>) -> WithNeighbours {
    let passing = recall.allowed.versions;
    let step = estimate::step(passing.len());
    let ask = |scores: &mut SparseScores, version| {
        if step == 1 {
            scores.ask(version);
        } else {
            scores.near.insert(version);
        }
    };
    let sample = versions.with_neighbours(passing.every(step).into_iter(), ask);
    let quantised = recall.query.vector.as_ref().map(|(_, quantised)| quantised);
    versions.scores.find_cosines(recall.index, quantised);
    sample
}
