//! One inverted index of tantivy over consecutive rows, and how it is built, saved and opened.

use std::fs::File;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use astrocyte_segments::{Result, SegmentBytes, WordIndex, WordIndexBuilder, WordPostings};

use super::bm25::REMOVED;
use crate::bitmap::Bitmap;

/// The words of a row, each with its frequency.
pub(crate) type RowWords = Vec<(u64, u32)>;

/// An inverted index over consecutive rows.
#[derive(Debug)]
pub(crate) struct SealedPart {
    first: u32,
    words: WordIndex,
    /// Rows of which the index has words, counted from the first.
    held: Bitmap,
    /// True if one of these is removed.
    stale: AtomicBool,
    /// True if the newest checkpoint has it.
    saved: AtomicBool,
}

impl SealedPart {
    /// An index that was [saved](Self::as_bytes), whose bytes were verified.
    pub(crate) fn open(first: u32, rows: u32, held: Bitmap, bytes: SegmentBytes) -> Result<Self> {
        let part = Self::new(first, WordIndex::open(bytes, rows)?, held);
        part.note_saved(true);
        Ok(part)
    }

    fn new(first: u32, words: WordIndex, held: Bitmap) -> Self {
        Self {
            first,
            words,
            held,
            stale: AtomicBool::new(false),
            saved: AtomicBool::new(false),
        }
    }

    /// The rows that it covers.
    pub(crate) fn rows(&self) -> Range<u32> {
        self.first..self.first + self.words.rows()
    }

    /// The postings of a word, whose rows are counted from the first.
    ///
    /// # Errors
    /// When tantivy fails.
    pub(super) fn postings(&self, fingerprint: u64) -> Result<Option<WordPostings>> {
        self.words.postings(fingerprint)
    }

    /// Rows of which the index has words, counted from the first.
    pub(crate) fn held(&self) -> &Bitmap {
        &self.held
    }

    /// All bytes, from which the index can be [opened](Self::open) again.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.words.as_bytes()
    }

    /// True if the index has words of a removed row.
    pub(crate) fn is_stale(&self) -> bool {
        self.stale.load(Ordering::Relaxed)
    }

    /// Notes whether the newest checkpoint has it.
    pub(crate) fn note_saved(&self, saved: bool) {
        self.saved.store(saved, Ordering::Relaxed);
    }

    /// Returns true if the newest checkpoint has it.
    pub(super) fn is_saved(&self) -> bool {
        self.saved.load(Ordering::Relaxed)
    }

    /// Resident bytes.
    pub(super) fn bytes(&self) -> usize {
        self.words.bytes() + self.held.bytes()
    }

    /// Bytes in a mapped file.
    pub(super) fn mapped_bytes(&self) -> usize {
        self.words.mapped_bytes()
    }

    /// Notes that one of its rows is removed.
    pub(super) fn note_removed(&self, row: u32) {
        if self.held.contains(row - self.first) {
            self.stale.store(true, Ordering::Relaxed);
        }
    }

    /// Notes whether the index has words of a row that is removed by now.
    pub(super) fn look_for_removed(&self, spans: &[u64]) {
        let rows = self.rows();
        let spans = &spans[rows.start as usize..rows.end as usize];
        let mut held = self.held.iter();
        let stale = held.any(|row| spans[row as usize] == REMOVED);
        self.stale.fetch_or(stale, Ordering::Relaxed);
    }
}

/// An inverted index that a checkpoint has.
pub(crate) struct SavedWords {
    /// Copies, checks and opens it.
    pub(crate) open: Box<dyn FnOnce() -> crate::api::Result<SealedPart> + Send + Sync>,
}

impl std::fmt::Debug for SavedWords {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("SavedWords").finish_non_exhaustive()
    }
}

/// Rows that become an inverted index.
#[derive(Debug)]
pub(crate) struct SealedPartBuilder {
    first: u32,
    words: WordIndexBuilder,
    held: Bitmap,
    rows: u32,
}

impl SealedPartBuilder {
    /// An empty one for `rows`.
    pub(crate) fn new(rows: &Range<u32>) -> Result<Self> {
        Ok(Self {
            first: rows.start,
            words: WordIndexBuilder::new()?,
            held: Bitmap::empty(rows.len() as u32),
            rows: 0,
        })
    }

    /// Adds the words of the next row.
    pub(crate) fn add(&mut self, words: RowWords) -> Result<()> {
        if !words.is_empty() {
            self.held.insert(self.rows);
        }
        self.rows += 1;
        self.words.add(words)
    }

    /// The index, in the empty `file` or in memory; None without rows.
    pub(crate) fn finish(self, file: Option<File>) -> Result<Option<SealedPart>> {
        let (first, held) = (self.first, self.held);
        let words = self.words.finish(file)?;
        Ok(words.map(|words| SealedPart::new(first, words, held)))
    }
}
