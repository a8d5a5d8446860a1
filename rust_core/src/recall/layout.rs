//! Where the memories that pass stand in their chains, written so that neighbours are next to each other.

use std::ops::Range;

use crate::bank::State;
use crate::chains::Place;
use crate::filter::Allowed;
use crate::rowset::RowSet;
use crate::vector::NO_SCORE;

use super::windows;

/// Most tokens of a short turn: about 120 words of English. At 60 words recall falls by .03 to .07, at 200 it stays.
pub(super) const SHORT_TOKENS: u32 = 160;
/// Notes outside conversations belong together when they are at most a day apart.
pub(super) const LINK_MS: i64 = 24 * 60 * 60 * 1000;
/// More notes than this at one instant are an import, not a train of thought.
pub(super) const CROWD: usize = 4;
/// Marks the room between chains in the layout.
const GAP: u32 = u32::MAX;
/// Entries of room on each side of a chain: as far as neighbours reach.
pub(super) const EDGE: usize = 2;
/// Entries to a run, on the average, from which on copying runs costs less than copying entry by entry.
const LONG_RUN: usize = 4;

/// The linked memories that pass, chain after chain, with room of two entries around each chain.
#[derive(Debug, Default)]
pub(crate) struct Layout {
    /// Versions, or [`GAP`].
    pub(super) versions: Vec<u32>,
    /// 1 for a short memory, else 0.
    pub(super) short: Vec<f32>,
    /// Versions that have a neighbour.
    pub(super) linked: RowSet,
    /// Where a version that has a neighbour is.
    places: Vec<u32>,
    /// Entries whose versions follow each other, as those of a conversation that came in one piece do; empty where most
    /// do not.
    runs: Vec<Run>,
    /// How far the smoothed score of each version errs; empty until it is asked for.
    errors: Vec<f32>,
}

/// Entries from `at` on that hold as many versions from `version` on.
#[derive(Debug, Clone, Copy)]
struct Run {
    at: u32,
    version: u32,
    length: u32,
}

impl Run {
    fn end(self) -> usize {
        (self.at + self.length) as usize
    }
}

impl Layout {
    /// Lays out what passes now.
    pub(super) fn fill(&mut self, state: &State, allowed: Allowed<'_>) {
        let Self {
            versions,
            short,
            linked,
            places,
            runs,
            errors,
        } = self;
        errors.clear();
        versions.clear();
        versions.extend([GAP; 2]);
        let mut segment = Segment { versions, start: 2 };
        for places in state.chains.sessions() {
            for memory in memories(places) {
                segment.step(state, allowed, memory);
            }
            segment.close();
        }
        lay_out_timeline(state, allowed, &mut segment);
        versions.extend([GAP; 2]);
        linked.reset(allowed.versions.bound());
        places.clear();
        places.resize(allowed.versions.bound() as usize, GAP);
        for (at, &version) in versions.iter().enumerate() {
            if version != GAP {
                places[version as usize] = at as u32;
            }
        }
        find_runs(versions, runs);
        short.clear();
        short.extend(versions.iter().map(|&version| {
            let is_short = version != GAP && {
                linked.insert(version);
                state.tokens[state.columns.first_row[version as usize] as usize] <= SHORT_TOKENS
            };
            f32::from(u8::from(is_short))
        }));
    }

    /// Notes how far the score of each version errs once it is smoothed, from how far it does before.
    pub(super) fn note_errors(&mut self, own: &[f32]) {
        let errors = (0..own.len() as u32)
            .map(|version| windows::error(self, version, |version| own[version as usize]));
        self.errors = errors.collect();
    }

    /// How far smoothed scores err by version, where that was noted.
    pub(super) fn errors(&self) -> Option<&[f32]> {
        (!self.errors.is_empty()).then_some(&self.errors)
    }

    /// Where the version is, if it has a neighbour. Two entries before and after it are there.
    pub(super) fn place(&self, version: u32) -> Option<usize> {
        let place = self.places[version as usize];
        (place != GAP).then_some(place as usize)
    }

