//! Context windows: a short turn is scored together with its neighbours of the same conversation.
//!
//! A memory receives a share of the scores one and two steps before and after it in its chain, when both are short. At
//! the end of a chain the side that is there counts twice. Memories that pass the filter give and receive; a memory
//! that does not pass cuts the chain.

use crate::bank::State;
use crate::chains::Place;
use crate::filter::Allowed;
use crate::vector::NO_SCORE;

use super::arms::{Arm, KEYWORD, SEMANTIC};
use super::buffers::{ArmScores, WindowBuffers};

/// Share of a neighbour's score at one step and at two steps. Measured on LoCoMo, LifeBench and BEAM: +.03 to +.09
/// recall at 10 over no windows; shares from .3 / .15 to .5 / .25 differ by less than the noise.
const SHARES: [f32; 2] = [0.4, 0.2];
/// What a memory without neighbours gains instead, as a share of its own score: half of what two full neighbours of
/// the same score would give, so that documents do not lose to conversations in a mixed bank.
const LONE_FACTOR: f32 = 1.0 + 0.5 * 2.0 * (SHARES[0] + SHARES[1]);
/// Most tokens of a short turn: about 120 words of English. At 60 words recall falls by .03 to .07, at 200 it stays.
const SHORT_TOKENS: u32 = 160;
/// Notes outside conversations belong together when they are at most a day apart.
const LINK_MS: i64 = 24 * 60 * 60 * 1000;
/// More notes than this at one instant are an import, not a train of thought.
const CROWD: usize = 4;
/// Marks the room between chains in the layout.
const GAP: u32 = u32::MAX;

/// Smooths the scores of the semantic and keyword arms along the chains.
pub(super) fn smooth(
    state: &State,
    allowed: Allowed<'_>,
    arms: &mut [Arm],
    dense: &mut ArmScores,
    keyword: &mut ArmScores,
    buffers: &mut WindowBuffers,
) {
    if arms.is_empty() || (state.chains.timeline().is_empty() && state.chains.session_count() == 0) {
        return;
    }
    let start = std::time::Instant::now();
    lay_out(state, allowed, buffers);
    let layout = super::arms::micros_since(start);
    for arm in arms {
        let start = std::time::Instant::now();
        match &*arm.name {
            SEMANTIC => smooth_scores(allowed, &mut dense.versions, buffers),
            KEYWORD => smooth_scores(allowed, &mut keyword.versions, buffers),
            _ => continue,
        }
        arm.micros += super::arms::micros_since(start) + layout;
    }
}

/// Writes the linked memories chain after chain, with room of two steps between chains.
fn lay_out(state: &State, allowed: Allowed<'_>, buffers: &mut WindowBuffers) {
    let WindowBuffers { layout, short, linked, .. } = buffers;
    layout.clear();
    layout.extend([GAP; 2]);
    linked.reset(allowed.versions.bound());
    let mut segment = Segment { layout, start: 2 };
    for places in state.chains.sessions() {
        for memory in memories(places) {
            segment.step(state, allowed, memory);
        }
        segment.close();
    }
    lay_out_timeline(state, allowed, &mut segment);
    short.clear();
    short.extend(layout.iter().map(|&version| {
        let is_short = version != GAP && {
            linked.insert(version);
            state.tokens[state.columns.first_row[version as usize] as usize] <= SHORT_TOKENS
        };
        f32::from(u8::from(is_short))
    }));
}

fn lay_out_timeline(state: &State, allowed: Allowed<'_>, segment: &mut Segment<'_>) {
    let mut last_time = i64::MIN;
    for instant in state.chains.timeline().chunk_by(|a, b| a.time == b.time) {
        let crowded = instant.len() > CROWD
            && memories(instant).filter(|memory| memory.iter().any(|p| state.columns.live.contains(p.version))).count()
                > CROWD;
        if crowded || instant[0].time.saturating_sub(last_time) > LINK_MS {
            segment.close();
        }
        last_time = instant[0].time;
        if !crowded {
            for memory in memories(instant) {
                segment.step(state, allowed, memory);
            }
        }
    }
    segment.close();
}

/// The versions of each memory, in the order of the chain.
fn memories(places: &[Place]) -> impl Iterator<Item = &[Place]> {
    places.chunk_by(|a, b| a.arrival == b.arrival)
}

/// The stretch of a chain that is being laid out.
struct Segment<'a> {
    layout: &'a mut Vec<u32>,
    start: usize,
}

impl Segment<'_> {
    /// Adds the memory's version that passes. A memory of which none passes ends the stretch; a forgotten one is
    /// passed over.
    fn step(&mut self, state: &State, allowed: Allowed<'_>, memory: &[Place]) {
        match memory.iter().rev().find(|place| allowed.versions.contains(place.version)) {
            Some(place) => self.layout.push(place.version),
            None if memory.iter().any(|place| state.columns.live.contains(place.version)) => self.close(),
            None => {}
        }
    }

    /// Ends the stretch. A memory alone in it has no neighbours and is not laid out.
    fn close(&mut self) {
        if self.layout.len() - self.start < 2 {
            self.layout.truncate(self.start);
        } else {
            self.layout.extend([GAP; 2]);
            self.start = self.layout.len();
        }
    }
}

fn smooth_scores(allowed: Allowed<'_>, scores: &mut [f32], buffers: &mut WindowBuffers) {
    let WindowBuffers { layout, short, score, give, gives, linked } = buffers;
    let count = layout.len();
    score.clear();
    score.extend(layout.iter().map(|&version| if version == GAP { NO_SCORE } else { scores[version as usize] }));
    gives.clear();
    gives.extend(score.iter().zip(&*short).map(|(&score, &short)| if score == NO_SCORE { 0.0 } else { short }));
    give.clear();
    give.extend(score.iter().zip(&*gives).map(|(&score, &gives)| if gives == 0.0 { 0.0 } else { score }));
    for (word, (&passes, &linked)) in allowed.versions.words().iter().zip(linked.words()).enumerate() {
        let mut lone = passes & !linked;
        while lone != 0 {
            scores[(word << 6) | lone.trailing_zeros() as usize] *= LONE_FACTOR;
            lone &= lone - 1;
        }
    }
    // The first and the last two entries are room between chains.
    for at in 2..count.saturating_sub(2) {
        if layout[at] == GAP {
            continue;
        }
        let near = (give[at - 1] + give[at + 1]) * (2.0 - gives[at - 1] * gives[at + 1]);
        let far = (give[at - 2] + give[at + 2]) * (2.0 - gives[at - 2] * gives[at + 2]);
        scores[layout[at] as usize] = score[at] + short[at] * (SHARES[0] * near + SHARES[1] * far);
    }
}
