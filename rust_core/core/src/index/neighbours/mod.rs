//! The table of neighbours: the memories that pass, conversation by conversation, so that neighbours are adjacent.

pub(crate) mod lookup;

use super::Index;
use crate::bitmap::Bitmap;
use crate::index::conversations::memories;

/// Most tokens of a short turn: about 120 words of English. At 60 words recall falls by .03 to .07, at 200 it stays.
pub(crate) const SHORT_TOKENS: u32 = 160;
/// Marks the room between conversations in the table.
pub(crate) const GAP: u32 = lookup::NOBODY;
/// Entries of room on each side of a conversation: as far as neighbours reach.
pub(crate) const EDGE: usize = 2;
/// Versions that are smoothed at a time.
pub(crate) const BLOCK: usize = 512;

/// Where fewer than one version in so many is linked, computing them one by one costs less than a pass over all.
const FEW: usize = 4;

/// The linked memories that pass, conversation after conversation, with room of two entries around each conversation.
#[derive(Debug, Default)]
pub(crate) struct NeighbourTable {
    /// Versions, or [`GAP`].
    pub(crate) versions: Vec<u32>,
    /// Versions that have a neighbour.
    pub(crate) linked: Bitmap,
    /// The entry of a version that has a neighbour.
    places: Vec<u32>,
    /// The error of the smoothed score of each version; empty in a table of what passes a filter.
    errors: Vec<f32>,
    /// 1 for a version that is short and has a neighbour, else 0; [`EDGE`] zeros before, and at the end so many that
    /// blocks with edges are whole.
    short: Vec<f32>,
    /// 1 for a version that follows the one before it in its conversation, of conversations whose versions all do, as
    /// those of a conversation that came in one piece do; laid out as `short`. Empty where few are linked.
    follows: Vec<f32>,
    /// The versions of all other conversations.
    pub(crate) scattered: Vec<u32>,
}

impl NeighbourTable {
    /// Lays out what passes now.
    pub(crate) fn fill(&mut self, index: &Index, passes: &Bitmap) {
        self.errors.clear();
        let versions = &mut self.versions;
        versions.clear();
        versions.extend([GAP; 2]);
        let mut run = Run { versions, start: 2 };
        for places in index.conversations.sessions() {
            memories::for_each(places, &index.columns.live, passes, |passing| {
                run.step(passing);
            });
            run.close();
        }
        versions.extend([GAP; 2]);
        let is_short = |version: u32| {
            index.tokens[index.columns.first_row[version as usize] as usize] <= SHORT_TOKENS
        };
        self.derive(passes.bound(), is_short);
    }

    /// Finds out what follows from the entries.
    fn derive(&mut self, bound: u32, is_short: impl Fn(u32) -> bool) {
        let Self {
            versions,
            linked,
            places,
            errors: _,
            short,
            follows,
            scattered,
        } = self;
        linked.reset(bound);
        places.clear();
        places.resize(bound as usize, GAP);
        let padded = (bound as usize).next_multiple_of(BLOCK) + 2 * EDGE;
        let in_order = versions.len() * FEW >= bound as usize;
        short.clear();
        short.resize(padded, 0.0);
        follows.clear();
        follows.resize(if in_order { padded } else { 0 }, 0.0);
        for (at, &version) in versions.iter().enumerate() {
            if version != GAP {
                linked.insert(version);
                places[version as usize] = at as u32;
                short[version as usize + EDGE] = f32::from(u8::from(is_short(version)));
            }
        }
        scattered.clear();
        let conversations = versions.split(|&version| version == GAP);
        for chain in conversations.filter(|chain| !chain.is_empty()) {
            if in_order && chain.windows(2).all(|pair| pair[0] + 1 == pair[1]) {
                for &version in chain.iter().skip(1) {
                    follows[version as usize + EDGE] = 1.0;
                }
            } else {
                scattered.extend_from_slice(chain);
            }
        }
    }

