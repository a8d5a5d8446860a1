//! The index of a bank: everything behind its lock.

use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};

use crate::api::{BankStats, Tier};
use crate::bitmap::Bitmap;
use crate::dense::exact_vectors::{ExactVectors, NO_SLOT, Scratch};
use crate::dense::{DenseIndex, FlatIndex};
use crate::graph::{GraphKind, Segments};
use crate::index::columns::{Columns, NO_TIME};
use crate::index::conversations::Conversations;
use crate::index::labels::Labels;
use crate::index::neighbours::NeighbourTable;
use crate::lexical::{Bm25Index, LexicalIndex, SavedWords};
use crate::system::huge_pages::MemoryRanges;

/// The index of a bank at one position.
#[derive(Debug)]
pub(crate) struct Index {
    /// Position of the last applied commit.
    pub(crate) position: u64,
    /// The setting of the tier.
    pub(crate) tier: Tier,
    /// True in the disk tier, on the way to it too.
    pub(crate) disk: bool,
    pub(crate) columns: Columns,
    pub(crate) labels: Labels,
    pub(crate) conversations: Conversations,
    /// Names of memory layers; versions hold their numbers.
    pub(crate) layers: Vec<Arc<str>>,
    pub(crate) vectors: FlatIndex,
    /// Shared with who moves them.
    pub(crate) exact_vectors: Arc<ExactVectors>,
    /// Slot of each row's original vector.
    pub(crate) slots: Vec<u32>,
    /// Tokens of each row's text.
    pub(crate) tokens: Vec<u32>,
    pub(crate) lexical: Bm25Index,
    /// Rows of current versions.
    pub(crate) current_rows: Bitmap,
    /// Rows of removed versions.
    pub(crate) dead_rows: u32,
    /// Graphs over the vectors of most rows of a large bank.
    pub(crate) segments: Segments,
    /// Inverted indexes of the checkpoint that the bank is from and that are not put back yet, the last one first. They
    /// are put back before the graphs.
    pub(crate) saved_words: Vec<SavedWords>,
    /// Table of the context windows over all current versions, made by the first recall after a commit.
    pub(crate) neighbours: OnceLock<NeighbourTable>,
}

impl Index {
    /// The ranges of memory that a recall by graphs reads at random.
    pub(crate) fn ranges(&self) -> MemoryRanges {
        let mut ranges = MemoryRanges::default();
        self.vectors.note_ranges(&mut ranges);
        self.lexical.note_ranges(&mut ranges);
        self.segments.note_ranges(&mut ranges);
        ranges
    }

    pub(crate) fn new(dimensions: usize, scratch: Option<Arc<Scratch>>, tier: Tier) -> Self {
        Self {
            position: 0,
            tier,
            disk: tier == Tier::Disk && scratch.is_some(),
            columns: Columns::default(),
            labels: Labels::default(),
            conversations: Conversations::default(),
            layers: Vec::new(),
            vectors: FlatIndex::new(dimensions),
            exact_vectors: Arc::new(ExactVectors::new(dimensions, scratch)),
            slots: Vec::new(),
            tokens: Vec::new(),
            lexical: Bm25Index::default(),
            current_rows: Bitmap::default(),
            dead_rows: 0,
            segments: Segments::default(),
            saved_words: Vec::new(),
            neighbours: OnceLock::new(),
        }
    }

    /// Rows of versions that are not removed.
    pub(crate) fn live_rows(&self) -> Bitmap {
        let mut rows = Bitmap::empty(self.rows());
        for version in self.columns.live.iter() {
            for row in self.rows_of(version) {
                rows.insert(row);
            }
        }
        rows
    }

    /// Number of rows, dead ones included.
    pub(crate) fn rows(&self) -> u32 {
        self.vectors.len() as u32
    }

    /// True where every version is one row, so that rows and versions have the same numbers.
    pub(crate) fn is_flat(&self) -> bool {
        self.rows() == self.columns.len()
    }

    /// The version that a row belongs to.
    pub(crate) fn version_of(&self, row: u32) -> u32 {
        if self.is_flat() {
            return row;
        }
        let after = |&first: &u32| first <= row;
        self.columns.first_row.partition_point(after) as u32 - 1
    }

    /// The rows of a version: the whole, then its chunks.
    #[inline]
    pub(crate) fn rows_of(&self, version: u32) -> Range<u32> {
        // Most banks are flat, and then nothing need be read.
        if self.is_flat() {
            return version..version + 1;
        }
        self.columns.rows_of(version, self.rows())
    }

