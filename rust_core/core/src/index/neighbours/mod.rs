//! Where the memories that pass stand in their conversations, written so that neighbours are next to each other.

pub(crate) mod lookup;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use super::Index;
use crate::bitmap::Bitmap;

use crate::index::conversations::memories;

/// Most tokens of a short turn: about 120 words of English. At 60 words recall falls by .03 to .07, at 200 it stays.
pub(crate) const SHORT_TOKENS: u32 = 160;
/// Notes outside conversations belong together when they are at most a day apart.
pub(crate) const LINK_MS: i64 = 24 * 60 * 60 * 1000;
/// More notes than this at one instant are an import, not a train of thought.
pub(crate) const CROWD: usize = 4;
/// Marks the room between conversations in the layout.
pub(crate) const GAP: u32 = u32::MAX;
/// Entries of room on each side of a chain: as far as neighbours reach.
pub(crate) const EDGE: usize = 2;
/// Versions that are smoothed at a time.
pub(crate) const BLOCK: usize = 512;

/// Where fewer than one version in so many is linked, bringing their scores together costs less than a pass over all.
const FEW: usize = 4;

/// Recalls after which it is noted how often shares count: that takes 3.6 ns a version and spares each recall 0.7 (an EPYC
/// with AVX-512), and after the next commit it is noted anew.
pub(crate) const NOTED_AFTER: u32 = 6;

/// The linked memories that pass, chain after chain, with room of two entries around each chain.
#[derive(Debug, Default)]
pub(crate) struct NeighbourTable {
    /// Versions, or [`GAP`].
    pub(crate) versions: Vec<u32>,
    /// Versions that have a neighbour.
    pub(crate) linked: Bitmap,
    /// Where a version that has a neighbour is.
    places: Vec<u32>,
    /// How far the smoothed score of each version errs; empty in a layout of what passes a filter.
    errors: Vec<f32>,
    /// How often the share of a version's neighbour counts, 0 to 2, where all have scores: of the one before, the one
    /// after, and the two behind these; empty where few are linked. Unset until many recalls have used the layout.
    gains: OnceLock<[Vec<u8>; 2 * EDGE]>,
    /// Recalls that used it, of a layout that is kept for many.
    uses: AtomicU32,
    /// 1 for a version that is short and has a neighbour, else 0; [`EDGE`] zeros before, and at the end so many that
    /// blocks with edges are whole.
    short: Vec<f32>,
    /// 1 for a version that follows the one before it in its chain, of conversations whose versions all do, as those of a
    /// conversation that came in one piece do; laid out as `short`. Empty where few are linked.
    follows: Vec<f32>,
    /// The entries of all other conversations, with the room around each.
    pub(crate) scattered: Vec<u32>,
}

impl NeighbourTable {
    /// Lays out what passes now.
    pub(crate) fn fill(&mut self, state: &Index, passes: &Bitmap) {
        self.errors.clear();
        self.gains.take();
        let versions = &mut self.versions;
        versions.clear();
        versions.extend([GAP; 2]);
        let mut segment = Segment { versions, start: 2 };
        for places in state.conversations.sessions() {
            memories::for_each(places, &state.columns.live, passes, |passing| {
                segment.step(passing);
            });
            segment.close();
        }
        lay_out_timeline(state, passes, &mut segment);
        versions.extend([GAP; 2]);
        let is_short = |version: u32| {
            state.tokens[state.columns.first_row[version as usize] as usize] <= SHORT_TOKENS
        };
        self.index(passes.bound(), is_short);
    }

