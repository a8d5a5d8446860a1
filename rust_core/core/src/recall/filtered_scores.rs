//! The scores of what passes a filter, gathered where that is little, so that arrays as long as the bank are not read
//! in vain.

use std::cmp::Ordering;

use super::filter::Allowed;
use super::score_stats::ScoreStats;
use crate::topk::{Scored, Selection};

/// One version in so many has to pass for the whole array to be read in order, which takes less time for each.
const SPARSE: usize = 16;

/// Returns true if so few versions pass that the whole array costs more.
pub(super) fn is_few(allowed: Allowed<'_>, scores: &[f32]) -> bool {
    (allowed.versions.len() as usize) < scores.len() / SPARSE
}

/// Versions that pass, ascending, and their scores; or all scores, where the versions are their places.
pub(super) enum FilteredScores<'a> {
    Few(Vec<u32>, Vec<f32>),
    Many(&'a [f32]),
}

impl<'a> FilteredScores<'a> {
    /// Gathers the scores of an arm by version.
    pub(super) fn of(scores: &'a [f32], allowed: Allowed<'_>) -> Self {
        if !is_few(allowed, scores) {
            return Self::Many(scores);
        }
        let versions: Vec<u32> = allowed.versions.iter().collect();
        let own = versions.iter().map(|&version| scores[version as usize]);
        let own = own.collect();
        Self::Few(versions, own)
    }

    fn scores(&self) -> &[f32] {
        match self {
            Self::Few(_, scores) => scores,
            Self::Many(scores) => scores,
        }
    }

    fn version(&self, place: u32) -> u32 {
        match self {
            Self::Few(versions, _) => versions[place as usize],
            Self::Many(_) => place,
        }
    }

    /// Mean and deviation.
    pub(super) fn stats(&self, allowed: Allowed<'_>) -> ScoreStats {
        ScoreStats::new(self.scores(), allowed)
    }

    /// Fills `best` with the `depth` best versions above `floor`; see [`Selection::top`].
    pub(super) fn top(
        &self,
        selection: &mut Selection,
        (floor, depth): (f32, usize),
        ties: impl Fn(u32, u32) -> Ordering,
        best: &mut Vec<Scored>,
    ) {
        let ties = |a, b| ties(self.version(a), self.version(b));
        selection.top(self.scores(), floor, depth, ties, best);
        self.name(best);
    }

    /// As [`top`](Self::top), with all that equal the last; see [`Selection::with_ties`].
    pub(super) fn with_ties(
        &self,
        selection: &mut Selection,
        (floor, depth): (f32, usize),
        best: &mut Vec<Scored>,
    ) {
        selection.with_ties(self.scores(), floor, depth, best);
        self.name(best);
    }

    /// Puts versions in the place of places.
    fn name(&self, best: &mut [Scored]) {
        for (_, place) in best {
            *place = self.version(*place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bitmap::Bitmap;
    use crate::dense::NO_SCORE;

    /// Every `step`-th of 5,000 versions passes; one in seven of these has no score, and many have the same.
    fn check(step: u32, absent: f32) {
        let mut rows = Bitmap::empty(5000);
        let mut scores = vec![absent; 5000];
        for version in (3..5000).step_by(step as usize) {
            rows.insert(version);
            let value = version.wrapping_mul(2_654_435_761) >> 26;
            scores[version as usize] = match version % 7 {
                0 => absent,
                _ => value as f32 / 50.0 + 0.1,
            };
        }
        let (versions, rows) = (&rows, &rows);
        let allowed = Allowed { versions, rows };
        let (passing, all) = (
            FilteredScores::of(&scores, allowed),
            FilteredScores::Many(&scores),
        );
        assert_eq!(matches!(passing, FilteredScores::Few(..)), step > 16);
        assert_eq!(passing.stats(allowed), all.stats(allowed));
        let backwards = |a: u32, b: u32| b.cmp(&a);
        let (mut selection, mut found, mut expected) = Default::default();
        for depth in [0, 1, 10, 4000] {
            let asked = (absent, depth);
            passing.top(&mut selection, asked, backwards, &mut found);
            all.top(&mut selection, asked, backwards, &mut expected);
            assert_eq!(found, expected);
            passing.with_ties(&mut selection, asked, &mut found);
            all.with_ties(&mut selection, asked, &mut expected);
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn few_give_what_the_whole_array_gives() {
        for step in [2, 16, 17, 100, 1000, 4999] {
            check(step, 0.0);
            check(step, NO_SCORE);
        }
    }
}