    /// The largest quantisation step of a version's rows.
    pub(crate) fn largest_step(&self, version: u32) -> f32 {
        let Range { start, end } = self.rows_of(version);
        let steps = &self.vectors.steps()[start as usize..end as usize];
        steps.iter().fold(0.0, |a, &b| a.max(b))
    }

    /// Returns true, once, if the builder should look at the bank; see [`Segments::due`]. Rows outside all inverted
    /// indexes count from `word_rows` on.
    pub(crate) fn is_due(&mut self, graph_rows: u32, word_rows: u32) -> bool {
        let words = word_rows > 0 && !self.segments.queued && self.lexical.unsealed() >= word_rows;
        let graph = self.segments.due(self.rows(), graph_rows);
        self.segments.queued |= words;
        graph || words
    }

    /// Has graphs of this kind alone restored, or none, and inverted indexes only with `words`.
    pub(crate) fn restore_only(&mut self, kind: Option<GraphKind>, words: bool) {
        self.segments.saved.retain(|saved| Some(saved.kind) == kind);
        if !words {
            self.saved_words.clear();
        }
        self.segments.restoring = !(self.segments.saved.is_empty() && self.saved_words.is_empty());
    }

    /// Numbers of compactions that renumbered rows and terms.
    pub(crate) fn renumberings(&self) -> (u64, u64) {
        (self.segments.renumberings, self.lexical.renumberings())
    }

    /// Finds out what follows from the columns: which rows are current, dead or without a vector.
    pub(crate) fn count(&mut self) {
        let rows = self.rows();
        self.current_rows = Bitmap::empty(rows);
        self.segments.covered = Bitmap::empty(rows);
        let mut live = 0;
        for version in self.columns.live.iter() {
            live += self.columns.rows_of(version, rows).len() as u32;
        }
        for version in self.columns.current.iter() {
            for row in self.columns.rows_of(version, rows) {
                self.current_rows.insert(row);
            }
        }
        for (&slot, row) in self.slots.iter().zip(0..) {
            if slot == NO_SLOT {
                self.segments.covered.insert(row);
            }
        }
        self.dead_rows = rows - live;
    }

    /// When the first and the last of what is held happened, or was stored where that is not known.
    pub(crate) fn times(&self) -> Option<(i64, i64)> {
        let time = |version: u32| match self.columns.occurred_at[version as usize] {
            NO_TIME => self.columns.retained_at(version),
            time => time,
        };
        let mut times = self.columns.live.iter().map(time);
        let first = times.next()?;
        Some(times.fold((first, first), |(low, high), time| {
            (low.min(time), high.max(time))
        }))
    }

    /// Bytes in mapped files.
    fn mapped_bytes(&self) -> usize {
        self.segments.mapped_bytes()
            + self.lexical.mapped_bytes()
            + self.lexical.mapped_terms_bytes()
            + self.vectors.mapped_bytes()
    }

    pub(crate) fn stats(&self) -> BankStats {
        let vectors = self.vectors.bytes();
        let lexical = self.lexical.bytes();
        let columns = self.columns.bytes()
            + self.labels.bytes()
            + self.conversations.bytes()
            + (self.slots.capacity() + self.tokens.capacity()) * size_of::<u32>()
            + self.current_rows.bytes()
            + self.neighbours.get().map_or(0, NeighbourTable::bytes);
        let (exact_vectors, scratch) = self.exact_vectors.bytes();
        let graphs = self.segments.bytes();
        let quality = &self.segments.quality;
        let graph_rows = self
            .segments
            .all
            .iter()
            .map(|segment| u64::from(segment.len()));
        BankStats {
            memories: u64::from(self.columns.current.len()),
            versions: u64::from(self.columns.live.len()),
            rows: u64::from(self.rows() - self.dead_rows),
            dead_rows: u64::from(self.dead_rows),
            terms: self.lexical.terms() as u64,
            sessions: self.conversations.session_count() as u64,
            bytes_vectors: vectors as u64,
            bytes_lexical: lexical as u64,
            bytes_columns: columns as u64,
            bytes_scratch: scratch as u64,
            segments: self.segments.all.len() as u64,
            graph_rows: graph_rows.sum(),
            bytes_graphs: graphs as u64,
            bytes_mapped: self.mapped_bytes() as u64,
            on_disk: u64::from(self.disk),
            disk_rows: u64::from(self.rows_on_disk()),
            sampled: quality.samples.load(Relaxed),
            sampled_wanted: quality.wanted.load(Relaxed),
            sampled_found: quality.found.load(Relaxed),
            widened: u64::from(quality.widened.load(Relaxed)),
            bytes: (vectors + lexical + columns + exact_vectors + graphs) as u64,
        }
    }
}
