//! The semantic arm: a coarse scan of all rows, finer scores of those that may rank, exact cosines of the head.
//!
//! Each step reads more bytes of fewer rows. The scores of one step select the rows of the next, so a response does not
//! depend on the order of rows or on how they were read. Mean and deviation are those of the coarse scan. Every memory
//! that an arm proposes has its finer score.

use crate::api::Result;
use crate::bitmap::Bitmap;
use crate::dense::exact_vectors::NO_SLOT;
use crate::dense::{Beside, DenseIndex, NO_SCORE, QuantisedQuery, ReadOrder, dot, error_margin};
use crate::index::Index;
use crate::index::neighbours::{GAP, NeighbourTable};
use crate::recall::buffers::{RankBuffers, ScoreArrays};
use crate::recall::filter::Allowed;
use crate::recall::filtered_scores::{FilteredScores, is_few};
use crate::recall::{Recall, context_window};
use crate::topk::{Scored, above, better_first, reaching};

/// Most memories beyond the `k` best that are rescored: with more of them within the quantisation error they are a
/// crowd of near copies, whose order does not matter.
const MAX_RESCORED: usize = 512;

/// Up to this many rows whole bytes are read at once: they fit the second cache, and mean and deviation are then those
/// of all bytes.
const WHOLE_ROWS: u32 = 2048;

/// Memories beyond the `k` best that are rescored first.
const MARGIN_ROWS: usize = 54;

/// More than one in so many versions are a crowd: rescoring each with its neighbours costs more than reading the rest
/// of all rows in order.
const CROWD: u32 = 4;

/// Fills `scores` with coarse cosines of the allowed rows and versions, of whole bytes where there are few;
/// [`NO_SCORE`] elsewhere. What is to be done `beside` is done when it returns.
pub(crate) fn coarse_scan(
    recall: Recall<'_>,
    order: ReadOrder,
    query: &QuantisedQuery,
    beside: Option<Beside<'_>>,
    scores: &mut ScoreArrays,
) {
    let Recall { index, allowed, .. } = recall;
    scores.whole = !is_coarse(allowed);
    let how = (order, scores.whole);
    index
        .vectors
        .coarse_scan(query, allowed.rows, how, beside, &mut scores.rows);
    scores_by_version(index, allowed, scores);
}

/// Returns true if a scan of the rows that pass is coarse, so that one scan for several queries finds the same.
pub(crate) fn is_coarse(allowed: Allowed<'_>) -> bool {
    allowed.rows.len() > WHOLE_ROWS
}

/// Takes the cosines of rows from `ready`, where a scan for several queries left them, as [`coarse_scan`] computes
/// them.
pub(crate) fn take_coarse_scan(recall: Recall<'_>, ready: &mut Vec<f32>, scores: &mut ScoreArrays) {
    scores.whole = false;
    std::mem::swap(&mut scores.rows, ready);
    scores_by_version(recall.index, recall.allowed, scores);
}

/// Makes the scores of versions from those of rows; leaves them out where they are the same.
fn scores_by_version(index: &Index, allowed: Allowed<'_>, scores: &mut ScoreArrays) {
    scores.leave_to_rows();
    if !index.is_flat() {
        let ScoreArrays { rows, versions, .. } = scores;
        best_rows(index, allowed.versions, NO_SCORE, rows, versions);
    }
}

/// Fills `versions` with the mean of the whole's score and the best chunk's for each allowed version, `absent`
/// elsewhere.
///
/// A whole or chunks without a score (`absent`) leave the word to the other. The mean beats the best row by .01 to .02
/// of recall on long chats, where a piece of an answer easily scores better than the short question that it answers.
pub(crate) fn best_rows(
    index: &Index,
    allowed: &Bitmap,
    absent: f32,
    rows: &[f32],
    versions: &mut Vec<f32>,
) {
    versions.clear();
    versions.resize(index.columns.len() as usize, absent);
    for version in allowed.iter() {
        versions[version as usize] = own_score(index, rows, version, absent);
    }
}

/// The score of a version, out of those of all rows.
pub(crate) fn own_score(index: &Index, rows: &[f32], version: u32, absent: f32) -> f32 {
    let range = index.rows_of(version);
    of_rows(&rows[range.start as usize..range.end as usize], absent)
}