    /// Finds out what follows from the entries.
    fn index(&mut self, bound: u32, is_short: impl Fn(u32) -> bool) {
        let Self {
            versions,
            linked,
            places,
            errors: _,
            gains: _,
            uses: _,
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
                scattered.extend_from_slice(&[GAP; EDGE]);
                scattered.extend_from_slice(chain);
            }
        }
        scattered.extend_from_slice(&[GAP; EDGE]);
    }

    /// Whether a version, or what stands for a gap, gives its score to neighbours: 1, or 0.
    pub(crate) fn gives(&self, version: u32) -> f32 {
        // A gap is no version's number.
        self.short
            .get(version as usize + EDGE)
            .copied()
            .unwrap_or(0.0)
    }

    /// Whether scores are smoothed where they stand, in blocks, and not only of `scattered` conversations.
    pub(crate) fn is_in_order(&self) -> bool {
        !self.follows.is_empty()
    }

    /// For the versions from `start` on, a multiple of [`BLOCK`], and [`EDGE`] on either side: which are short, and which
    /// follow the one before. Only where the layout is in order.
    pub(crate) fn block(&self, start: usize) -> (&[f32], &[f32]) {
        let room = start..start + BLOCK + 2 * EDGE;
        (&self.short[room.clone()], &self.follows[room])
    }

    /// Notes how far the smoothed score of each version errs, of a row of step 1.
    pub(crate) fn note_errors(&mut self, errors: Vec<f32>) {
        self.errors = errors;
    }

    /// Counts a recall, of a layout that is kept for many; notes how often shares count once that is worth it.
    pub(crate) fn count_use(&self) {
        if self.uses.fetch_add(1, Ordering::Relaxed) == NOTED_AFTER {
            self.gains.get_or_init(|| self.new_gains());
        }
    }

    fn new_gains(&self) -> [Vec<u8>; 2 * EDGE] {
        let Self { short, follows, .. } = self;
        let count = follows.len().saturating_sub(2 * EDGE);
        let mut gains = std::array::from_fn(|_| vec![0; count]);
        let [before, after, second_before, second_after] = &mut gains;
        for at in 0..count {
            let own = at + EDGE;
            let near = [follows[own], follows[own + 1]];
            let far = [near[0] * follows[own - 1], near[1] * follows[own + 2]];
            let near = [near[0] * short[own - 1], near[1] * short[own + 1]];
            let far = [far[0] * short[own - 2], far[1] * short[own + 2]];
            // One that is alone on its side gives twice.
            let times = |[before, after]: [f32; 2]| short[own] * (2.0 - before * after);
            before[at] = (near[0] * times(near)) as u8;
            after[at] = (near[1] * times(near)) as u8;
            second_before[at] = (far[0] * times(far)) as u8;
            second_after[at] = (far[1] * times(far)) as u8;
        }
        gains
    }

    /// How often the shares of neighbours count, for the versions from `start` on, a multiple of [`BLOCK`], where that was
    /// noted.
    pub(crate) fn gains(&self, start: usize) -> Option<[&[u8; BLOCK]; 2 * EDGE]> {
        let [before, after, second_before, second_after] = self.gains.get()?;
        Some([
            before.get(start..)?.first_chunk()?,
            after.get(start..)?.first_chunk()?,
            second_before.get(start..)?.first_chunk()?,
            second_after.get(start..)?.first_chunk()?,
        ])
    }

    /// How far smoothed scores err by version, where that was noted.
    pub(crate) fn errors(&self) -> Option<&[f32]> {
        (!self.errors.is_empty()).then_some(&self.errors)
    }

    /// Where the version is, if it has a neighbour. Two entries before and after it are there.
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

    /// Resident bytes.
    pub(crate) fn bytes(&self) -> usize {
        let numbers = [&self.versions, &self.places, &self.scattered];
        let shares = [&self.errors, &self.short, &self.follows];
        let gains = self.gains.get().into_iter().flatten();
        numbers.map(Vec::capacity).iter().sum::<usize>() * size_of::<u32>()
            + shares.map(Vec::capacity).iter().sum::<usize>() * size_of::<f32>()
            + gains.map(Vec::capacity).sum::<usize>()
            + self.linked.bytes()
    }
}

fn lay_out_timeline(state: &Index, passes: &Bitmap, segment: &mut Segment<'_>) {
    let mut last_time = i64::MIN;
    for instant in state
        .conversations
        .timeline()
        .chunk_by(|a, b| a.time == b.time)
    {
        let live = &state.columns.live;
        let mut held = 0;
        memories::for_each(instant, live, live, |_| held += 1);
        if held == 0 {
            continue;
        }
        let crowded = held > CROWD;
        if crowded || instant[0].time.saturating_sub(last_time) > LINK_MS {
            segment.close();
        }
        last_time = instant[0].time;
        if !crowded {
            memories::for_each(instant, live, passes, |passing| {
                segment.step(passing);
            });
        }
    }
    segment.close();
}

/// The stretch of a chain that is being laid out.
struct Segment<'a> {
    versions: &'a mut Vec<u32>,
    start: usize,
}

impl Segment<'_> {
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
    /// Of conversations of versions, each short or not.
    pub(crate) fn of(conversations: &[Vec<(u32, bool)>]) -> Self {
        let mut layout = Self::default();
        layout.versions.extend([GAP; EDGE]);
        for chain in conversations {
            layout
                .versions
                .extend(chain.iter().map(|&(version, _)| version));
            layout.versions.extend([GAP; EDGE]);
        }
        layout.versions.extend([GAP; EDGE]);
        let linked = || conversations.iter().flatten().copied();
        let bound = linked().map(|(version, _)| version + 1).max();
        let is_short = |version| linked().any(|one| one == (version, true));
        layout.index(bound.unwrap_or(0), is_short);
        layout
    }
}
