//! Shares of neighbours, added some hundred versions at a time: what a step works on stays in the first cache, where
//! arrays as long as the bank would put out what the next arm needs.
//!
//! Most conversations come in one piece, so that neighbours have neighbouring numbers: their scores are read where they
//! stand. Those of other chains are brought together first, entry by entry.

use crate::vector::{Kernel, NO_SCORE, Work};

use super::layout::{BLOCK, EDGE, Layout};
use super::windows::SHARES;

/// A block, and the neighbours of the first and the last.
const ROOM: usize = BLOCK + 2 * EDGE;

/// Adds to the scores of linked versions what their neighbours give.
pub(super) fn smooth(layout: &Layout, scores: &mut [f32]) {
    let kernel = Kernel::best();
    let mut score = [NO_SCORE; ROOM];
    let (mut given, mut smoothed) = ([[0.0; ROOM]; 2], [0.0; BLOCK]);
    for start in (0..scores.len()).step_by(BLOCK) {
        let Some((short, follows)) = layout.block(start) else {
            break;
        };
        let end = scores.len().min(start + BLOCK);
        // The last two of the block before have their new scores already; what they had is moved to the front.
        score.copy_within(BLOCK.., 0);
        let ahead = scores.len().min(end + EDGE);
        score[EDGE..EDGE + ahead - start].copy_from_slice(&scores[start..ahead]);
        score[EDGE + ahead - start..].fill(NO_SCORE);
        kernel.run(AddShares {
            score: &score,
            short,
            follows,
            given: &mut given,
            smoothed: &mut smoothed,
        });
        scores[start..end].copy_from_slice(&smoothed[..end - start]);
    }
    smooth_scattered(layout, scores);
}

/// Smooths the chains whose versions do not follow each other.
fn smooth_scattered(layout: &Layout, scores: &mut [f32]) {
    let kernel = Kernel::best();
    let (mut score, mut short, mut follows) = ([NO_SCORE; ROOM], [0.0; ROOM], [0.0; ROOM]);
    let (mut given, mut smoothed) = ([[0.0; ROOM]; 2], [0.0; BLOCK]);
    let all = layout.scattered.len();
    for start in (0..all - EDGE).step_by(BLOCK) {
        let end = all.min(start + ROOM);
        let versions = &layout.scattered[start..end];
        // The first of these have their new scores already; what they had is at the end of the last step's.
        let known = if start == 0 { 0 } else { 2 * EDGE };
        score.copy_within(BLOCK.., 0);
        score[known..].fill(NO_SCORE);
        short.fill(0.0);
        follows.fill(0.0);
        for (at, &version) in versions.iter().enumerate() {
            // A gap is no version's number.
            let Some(&raw) = scores.get(version as usize) else {
                continue;
            };
            if at >= known {
                score[at] = raw;
            }
            short[at] = layout.gives(version);
            follows[at] = 1.0;
        }
        kernel.run(AddShares {
            score: &score,
            short: &short,
            follows: &follows,
            given: &mut given,
            smoothed: &mut smoothed,
        });
        for (&version, &new) in versions[EDGE..].iter().zip(&smoothed) {
            if let Some(score) = scores.get_mut(version as usize) {
                *score = new;
            }
        }
    }
}

/// Fills `smoothed` with the scores of all entries but the outer ones, with their neighbours' shares.
struct AddShares<'a> {
    score: &'a [f32; ROOM],
    /// 1 for a short memory, else 0.
    short: &'a [f32],
    /// 1 for an entry that stands in a chain with the one before it, else 0.
    follows: &'a [f32],
    /// Room for what an entry gives, and for whether it gives at all.
    given: &'a mut [[f32; ROOM]; 2],
    smoothed: &'a mut [f32; BLOCK],
}

impl Work for AddShares<'_> {
    type Output = ();

    #[expect(clippy::inline_always, reason = "compiled for each instruction set")]
    #[inline(always)]
    fn run(self) {
        let Self {
            score,
            short,
            follows,
            given: [give, gives],
            smoothed,
        } = self;
        let (short, follows) = (&short[..ROOM], &follows[..ROOM]);
        for at in 0..ROOM {
            gives[at] = if score[at] == NO_SCORE {
                0.0
            } else {
                short[at]
            };
            give[at] = if gives[at] == 0.0 { 0.0 } else { score[at] };
        }
        for (at, smoothed) in smoothed.iter_mut().enumerate() {
            // An entry that is alone on its side gives twice.
            let pair = |(before, before_is_near): (usize, f32),
                        (after, after_is_near): (usize, f32)| {
                (give[before] * before_is_near + give[after] * after_is_near)
                    * (2.0 - gives[before] * before_is_near * (gives[after] * after_is_near))
            };
            let own = at + EDGE;
            let near = pair((own - 1, follows[own]), (own + 1, follows[own + 1]));
            let far = pair(
                (own - 2, follows[own] * follows[own - 1]),
                (own + 2, follows[own + 1] * follows[own + 2]),
            );
            *smoothed = score[own] + short[own] * (SHARES[0] * near + SHARES[1] * far);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::windows::smoothed;
    use super::*;

    /// Chains of up to 40 versions in the order of `place`, of which every seventh is long.
    fn chains(count: u32, place: impl Fn(u32) -> u32) -> Vec<Vec<(u32, bool)>> {
        let versions: Vec<(u32, bool)> = (0..count)
            .map(|number| (place(number), number % 7 != 0))
            .collect();
        let (mut chains, mut rest) = (Vec::new(), versions.as_slice());
        while !rest.is_empty() {
            let (chain, after) = rest.split_at(rest.len().min(2 + chains.len() * 5 % 39));
            chains.push(chain.to_vec());
            rest = after;
        }
        chains
    }

    fn check(layout: &Layout, count: u32) {
        let raw: Vec<f32> = (0..count)
            .map(|version| match version.wrapping_mul(2_654_435_761) {
                hash if hash % 11 == 0 => NO_SCORE,
                hash => hash as f32 / 4e9 - 0.3,
            })
            .collect();
        let mut scores = raw.clone();
        smooth(layout, &mut scores);
        for version in 0..count {
            let expected = smoothed(layout, version, |version| raw[version as usize]);
            let found = scores[version as usize];
            assert_eq!(found.to_bits(), expected.to_bits(), "version {version}");
        }
    }

    #[test]
    fn blocks_give_what_each_version_gives_alone() {
        // Ends of blocks and of layouts fall everywhere.
        for count in [2, 3, 500, 505, 511, 600, 1_030, 2_777] {
            let in_order = Layout::of(&chains(count, |number| number));
            assert!(in_order.scattered.len() == EDGE);
            check(&in_order, count);
            // Backwards no version follows the one before.
            let backwards = Layout::of(&chains(count, |number| count - 1 - number));
            assert!(backwards.scattered.len() > count as usize);
            check(&backwards, count);
            // Some of both.
            let place = |number| {
                if number % 100 < 50 {
                    number
                } else {
                    number ^ 1
                }
            };
            check(&Layout::of(&chains(count & !1, place)), count & !1);
        }
    }
}
