//! The segments of one bank.

use std::sync::Arc;

use parking_lot::Mutex;

use super::links::{Graph, GraphKind};
use super::quality::Quality;
use super::segment::Segment;
use crate::api::Result;
use crate::bitmap::Bitmap;
use crate::dense::exact_vectors::NO_SLOT;
use crate::system::huge_pages::MemoryRanges;

/// A segment with more dead vectors than this share is built anew: below it a search pays at most a quarter more.
pub(crate) const DEAD_SHARE: u32 = 5;

/// The builder looks again when this share of what would make it act is new.
const DUE_SHARE: u32 = 8;
/// A row's name: the key of its version, and its place among the version's rows.
pub(crate) type Name = (u64, u32);

/// A graph that a checkpoint has, and whose vectors it is of, by number.
pub(crate) struct Saved {
    pub(crate) kind: GraphKind,
    pub(crate) names: Vec<Name>,
    /// Reads and checks it.
    pub(crate) open: Box<dyn FnOnce() -> Result<Graph> + Send + Sync>,
}

impl std::fmt::Debug for Saved {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Saved")
            .field("vectors", &self.names.len())
            .finish_non_exhaustive()
    }
}

/// The segments of a bank.
#[derive(Debug, Default)]
pub(crate) struct Segments {
    pub(crate) all: Vec<Segment>,
    /// Rows that a segment stands for, or that have no vector to be found by.
    pub(crate) covered: Bitmap,
    /// Graphs of the checkpoint that the bank is from, and that are not put back yet.
    pub(crate) saved: Vec<Saved>,
    /// True if some of these, or inverted indexes, are still to come: nothing is built before.
    pub(crate) restoring: bool,
    /// Held by whoever puts them back.
    pub(crate) putting: Arc<Mutex<()>>,
    /// Number of compactions that renumbered rows: a build that began before must look its rows up again.
    pub(crate) renumberings: u64,
    /// Measured recall of the graphs.
    pub(crate) quality: Quality,
    /// True if the bank waits for the builder.
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
    pub(crate) fn note_ranges(&self, ranges: &mut MemoryRanges) {
        for segment in &self.all {
            segment.graph.note_ranges(ranges);
            ranges.note(segment.rows());
        }
    }

    /// No segments yet, but graphs of a checkpoint to restore.
    pub(crate) fn of(saved: Vec<Saved>) -> Self {
        Self {
            restoring: !saved.is_empty(),
            saved,
            ..Self::default()
        }
    }

    /// Returns true if anything of the checkpoint is still to be restored.
    pub(crate) fn restoring(&self) -> bool {
        self.restoring
    }

    /// Overwrites the vectors of removed rows in the files of graphs. Returns the number of a segment that failed, and
    /// that must not stay.
    pub(crate) fn erase(&self, removed: &[u32], rows: u32) -> Option<usize> {
        if removed.is_empty() || self.mapped_bytes() == 0 {
            return None;
        }
        let mut gone = Bitmap::empty(rows);
        for &row in removed {
            gone.insert(row);
        }
        let gone = |row: u32| row < gone.bound() && gone.contains(row);
        self.all
            .iter()
            .position(|segment| segment.erase(gone).is_err())
    }

    /// Drops a segment; its rows are scanned until a graph is built of them again.
    pub(crate) fn drop_segment(&mut self, number: usize, slots: &[u32]) {
        let segment = self.all.remove(number);
        for row in segment.live_rows() {
            // A row without a vector stays covered: there is nothing to find it by.
            if slots[row as usize] != NO_SLOT {
                self.covered.remove(row);
            }
        }
    }

    /// Bytes in mapped files.
    pub(crate) fn mapped_bytes(&self) -> usize {
        let graphs = self.all.iter().map(|segment| &segment.graph);
        graphs.map(|graph| graph.mapped_bytes()).sum()
    }

    /// Returns true, once, if the builder should look at a bank of so many rows.
    pub(crate) fn due(&mut self, rows: u32, graph_rows: u32) -> bool {
        if self.queued || graph_rows == 0 {
            return false;
        }
        let tail = rows - self.covered.len() >= graph_rows && rows >= self.looked_at;
        let dead = self.removed > self.covered.len() / DUE_SHARE && !self.all.is_empty();
        self.queued = tail || dead;
        if self.queued {
            // Dead rows may be most of the tail: then there is nothing to do until more have come.
            self.looked_at = rows + graph_rows / DUE_SHARE;
        }
        self.queued
    }

    /// The segments, and the rows that they cover, after rows got the numbers of `new_rows`.
    pub(crate) fn renumbered(&self, new_rows: &[u32], rows: u32) -> (Vec<Segment>, Bitmap) {
        let mut covered = Bitmap::empty(rows);
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
    pub(crate) fn adopt(&mut self, all: &mut Vec<Segment>, covered: &mut Bitmap) {
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
