//! Context windows: a short turn is scored together with its neighbours of the same conversation.
//!
//! A memory receives a share of the scores one and two steps before and after it in its chain, when both are short. At
//! the end of a chain the side that is there counts twice. Memories that pass the filter give and receive; a memory
//! that does not pass cuts the chain.

mod kernel;

use std::time::Instant;

use crate::dense::NO_SCORE;
use crate::index::Index;
use crate::recall::filter::Allowed;

use crate::index::neighbours::NeighbourTable;
use crate::recall::arms::{Arm, KEYWORD, SEMANTIC, micros_since};
use crate::recall::buffers::ArmScores;

/// Share of a neighbour's score at one step and at two steps. Measured on three sets of conversations: +.03 to +.09
/// recall at 10 over no windows; shares from .3 / .15 to .5 / .25 differ by less than the noise.
pub(super) const SHARES: [f32; 2] = [0.4, 0.2];
/// What a memory without neighbours gains instead, as a share of its own score: half of what two full neighbours of
/// the same score would give, so that documents do not lose to conversations in a mixed bank.
pub(super) const LONE_FACTOR: f32 = 1.0 + 0.5 * 2.0 * (SHARES[0] + SHARES[1]);
/// How much larger the error of a smoothed score may be than that of its parts: that of a memory without neighbours, for
/// the parts of the others err apart from each other.
pub(super) const LARGEST_FACTOR: f32 = LONE_FACTOR;

/// The conversations of what passes, if any memory has a neighbour.
pub(super) fn lay_out<'a>(
    state: &'a Index,
    allowed: Allowed<'_>,
    arms: &mut [Arm],
    own: &'a mut NeighbourTable,
) -> Option<&'a NeighbourTable> {
    if arms.is_empty()
        || (state.conversations.timeline().is_empty() && state.conversations.session_count() == 0)
    {
        return None;
    }
    let start = Instant::now();
    // Without a filter the layout is the same until the next commit.
    let layout: &NeighbourTable =
        if std::ptr::eq(allowed.versions, &raw const state.columns.current) {
            let kept = state.layout.get_or_init(|| {
                let mut layout = NeighbourTable::default();
                layout.fill(state, allowed.versions);
                // Once for the many recalls until then.
                let versions = 0..state.columns.len();
                let steps: Vec<f32> = versions.map(|one| state.largest_step(one)).collect();
                let errors = (0..steps.len() as u32)
                    .map(|version| error(&layout, version, |version| steps[version as usize]));
                layout.note_errors(errors.collect());
                layout
            });
            kept.count_use();
            kept
        } else {
            own.fill(state, allowed.versions);
            own
        };
    let micros = micros_since(start);
    for arm in arms {
        arm.micros += micros;
    }
    // Where nothing has a neighbour nothing is smoothed. What is held decides, not what is still known of the forgotten.
    (!layout.linked.is_empty()).then_some(layout)
}

/// Smooths the scores of the semantic and keyword arms along the conversations.
pub(super) fn smooth(
    allowed: Allowed<'_>,
    layout: &NeighbourTable,
    arms: &mut [Arm],
    dense: &mut ArmScores,
    keyword: &mut ArmScores,
) {
    for arm in arms {
        let start = Instant::now();
        let scores = match &*arm.name {
            SEMANTIC => &mut *dense,
            KEYWORD => &mut *keyword,
            _ => continue,
        };
        smooth_arm(allowed, layout, scores);
        arm.micros += micros_since(start);
    }
}

/// Smooths one arm's scores by version.
pub(super) fn smooth_arm(allowed: Allowed<'_>, layout: &NeighbourTable, scores: &mut ArmScores) {
    let ArmScores {
        rows,
        versions,
        raw,
        ..
    } = scores;
    let by_rows = versions.is_empty();
    std::mem::swap(versions, raw);
    kernel::smooth(layout, if by_rows { rows } else { raw }, versions);
    multiply_lone(allowed, layout, &mut scores.versions);
}

/// What smoothing makes of one version's score, from the `raw` scores of versions.
pub(super) fn smoothed(layout: &NeighbourTable, version: u32, raw: impl Fn(u32) -> f32) -> f32 {
    let own = raw(version);
    let Some(at) = layout.place(version) else {
        return own * LONE_FACTOR;
    };
    let give = |at: usize| {
        let version = layout.versions[at];
        let score = (layout.gives(version) > 0.0).then(|| raw(version));
        score.filter(|&score| score != NO_SCORE)
    };
    let step = |step: usize| match (give(at - step), give(at + step)) {
        (Some(before), Some(after)) => before + after,
        (Some(only), None) | (None, Some(only)) => only * 2.0,
        (None, None) => 0.0,
    };
    own + layout.gives(version) * (SHARES[0] * step(1) + SHARES[1] * step(2))
}

/// How far a smoothed score errs, from how far the score of each version does: parts err apart from each other.
pub(super) fn error(layout: &NeighbourTable, version: u32, raw: impl Fn(u32) -> f32) -> f32 {
    let own = raw(version);
    let Some(at) = layout.place(version) else {
        return own * LONE_FACTOR;
    };
    // A version without a vector does not err, and gives nothing.
    let square = |at: usize| {
        let version = layout.versions[at];
        let error = if layout.gives(version) > 0.0 {
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
    (own * own + layout.gives(version) * shares).sqrt()
}

/// Multiplies the scores of memories that pass and have no neighbours.
fn multiply_lone(allowed: Allowed<'_>, layout: &NeighbourTable, scores: &mut [f32]) {
    for (word, (&passes, &linked)) in allowed
        .versions
        .words()
        .iter()
        .zip(layout.linked.words())
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
