//! Candidates of a scan: all memories that pass are scored.

use std::time::Instant;

use super::Candidates;
use crate::api::Result;
use crate::dense::{Beside, NO_SCORE, ReadOrder};
use crate::index::Index;
use crate::index::neighbours::NeighbourTable;
use crate::index::neighbours::lookup::NOBODY;
use crate::recall::arms::{self, Arm, KEYWORD, SEMANTIC, Scores, keyword, semantic};
use crate::recall::buffers::{RankBuffers, ScanBuffers, ScoreArrays};
use crate::recall::filter::Allowed;
use crate::recall::filtered_scores::FilteredScores;
use crate::recall::planner::Basis;
use crate::recall::{Recall, context_window};
use astrocyte_text::analysis::AnalyzedQuery;

/// Rows from which on a scan is worth a second thread where one is idle: at 200,000 rows it takes a third off the time
/// for a quarter more processor time, at 40,000 rows a sixth for two fifths.
const SPREAD_ROWS: u32 = 1 << 16;
/// Rows that are read one by one, words and all, from which on a second thread is worth it: they take about half a
/// millisecond in a bank of [`SPREAD_ROWS`].
const SPREAD_GATHERED: u32 = 1 << 11;
/// Reading rows one by one costs about half as much again as reading all in order, so a filter that passes less than
/// this share of the rows (in percent) is met row by row.
const GATHER_PERCENT: u64 = 60;

/// The mode of the coarse scan.
pub(crate) enum ScanMode<'a> {
    /// On the caller's thread.
    Alone,
    /// With a second thread.
    Spread,
    /// One scan for several requests is done: the cosines by row, and this request's share of the microseconds.
    Done(&'a mut Vec<f32>, f64),
}

impl ScanMode<'_> {
    /// The mode for an index of this size, for a recall that is the only one or not.
    pub(crate) fn for_size(index: &Index, alone: bool) -> Self {
        if index.rows() >= SPREAD_ROWS && alone {
            Self::Spread
        } else {
            Self::Alone
        }
    }
}

/// Returns true if the scan of the rows that pass is a coarse scan in order, which serves several requests at once.
pub(crate) fn coarse_scan_serves(index: &Index, allowed: Allowed<'_>) -> bool {
    read_order(index, allowed) == ReadOrder::Scan && semantic::is_coarse(allowed)
}

/// Rows of removed versions do not count: they are gone after a restart.
fn read_order(index: &Index, allowed: Allowed<'_>) -> ReadOrder {
    let all = u64::from(index.rows() - index.dead_rows);
    if u64::from(allowed.rows.len()) * 100 < all * GATHER_PERCENT {
        ReadOrder::Gather
    } else {
        ReadOrder::Scan
    }
}

/// The candidates of one scan.
pub(crate) struct Scan<'a> {
    recall: Recall<'a>,
    mode: Option<ScanMode<'a>>,
    /// The reason for a scan, where the bank has graphs.
    basis: Basis,
    semantic: &'a mut ScoreArrays,
    keyword: &'a mut ScoreArrays,
    /// Scores of the words that feedback adds.
    further: &'a mut ScoreArrays,
    /// Room for the neighbours of what passes a filter.
    own_neighbours: Option<&'a mut NeighbourTable>,
    /// The neighbours, where context windows apply.
    neighbours: Option<&'a NeighbourTable>,
    work: &'a mut RankBuffers,
    /// True if feedback added words.
    extended: bool,
}

impl<'a> Scan<'a> {
    pub(crate) fn new(
        recall: Recall<'a>,
        mode: ScanMode<'a>,
        basis: Basis,
        buffers: &'a mut ScanBuffers,
    ) -> Self {
        let ScanBuffers {
            semantic,
            keyword,
            further,
            neighbours,
            work,
        } = buffers;
        Self {
            recall,
            mode: Some(mode),
            basis,
            semantic,
            keyword,
            further,
            own_neighbours: Some(neighbours),
            neighbours: None,
            work,
            extended: false,
        }
    }