/// The mean of the scores of a version's whole and of its best chunk.
#[expect(clippy::float_cmp, reason = "an absent score is one certain value")]
pub(crate) fn of_rows(own: &[f32], absent: f32) -> f32 {
    let chunk = best(&own[1..], absent);
    match (own[0] == absent, chunk == absent) {
        (_, true) => own[0],
        (true, false) => chunk,
        (false, false) => 0.5 * (own[0] + chunk),
    }
}

fn best(scores: &[f32], absent: f32) -> f32 {
    scores.iter().fold(absent, |best, &score| best.max(score))
}

/// The second step, with what it works on.
pub(crate) struct Ranking<'a> {
    pub(crate) index: &'a Index,
    pub(crate) allowed: Allowed<'a>,
    /// The query as a unit vector and in bytes.
    pub(crate) query: &'a (Vec<f32>, QuantisedQuery),
    /// The neighbours, where context windows apply.
    pub(crate) neighbours: Option<&'a NeighbourTable>,
    pub(crate) scores: &'a mut ScoreArrays,
    pub(crate) work: &'a mut RankBuffers,
}

/// Scores that are to be reached.
#[derive(Debug, Clone, Copy)]
struct Floors {
    /// That of the `k`-th best: whatever may reach it is rescored.
    certain: f32,
    /// That of the last that is listed: of what reaches it nearly every memory is rescored.
    usual: f32,
}

