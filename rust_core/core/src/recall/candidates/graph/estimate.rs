//! Estimates mean and deviation of an arm over all memories that pass from a fixed sample.
//!
//! The sample is every n-th version that passes, so the same index gives the same response. The semantic arm scores
//! every memory, and the sample suffices. The keyword arm is mostly zeros with a few high scores, which a sample would
//! miss: the contribution of rare words is summed over all rows that hold one, and only the effect of context windows
//! and common words on it is sampled.

use super::rare_words::Holders;
use super::scored::ScoredVersions;
use crate::dense::{Kernel, NO_SCORE, Work};
use crate::index::neighbours::lookup::Neighbours;
use crate::recall::score_stats::ScoreStats;

/// Versions of the sample: the deviation of as many is within 3 % (one standard error) of that of all.
const SAMPLE: u32 = 512;
/// Up to this many versions that pass, all are looked at, and mean and deviation are exact.
const WHOLE: u32 = 1 << 14;
/// Versions with a rare word that are looked at closely.
const CLOSELY: usize = 192;
/// Variance, as a share of the squared mean, below which scores count as equal, as in the exact statistics.
const EQUAL: f64 = 1e-5;

/// Every how many versions one is in the sample.
pub(crate) fn step(passing: u32) -> u32 {
    if passing <= WHOLE {
        1
    } else {
        passing.div_ceil(SAMPLE)
    }
}

/// Sums that are made beside each other.
const LANES: usize = 16;

/// Sums of scores and of their squares.
#[derive(Debug, Clone, Copy, Default)]
struct Moments {
    sum: f64,
    squares: f64,
    count: f64,
}

impl Moments {
    fn add(&mut self, score: f32) {
        let score = f64::from(score);
        self.sum += score;
        self.squares += score * score;
        self.count += 1.0;
    }

    /// The moments of an array of scores.
    fn of(scores: &[f32]) -> Self {
        Kernel::best().run(SumMoments(scores))
    }

    fn stats(self) -> ScoreStats {
        if self.count == 0.0 {
            return ScoreStats::default();
        }
        let mean = self.sum / self.count;
        let variance = self.squares / self.count - mean * mean;
        ScoreStats {
            mean,
            deviation: if variance <= EQUAL * mean * mean {
                0.0
            } else {
                variance.sqrt()
            },
        }
    }
}

/// Computes the moments of scores in independent sums, the same on every machine.
struct SumMoments<'a>(&'a [f32]);

impl Work for SumMoments<'_> {
    type Output = Moments;

    #[expect(clippy::inline_always, reason = "compiled for each instruction set")]
    #[inline(always)]
    fn run(self) -> Moments {
        let (mut sums, mut squares) = ([0.0f64; LANES], [0.0f64; LANES]);
        let (whole, rest) = self.0.as_chunks::<LANES>();
        let mut last = [0.0; LANES];
        last[..rest.len()].copy_from_slice(rest);
        for scores in whole.iter().chain(std::iter::once(&last)) {
            for lane in 0..LANES {
                let score = f64::from(scores[lane]);
                sums[lane] += score;
                squares[lane] += score * score;
            }
        }
        Moments {
            sum: sums.iter().sum(),
            squares: squares.iter().sum(),
            count: self.0.len() as f64,
        }
    }
}

/// The statistics of the semantic arm.
pub(crate) fn semantic(versions: &ScoredVersions<'_>, sample: &[(u32, Neighbours)]) -> ScoreStats {
    let mut moments = Moments::default();
    for &(version, neighbours) in sample {
        let score = versions.smoothed(&versions.scores.dense.versions, version, neighbours);
        if score != NO_SCORE {
            moments.add(score);
        }
    }
    moments.stats()
}

/// The statistics of the keyword arm. `holders` hold a rare word.
pub(crate) fn keyword(
    versions: &ScoredVersions<'_>,
    sample: &[(u32, Neighbours)],
    holders: &Holders<'_>,
    closely: &[Close],
) -> ScoreStats {
    let passing = versions.allowed.versions.len();
    let whole = sample.len() == passing as usize;
    let scores = if whole {
        &versions.scores.lexical.versions
    } else {
        &versions.scores.lexical.common
    };
    let mut moments = Moments::default();
    for &(version, neighbours) in sample {
        moments.add(versions.smoothed(scores, version, neighbours));
    }
    if whole {
        return moments.stats();
    }
    let scale = f64::from(passing) / moments.count.max(1.0);
    let (mut sum, mut squares) = (moments.sum * scale, moments.squares * scale);
    // The contribution of rare words with context windows, as a multiple of that without.
    let (mut alone, mut added) = (Moments::default(), (0.0, 0.0));
    for close in closely {
        alone.add(close.rare);
        for &(version, neighbours, share) in &close.window {
            let common = &versions.scores.lexical.common;
            let without = f64::from(versions.smoothed(common, version, neighbours));
            let rare = f64::from(versions.shared(|one| close.sum_of(one), version, neighbours));
            added.0 += share * rare;
            // The square of both less that of what was there without.
            added.1 += share * rare * (rare + 2.0 * without);
        }
    }
    let all = Moments::of(&holders.sums);
    if alone.sum > 0.0 {
        sum += added.0 * all.sum / alone.sum;
        squares += added.1 * all.squares / alone.squares;
    }
    Moments {
        sum,
        squares,
        count: f64::from(passing),
    }
    .stats()
}

/// A version with a rare word, and those whose scores it has a part in: each with its neighbours, and the share of it
/// that falls to this version.
#[derive(Debug)]
pub(crate) struct Close {
    pub(crate) rare: f32,
    pub(crate) window: Vec<(u32, Neighbours, f64)>,
    /// The scores by rare words of each of these and of their neighbours.
    sums: Vec<(u32, f32)>,
}

impl Close {
    fn sum_of(&self, version: u32) -> f32 {
        let found = self.sums.iter().find(|&&(one, _)| one == version);
        found.map_or(0.0, |&(_, sum)| sum)
    }
}

/// A fixed sample of `holders`, looked at closely. Where words are `unread`, their scores are asked for.
pub(crate) fn examine_closely(
    versions: &mut ScoredVersions<'_>,
    holders: &Holders<'_>,
    unread: bool,
) -> Vec<Close> {
    let (holding, sums) = (&holders.versions, &holders.sums);
    let step = holding.len().div_ceil(CLOSELY).max(1);
    let sampled = holding.iter().zip(&**sums).step_by(step);
    sampled
        .map(|(&version, &rare)| {
            let own = versions.neighbours(version);
            let (mut window, mut sums) = (Vec::new(), vec![(version, rare)]);
            for member in own.with(version) {
                let around = if member == version {
                    own
                } else {
                    versions.neighbours(member)
                };
                let mut parts: u32 = 0;
                for part in around.with(member) {
                    let known = sums.iter().find(|&&(one, _)| one == part).copied();
                    let (_, sum) = known.unwrap_or_else(|| {
                        let found = (part, holders.sum_of(part).unwrap_or(0.0));
                        sums.push(found);
                        found
                    });
                    parts += u32::from(sum > 0.0);
                }
                window.push((member, around, 1.0 / f64::from(parts.max(1))));
            }
            if unread {
                for &(version, _) in &sums {
                    versions.scores.sampled.insert(version);
                }
            }
            Close { rare, window, sums }
        })
        .collect()
}
