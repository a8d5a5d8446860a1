//! Sealed segments: graphs over the vectors of many rows, built aside and never changed while a reader can see them.
//!
//! A segment holds links alone: a walk reads the vectors where the bank has them. It proposes rows; what they are worth is
//! computed from more of their bytes. Removed and ended rows stay in the graph and lead on, but are not proposed, until a fifth
//! of it is dead and it is built anew. Rows that no segment covers are scanned.

mod build;
mod builder;
mod folder;
mod graph;
mod layers;
mod policy;
mod restore;
mod saved;
mod walk;

use std::sync::Arc;

use parking_lot::Mutex;

pub(crate) use build::{Name, Pace};
pub(crate) use folder::Folder;
pub(crate) use graph::Graph;
pub(crate) use policy::DEAD_SHARE;
pub(crate) use restore::{Saved, restore};
pub(crate) use walk::WalkRoom;

use crate::pages::Places;
use crate::recall::Quality;
use crate::rowset::RowSet;
use crate::vector::{DenseIndex, QuantisedQuery};
use walk::Walk;

/// The builder looks again when this share of what would make it act is new.
const DUE_SHARE: u32 = 8;
/// Resident bytes of one vector while a graph of `dimensions` is made, which are more than those of the sealed one.
pub(crate) fn build_bytes(dimensions: usize) -> usize {
    builder::Builder::row_bytes(dimensions)
}

/// A row that a segment's vector no longer stands for.
pub(crate) const GONE: u32 = u32::MAX;

/// A graph, and which rows its vectors are now.
#[derive(Debug, Clone)]
pub(crate) struct Segment {
    pub(crate) graph: Arc<Graph>,
    /// Row by number in the graph, or [`GONE`].
    rows: Arc<Vec<u32>>,
}

impl Segment {
    pub(crate) fn new(graph: Graph, rows: Vec<u32>) -> Self {
        Self {
            graph: Arc::new(graph),
            rows: Arc::new(rows),
        }
    }

    /// Vectors in the graph, dead ones included.
    pub(crate) fn len(&self) -> u32 {
        self.rows.len() as u32
    }

    /// Row by number in the graph, or [`GONE`].
    pub(crate) fn rows(&self) -> &[u32] {
        &self.rows
    }

    /// The rows that the segment stands for.
    pub(crate) fn live_rows(&self) -> impl Iterator<Item = u32> + '_ {
        self.rows.iter().copied().filter(|&row| row != GONE)
    }

    /// Appends up to `count` rows of `allowed` that are near to the query.
    ///
    /// `most_pass` says that nearly all rows of the segment are allowed: then those that are not are dropped from the
    /// answer, which is faster than asking at each step of the way.
    pub(crate) fn search(
        &self,
        (vectors, query): (&impl DenseIndex, &QuantisedQuery),
        count: usize,
        (allowed, most_pass): (&RowSet, bool),
        room: &mut WalkRoom,
        found: &mut Vec<u32>,
    ) {
        let walk = Walk {
            layers: &self.graph.layers,
            rows: &self.rows,
            vectors,
            query,
        };
        let passes = |row: u32| row < allowed.bound() && allowed.contains(row);
        if !most_pass {
            return walk.nearest(count, passes, room, found);
        }
        let before = found.len();
        walk.nearest(count, |_| true, room, found);
        let mut kept = before;
        for at in before..found.len() {
            if passes(found[at]) {
                found.swap(kept, at);
                kept += 1;
            }
        }
        found.truncate(kept);
    }

    /// The segment after rows got new numbers.
    pub(crate) fn renumbered(&self, new_rows: &[u32]) -> Self {
        let rows = self.rows.iter().map(|&row| {
            if row == GONE {
                GONE
            } else {
                new_rows[row as usize]
            }
        });
        Self {
            graph: Arc::clone(&self.graph),
            rows: Arc::new(rows.collect()),
        }
    }

    /// Resident bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.graph.bytes() + self.rows.capacity() * size_of::<u32>()
    }
}

/// The segments of a bank.
#[derive(Debug, Default)]
pub(crate) struct Segments {
    pub(crate) all: Vec<Segment>,
    /// Rows that a segment stands for, or that have no vector to be found by.
    pub(crate) covered: RowSet,
    /// Graphs of the checkpoint that the bank is from, and that are not put back yet.
    pub(crate) saved: Vec<Saved>,
    /// Whether some of these are still to come: nothing is built before.
    restoring: bool,
    /// Held by whoever puts them back.
    putting: Arc<Mutex<()>>,
    /// How often rows got new numbers: a build that began before must look them up again.
    pub(crate) renumberings: u64,
    /// How well recalls by the graphs do.
    pub(crate) quality: Quality,
    /// Whether the bank waits for the builder.
    pub(crate) queued: bool,
    /// Vectors of the graph that is built.
    pub(crate) building: u32,
    /// Covered rows that were removed since the builder looked last.
    pub(crate) removed: u32,
    /// Rows of the bank below which a build would find no more to do than the last one.
    looked_at: u32,
}

impl Segments {
    /// Notes where graphs and their rows lie.
    pub(crate) fn note_places(&self, places: &mut Places) {
        for segment in &self.all {
            segment.graph.note_places(places);
            places.note(&segment.rows);
        }
    }

    /// None yet, but these to put back.
    pub(crate) fn of(saved: Vec<Saved>) -> Self {
        Self {
            restoring: !saved.is_empty(),
            saved,
            ..Self::default()
        }
    }

    /// Whether any is to be put back.
    pub(crate) fn restoring(&self) -> bool {
        self.restoring
    }

    /// Puts none back.
    pub(crate) fn restore_none(&mut self) {
        self.saved.clear();
        self.restoring = false;
    }

    /// Whether the builder should look at a bank of so many rows; says so once.
    pub(crate) fn due(&mut self, rows: u32, fold_rows: u32) -> bool {
        if self.queued || fold_rows == 0 {
            return false;
        }
        let tail = rows - self.covered.len() >= fold_rows && rows >= self.looked_at;
        let dead = self.removed > self.covered.len() / DUE_SHARE && !self.all.is_empty();
        self.queued = tail || dead;
        if self.queued {
            // Dead rows may be most of the tail: then there is nothing to do until more have come.
            self.looked_at = rows + fold_rows / DUE_SHARE;
        }
        self.queued
    }

    /// The segments, and the rows that they cover, after rows got the numbers of `new_rows`.
    pub(crate) fn renumbered(&self, new_rows: &[u32], rows: u32) -> (Vec<Segment>, RowSet) {
        let mut covered = RowSet::empty(rows);
        for row in self.covered.iter() {
            let new = new_rows[row as usize];
            if new != u32::MAX {
                covered.insert(new);
            }
        }
        let all = self.all.iter().map(|segment| segment.renumbered(new_rows));
        (all.collect(), covered)
    }

    /// Takes renumbered segments and leaves those that were there before.
    pub(crate) fn adopt(&mut self, all: &mut Vec<Segment>, covered: &mut RowSet) {
        self.renumberings += 1;
        self.looked_at = 0;
        std::mem::swap(&mut self.all, all);
        std::mem::swap(&mut self.covered, covered);
    }

    /// Resident bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.covered.bytes() + self.all.iter().map(Segment::bytes).sum::<usize>()
    }
}
