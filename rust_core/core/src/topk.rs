//! Selects the best of an array, with ties broken the same way everywhere.

use std::cmp::Ordering;

use crate::api::MemoryId;
use crate::dense::{Kernel, Work};

/// A version with its score in one arm.
pub(crate) type Scored = (f32, u32);

/// Higher score first; equal scores by ascending memory id, then by ascending version. Scores are not NaN.
#[inline]
pub(crate) fn better_first(left: Scored, right: Scored, ids: &[MemoryId]) -> Ordering {
    right
        .0
        .partial_cmp(&left.0)
        .unwrap_or(Ordering::Equal)
        .then_with(|| by_id(left.1, right.1, ids))
}

/// Order of two versions by memory id, then by number.
#[inline]
pub(crate) fn by_id(left: u32, right: u32, ids: &[MemoryId]) -> Ordering {
    ids[left as usize]
        .cmp(&ids[right as usize])
        .then_with(|| left.cmp(&right))
}

/// Scores that are looked at together: as many as fit an AVX-512 register or four SSE registers.
const LANES: usize = 16;

/// Scores of which the largest is looked at before all are: sixteen in each lane.
const STRETCH: usize = LANES * LANES;

/// Picks the best of arrays; keeps its buffers from one array to the next.
#[derive(Debug, Default)]
pub(crate) struct Selection {
    keys: Vec<u64>,
    largest: Vec<f32>,
}

impl Selection {
    /// Fills `best` with the `depth` best entries of `scores` above `floor`, best first, equal scores in the order of
    /// `ties`.
    pub(crate) fn top(
        &mut self,
        scores: &[f32],
        floor: f32,
        depth: usize,
        ties: impl Fn(u32, u32) -> Ordering,
        best: &mut Vec<Scored>,
    ) {
        self.with_ties(scores, floor, depth, best);
        for equal in best.chunk_by_mut(|a, b| a.0.total_cmp(&b.0).is_eq()) {
            equal.sort_unstable_by(|a, b| ties(a.1, b.1));
        }
        best.truncate(depth);
    }

    /// Fills `best` with the `depth` best entries of `scores` above `floor` and all that equal the last of them, best
    /// first, equal scores in the order of the array.
    pub(crate) fn with_ties(
        &mut self,
        scores: &[f32],
        floor: f32,
        depth: usize,
        best: &mut Vec<Scored>,
    ) {
        best.clear();
        if depth > 0 {
            self.collect(scores, floor, depth);
            self.keys.sort_unstable_by(|a, b| b.cmp(a));
            best.extend(self.keys.iter().map(|&key| scored(key)));
        }
    }

    /// Leaves in `keys` the `depth` best entries and all that equal the last of them.
    fn collect(&mut self, scores: &[f32], floor: f32, depth: usize) {
        // The least score that still counts: at first the next one above the floor, which itself is out.
        let mut threshold = self.reached(scores, depth).max(floor.next_up());
        let keys = &mut self.keys;
        keys.clear();
        // Twice the depth before a cut: each cut costs its length and is paid for by as many entries.
        let mut room = depth.saturating_mul(2).max(64);
        let kernel = Kernel::best();
        let mut next = 0;
        while next < scores.len() {
            // Most stretches have nothing above the threshold: one comparison a score settles them.
            let (step, hits) = kernel.run(FirstAbove(scores, next, threshold));
            for lane in lanes_of(hits) {
                keys.push(key(scores[step + lane], (step + lane) as u32));
            }
            if keys.len() >= room {
                threshold = cut(keys, depth);
                // More are left than the depth where many equal the last one.
                room = (2 * keys.len()).max(64);
            }
            next = step + LANES;
        }
        if keys.len() > depth {
            cut(keys, depth);
        }
    }

    /// A score that at least `depth` entries reach, and hardly more where the best are spread out: the `depth`-th of
    /// the largest of every sixteen. Of a short array it is the least that there is.
    fn reached(&mut self, scores: &[f32], depth: usize) -> f32 {
        let (stretches, _) = scores.as_chunks::<STRETCH>();
        let largest = &mut self.largest;
        largest.clear();
        if stretches.len() * LANES > depth {
            largest.reserve(stretches.len() * LANES);
            let kernel = Kernel::best();
            largest.extend(
                stretches
                    .iter()
                    .flat_map(|stretch| kernel.run(Largest(stretch))),
            );
            return *largest
                .select_nth_unstable_by(depth - 1, |a, b| b.total_cmp(a))
                .1;
        }
        f32::NEG_INFINITY
    }
}

/// The largest of every sixteen scores, which are as far from each other as possible: neighbours are often alike.
struct Largest<'a>(&'a [f32; STRETCH]);