    /// The factor of the score that a version, or the number of a gap, gives to neighbours: 1 or 0.
    pub(crate) fn gives(&self, version: u32) -> f32 {
        // A gap is no version's number.
        self.short
            .get(version as usize + EDGE)
            .copied()
            .unwrap_or(0.0)
    }

    /// Returns true if scores are smoothed where they stand, in blocks, and not only of `scattered` conversations.
    pub(crate) fn is_in_order(&self) -> bool {
        !self.follows.is_empty()
    }

    /// For the versions from `start` on, a multiple of [`BLOCK`], and [`EDGE`] on either side: which are short, and
    /// which follow the one before. Only where the table is in order.
    pub(crate) fn block(&self, start: usize) -> (&[f32], &[f32]) {
        let room = start..start + BLOCK + 2 * EDGE;
        (&self.short[room.clone()], &self.follows[room])
    }

    /// Notes how far the smoothed score of each version errs, of a row of step 1.
    pub(crate) fn note_errors(&mut self, errors: Vec<f32>) {
        self.errors = errors;
    }

    /// The errors of smoothed scores by version, where they were noted.
    pub(crate) fn errors(&self) -> Option<&[f32]> {
        (!self.errors.is_empty()).then_some(&self.errors)
    }

    /// The entry of a version that has a neighbour. Two entries before and after it exist.
    pub(crate) fn place(&self, version: u32) -> Option<usize> {
        let place = self.places[version as usize];
        (place != GAP).then_some(place as usize)
    }

    /// The version and the neighbours whose scores it may receive, with [`GAP`] where there is none; None for a version
    /// alone.
    pub(crate) fn around(&self, version: u32) -> Option<&[u32]> {
        let at = self.place(version)?;
        Some(&self.versions[at - EDGE..=at + EDGE])
    }

    /// The neighbours with which a version shares scores, or [`GAP`]: those one and two steps before it, then those
    /// after it.
    pub(crate) fn sharing(&self, version: u32) -> [u32; 4] {
        let near = match self.place(version) {
            Some(at) if self.gives(version) > 0.0 => [at - 1, at - 2, at + 1, at + 2],
            _ => return [GAP; 4],
        };
        near.map(|at| match self.versions[at] {
            one if self.gives(one) > 0.0 => one,
            _ => GAP,
        })
    }

    /// Resident bytes.
    pub(crate) fn bytes(&self) -> usize {
        let numbers = [&self.versions, &self.places, &self.scattered];
        let shares = [&self.errors, &self.short, &self.follows];
        numbers.map(Vec::capacity).iter().sum::<usize>() * size_of::<u32>()
            + shares.map(Vec::capacity).iter().sum::<usize>() * size_of::<f32>()
            + self.linked.bytes()
    }
}

/// The stretch of a conversation that is being laid out.
struct Run<'a> {
    versions: &'a mut Vec<u32>,
    start: usize,
}

impl Run<'_> {
    /// Adds the version of a memory that passes. A memory of which none passes ends the stretch.
    fn step(&mut self, passing: Option<u32>) {
        match passing {
            Some(version) => self.versions.push(version),
            None => self.close(),
        }
    }

    /// Ends the stretch. A memory alone in it has no neighbours and is not laid out.
    fn close(&mut self) {
        if self.versions.len() - self.start < 2 {
            self.versions.truncate(self.start);
        } else {
            self.versions.extend([GAP; 2]);
            self.start = self.versions.len();
        }
    }
}

#[cfg(test)]
impl NeighbourTable {
    /// A table of conversations of versions, each short or not.
    pub(crate) fn of(conversations: &[Vec<(u32, bool)>]) -> Self {
        let mut table = Self::default();
        table.versions.extend([GAP; EDGE]);
        for chain in conversations {
            table
                .versions
                .extend(chain.iter().map(|&(version, _)| version));
            table.versions.extend([GAP; EDGE]);
        }
        table.versions.extend([GAP; EDGE]);
        let linked = || conversations.iter().flatten().copied();
        let bound = linked().map(|(version, _)| version + 1).max();
        let is_short = |version| linked().any(|one| one == (version, true));
        table.derive(bound.unwrap_or(0), is_short);
        table
    }
}
