//! Adds the shares of neighbours in blocks that fit the first-level cache.
//!
//! Most conversations were added in one piece, so that neighbours have consecutive numbers and are read in order. The
//! versions of other conversations are computed one by one.

use crate::dense::{Kernel, NO_SCORE, Work};

use crate::index::neighbours::{BLOCK, EDGE, NeighbourTable};
use crate::recall::context_window::SHARES;

/// A block, and the neighbours of the first and the last.
const ROOM: usize = BLOCK + 2 * EDGE;

/// Fills `smoothed` with the `raw` scores of versions; to those of linked ones is added what their neighbours give.
pub(super) fn smooth(neighbours: &NeighbourTable, raw: &[f32], smoothed: &mut Vec<f32>) {
    if neighbours.is_in_order() {
        // Every score is written, so that what was there before need not be wiped.
        smoothed.resize(raw.len(), 0.0);
        smooth_blocks(neighbours, raw, smoothed);
    } else {
        raw.clone_into(smoothed);
    }
    smooth_scattered(neighbours, raw, smoothed);
}

/// Smooths the conversations whose versions follow each other.
fn smooth_blocks(neighbours: &NeighbourTable, raw: &[f32], smoothed: &mut [f32]) {
    let kernel = Kernel::best();
    let mut given = [[0.0; ROOM]; 2];
    let (mut padded, mut last) = ([NO_SCORE; ROOM], [0.0; BLOCK]);
    for (start, smoothed) in (0..).step_by(BLOCK).zip(smoothed.chunks_mut(BLOCK)) {
        let (short, follows) = neighbours.block(start);
        let inside = start
            .checked_sub(EDGE)
            .and_then(|at| raw[at..].first_chunk());
        let score = inside.unwrap_or_else(|| {
            let before = start.min(EDGE);
            let there = &raw[start - before..raw.len().min(start + BLOCK + EDGE)];
            padded.fill(NO_SCORE);
            padded[EDGE - before..][..there.len()].copy_from_slice(there);
            &padded
        });
        let mut add = |smoothed: &mut [f32; BLOCK]| {
            kernel.run(AddShares {
                score,
                short,
                follows,
                given: &mut given,
                smoothed,
            });
        };
        if let Some(whole) = smoothed.first_chunk_mut() {
            add(whole);
        } else {
            add(&mut last);
            smoothed.copy_from_slice(&last[..smoothed.len()]);
        }
    }
}

/// Smooths the conversations whose versions do not follow each other, one version at a time.
fn smooth_scattered(neighbours: &NeighbourTable, raw: &[f32], smoothed: &mut [f32]) {
    for &version in &neighbours.scattered {
        smoothed[version as usize] =
            super::smoothed(neighbours, version, |version| raw[version as usize]);
    }
}

/// Fills `smoothed` with the scores of all entries but the outer ones, with their neighbours' shares.
struct AddShares<'a> {
    score: &'a [f32; ROOM],
    /// 1 for a short memory, else 0.
    short: &'a [f32],
    /// 1 for an entry that stands in a conversation with the one before it, else 0.
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
    use super::*;
    use crate::recall::context_window::smoothed;

    /// Conversations of up to 40 versions in the order of `place`, of which every seventh is long.
    fn conversations(count: u32, place: impl Fn(u32) -> u32) -> Vec<Vec<(u32, bool)>> {
        let versions: Vec<(u32, bool)> = (0..count)
            .map(|number| (place(number), number % 7 != 0))
            .collect();
        let (mut conversations, mut rest) = (Vec::new(), versions.as_slice());
        while !rest.is_empty() {
            let (chain, after) = rest.split_at(rest.len().min(2 + conversations.len() * 5 % 39));
            conversations.push(chain.to_vec());
            rest = after;
        }
        conversations
    }

    /// With scores missing and with all of them there.
    fn check(neighbours: &NeighbourTable, count: u32) {
        let number = |version: u32| version.wrapping_mul(2_654_435_761);
        let whole = (0..count).map(|version| number(version) as f32 / 4e9 - 0.3);
        let whole: Vec<f32> = whole.collect();
        let missing = (0..count).zip(&whole);
        let missing = missing.map(|(version, &score)| match number(version) % 11 {
            0 => NO_SCORE,
            _ => score,
        });
        let missing: Vec<f32> = missing.collect();
        let mut scores = Vec::new();
        for raw in [&missing, &whole] {
            smooth(neighbours, raw, &mut scores);
            for version in 0..count {
                let expected = smoothed(neighbours, version, |version| raw[version as usize]);
                let found = scores[version as usize];
                assert_eq!(found.to_bits(), expected.to_bits(), "version {version}");
            }
        }
    }

    #[test]
    fn blocks_give_what_each_version_gives_alone() {
        // Ends of blocks and of tables fall everywhere.
        for count in [2, 3, 500, 505, 511, 600, 1_030, 2_777] {
            let in_order = NeighbourTable::of(&conversations(count, |number| number));
            assert!(in_order.scattered.is_empty());
            check(&in_order, count);
            // Backwards no version follows the one before.
            let backwards = NeighbourTable::of(&conversations(count, |number| count - 1 - number));
            // A conversation of one version is in order.
            assert!(backwards.scattered.len() + 1 >= count as usize);
            check(&backwards, count);
            // Some of both.
            let place = |number| {
                if number % 100 < 50 {
                    number
                } else {
                    number ^ 1
                }
            };
            check(
                &NeighbourTable::of(&conversations(count & !1, place)),
                count & !1,
            );
        }
    }
}
