//! Order in time: the turns of each conversation, and the notes that belong to none.

use hashbrown::HashMap;

use crate::columns::{Columns, NO_TIME};
use crate::types::Row;

/// A version's place in a chain. Versions of one memory share time and arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// When the memory occurred; in a conversation without times, when its predecessor did.
    pub(crate) time: i64,
    /// Counts the memories as they arrive.
    pub(crate) arrival: u32,
    pub(crate) version: u32,
}

/// All chains of a bank, each in order of time, then arrival.
#[derive(Debug, Default)]
pub(crate) struct Chains {
    names: HashMap<Box<str>, u32>,
    sessions: Vec<Vec<Place>>,
    /// Memories that occurred at a known time outside any conversation.
    timeline: Vec<Place>,
    /// Places of the batch under way, with the chain's number; `TIMELINE` for the timeline.
    pending: Vec<(u32, Place)>,
    arrivals: u32,
}

const TIMELINE: u32 = u32::MAX;

impl Chains {
    /// Notes the place of a new version; [`settle`](Self::settle) puts it in. `predecessor` is the version whose
    /// place it takes.
    pub(crate) fn push(
        &mut self,
        row: &Row,
        version: u32,
        predecessor: Option<u32>,
        columns: &Columns,
    ) {
        let chain = match (&row.session, row.occurred_at) {
            (Some(session), _) => self.session_number(session),
            (None, Some(_)) => TIMELINE,
            (None, None) => return,
        };
        let inherited = predecessor.and_then(|old| self.place_of(chain, old, columns));
        let (time, arrival) = inherited.map_or_else(
            || {
                (
                    row.occurred_at.unwrap_or_else(|| self.last_time(chain)),
                    self.arrivals,
                )
            },
            |place| (place.time, place.arrival),
        );
        self.arrivals += 1;
        self.pending.push((
            chain,
            Place {
                time,
                arrival,
                version,
            },
        ));
    }

    /// Puts the batch's places where they belong.
    pub(crate) fn settle(&mut self) {
        let mut pending = std::mem::take(&mut self.pending);
        pending.sort_unstable();
        for group in pending.chunk_by(|a, b| a.0 == b.0) {
            merge_sorted(self.chain_mut(group[0].0), group);
        }
        pending.clear();
        self.pending = pending;
    }

    /// The conversation's places.
    pub(crate) fn session(&self, name: &str) -> Option<&[Place]> {
        self.names
            .get(name)
            .map(|&number| self.sessions[number as usize].as_slice())
    }

    /// All conversations.
    pub(crate) fn sessions(&self) -> impl Iterator<Item = &[Place]> {
        self.sessions.iter().map(Vec::as_slice)
    }

    /// Number of conversations.
    pub(crate) fn session_count(&self) -> usize {
        self.names.len()
    }

    /// Memories outside conversations, in order of time.
    pub(crate) fn timeline(&self) -> &[Place] {
        &self.timeline
    }

    /// Drops the places of dead versions and the conversations that are left empty.
    pub(crate) fn compact(&mut self, new_versions: &[u32]) {
        let renumber = |places: &mut Vec<Place>| {
            places.retain(|place| new_versions[place.version as usize] != u32::MAX);
            for place in places.iter_mut() {
                place.version = new_versions[place.version as usize];
            }
            places.shrink_to_fit();
        };
        renumber(&mut self.timeline);
        self.sessions.iter_mut().for_each(renumber);
        let mut sessions = Vec::with_capacity(self.sessions.len());
        self.names.retain(|_, number| {
            let places = std::mem::take(&mut self.sessions[*number as usize]);
            let kept = !places.is_empty();
            if kept {
                *number = sessions.len() as u32;
                sessions.push(places);
            }
            kept
        });
        self.sessions = sessions;
    }

    /// Resident bytes.
    pub(crate) fn bytes(&self) -> usize {
        let places: usize =
            self.sessions.iter().map(Vec::capacity).sum::<usize>() + self.timeline.capacity();
        let names: usize = self.names.keys().map(|name| name.len()).sum();
        places * size_of::<Place>()
            + self.sessions.capacity() * size_of::<Vec<Place>>()
            + names
            + self.names.allocation_size()
    }

    fn session_number(&mut self, name: &str) -> u32 {
        if let Some(&number) = self.names.get(name) {
            return number;
        }
        let number = self.sessions.len() as u32;
        self.sessions.push(Vec::new());
        self.names.insert(name.into(), number);
        number
    }

    fn chain(&self, number: u32) -> &[Place] {
        if number == TIMELINE {
            &self.timeline
        } else {
            &self.sessions[number as usize]
        }
    }

    fn chain_mut(&mut self, number: u32) -> &mut Vec<Place> {
        if number == TIMELINE {
            &mut self.timeline
        } else {
            &mut self.sessions[number as usize]
        }
    }

    /// The time of the newest place, counting the batch under way.
    fn last_time(&self, number: u32) -> i64 {
        let settled = self.chain(number).last().map(|place| place.time);
        let waiting = self
            .pending
            .iter()
            .rev()
            .find(|(chain, _)| *chain == number)
            .map(|(_, place)| place.time);
        waiting.max(settled).unwrap_or(NO_TIME)
    }

    fn place_of(&self, number: u32, version: u32, columns: &Columns) -> Option<Place> {
        let is_it = |place: &&Place| place.version == version;
        if let Some((_, place)) = self
            .pending
            .iter()
            .rev()
            .find(|(chain, p)| *chain == number && p.version == version)
        {
            return Some(*place);
        }
        let places = self.chain(number);
        let time = columns.occurred_at[version as usize];
        let from = places.partition_point(|place| place.time < time);
        let near = places[from..]
            .iter()
            .take_while(|place| place.time == time)
            .find(is_it);
        near.or_else(|| places.iter().find(is_it)).copied()
    }
}

/// Merges sorted `group` into sorted `places` from the back, so that appending costs nothing but the new places.
fn merge_sorted(places: &mut Vec<Place>, group: &[(u32, Place)]) {
    let mut old = places.len();
    crate::vector::reserve_tight(places, group.len());
    let mut end = old + group.len();
    places.resize(end, group[0].1);
    let mut new = group.len();
    while new > 0 {
        end -= 1;
        if old > 0 && places[old - 1] > group[new - 1].1 {
            old -= 1;
            places[end] = places[old];
        } else {
            new -= 1;
            places[end] = group[new].1;
        }
    }
}