impl Ranking<'_> {
    /// Returns the `depth` best versions. The `k` best have exact cosines; the others and those of `proposed`, which
    /// other arms rank, have cosines of whole bytes.
    pub(crate) fn rank(
        &mut self,
        (k, depth): (usize, usize),
        proposed: &[u32],
    ) -> Result<Vec<Scored>> {
        self.work.rescored_versions.reset(self.index.columns.len());
        self.work.rescored_rows.reset(self.index.rows());
        self.rescore(proposed);
        let rescored = k.saturating_add(MARGIN_ROWS).max(depth);
        // Down to here the list is to be complete.
        let listed = k.saturating_add(MARGIN_ROWS / 2).max(depth);
        let mut head = self.coarse_head(rescored);
        // The scores of the last ones bound how far down a better one may be. Scores of whole bytes hide none.
        if head.len() >= rescored && !self.scores.whole {
            let floors = Floors {
                certain: self.nth_best(&head, k.max(1)),
                usual: self.nth_best(&head, listed),
            };
            self.extend(&mut head, floors);
        }
        if k > 0 && !head.is_empty() {
            self.rescore_exactly(&mut head, (k, listed))?;
        }
        let scored = head.iter().map(|&version| (self.score(version), version));
        let mut ranked: Vec<Scored> = scored.collect();
        let ids = &self.index.columns.memory_id;
        if ranked.len() > depth {
            if depth > 0 {
                ranked.select_nth_unstable_by(depth - 1, |&a, &b| better_first(a, b, ids));
            }
            ranked.truncate(depth);
        }
        ranked.sort_unstable_by(|&a, &b| better_first(a, b, ids));
        Ok(ranked)
    }

    /// The best versions of the coarse scan, rescored: `count` of them, or more with all that equal the last.
    fn coarse_head(&mut self, count: usize) -> Vec<u32> {
        let RankBuffers {
            selection, best, ..
        } = self.work;
        let passing = FilteredScores::of(self.scores.by_version(), self.allowed);
        passing.with_ties(selection, (NO_SCORE, count), best);
        let head: Vec<u32> = best.iter().map(|&(_, version)| version).collect();
        self.rescore(&head);
        head
    }

    /// Adds to `head` the versions whose finer score may reach a floor, and rescores them.
    fn extend(&mut self, head: &mut Vec<u32>, floors: Floors) {
        self.find_near(floors);
        let is_crowd = self.work.best.len() as u32 > self.allowed.versions.len() / CROWD;
        if is_crowd && !self.scores.whole {
            self.scan_whole();
            self.find_near(floors);
        }
        self.work.in_head.reset(self.index.columns.len());
        for &version in head.iter() {
            self.work.in_head.insert(version);
        }
        let old = head.len();
        let RankBuffers { best, in_head, .. } = &mut *self.work;
        let near = best.iter().map(|&(_, version)| version);
        head.extend(near.filter(|&version| in_head.insert(version)));
        self.rescore(&head[old..]);
    }

    /// Notes the versions whose finer score may reach a floor.
    fn find_near(&mut self, floors: Floors) {
        let mut near = std::mem::take(&mut self.work.best);
        let (reach, usual) = self.reach();
        let scores = self.scores.by_version();
        let may_reach = |&(score, version): &Scored| {
            let error = self.error(version, |step| step);
            score + reach * error >= floors.certain || score + usual * error >= floors.usual
        };
        if is_few(self.allowed, scores) {
            let versions = self.allowed.versions.iter();
            let all = versions.map(|version| (scores[version as usize], version));
            near.clear();
            near.extend(all.filter(may_reach));
        } else if let Some(errors) = self.errors() {
            let floors = [(floors.certain, reach), (floors.usual, usual)];
            reaching(scores, errors, floors, &mut near);
        } else {
            // First as if each erred as far as the one that errs farthest.
            let factor = self
                .neighbours
                .map_or(1.0, |_| context_window::LARGEST_FACTOR);
            let widest = self.index.vectors.largest_step() * factor;
            let lowest = (floors.certain - reach * widest).min(floors.usual - usual * widest);
            above(scores, lowest, &mut near);
            near.retain(may_reach);
        }
        self.work.best = near;
    }

    /// The errors of the scores of all versions, for a row of step 1, where they are known.
    fn errors(&self) -> Option<&[f32]> {
        match self.neighbours {
            None => self.index.is_flat().then(|| self.index.vectors.steps()),
            Some(neighbours) => neighbours.errors(),
        }
    }

    /// The largest and the usual largest distance of a coarse score from the finer one, for a row of step 1.
    fn reach(&self) -> (f32, f32) {
        if self.scores.whole {
            return (0.0, 0.0);
        }
        let QuantisedQuery { reach, usual, .. } = self.query.1;
        (reach, usual)
    }

    /// Brings all scores to whole bytes: in order that costs less than to rescore a crowd one by one.
    fn scan_whole(&mut self) {
        let mut rows = std::mem::take(&mut self.work.fresh);
        rows.clear();
        let rescored = &self.work.rescored_rows;
        rows.extend(
            self.allowed
                .rows
                .iter()
                .filter(|&row| !rescored.contains(row)),
        );
        let Self { index, scores, .. } = self;
        index
            .vectors
            .rescore(&self.query.1, &rows, &mut scores.rows);
        self.work.fresh = rows;
        scores.whole = true;
        scores_by_version(index, self.allowed, scores);
        if let Some(neighbours) = self.neighbours {
            context_window::smooth(self.allowed, neighbours, scores);
        }
    }

    /// The error of a version's score, from the error of a row of a step.
    fn error(&self, version: u32, of_step: impl Fn(f32) -> f32) -> f32 {
        let own = |version| of_step(self.index.largest_step(version));
        match self.neighbours {
            None => own(version),
            Some(neighbours) => context_window::error(neighbours, version, own),
        }
    }

    /// Calls `row` with the rows that a version's score comes from: its own and those of its neighbours.
    #[inline]
    fn each_row(&self, version: u32, mut row: impl FnMut(u32)) {
        match self
            .neighbours
            .and_then(|neighbours| neighbours.around(version))
        {
            None => self.index.rows_of(version).for_each(row),
            Some(near) => {
                for &version in near.iter().filter(|&&version| version != GAP) {
                    self.index.rows_of(version).for_each(&mut row);
                }
            }
        }
    }

    /// Brings the scores of versions to whole bytes.
    pub(crate) fn rescore(&mut self, versions: &[u32]) {
        if self.scores.whole {
            return;
        }
        let mut versions_done = std::mem::take(&mut self.work.rescored_versions);
        let mut rows_done = std::mem::take(&mut self.work.rescored_rows);
        let mut rows = std::mem::take(&mut self.work.fresh);
        rows.clear();
        for &version in versions {
            if versions_done.insert(version) {
                self.each_row(version, |row| {
                    if rows_done.insert(row) {
                        rows.push(row);
                    }
                });
            }
        }
        let (_, query) = self.query;
        self.index
            .vectors
            .rescore(query, &rows, &mut self.scores.rows);
        (
            self.work.rescored_versions,
            self.work.rescored_rows,
            self.work.fresh,
        ) = (versions_done, rows_done, rows);
        self.combine(versions);
    }

    /// Makes the scores of versions anew from those of their rows.
    fn combine(&mut self, versions: &[u32]) {
        if self.scores.versions.is_empty() {
            return;
        }
        let (index, rows) = (self.index, &self.scores.rows);
        let scores = &mut self.scores.versions;
        if index.is_flat() {
            combine(
                self.neighbours,
                versions,
                |version| rows[version as usize],
                scores,
            );
        } else {
            let own = |version| own_score(index, rows, version, NO_SCORE);
            combine(self.neighbours, versions, own, scores);
        }
    }

    fn score(&self, version: u32) -> f32 {
        self.scores.by_version()[version as usize]
    }

    /// The score of the `n`-th best of some versions, or of the last.
    fn nth_best(&mut self, versions: &[u32], n: usize) -> f32 {
        let mut sorted = std::mem::take(&mut self.work.sorted);
        sorted.clear();
        sorted.extend(versions.iter().map(|&version| self.score(version)));
        let at = n.min(sorted.len()) - 1;
        let (_, &mut score, _) = sorted.select_nth_unstable_by(at, |a, b| b.total_cmp(a));
        self.work.sorted = sorted;
        score
    }

    /// Replaces by exact cosines all own scores of versions that may be among the `k` best.
    fn rescore_exactly(&mut self, head: &mut Vec<u32>, (k, listed): (usize, usize)) -> Result<()> {
        let most = k.saturating_add(MAX_RESCORED);
        let last = self.nth_best(head, k);
        // Of versions with equal scores all or none are read, so that their places in memory do not matter.
        let first: Vec<u32> = self.those(head, |score| score >= last);
        if first.len() > most {
            return Ok(());
        }
        let mut rest: Vec<u32> = self.those(head, |score| score < last);
        let lowest = self.nth_best(head, listed);
        let margin = |step| error_margin(self.query.1.scale, step);
        let margin = first.iter().fold(0.0f32, |widest, &version| {
            widest.max(self.error(version, margin))
        });
        // Their exact cosines tell how far down a better one may hide.
        self.exact(&first)?;
        let floor = self.nth_best(&first, k) - margin;
        if head.len() >= listed && floor < lowest {
            let old = head.len();
            let floors = Floors {
                certain: floor,
                usual: f32::INFINITY,
            };
            self.extend(head, floors);
            rest.extend_from_slice(&head[old..]);
        }
        rest = self.those(&rest, |score| score > floor);
        if first.len() + rest.len() > most {
            let crowd = self.nth_best(&rest, most - first.len() + 1);
            rest = self.those(&rest, |score| score > crowd);
        }
        self.exact(&rest)?;
        // A neighbour's share may have changed.
        if self.neighbours.is_some() {
            self.combine(head);
        }
        Ok(())
    }

    fn those(&self, versions: &[u32], wanted: impl Fn(f32) -> bool) -> Vec<u32> {
        let wanted = |&version: &u32| wanted(self.score(version));
        versions.iter().copied().filter(wanted).collect()
    }

    /// Replaces the scores of the versions' wholes and best chunks by exact cosines.
    fn exact(&mut self, versions: &[u32]) -> Result<()> {
        let (unit, query) = self.query;
        let index = self.index;
        for &version in versions {
            let range = index.rows_of(version);
            let chunks = range.start as usize + 1..range.end as usize;
            let best = best(&self.scores.rows[chunks], NO_SCORE);
            for row in range.clone() {
                let score = &mut self.scores.rows[row as usize];
                let margin = 2.0 * error_margin(query.scale, index.vectors.step(row));
                let is_near = row == range.start || *score >= best - margin;
                let slot = index.slots[row as usize];
                if *score == NO_SCORE || slot == NO_SLOT || !is_near {
                    continue;
                }
                let RankBuffers {
                    bytes, original, ..
                } = self.work;
                index.exact_vectors.read(slot, bytes, original)?;
                *score = dot(unit, original);
            }
        }
        self.combine(versions);
        Ok(())
    }
}

/// Sets the scores of versions to what smoothing makes of what they score on their `own`.
fn combine(
    neighbours: Option<&NeighbourTable>,
    versions: &[u32],
    own: impl Fn(u32) -> f32,
    scores: &mut [f32],
) {
    for &version in versions {
        scores[version as usize] = match neighbours {
            None => own(version),
            Some(neighbours) => context_window::smoothed(neighbours, version, &own),
        };
    }
}
