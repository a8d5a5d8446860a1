//! The semantic arm: a coarse look at all rows, a finer one at those that may matter, exact cosines of the head.
//!
//! Each step reads more bytes of fewer rows. Which rows follows from the scores of the step before, so an answer does
//! not depend on where rows lie or on how they were read. Mean and deviation of the arm are those of the coarse look:
//! the deviation is about half a percent larger than that of whole bytes. Every memory that an arm proposes has its
//! finer score.

use crate::api::Result;
use crate::bitmap::Bitmap;
use crate::dense::exact_vectors::NO_SLOT;
use crate::dense::{Beside, DenseIndex, NO_SCORE, Plan, QuantisedQuery, dot, error_margin};
use crate::index::Index;
use crate::index::neighbours::{GAP, NeighbourTable};
use crate::recall::buffers::{ArmScores, Work};
use crate::recall::context_window;
use crate::recall::filter::Allowed;
use crate::recall::filtered_scores::{FilteredScores, is_few};
use crate::topk::{Scored, above, better_first, reaching};

/// Most memories beyond the `k` best that are rescored: with more of them within the quantisation error they are a crowd of
/// near copies, whose order does not matter.
const MAX_RESCORED: usize = 512;

/// Up to this many rows whole bytes are read at once: they fit the second cache, and mean and deviation are then those
/// of all bytes.
const WHOLE_ROWS: u32 = 2048;

/// Memories beyond the `k` best that are looked at first.
const MARGIN_ROWS: usize = 54;

/// More than one in so many versions are a crowd: looking at each with its neighbours costs more than reading the rest of
/// all rows in order.
const CROWD: u32 = 4;

/// Fills `scores` with coarse cosines of the allowed rows and versions, of whole bytes where there are few;
/// [`NO_SCORE`] elsewhere. What is to be done `beside` is done when it returns.
pub(crate) fn look(
    state: &Index,
    allowed: Allowed<'_>,
    plan: Plan,
    query: &QuantisedQuery,
    beside: Option<Beside<'_>>,
    scores: &mut ArmScores,
) {
    scores.whole = !is_coarse(allowed);
    let how = (plan, scores.whole);
    state
        .vectors
        .look(query, allowed.rows, how, beside, &mut scores.rows);
    fold_rows(state, allowed, scores);
}

/// Whether a look at the rows that pass is coarse, so that one for several queries at once finds the same.
pub(crate) fn is_coarse(allowed: Allowed<'_>) -> bool {
    allowed.rows.len() > WHOLE_ROWS
}

/// As [`look`], where one for several queries has left the cosines of rows in `ready`, and takes them.
pub(crate) fn take(
    state: &Index,
    allowed: Allowed<'_>,
    ready: &mut Vec<f32>,
    scores: &mut ArmScores,
) {
    scores.whole = false;
    std::mem::swap(&mut scores.rows, ready);
    fold_rows(state, allowed, scores);
}

/// Makes the scores of versions from those of rows; leaves them out where they are the same.
fn fold_rows(state: &Index, allowed: Allowed<'_>, scores: &mut ArmScores) {
    scores.leave_to_rows();
    if !state.is_flat() {
        let ArmScores { rows, versions, .. } = scores;
        best_rows(state, allowed.versions, NO_SCORE, rows, versions);
    }
}

/// Fills `versions` with the mean of the whole's score and the best chunk's for each allowed version, `absent` elsewhere.
///
/// A whole or chunks without a score (`absent`) leave the word to the other. The mean beats the best row by .01 to .02 of
/// recall on long chats, where a piece of an answer easily looks better than the short question that it answers.
pub(crate) fn best_rows(
    state: &Index,
    allowed: &Bitmap,
    absent: f32,
    rows: &[f32],
    versions: &mut Vec<f32>,
) {
    versions.clear();
    versions.resize(state.columns.len() as usize, absent);
    for version in allowed.iter() {
        versions[version as usize] = own_score(state, rows, version, absent);
    }
}

/// The score of a version, out of those of all rows.
fn own_score(state: &Index, rows: &[f32], version: u32, absent: f32) -> f32 {
    let range = state.rows_of(version);
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
    pub(crate) state: &'a Index,
    pub(crate) allowed: Allowed<'a>,
    /// The query as a unit vector and in bytes.
    pub(crate) query: &'a (Vec<f32>, QuantisedQuery),
    /// Where context windows were applied, the conversations.
    pub(crate) layout: Option<&'a NeighbourTable>,
    pub(crate) scores: &'a mut ArmScores,
    pub(crate) work: &'a mut Work,
}

