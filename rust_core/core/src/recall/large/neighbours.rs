//! A version's neighbours in its conversation, found on the spot: the rules of the layout, without laying out the bank.

use crate::bank::State;
use crate::filter::Allowed;
use crate::recall::layout::{CROWD, LINK_MS, SHORT_TOKENS};
use crate::recall::memories::Memories;

/// No version.
pub(super) const NOBODY: u32 = u32::MAX;

/// The versions one and two steps before and after one, nearest first, or [`NOBODY`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Neighbours {
    pub(super) before: [u32; 2],
    pub(super) after: [u32; 2],
}

impl Neighbours {
    const NONE: Self = Self {
        before: [NOBODY; 2],
        after: [NOBODY; 2],
    };

    /// The neighbours of `version`, which passes.
    pub(super) fn of(state: &State, allowed: Allowed<'_>, version: u32) -> Self {
        let Some((places, at, timeline)) = state.chains.around(version, &state.columns) else {
            return Self::NONE;
        };
        let time = places[at].time;
        let [back, forth] = Memories::around(places, at, timeline, &state.columns);
        let others = |walk: &Memories<'_>| held_at(walk.clone(), time, CROWD);
        if timeline && others(&back) + others(&forth) + 1 > CROWD {
            return Self::NONE;
        }
        let side = |walk| side(allowed, walk, time, timeline);
        Self {
            before: side(back),
            after: side(forth),
        }
    }

    /// All that there are.
    pub(super) fn iter(self) -> impl Iterator<Item = u32> {
        self.before
            .into_iter()
            .chain(self.after)
            .filter(|&version| version != NOBODY)
    }

    /// `version`, whose neighbours they are, and all that there are.
    pub(super) fn with(self, version: u32) -> impl Iterator<Item = u32> {
        std::iter::once(version).chain(self.iter())
    }

    pub(super) fn linked(self) -> bool {
        self.before[0] != NOBODY || self.after[0] != NOBODY
    }
}

/// Whether the whole of a version is short enough to share its score.
pub(super) fn is_short(state: &State, version: u32) -> bool {
    state.tokens[state.columns.first_row[version as usize] as usize] <= SHORT_TOKENS
}

/// How many memories the walk meets at this instant, at most one more than `most`.
fn held_at(walk: Memories<'_>, time: i64, most: usize) -> usize {
    walk.take_while(|memory| memory.time == time)
        .take(most + 1)
        .count()
}

fn side(allowed: Allowed<'_>, mut walk: Memories<'_>, mut time: i64, timeline: bool) -> [u32; 2] {
    let mut found = [NOBODY; 2];
    for place in &mut found {
        let before = walk.clone();
        let Some(memory) = walk.next() else {
            break;
        };
        if timeline && memory.time != time {
            let crowded = held_at(before, memory.time, CROWD) > CROWD;
            if crowded || memory.time.abs_diff(time) > LINK_MS.unsigned_abs() {
                break;
            }
            time = memory.time;
        }
        let Some(version) = memory.passing(allowed.versions) else {
            break;
        };
        *place = version;
    }
    found
}
