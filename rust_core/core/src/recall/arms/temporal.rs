//! The temporal arm: scores memories by their distance from the time windows of the request.

use crate::bitmap::Bitmap;
use crate::index::columns::{NO_TIME, STRETCH, Times};
use crate::recall::Recall;

/// Exponents of e by which the score decays over the tail: a memory told a tail later scores 0.05.
const TAIL_EXPONENTS: f64 = 3.0;
/// Beyond this many tails a score (2e-4) cannot tell memories apart, and is 0.
const TAILS: f64 = 3.0;

/// Scores by version, kept from one recall to the next: only what has a score is wiped.
#[derive(Debug, Default)]
pub(crate) struct TimeScores {
    pub(crate) values: Vec<f32>,
    /// Stretches in which some may not be 0.
    scored: Vec<usize>,
}

impl TimeScores {
    /// A 0 for each of so many versions.
    fn clear(&mut self, versions: usize) {
        for stretch in self.scored.drain(..) {
            let begin = stretch * STRETCH;
            let end = self.values.len().min(begin + STRETCH);
            self.values[begin..end].fill(0.0);
        }
        self.values.resize(versions, 0.0);
    }
}

/// Fills `scores` with 1 for memories inside a window, less for those told soon before or after, 0 elsewhere; tells
/// whether one may be above 0.
pub(crate) fn score(recall: Recall<'_>, scores: &mut TimeScores) -> bool {
    let Recall {
        index,
        request,
        allowed,
        ..
    } = recall;
    let near = Near {
        windows: &request.time_windows,
        tail: request.time_tail_ms as f64,
    };
    near.score(&index.columns.occurred_at, allowed.versions, scores)
}

/// The time windows of a request and their tail.
struct Near<'a> {
    /// First and last milliseconds.
    windows: &'a [(i64, i64)],
    tail: f64,
}

impl Near<'_> {
    fn score(&self, times: &Times, passing: &Bitmap, scores: &mut TimeScores) -> bool {
        scores.clear(times.len());
        let (first, last) = self.reach();
        for (stretch, versions) in times.near(first, last) {
            scores.scored.push(stretch);
            for version in versions.filter(|&version| passing.contains(version as u32)) {
                scores.values[version] = self.score_of(times[version]);
            }
        }
        !scores.scored.is_empty()
    }

    /// The first and the last time that may score.
    fn reach(&self) -> (i64, i64) {
        let most = (self.tail * TAILS).ceil() as i64;
        let first = self.windows.iter().map(|&(first, _)| first).min();
        let last = self.windows.iter().map(|&(_, last)| last).max();
        (
            // A version without a time has the smallest one.
            first
                .unwrap_or(i64::MAX)
                .saturating_sub(most)
                .max(NO_TIME + 1),
            last.unwrap_or(i64::MIN).saturating_add(most),
        )
    }

    fn score_of(&self, time: i64) -> f32 {
        let gap = |&(first, last): &(i64, i64)| {
            (first.saturating_sub(time))
                .max(time.saturating_sub(last))
                .max(0)
        };
        let nearest = self.windows.iter().map(gap).min().unwrap_or(i64::MAX);
        let tails = nearest as f64 / self.tail;
        if time != NO_TIME && tails < TAILS {
            (-TAIL_EXPONENTS * tails).exp() as f32
        } else {
            0.0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_that_are_left_out_hold_nothing_that_scores() {
        let times: Vec<i64> = (0..1_000i64)
            .map(|at| match at % 13 {
                5 => NO_TIME,
                // Some stretches are far from every window.
                _ if at / 100 % 3 == 1 => 1_000_000_000 + at,
                _ => at * 97 % 5_000 - 2_500,
            })
            .collect();
        let times = Times::from(times);
        let mut scores = TimeScores::default();
        // A larger bank came before, all of whose memories scored.
        let larger = Times::from(vec![0; 5_000]);
        let mut all = Bitmap::empty(5_000);
        (0..5_000).for_each(|at| _ = all.insert(at));
        let at_once = Near {
            windows: &[(0, 0)],
            tail: 1.0,
        };
        assert!(at_once.score(&larger, &all, &mut scores));
        assert!(scores.values.iter().all(|&score| score > 0.9));
        let mut passing = Bitmap::empty(1_000);
        (0..1_000)
            .filter(|at| at % 7 != 3)
            .for_each(|at| _ = passing.insert(at));
        for (windows, tail) in [
            (vec![], 10.0),
            (vec![(0, 100)], 50.0),
            (vec![(-900, -850), (2_000, 2_100)], 1.0),
            (vec![(i64::MIN, -2_400)], 3.0),
            (vec![(i64::MAX - 5, i64::MAX)], 4e18),
        ] {
            let near = Near {
                windows: &windows,
                tail,
            };
            let mut expected = vec![0.0; 1_000];
            assert_eq!(
                near.score(&times, &passing, &mut scores),
                !windows.is_empty()
            );
            for version in passing.iter() {
                expected[version as usize] = near.score_of(times[version as usize]);
            }
            assert_eq!(scores.values, expected, "{windows:?}");
            assert_eq!(
                scores.values.iter().any(|&score| score > 0.0),
                !windows.is_empty(),
                "{windows:?}"
            );
        }
    }
}
