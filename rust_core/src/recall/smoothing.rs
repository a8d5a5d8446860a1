//! Shares of neighbours, added some hundred entries of the layout at a time: what a step works on stays in the first
//! cache, where arrays as long as the bank would put out what the next arm needs.

use crate::vector::{Kernel, NO_SCORE, Work};

use super::layout::{EDGE, Layout};
use super::windows::SHARES;

/// Entries at a time.
const BLOCK: usize = 512;
/// These, and the neighbours of the first and the last.
const ROOM: usize = BLOCK + 2 * EDGE;

/// Adds to the scores of linked versions what their neighbours give.
pub(super) fn smooth(layout: &Layout, scores: &mut [f32]) {
    let kernel = Kernel::best();
    let mut score = [NO_SCORE; ROOM];
    let mut short = [0.0; ROOM];
    let mut smoothed = [0.0; BLOCK];
    let all = layout.versions.len();
    for start in (0..all - 2 * EDGE).step_by(BLOCK) {
        let end = all.min(start + ROOM);
        // The first of these have their new scores already; what they had is at the end of the last step's.
        let known = if start == 0 { 0 } else { 2 * EDGE };
        score.copy_within(ROOM - known.., 0);
        let here = end - start;
        layout.read(start + known..end, scores, &mut score[known..here]);
        score[here..].fill(NO_SCORE);
        short[..here].copy_from_slice(&layout.short[start..end]);
        short[here..].fill(0.0);
        kernel.run(AddShares {
            score: &score,
            short: &short,
            smoothed: &mut smoothed,
        });
        let inner = start + EDGE..end - EDGE;
        layout.write(inner, &smoothed[..here - 2 * EDGE], scores);
    }
}

/// Fills `smoothed` with the scores of all entries but the outer ones, with their neighbours' shares.
struct AddShares<'a> {
    score: &'a [f32; ROOM],
    /// 1 for a short memory, else 0.
    short: &'a [f32; ROOM],
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
            smoothed,
        } = self;
        // What an entry gives, and whether it gives at all.
        let (mut give, mut gives) = ([0.0; ROOM], [0.0; ROOM]);
        for at in 0..ROOM {
            gives[at] = if score[at] == NO_SCORE {
                0.0
            } else {
                short[at]
            };
            give[at] = if gives[at] == 0.0 { 0.0 } else { score[at] };
        }
        for at in 0..BLOCK {
            // An entry that is alone on its side gives twice.
            let pair = |before: usize, after: usize| {
                (give[before] + give[after]) * (2.0 - gives[before] * gives[after])
            };
            let (near, far) = (pair(at + 1, at + 3), pair(at, at + 4));
            smoothed[at] =
                score[at + EDGE] + short[at + EDGE] * (SHARES[0] * near + SHARES[1] * far);
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
            let by_runs = Layout::of(&chains(count, |number| number));
            assert!(by_runs.has_runs() || count < 5);
            check(&by_runs, count);
            // Backwards no version follows the one before.
            let one_by_one = Layout::of(&chains(count, |number| count - 1 - number));
            assert!(!one_by_one.has_runs());
            check(&one_by_one, count);
        }
    }
}