    /// The version and the neighbours whose scores it may receive.
    pub(super) fn around(&self, version: u32) -> impl Iterator<Item = u32> + '_ {
        let near = self
            .place(version)
            .map_or(&[][..], |at| &self.versions[at - 2..at + 3]);
        let alone = near.is_empty().then_some(version);
        near.iter()
            .copied()
            .filter(|&version| version != GAP)
            .chain(alone)
    }

    /// Copies the scores of the versions at some entries, [`NO_SCORE`] for the room between chains.
    pub(super) fn read(&self, entries: Range<usize>, scores: &[f32], copied: &mut [f32]) {
        if self.runs.is_empty() {
            for (copy, &version) in copied.iter_mut().zip(&self.versions[entries]) {
                // A gap is no version's number.
                *copy = scores.get(version as usize).copied().unwrap_or(NO_SCORE);
            }
            return;
        }
        copied.fill(NO_SCORE);
        for (at, versions) in self.runs_in(entries) {
            copied[at..at + versions.len()].copy_from_slice(&scores[versions]);
        }
    }

    /// Gives the versions at some entries the scores in `written`.
    pub(super) fn write(&self, entries: Range<usize>, written: &[f32], scores: &mut [f32]) {
        if self.runs.is_empty() {
            for (&new, &version) in written.iter().zip(&self.versions[entries]) {
                if let Some(score) = scores.get_mut(version as usize) {
                    *score = new;
                }
            }
            return;
        }
        for (at, versions) in self.runs_in(entries) {
            let new = &written[at..at + versions.len()];
            scores[versions].copy_from_slice(new);
        }
    }

    /// The runs within some entries: where each begins there, and its versions.
    fn runs_in(&self, entries: Range<usize>) -> impl Iterator<Item = (usize, Range<usize>)> + '_ {
        let first = self.runs.partition_point(|run| run.end() <= entries.start);
        let Range { start, end } = entries;
        let within = self.runs[first..].iter();
        let within = within.take_while(move |run| (run.at as usize) < end);
        within.map(move |run| {
            let (from, to) = (start.max(run.at as usize), end.min(run.end()));
            let version = run.version as usize + from - run.at as usize;
            (from - start, version..version + to - from)
        })
    }

    /// Resident bytes.
    pub(crate) fn bytes(&self) -> usize {
        (self.versions.capacity() + self.places.capacity()) * size_of::<u32>()
            + (self.short.capacity() + self.errors.capacity()) * size_of::<f32>()
            + self.runs.capacity() * size_of::<Run>()
            + self.linked.bytes()
    }
}

/// Fills `runs` with those of the entries, or leaves it empty where they are short.
fn find_runs(versions: &[u32], runs: &mut Vec<Run>) {
    runs.clear();
    let mut linked = 0;
    for (at, &version) in versions.iter().enumerate() {
        if version == GAP {
            continue;
        }
        linked += 1;
        match runs.last_mut() {
            Some(run) if run.end() == at && run.version + run.length == version => run.length += 1,
            _ => runs.push(Run {
                at: at as u32,
                version,
                length: 1,
            }),
        }
    }
    if runs.len() * LONG_RUN > linked {
        runs.clear();
    }
}

fn lay_out_timeline(state: &State, allowed: Allowed<'_>, segment: &mut Segment<'_>) {
    let mut last_time = i64::MIN;
    for instant in state.chains.timeline().chunk_by(|a, b| a.time == b.time) {
        let held = memories(instant)
            .filter(|memory| is_held(state, memory))
            .count();
        if held == 0 {
            continue;
        }
        let crowded = held > CROWD;
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

/// Whether a version of the memory is left.
pub(super) fn is_held(state: &State, memory: &[Place]) -> bool {
    memory
        .iter()
        .any(|place| state.columns.live.contains(place.version))
}

/// The versions of each memory, in the order of the chain.
fn memories(places: &[Place]) -> impl Iterator<Item = &[Place]> {
    places.chunk_by(|a, b| a.arrival == b.arrival)
}

/// The stretch of a chain that is being laid out.
struct Segment<'a> {
    versions: &'a mut Vec<u32>,
    start: usize,
}

impl Segment<'_> {
    /// Adds the memory's version that passes. A memory of which none passes ends the stretch; a forgotten one is
    /// passed over.
    fn step(&mut self, state: &State, allowed: Allowed<'_>, memory: &[Place]) {
        match memory
            .iter()
            .rev()
            .find(|place| allowed.versions.contains(place.version))
        {
            Some(place) => self.versions.push(place.version),
            None if is_held(state, memory) => self.close(),
            None => {}
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
impl Layout {
    /// Of chains of versions, each short or not.
    pub(super) fn of(chains: &[Vec<(u32, bool)>]) -> Self {
        let mut layout = Self::default();
        layout.versions.extend([GAP; EDGE]);
        for chain in chains {
            layout
                .versions
                .extend(chain.iter().map(|&(version, _)| version));
            layout.versions.extend([GAP; EDGE]);
        }
        layout.versions.extend([GAP; EDGE]);
        let last = chains.iter().flatten().map(|&(version, _)| version).max();
        layout
            .places
            .resize(last.map_or(0, |last| last as usize + 1), GAP);
        layout.short.resize(layout.versions.len(), 0.0);
        for (at, &version) in layout.versions.iter().enumerate() {
            if version != GAP {
                layout.places[version as usize] = at as u32;
            }
        }
        for &(version, short) in chains.iter().flatten() {
            let at = layout.places[version as usize] as usize;
            layout.short[at] = f32::from(u8::from(short));
        }
        find_runs(&layout.versions, &mut layout.runs);
        layout
    }

    /// Whether scores are copied by runs.
    pub(super) fn has_runs(&self) -> bool {
        !self.runs.is_empty()
    }
}
