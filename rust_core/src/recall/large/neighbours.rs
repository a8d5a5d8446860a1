//! A version's neighbours in its conversation, found on the spot: the rules of the layout, without laying out the bank.

use crate::bank::State;
use crate::chains::Place;
use crate::filter::Allowed;
use crate::recall::layout::{CROWD, LINK_MS, SHORT_TOKENS, is_held};

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
        let own = places[at];
        let same = |place: &&Place| same_memory(**place, own, timeline);
        let first = at - places[..at].iter().rev().take_while(same).count();
        let last = at + places[at..].iter().take_while(same).count();
        let back = Walk {
            places,
            at: first,
            forward: false,
            timeline,
        };
        let forth = Walk {
            places,
            at: last,
            forward: true,
            timeline,
        };
        if timeline {
            let others = |walk: &Walk<'_>| held_at(state, walk.clone(), own.time, CROWD);
            if others(&back) + others(&forth) + 1 > CROWD {
                return Self::NONE;
            }
        }
        Self {
            before: side(state, allowed, back, own.time, timeline),
            after: side(state, allowed, forth, own.time, timeline),
        }
    }

    /// All that there are.
    pub(super) fn iter(self) -> impl Iterator<Item = u32> {
        self.before
            .into_iter()
            .chain(self.after)
            .filter(|&version| version != NOBODY)
    }

    pub(super) fn linked(self) -> bool {
        self.before[0] != NOBODY || self.after[0] != NOBODY
    }
}

/// Whether the whole of a version is short enough to share its score.
pub(super) fn is_short(state: &State, version: u32) -> bool {
    state.tokens[state.columns.first_row[version as usize] as usize] <= SHORT_TOKENS
}

/// Memories of a chain, one after the other, in one direction.
#[derive(Clone)]
struct Walk<'a> {
    places: &'a [Place],
    at: usize,
    forward: bool,
    timeline: bool,
}

/// Whether two neighbouring places are of versions of one memory. Outside conversations each instant is for itself.
fn same_memory(one: Place, other: Place, timeline: bool) -> bool {
    one.arrival == other.arrival && (!timeline || one.time == other.time)
}

impl<'a> Iterator for Walk<'a> {
    type Item = &'a [Place];

    fn next(&mut self) -> Option<&'a [Place]> {
        let from = self.at;
        let next = if self.forward {
            self.places.get(from)?
        } else {
            self.places.get(from.checked_sub(1)?)?
        };
        let same = |place: &&Place| same_memory(**place, *next, self.timeline);
        if self.forward {
            self.at = from + self.places[from..].iter().take_while(same).count();
            Some(&self.places[from..self.at])
        } else {
            self.at = from - self.places[..from].iter().rev().take_while(same).count();
            Some(&self.places[self.at..from])
        }
    }
}

/// How many memories that are held the walk meets at this instant, at most one more than `most`.
fn held_at(state: &State, walk: Walk<'_>, time: i64, most: usize) -> usize {
    walk.take_while(|memory| memory[0].time == time)
        .filter(|memory| is_held(state, memory))
        .take(most + 1)
        .count()
}

fn side(
    state: &State,
    allowed: Allowed<'_>,
    mut walk: Walk<'_>,
    mut time: i64,
    timeline: bool,
) -> [u32; 2] {
    let mut found = [NOBODY; 2];
    let mut count = 0;
    loop {
        let before = walk.clone();
        let Some(memory) = walk.next() else {
            return found;
        };
        if timeline && memory[0].time != time {
            match held_at(state, before, memory[0].time, CROWD) {
                // All of that instant are forgotten, and passed over.
                0 => continue,
                held if held > CROWD => return found,
                _ if memory[0].time.abs_diff(time) > LINK_MS.unsigned_abs() => return found,
                _ => time = memory[0].time,
            }
        }
        let passing = memory
            .iter()
            .rev()
            .find(|place| allowed.versions.contains(place.version));
        match passing {
            Some(place) => {
                found[count] = place.version;
                count += 1;
                if count == found.len() {
                    return found;
                }
            }
            None if is_held(state, memory) => return found,
            None => {}
        }
    }
}
