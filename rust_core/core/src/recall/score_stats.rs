//! Mean and deviation of the scores of an arm, identical to the bit in any order of the memories.
//!
//! Sums of floats depend on their order. Each score is rounded to an integer of 22 bits on a scale that the largest
//! score determines, and the integers are added exactly.

use super::filter::Allowed;
use crate::dense::{Kernel, NO_SCORE, Work};

/// Bits that the largest score fills: adding [`MAGIC`] rounds up to here.
const BITS: i32 = 22;
/// 1.5 x 2^23: what is added to it has no room for a fraction, so that the integer is the difference of the bits.
const MAGIC: f32 = 12_582_912.0;
/// Scores per step: 511 integers of 22 bits stay within 31 bits, and these are the most in whole registers.
const STEP: usize = 496;
/// Scores at a time, each with a largest one of its own.
const LANES: usize = 16;
/// A largest score below this is 0: its scale would not be a number.
const SMALLEST: f32 = 1e-30;
/// Variance, as a share of the squared mean, below which scores count as equal: int8 cosines of one and the same vector
/// are that far from the exact one.
const EQUAL: f64 = 1e-5;

/// Mean and population standard deviation over all memories that pass.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct ScoreStats {
    pub(crate) mean: f64,
    pub(crate) deviation: f64,
}

impl ScoreStats {
    /// Computes the statistics of `scores`. Memories that do not pass hold 0 or [`NO_SCORE`], so zeros are counted by
    /// the number of memories that pass.
    pub(super) fn new(scores: &[f32], allowed: Allowed<'_>) -> Self {
        let kernel = Kernel::best();
        let largest = kernel.run(Largest(scores));
        let scale = scale_of(largest);
        let (mut sum, mut squares, mut absent) = (0i128, 0i128, 0);
        for step in scores.chunks(STEP) {
            let part = kernel.run(SumScores(step, scale));
            sum += i128::from(part.sum);
            squares += i128::from(part.squares);
            absent += part.absent;
        }
        // An array of cosines marks everything that does not pass; the others hold 0 there.
        let count = if absent == 0 {
            allowed.versions.len()
        } else {
            scores.len() as u32 - absent
        };
        if count == 0 {
            return Self::default();
        }
        // Exact: at most 28 bits of rows, 44 of a square.
        let variance = squares * i128::from(count) - sum * sum;
        let mean = sum as f64 / f64::from(count);
        let variance = variance as f64 / (f64::from(count) * f64::from(count));
        let unit = 1.0 / f64::from(scale);
        Self {
            mean: mean * unit,
            deviation: if variance <= EQUAL * mean * mean {
                0.0
            } else {
                variance.sqrt() * unit
            },
        }
    }
}

/// Computes [`largest`].
struct Largest<'a>(&'a [f32]);

impl Work for Largest<'_> {
    type Output = f32;

    #[expect(clippy::inline_always, reason = "compiled for each instruction set")]
    #[inline(always)]
    fn run(self) -> Self::Output {
        largest(self.0)
    }
}

/// Sums of the scores of a step, in units of a scale, and the number of absent ones.
#[derive(Debug, Clone, Copy, Default)]
struct Part {
    sum: i32,
    squares: i64,
    absent: u32,
}

/// Adds up at most [`STEP`] scores, in units of a scale.
struct SumScores<'a>(&'a [f32], f32);

impl Work for SumScores<'_> {
    type Output = Part;

    #[expect(clippy::inline_always, reason = "compiled for each instruction set")]
    #[inline(always)]
    fn run(self) -> Self::Output {
        let Self(scores, scale) = self;
        // Sums of integers, which the compiler may add in any order: with one for each lane it keeps them in memory.
        let mut part = Part::default();
        for &score in scores {
            let missing = score == NO_SCORE;
            let score = if missing { 0.0 } else { score };
            let level = (score * scale + MAGIC)
                .to_bits()
                .wrapping_sub(MAGIC.to_bits())
                .cast_signed();
            part.sum += level;
            part.squares += i64::from(level) * i64::from(level);
            part.absent += u32::from(missing);
        }
        part
    }
}

/// The largest magnitude of a score.
#[expect(clippy::inline_always, reason = "compiled for each instruction set")]
#[inline(always)]
fn largest(scores: &[f32]) -> f32 {
    let mut most = [0.0f32; LANES];
    let (blocks, rest) = scores.as_chunks::<LANES>();
    let mut last = [0.0; LANES];
    last[..rest.len()].copy_from_slice(rest);
    for block in blocks.iter().chain(std::iter::once(&last)) {
        for (most, &score) in most.iter_mut().zip(block) {
            let size = if score == NO_SCORE { 0.0 } else { score.abs() };
            *most = if size > *most { size } else { *most };
        }
    }
    most.into_iter().fold(0.0, f32::max)
}

/// The power of two that brings `largest` below 2^22.
fn scale_of(largest: f32) -> f32 {
    let exponent = (largest.max(SMALLEST).to_bits() >> 23).cast_signed() - 127;
    2.0f32.powi(BITS - 1 - exponent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bitmap::Bitmap;

    fn spread(scores: &[f32]) -> ScoreStats {
        let mut rows = Bitmap::empty(scores.len() as u32);
        (0..scores.len() as u32).for_each(|row| _ = rows.insert(row));
        let allowed = Allowed {
            versions: &rows,
            rows: &rows,
        };
        ScoreStats::new(scores, allowed)
    }

    fn scores(factor: f32) -> Vec<f32> {
        (0..5000u32)
            .map(|n| (n.wrapping_mul(2_654_435_761) as f32 / 4e9 - 0.3) * factor)
            .collect()
    }

    #[test]
    fn the_order_does_not_matter_and_absent_scores_do_not_count() {
        let mut shuffled = scores(1.0);
        let expected = spread(&shuffled);
        shuffled.sort_by(f32::total_cmp);
        assert_eq!(spread(&shuffled), expected);
        shuffled.insert(700, NO_SCORE);
        shuffled.insert(0, NO_SCORE);
        assert_eq!(spread(&shuffled), expected);
    }

    #[test]
    fn it_is_near_what_f64_gives_at_any_size() {
        for factor in [1e-20, 1e-5, 1.0, 3e4] {
            let scores = scores(factor);
            let count = scores.len() as f64;
            let mean = scores.iter().map(|&x| f64::from(x)).sum::<f64>() / count;
            let squares = scores.iter().map(|&x| (f64::from(x) - mean).powi(2));
            let deviation = (squares.sum::<f64>() / count).sqrt();
            let found = spread(&scores);
            assert!((found.mean / mean - 1.0).abs() < 1e-5, "{found:?} {mean}");
            assert!(
                (found.deviation / deviation - 1.0).abs() < 1e-5,
                "{found:?} {deviation}"
            );
        }
    }

    #[test]
    fn steps_of_the_largest_levels_do_not_overflow() {
        // Rounded up they fill all of their bits.
        let most = 1.0f32.next_down();
        for score in [most, -most] {
            let found = spread(&[score; 3 * STEP]);
            assert!((found.mean - f64::from(score)).abs() < 1e-6, "{found:?}");
        }
    }

    #[test]
    fn equal_scores_have_no_spread() {
        for score in [0.0, 0.1, -0.7, 1e-38, 5000.0] {
            assert!(
                spread(&[score; 1000]).deviation < f64::MIN_POSITIVE,
                "{score}"
            );
        }
        assert_eq!(spread(&[]), ScoreStats::default());
    }
}