impl Work for Largest<'_> {
    type Output = [f32; LANES];

    #[expect(clippy::inline_always, reason = "compiled for each instruction set")]
    #[inline(always)]
    fn run(self) -> Self::Output {
        let mut largest = [f32::NEG_INFINITY; LANES];
        for scores in self.0.as_chunks::<LANES>().0 {
            for (largest, &score) in largest.iter_mut().zip(scores) {
                *largest = if score > *largest { score } else { *largest };
            }
        }
        largest
    }
}

/// Fills `found` with all entries of `scores` that reach `threshold`, in the order of the array.
pub(crate) fn above(scores: &[f32], threshold: f32, found: &mut Vec<Scored>) {
    found.clear();
    let kernel = Kernel::best();
    let mut next = 0;
    while next < scores.len() {
        let (step, hits) = kernel.run(FirstAbove(scores, next, threshold));
        found.extend(lanes_of(hits).map(|lane| (scores[step + lane], (step + lane) as u32)));
        next = step + LANES;
    }
}

/// Fills `found` with all entries that, with what they err added, reach one of some floors, in the order of the array.
/// A floor comes with how many errors are added for it.
pub(crate) fn reaching(
    scores: &[f32],
    errors: &[f32],
    floors: [(f32, f32); 2],
    found: &mut Vec<Scored>,
) {
    found.clear();
    let kernel = Kernel::best();
    let mut next = 0;
    while next < scores.len() {
        let (step, hits) = kernel.run(FirstReaching(&scores[next..], &errors[next..], floors));
        let step = next + step;
        found.extend(lanes_of(hits).map(|lane| (scores[step + lane], (step + lane) as u32)));
        next = step + LANES;
    }
}

/// The first stretch with a score that reaches a floor, and which scores of it do; see [`reaching`].
struct FirstReaching<'a>(&'a [f32], &'a [f32], [(f32, f32); 2]);

impl Work for FirstReaching<'_> {
    type Output = (usize, u32);

    #[expect(clippy::inline_always, reason = "compiled for each instruction set")]
    #[inline(always)]
    fn run(self) -> Self::Output {
        let Self(scores, errors, [(first, once), (second, twice)]) = self;
        let stretches = scores.chunks(LANES).zip(errors.chunks(LANES));
        for (step, (scores, errors)) in stretches.enumerate() {
            let reaches = |(&score, &error): (&f32, &f32)| {
                u32::from(score + once * error >= first)
                    | u32::from(score + twice * error >= second)
            };
            let each = || scores.iter().zip(errors).map(reaches);
            if each().fold(0, |near, reaches| near | reaches) != 0 {
                let lanes = each().enumerate();
                return (
                    step * LANES,
                    lanes.fold(0, |hits, (lane, reaches)| hits | (reaches << lane)),
                );
            }
        }
        (scores.len(), 0)
    }
}

/// Computes [`first_above`].
struct FirstAbove<'a>(&'a [f32], usize, f32);

impl Work for FirstAbove<'_> {
    type Output = (usize, u32);

    #[expect(clippy::inline_always, reason = "compiled for each instruction set")]
    #[inline(always)]
    fn run(self) -> Self::Output {
        first_above(self.0, self.1, self.2)
    }
}

/// From `next` on, a multiple of [`LANES`], the first stretch with a score at or above `threshold`, and which scores
/// these are; the end of the array and none when there is none.
#[expect(clippy::inline_always, reason = "compiled for each instruction set")]
#[inline(always)]
fn first_above(scores: &[f32], next: usize, threshold: f32) -> (usize, u32) {
    for (step, lanes) in scores[next..].chunks(LANES).enumerate() {
        let near = lanes
            .iter()
            .fold(0, |near, &score| near | u32::from(score >= threshold));
        if near != 0 {
            let hits = lanes.iter().enumerate().fold(0u32, |hits, (lane, &score)| {
                hits | (u32::from(score >= threshold) << lane)
            });
            return (next + step * LANES, hits);
        }
    }
    (scores.len(), 0)
}

/// The lanes whose bits are set.
fn lanes_of(mut hits: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        (hits != 0).then(|| {
            let lane = hits.trailing_zeros() as usize;
            hits &= hits - 1;
            lane
        })
    })
}

/// Drops what is below the `depth`-th best score, which it returns.
fn cut(keys: &mut Vec<u64>, depth: usize) -> f32 {
    let (_, depth_th, _) = keys.select_nth_unstable_by(depth - 1, |a, b| b.cmp(a));
    let least = scored(*depth_th).0;
    // A key of this score and the highest number is the smallest of all with this score.
    let floor = key(least, u32::MAX);
    keys.retain(|&key| key >= floor);
    least
}

