//! The order in time of the turns of each conversation.
//!
//! The place of a memory depends only on the versions held and their keys, not on past changes, so that a bank answers
//! the same after a restart.

mod format;
pub(crate) mod memories;

use hashbrown::HashMap;

use crate::api::{MemoryId, Row};
use crate::index::columns::{Columns, NO_TIME};
use crate::system::arrays::reserve_tight;

/// A version's place in a conversation. Versions of one memory share their arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry {
    /// When the memory occurred; without a time, the latest time of what is older in its conversation.
    pub(crate) time: i64,
    /// Key of the oldest version that has this place.
    pub(crate) arrival: u64,
    pub(crate) version: u32,
}

/// A conversation in order of time, then arrival.
#[derive(Debug, Clone)]
struct Conversation {
    places: Vec<Entry>,
    /// Largest key that ever came; below it, a new key does not belong to the end.
    newest: u64,
    /// True if a memory without a time is in it, whose place depends on others.
    untimed: bool,
    /// The latest time of a place; of those that are still held, when `untimed`.
    latest: i64,
}

impl Default for Conversation {
    fn default() -> Self {
        Self {
            places: Vec::new(),
            newest: 0,
            untimed: false,
            latest: NO_TIME,
        }
    }
}

/// All conversations of a bank.
#[derive(Debug, Clone, Default)]
pub(crate) struct Conversations {
    names: HashMap<Box<str>, u32>,
    all: Vec<Conversation>,
    /// Number of the conversation by version, or [`NONE`] for a memory without a session.
    conversation_of: Vec<u32>,
    /// Places of the batch under way, with the conversation's number.
    pending: Vec<(u32, Entry)>,
    /// Conversations that the batch under way has put out of order.
    disordered: Vec<u32>,
    /// Memories of which the batch under way took a version, or brought one older than others: those that come after it
    /// have another predecessor now, in whatever conversation they are.
    broken: Vec<MemoryId>,
}

const NONE: u32 = u32::MAX;

impl Conversations {
    /// Notes the place of a new version, which `columns` holds already; [`settle`](Self::settle) puts it in.
    pub(crate) fn push(&mut self, row: &Row, version: u32, columns: &Columns) {
        let number = match &row.session {
            Some(session) => self.session_number(session),
            None => NONE,
        };
        reserve_tight(&mut self.conversation_of, 1);
        self.conversation_of.push(number);
        let is_newer = |other: u32| columns.key[other as usize] > row.key;
        if columns.versions_of(&row.memory_id).any(is_newer) {
            self.broken.push(row.memory_id);
        }
        if number == NONE {
            return;
        }
        let latest = self.all[number as usize].latest;
        let place = self.place_for(number, version, latest, columns, |old| {
            self.place_of(number, old, columns)
        });
        self.pending.push((number, place));
        let chain = &mut self.all[number as usize];
        let first_untimed = row.occurred_at.is_none() && !chain.untimed;
        if row.key < chain.newest || first_untimed {
            self.disordered.push(number);
        }
        chain.untimed |= first_untimed;
        chain.newest = chain.newest.max(row.key);
        chain.latest = chain.latest.max(place.time);
    }

    /// Notes that a version, which `columns` still holds, goes.
    pub(crate) fn remove(&mut self, version: u32, columns: &Columns) {
        self.broken.push(columns.memory_id[version as usize]);
        let number = self.conversation_of[version as usize];
        if self
            .all
            .get(number as usize)
            .is_some_and(|chain| chain.untimed)
        {
            self.disordered.push(number);
        }
    }

    /// Puts the batch's places where they belong. To be called at the end of a commit.
    pub(crate) fn settle(&mut self, columns: &Columns) {
        let mut pending = std::mem::take(&mut self.pending);
        pending.sort_unstable();
        for group in pending.chunk_by(|a, b| a.0 == b.0) {
            merge_sorted(&mut self.all[group[0].0 as usize].places, group);
        }
        pending.clear();
        self.pending = pending;
        let mut disordered = std::mem::take(&mut self.disordered);
        for id in std::mem::take(&mut self.broken) {
            let left = columns.versions_of(&id);
            disordered.extend(left.map(|version| self.conversation_of[version as usize]));
        }
        disordered.sort_unstable();
        disordered.dedup();
        for number in disordered.into_iter().filter(|&number| number != NONE) {
            self.order_again(number, columns);
        }
    }

    /// The conversation's places.
    pub(crate) fn session(&self, name: &str) -> Option<&[Entry]> {
        self.names
            .get(name)
            .map(|&number| self.all[number as usize].places.as_slice())
    }

    /// All conversations.
    pub(crate) fn sessions(&self) -> impl Iterator<Item = &[Entry]> {
        self.all.iter().map(|chain| chain.places.as_slice())
    }