    /// Scores by vector and by words, the latter on a second thread where the mode says so.
    fn score(&mut self) -> Vec<Arm> {
        let recall = self.recall;
        let keyword = &mut *self.keyword;
        let mut matched = None;
        let mut find_words = || {
            matched = recall.query.words.as_ref().map(|words| {
                let start = Instant::now();
                keyword::score(recall, words, keyword);
                Arm::new(KEYWORD, start)
            });
        };
        let mode = self.mode.take().unwrap_or(ScanMode::Alone);
        let Some((_, query)) = &recall.query.vector else {
            find_words();
            return matched.into_iter().collect();
        };
        let order = read_order(recall.index, recall.allowed);
        let enough = order == ReadOrder::Scan || recall.allowed.rows.len() >= SPREAD_GATHERED;
        let spread = matches!(mode, ScanMode::Spread) && enough;
        let (start, mut shared) = (Instant::now(), 0.0);
        if let ScanMode::Done(cosines, share) = mode {
            shared = share;
            semantic::take_coarse_scan(recall, cosines, self.semantic);
        } else {
            let beside = spread.then_some(&mut find_words as Beside<'_>);
            semantic::coarse_scan(recall, order, query, beside, self.semantic);
        }
        let mut arm = Arm::new(SEMANTIC, start);
        arm.micros += shared;
        if !spread {
            find_words();
        }
        std::iter::once(arm).chain(matched).collect()
    }

    /// Adds the shares of neighbours, where the request wants context windows.
    fn smooth(&mut self, arms: &mut [Arm]) {
        if !self.recall.request.context_windows {
            return;
        }
        if let Some(own) = self.own_neighbours.take() {
            self.neighbours = context_window::neighbours(self.recall, arms, own);
        }
        let Some(neighbours) = self.neighbours else {
            return;
        };
        for arm in arms {
            let start = Instant::now();
            let scores = if arm.name == SEMANTIC {
                &mut *self.semantic
            } else {
                &mut *self.keyword
            };
            context_window::smooth(self.recall.allowed, neighbours, scores);
            arm.micros += arms::micros_since(start);
        }
    }

    /// The keyword score of a version without shares.
    fn unshared(&self, scores: &ScoreArrays, version: u32) -> f32 {
        let index = self.recall.index;
        if !index.is_flat() {
            semantic::own_score(index, &scores.rows, version, 0.0)
        } else if self.neighbours.is_some() {
            // Context windows leave their input there.
            scores.raw[version as usize]
        } else {
            scores.versions[version as usize]
        }
    }

    /// Ranks the keyword arm by its scores.
    fn rank_keyword(&mut self, arm: &mut Arm) {
        let start = Instant::now();
        let scores = FilteredScores::of(self.keyword.by_version(), self.recall.allowed);
        arm.measure(&scores, self.recall);
        arm.rank(&scores, 0.0, self.recall, &mut self.work.selection);
        arm.micros += arms::micros_since(start);
    }

    /// Calls `step` with the ranking of the semantic arm, and with what all arms rank.
    fn with_ranking<R>(
        &mut self,
        arms: &[Arm],
        step: impl FnOnce(&mut semantic::Ranking<'_>, &[u32]) -> R,
    ) -> Option<R> {
        let query = self.recall.query.vector.as_ref()?;
        let mut proposed = std::mem::take(&mut self.work.proposed);
        arms::proposed(arms, &mut proposed);
        let mut ranking = semantic::Ranking {
            index: self.recall.index,
            allowed: self.recall.allowed,
            query,
            neighbours: self.neighbours,
            scores: self.semantic,
            work: self.work,
        };
        let done = step(&mut ranking, &proposed);
        self.work.proposed = proposed;
        Some(done)
    }
}

impl Candidates for Scan<'_> {
    fn search(&mut self) -> Vec<Arm> {
        let mut arms = self.score();
        self.smooth(&mut arms);
        arms
    }

    fn rank(&mut self, arms: &mut [Arm]) -> Result<()> {
        for arm in arms.iter_mut().filter(|arm| arm.external.is_none()) {
            match &*arm.name {
                KEYWORD => self.rank_keyword(arm),
                SEMANTIC => {
                    let start = Instant::now();
                    let scores =
                        FilteredScores::of(self.semantic.by_version(), self.recall.allowed);
                    arm.measure(&scores, self.recall);
                    arm.micros += arms::micros_since(start);
                }
                _ => {}
            }
        }
        // The semantic arm is ranked after all others, for it rescores what they propose.
        let start = Instant::now();
        let request = self.recall.request;
        let sizes = (request.exact_head(), request.depth);
        let ranked = self.with_ranking(arms, |ranking, proposed| ranking.rank(sizes, proposed));
        if let Some(ranked) = ranked {
            arms[0].ranked = ranked?;
            arms[0].micros += arms::micros_since(start);
        }
        Ok(())
    }

    fn extend(&mut self, arms: &mut [Arm], further: &AnalyzedQuery) -> Result<()> {
        let found = arms
            .iter_mut()
            .find(|arm| arm.external.is_none() && arm.name == KEYWORD);
        if let Some(arm) = found.filter(|_| !further.is_empty()) {
            keyword::score(self.recall, further, self.further);
            self.extended = true;
            if let Some(neighbours) = self.neighbours {
                context_window::smooth(self.recall.allowed, neighbours, self.further);
            }
            let added = self.further.versions.iter();
            for (score, more) in self.keyword.versions.iter_mut().zip(added) {
                *score += more;
            }
            self.rank_keyword(arm);
        }
        self.with_ranking(arms, |ranking: &mut semantic::Ranking<'_>, proposed| {
            ranking.rescore(proposed);
        });
        Ok(())
    }

    fn scores<'a>(&'a self, temporal: &'a [f32]) -> Scores<'a> {
        Scores {
            semantic: self.semantic.scores(),
            keyword: self.keyword.scores(),
            temporal,
        }
    }

    fn shares(&self) -> bool {
        self.neighbours.is_some()
    }

    fn sharing(&self, version: u32) -> [u32; 4] {
        self.neighbours
            .map_or([NOBODY; 4], |table| table.sharing(version))
    }

    fn own(&self, version: u32) -> [f32; 2] {
        let Recall { index, query, .. } = self.recall;
        let semantic = if query.vector.is_some() {
            semantic::own_score(index, &self.semantic.rows, version, NO_SCORE)
        } else {
            NO_SCORE
        };
        let words = query.words.is_some();
        [
            semantic,
            if words {
                self.unshared(self.keyword, version)
            } else {
                0.0
            },
        ]
    }

    fn own_feedback(&self, version: u32) -> f32 {
        if self.extended {
            self.unshared(self.further, version)
        } else {
            0.0
        }
    }

    fn plan(&self) -> String {
        let Recall { index, allowed, .. } = self.recall;
        let name = match read_order(index, allowed) {
            ReadOrder::Scan => "scan",
            ReadOrder::Gather => "gather",
        };
        let (passing, all) = (allowed.rows.len(), index.rows() - index.dead_rows);
        let words = index.lexical.method();
        let tier = index.tier_note();
        format!("{name}: {passing} of {all} rows{}{words}{tier}", self.basis)
    }
}