/// Score and number in one integer: larger for a higher score, then for a smaller number.
pub(crate) fn key(score: f32, number: u32) -> u64 {
    // Adding zero makes -0 the same as 0.
    let bits = (score + 0.0).to_bits();
    let ordered = bits ^ (((bits.cast_signed() >> 31).cast_unsigned()) | 0x8000_0000);
    (u64::from(ordered) << 32) | u64::from(!number)
}

pub(crate) fn scored(key: u64) -> Scored {
    let ordered = (key >> 32) as u32;
    let bits = if ordered >> 31 == 1 {
        ordered ^ 0x8000_0000
    } else {
        !ordered
    };
    (f32::from_bits(bits), !(key as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_scores_are_cut_by_id_not_by_place() {
        let count = 1000u32;
        let ids: Vec<MemoryId> = (0..count)
            .map(|n| u128::from(count - n).to_be_bytes())
            .collect();
        let mut best = Vec::new();
        Selection::default().top(
            &vec![0.5; count as usize],
            0.0,
            3,
            |a, b| by_id(a, b, &ids),
            &mut best,
        );
        assert_eq!(best, [(0.5, 999), (0.5, 998), (0.5, 997)]);
    }

    #[test]
    fn the_best_are_those_of_a_sort() {
        let number = |n: u32| n.wrapping_mul(2_654_435_761) as f32 / u32::MAX as f32;
        let kinds: [fn(u32, f32) -> f32; 5] = [
            |_, number| number,
            // Many alike, some of them at the cut.
            |_, number| (number * 20.0).floor(),
            |at, _| at as f32,
            |at, _| -(at as f32),
            // The best next to each other, and most absent.
            |at, number| {
                if (300..360).contains(&at) {
                    number
                } else {
                    f32::NEG_INFINITY
                }
            },
        ];
        let mut selection = Selection::default();
        for count in [0, 15, 16, 255, 256, 257, 600, 5_000] {
            for kind in kinds {
                let scores: Vec<f32> = (0..count).map(|at| kind(at, number(at))).collect();
                let mut sorted: Vec<Scored> = scores.iter().copied().zip(0..).collect();
                sorted.sort_by(|a, b| b.0.total_cmp(&a.0));
                sorted.retain(|&(score, _)| score > f32::NEG_INFINITY);
                for depth in [1, 16, 50, 1_000] {
                    let mut best = Vec::new();
                    let ties = |a: u32, b: u32| a.cmp(&b);
                    selection.top(&scores, f32::NEG_INFINITY, depth, ties, &mut best);
                    assert_eq!(best, sorted[..depth.min(sorted.len())]);
                }
            }
        }
    }

    #[test]
    fn the_floor_itself_is_out() {
        let mut best = Vec::new();
        Selection::default().top(&[0.0, 1.0, -1.0, 0.0], 0.0, 10, |a, b| a.cmp(&b), &mut best);
        assert_eq!(best, [(1.0, 1)]);
    }

    #[test]
    fn what_reaches_a_floor_with_its_error_is_found_in_order() {
        let number = |n: u32, factor: u32| n.wrapping_mul(factor) as f32 / u32::MAX as f32;
        for count in [0, 1, 15, 16, 17, 1000] {
            let scores: Vec<f32> = (0..count)
                .map(|n| match n % 7 {
                    0 => crate::dense::NO_SCORE,
                    _ => number(n, 2_654_435_761),
                })
                .collect();
            let errors: Vec<f32> = (0..count)
                .map(|n| number(n, 2_246_822_519) / 10.0)
                .collect();
            let floors = [(1.0, 2.0), (0.95, 0.5)];
            let reaches = |&at: &usize| {
                floors
                    .iter()
                    .any(|&(floor, times)| scores[at] + times * errors[at] >= floor)
            };
            let expected: Vec<Scored> = (0..scores.len())
                .filter(reaches)
                .map(|at| (scores[at], at as u32))
                .collect();
            let mut found = vec![(1.0, 1)];
            reaching(&scores, &errors, floors, &mut found);
            assert_eq!(found, expected);
            assert!(count < 1000 || (20..500).contains(&found.len()));
        }
    }

    #[test]
    fn keys_keep_score_and_order() {
        let scores = [f32::NEG_INFINITY, -2.5, -0.0, 0.0, 1e-30, 3.0];
        for pair in scores.windows(2) {
            assert!(key(pair[0], 5) <= key(pair[1], 5));
        }
        for score in scores {
            assert_eq!(scored(key(score, 77)), (score, 77));
        }
        assert!(key(1.0, 3) > key(1.0, 4));
    }
}