    /// The conversation that a version is in, and its place there.
    pub(crate) fn around(&self, version: u32, columns: &Columns) -> Option<(&[Entry], usize)> {
        let number = self.conversation_of[version as usize];
        let chain = self.all.get(number as usize)?;
        let places = chain.places.as_slice();
        let expected = Entry {
            time: columns.occurred_at[version as usize],
            arrival: columns.key[version as usize],
            version,
        };
        let at = places.binary_search(&expected).ok().or_else(|| {
            // A later version has its predecessor's arrival; one without a time, that of its neighbours.
            let from = places.partition_point(|place| place.time < expected.time);
            let near = places[from..]
                .iter()
                .take_while(|place| place.time == expected.time)
                .position(|place| place.version == version);
            near.map(|offset| from + offset)
                .or_else(|| places.iter().position(|place| place.version == version))
        })?;
        Some((places, at))
    }

    /// Number of conversations.
    pub(crate) fn session_count(&self) -> usize {
        self.names.len()
    }

    /// A copy without the entries of dead versions and without the conversations that are then empty.
    pub(crate) fn compacted(&self, new_versions: &[u32]) -> Self {
        let mut left = self.clone();
        left.compact(new_versions);
        left
    }

    fn compact(&mut self, new_versions: &[u32]) {
        for chain in &mut self.all {
            let places = &mut chain.places;
            places.retain(|place| new_versions[place.version as usize] != u32::MAX);
            for place in places.iter_mut() {
                place.version = new_versions[place.version as usize];
            }
            places.shrink_to_fit();
        }
        self.conversation_of = crate::system::arrays::kept(&self.conversation_of, new_versions);
        let mut new_numbers = vec![NONE; self.all.len()];
        let mut kept = Vec::with_capacity(self.all.len());
        for (number, chain) in std::mem::take(&mut self.all).into_iter().enumerate() {
            if !chain.places.is_empty() {
                new_numbers[number] = kept.len() as u32;
                kept.push(chain);
            }
        }
        self.all = kept;
        self.names.retain(|_, number| {
            *number = new_numbers[*number as usize];
            *number != NONE
        });
        for number in self
            .conversation_of
            .iter_mut()
            .filter(|number| **number != NONE)
        {
            *number = new_numbers[*number as usize];
        }
    }

    /// Resident bytes.
    pub(crate) fn bytes(&self) -> usize {
        let places: usize = self.all.iter().map(|chain| chain.places.capacity()).sum();
        let names: usize = self.names.keys().map(|name| name.len()).sum();
        places * size_of::<Entry>()
            + self.all.capacity() * size_of::<Conversation>()
            + self.conversation_of.capacity() * size_of::<u32>()
            + names
            + self.names.allocation_size()
    }

    fn session_number(&mut self, name: &str) -> u32 {
        if let Some(&number) = self.names.get(name) {
            return number;
        }
        let number = self.all.len() as u32;
        self.all.push(Conversation::default());
        self.names.insert(name.into(), number);
        number
    }

    /// The place of a version: its predecessor's if that is in the same conversation (`place_of` knows where), at its
    /// own time if it has one, since that may have been corrected; else its own, at `latest` if it has no time.
    fn place_for(
        &self,
        number: u32,
        version: u32,
        latest: i64,
        columns: &Columns,
        place_of: impl FnOnce(u32) -> Option<Entry>,
    ) -> Entry {
        let key = columns.key[version as usize];
        let predecessor = columns
            .versions_of(&columns.memory_id[version as usize])
            .filter(|&old| columns.key[old as usize] < key)
            .max_by_key(|&old| columns.key[old as usize])
            .filter(|&old| self.conversation_of[old as usize] == number);
        let (time, arrival) = predecessor
            .and_then(place_of)
            .map_or((latest, key), |place| (place.time, place.arrival));
        let time = match columns.occurred_at[version as usize] {
            NO_TIME => time,
            own => own,
        };
        Entry {
            time,
            arrival,
            version,
        }
    }

    /// Makes the conversation again from the versions that are held, in the order of their keys.
    fn order_again(&mut self, number: u32, columns: &Columns) {
        let places = std::mem::take(&mut self.all[number as usize].places);
        let mut versions: Vec<u32> = places
            .iter()
            .map(|place| place.version)
            .filter(|&version| columns.live.contains(version))
            .collect();
        versions.sort_unstable_by_key(|&version| columns.key[version as usize]);
        let mut made: HashMap<u32, Entry> = HashMap::with_capacity(versions.len());
        let (mut again, mut latest) = (Vec::with_capacity(versions.len()), NO_TIME);
        for version in versions {
            let place = self.place_for(number, version, latest, columns, |old| {
                made.get(&old).copied()
            });
            latest = latest.max(place.time);
            made.insert(version, place);
            again.push(place);
        }
        again.sort_unstable();
        let chain = &mut self.all[number as usize];
        chain.untimed = again
            .iter()
            .any(|place| columns.occurred_at[place.version as usize] == NO_TIME);
        (chain.places, chain.latest) = (again, latest);
    }

    fn place_of(&self, number: u32, version: u32, columns: &Columns) -> Option<Entry> {
        let is_it = |place: &&Entry| place.version == version;
        if let Some((_, place)) = self
            .pending
            .iter()
            .rev()
            .find(|(chain, p)| *chain == number && p.version == version)
        {
            return Some(*place);
        }
        let places = &self.all[number as usize].places;
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
fn merge_sorted(places: &mut Vec<Entry>, group: &[(u32, Entry)]) {
    let mut old = places.len();
    reserve_tight(places, group.len());
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