/// Scores that are to be reached.
#[derive(Debug, Clone, Copy)]
struct Floors {
    /// That of the `k`-th best: whatever may reach it is looked at.
    certain: f32,
    /// That of the last that is listed: of what reaches it hardly a memory is not looked at.
    usual: f32,
}

impl Ranking<'_> {
    /// Fills `ranked` with the `depth` best versions; the `k` best have exact cosines, all others in it and `proposed`,
    /// which other arms rank, those of whole bytes.
    pub(crate) fn rank(
        &mut self,
        (k, depth): (usize, usize),
        proposed: &[u32],
        ranked: &mut Vec<Scored>,
    ) -> Result<()> {
        self.work.looked.reset(self.state.columns.len());
        self.work.refined.reset(self.state.rows());
        self.refine(proposed);
        let looked = k.saturating_add(MARGIN_ROWS).max(depth);
        // Down to here the list is to be complete.
        let listed = k.saturating_add(MARGIN_ROWS / 2).max(depth);
        let mut head = self.first_look(looked);
        // What the last of them have tells how far down a better one may hide. Among whole bytes none hides.
        if head.len() >= looked && !self.scores.whole {
            let floors = Floors {
                certain: self.nth_best(&head, k.max(1)),
                usual: self.nth_best(&head, listed),
            };
            self.extend(&mut head, floors);
        }
        if k > 0 && !head.is_empty() {
            self.rescore(&mut head, (k, listed))?;
        }
        ranked.clear();
        ranked.extend(head.iter().map(|&version| (self.score(version), version)));
        let ids = &self.state.columns.memory_id;
        if ranked.len() > depth {
            if depth > 0 {
                ranked.select_nth_unstable_by(depth - 1, |&a, &b| better_first(a, b, ids));
            }
            ranked.truncate(depth);
        }
        ranked.sort_unstable_by(|&a, &b| better_first(a, b, ids));
        Ok(())
    }

    /// The best versions of the coarse look, `looked` or, with all that equal the last, more; they are refined.
    fn first_look(&mut self, looked: usize) -> Vec<u32> {
        let Work {
            selection, best, ..
        } = self.work;
        let passing = FilteredScores::of(self.scores.by_version(), self.allowed);
        passing.with_ties(selection, (NO_SCORE, looked), best);
        let head: Vec<u32> = best.iter().map(|&(_, version)| version).collect();
        self.refine(&head);
        head
    }

    /// Adds to `head` the versions whose refined score may reach a floor, and refines them.
    fn extend(&mut self, head: &mut Vec<u32>, floors: Floors) {
        self.find_near(floors);
        let is_crowd = self.work.best.len() as u32 > self.allowed.versions.len() / CROWD;
        if is_crowd && !self.scores.whole {
            self.look_whole();
            self.find_near(floors);
        }
        self.work.in_head.reset(self.state.columns.len());
        for &version in head.iter() {
            self.work.in_head.insert(version);
        }
        let old = head.len();
        let Work { best, in_head, .. } = &mut *self.work;
        let near = best.iter().map(|&(_, version)| version);
        head.extend(near.filter(|&version| in_head.insert(version)));
        self.refine(&head[old..]);
    }

    /// Notes the versions whose refined score may reach a floor.
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
            let factor = self.layout.map_or(1.0, |_| context_window::LARGEST_FACTOR);
            let widest = self.state.vectors.largest_step() * factor;
            let lowest = (floors.certain - reach * widest).min(floors.usual - usual * widest);
            above(scores, lowest, &mut near);
            near.retain(may_reach);
        }
        self.work.best = near;
    }

    /// How far the scores of all versions err, of a row of step 1, where that is at hand.
    fn errors(&self) -> Option<&[f32]> {
        match self.layout {
            None => self.state.is_flat().then(|| self.state.vectors.steps()),
            Some(layout) => layout.errors(),
        }
    }

    /// How far a coarse score may be from the refined one, and how far it usually is at most, of a row of step 1.
    fn reach(&self) -> (f32, f32) {
        if self.scores.whole {
            return (0.0, 0.0);
        }
        let QuantisedQuery { reach, usual, .. } = self.query.1;
        (reach, usual)
    }

    /// Brings all scores to whole bytes: in order that costs less than to look at a crowd one by one.
    fn look_whole(&mut self) {
        let mut rows = std::mem::take(&mut self.work.fresh);
        rows.clear();
        let refined = &self.work.refined;
        rows.extend(
            self.allowed
                .rows
                .iter()
                .filter(|&row| !refined.contains(row)),
        );
        let Self { state, scores, .. } = self;
        state.vectors.refine(&self.query.1, &rows, &mut scores.rows);
        self.work.fresh = rows;
        scores.whole = true;
        fold_rows(state, self.allowed, scores);
        if let Some(layout) = self.layout {
            context_window::smooth_arm(self.allowed, layout, scores);
        }
    }

    /// How far a version's score errs, from how far a row of a step does.
    fn error(&self, version: u32, of_step: impl Fn(f32) -> f32) -> f32 {
        let own = |version| of_step(self.state.largest_step(version));
        match self.layout {
            None => own(version),
            Some(layout) => context_window::error(layout, version, own),
        }
    }

    /// Calls `row` with the rows that a version's score comes from: its own and those of its neighbours.
    #[inline]
    fn each_row(&self, version: u32, mut row: impl FnMut(u32)) {
        match self.layout.and_then(|layout| layout.around(version)) {
            None => self.state.rows_of(version).for_each(row),
            Some(near) => {
                for &version in near.iter().filter(|&&version| version != GAP) {
                    self.state.rows_of(version).for_each(&mut row);
                }
            }
        }
    }

    /// Brings the scores of versions to whole bytes.
    pub(crate) fn refine(&mut self, versions: &[u32]) {
        if self.scores.whole {
            return;
        }
        let mut looked = std::mem::take(&mut self.work.looked);
        let mut refined = std::mem::take(&mut self.work.refined);
        let mut rows = std::mem::take(&mut self.work.fresh);
        rows.clear();
        for &version in versions {
            if looked.insert(version) {
                self.each_row(version, |row| {
                    if refined.insert(row) {
                        rows.push(row);
                    }
                });
            }
        }
        let (_, query) = self.query;
        self.state
            .vectors
            .refine(query, &rows, &mut self.scores.rows);
        (self.work.looked, self.work.refined, self.work.fresh) = (looked, refined, rows);
        self.fold(versions);
    }

    /// Makes the scores of versions anew from those of their rows.
    fn fold(&mut self, versions: &[u32]) {
        if self.scores.versions.is_empty() {
            return;
        }
        let (state, rows) = (self.state, &self.scores.rows);
        let scores = &mut self.scores.versions;
        if state.is_flat() {
            fold(
                self.layout,
                versions,
                |version| rows[version as usize],
                scores,
            );
        } else {
            let own = |version| own_score(state, rows, version, NO_SCORE);
            fold(self.layout, versions, own, scores);
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
    fn rescore(&mut self, head: &mut Vec<u32>, (k, listed): (usize, usize)) -> Result<()> {
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
        if self.layout.is_some() {
            self.fold(head);
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
        let state = self.state;
        for &version in versions {
            let range = state.rows_of(version);
            let chunks = range.start as usize + 1..range.end as usize;
            let best = best(&self.scores.rows[chunks], NO_SCORE);
            for row in range.clone() {
                let score = &mut self.scores.rows[row as usize];
                let margin = 2.0 * error_margin(query.scale, state.vectors.step(row));
                let is_near = row == range.start || *score >= best - margin;
                let slot = state.slots[row as usize];
                if *score == NO_SCORE || slot == NO_SLOT || !is_near {
                    continue;
                }
                let Work {
                    bytes, original, ..
                } = self.work;
                state.exact_vectors.read(slot, bytes, original)?;
                *score = dot(unit, original);
            }
        }
        self.fold(versions);
        Ok(())
    }
}

/// Sets the scores of versions to what smoothing makes of what they score on their `own`.
fn fold(
    layout: Option<&NeighbourTable>,
    versions: &[u32],
    own: impl Fn(u32) -> f32,
    scores: &mut [f32],
) {
    for &version in versions {
        scores[version as usize] = match layout {
            None => own(version),
            Some(layout) => context_window::smoothed(layout, version, &own),
        };
    }
}
