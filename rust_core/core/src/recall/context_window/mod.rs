//! Context windows: a short turn is scored together with its neighbours in the conversation.
//!
//! A memory receives a share of the scores one and two steps before and after it, when both memories are short. At the
//! end of a conversation the only side counts twice. Memories that pass the filter give and receive; a memory that does
//! not pass separates its neighbours. Of two neighbours the one with the better score of its own is the lender, and a
//! memory never outranks its lender; see [`lending`].

mod kernel;
pub(super) mod lending;

use std::time::Instant;

use crate::dense::NO_SCORE;
use crate::recall::filter::Allowed;

use crate::index::neighbours::NeighbourTable;
use crate::recall::Recall;
use crate::recall::arms::{Arm, micros_since};
use crate::recall::buffers::ScoreArrays;

/// Share of a neighbour's score at one step and at two steps. Measured on three sets of conversations: +.03 to +.09
/// recall at 10 over no windows; shares from .3 / .15 to .5 / .25 differ by less than the noise.
pub(super) const SHARES: [f32; 2] = [0.4, 0.2];
/// Factor of the score of a memory without neighbours: half of what two full neighbours of
/// the same score would give, so that documents do not lose to conversations in a mixed bank.
pub(super) const LONE_FACTOR: f32 = 1.0 + 0.5 * 2.0 * (SHARES[0] + SHARES[1]);
/// Largest ratio of the error of a smoothed score to that of its parts: that of a memory without neighbours, for
/// the parts of the others err apart from each other.
pub(super) const LARGEST_FACTOR: f32 = LONE_FACTOR;

/// The neighbours of what passes, if any memory has one. Their making counts for all `arms`.
pub(super) fn neighbours<'a>(
    recall: Recall<'a>,
    arms: &mut [Arm],
    own: &'a mut NeighbourTable,
) -> Option<&'a NeighbourTable> {
    let Recall { index, allowed, .. } = recall;
    let conversations = &index.conversations;
    if arms.is_empty() || conversations.session_count() == 0 {
        return None;
    }
    let start = Instant::now();
    // Without a filter the neighbours are the same until the next commit.
    let table: &NeighbourTable = if std::ptr::eq(allowed.versions, &raw const index.columns.current)
    {
        index.neighbours.get_or_init(|| {
            let mut table = NeighbourTable::default();
            table.fill(index, allowed.versions);
            // Once for the many recalls until then.
            let versions = 0..index.columns.len();
            let steps: Vec<f32> = versions.map(|one| index.largest_step(one)).collect();
            let errors = (0..steps.len() as u32)
                .map(|version| error(&table, version, |version| steps[version as usize]));
            table.note_errors(errors.collect());
            table
        })
    } else {
        own.fill(index, allowed.versions);
        own
    };
    let micros = micros_since(start);
    for arm in arms {
        arm.micros += micros;
    }
    // Where no memory has a neighbour nothing is smoothed. What is held decides, not what is known of the forgotten.
    (!table.linked.is_empty()).then_some(table)
}

/// Adds to the scores by version of one arm the shares of neighbours.
pub(super) fn smooth(allowed: Allowed<'_>, neighbours: &NeighbourTable, scores: &mut ScoreArrays) {
    let ScoreArrays {
        rows,
        versions,
        raw,
        ..
    } = scores;
    let by_rows = versions.is_empty();
    std::mem::swap(versions, raw);
    kernel::smooth(neighbours, if by_rows { rows } else { raw }, versions);
    multiply_lone(allowed, neighbours, &mut scores.versions);
}

/// The smoothed score of one version, from the `raw` scores of versions.
pub(super) fn smoothed(neighbours: &NeighbourTable, version: u32, raw: impl Fn(u32) -> f32) -> f32 {
    let own = raw(version);
    let Some(at) = neighbours.place(version) else {
        return own * LONE_FACTOR;
    };
    let give = |at: usize| {
        let version = neighbours.versions[at];
        let score = (neighbours.gives(version) > 0.0).then(|| raw(version));
        score.filter(|&score| score != NO_SCORE)
    };
    let step = |step: usize| match (give(at - step), give(at + step)) {
        (Some(before), Some(after)) => before + after,
        (Some(only), None) | (None, Some(only)) => only * 2.0,
        (None, None) => 0.0,
    };
    own + neighbours.gives(version) * (SHARES[0] * step(1) + SHARES[1] * step(2))
}

/// The error of a smoothed score, from the errors of the versions' scores, which are independent.
pub(super) fn error(neighbours: &NeighbourTable, version: u32, raw: impl Fn(u32) -> f32) -> f32 {
    let own = raw(version);
    let Some(at) = neighbours.place(version) else {
        return own * LONE_FACTOR;
    };
    // A version without a vector does not err, and gives nothing.
    let square = |at: usize| {
        let version = neighbours.versions[at];
        let error = if neighbours.gives(version) > 0.0 {
            raw(version)
        } else {
            0.0
        };
        error * error
    };
    let step = |step: usize| {
        let (before, after) = (square(at - step), square(at + step));
        // The only one on its side counts twice.
        if before == 0.0 || after == 0.0 {
            4.0 * (before + after)
        } else {
            before + after
        }
    };
    let [near, far] = SHARES;
    let shares = near * near * step(1) + far * far * step(2);
    (own * own + neighbours.gives(version) * shares).sqrt()
}

/// Multiplies the scores of memories that pass and have no neighbours.
fn multiply_lone(allowed: Allowed<'_>, neighbours: &NeighbourTable, scores: &mut [f32]) {
    for (word, (&passes, &linked)) in allowed
        .versions
        .words()
        .iter()
        .zip(neighbours.linked.words())
        .enumerate()
    {
        let mut lone = passes & !linked;
        if lone == u64::MAX {
            // Notes without a conversation, one after the other, as an import leaves them.
            for score in &mut scores[word << 6..(word + 1) << 6] {
                *score *= LONE_FACTOR;
            }
            continue;
        }
        while lone != 0 {
            scores[(word << 6) | lone.trailing_zeros() as usize] *= LONE_FACTOR;
            lone &= lone - 1;
        }
    }
}
