//! The keyword index of a bank in the disk tier: the terms of most rows lie in files, and inverted indexes of tantivy
//! alone have their postings.
//!
//! Lengths, the dictionary and the statistics stay in memory, so scores are those of the memory tier to the bit.

use std::fs::File;
use std::io;

use super::bm25::{Bm25Index, COUNT_BITS, REMOVED, reserve_exactly};
use super::forward::{GROUP, SealedTerms};
use super::postings::{FREQUENCY_BITS, FREQUENCY_MASK, Postings};
use super::sealed_part::SealedPart;
use crate::dense::exact_vectors::Scratch;

/// Terms whose postings are dropped under one lock: less than a millisecond.
const DROPPED_TOGETHER: usize = 16_384;

/// Postings that inverted indexes have alone.
#[derive(Debug, Clone, Default)]
pub(super) struct DroppedPostings {
    /// Rows below this one have no postings of the bank's own.
    first: u32,
    /// Dropped postings by term; terms that came later have none.
    counts: Vec<u32>,
    /// Terms of which postings below `first` are still to be dropped.
    left: usize,
}

impl DroppedPostings {
    /// Rows whose postings the bank itself lacks.
    pub(super) fn rows(&self) -> u32 {
        self.first
    }

    /// Dropped postings by term.
    pub(super) fn counts(&self) -> &[u32] {
        &self.counts
    }

    /// Resident bytes.
    pub(super) fn bytes(&self) -> usize {
        self.counts.capacity() * size_of::<u32>()
    }
}

impl Bm25Index {
    /// Rows that hold a term, removed ones included until they are dropped.
    pub(super) fn posting_count(&self, term: u32) -> u32 {
        let dropped = self.dropped.counts.get(term as usize).copied();
        self.terms[term as usize].len() as u32 + dropped.unwrap_or(0)
    }

    /// Rows whose terms are in files.
    pub(crate) fn sealed_rows(&self) -> u32 {
        self.forward.sealed_rows()
    }

    /// Returns true if terms are in files, or postings were dropped.
    pub(crate) fn is_on_disk(&self) -> bool {
        self.forward.sealed_rows() > 0 || self.dropped.first > 0
    }

    /// Returns true if inverted indexes alone have some postings.
    pub(crate) fn lacks_postings(&self) -> bool {
        self.dropped.first > 0
    }

    /// Bytes of the terms in mapped files.
    pub(crate) fn mapped_terms_bytes(&self) -> usize {
        self.forward.mapped_bytes()
    }

    /// Bytes that the terms of all rows and their postings take in memory.
    pub(crate) fn memory_tier_bytes(&self) -> usize {
        2 * self.forward.len() * size_of::<u32>() + self.spans.len() * size_of::<u64>()
    }

    /// Returns true if the terms of a whole group of rows are in memory.
    pub(crate) fn can_seal_terms(&self) -> bool {
        self.spans.len() as u32 - self.forward.sealed_rows() >= GROUP
    }

    /// A copy of the terms of the next group of rows, in an empty file.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn sealed_terms_copy(&self, file: &File) -> io::Result<SealedTerms> {
        let next = self.forward.sealed_rows() + GROUP;
        // A removed row tells nothing of where its terms were; they belong to either group.
        let mut spans = (next..self.spans.len() as u32).map(|row| self.span(row));
        let end = spans.find(|span| !span.is_empty());
        let end = end.map_or(self.forward.len(), |span| span.start);
        self.forward.sealed_copy(end, file)
    }

    /// Puts a copy of the next group's terms in the place of those in memory, which are returned.
    pub(crate) fn seal_terms(&mut self, copy: SealedTerms) -> Vec<u32> {
        self.forward.seal(copy)
    }

    /// Moves the terms of the next group of rows to a file.
    ///
    /// # Errors
    /// When the file cannot be made or written.
    pub(crate) fn seal_next_terms(&mut self, files: &Scratch) -> io::Result<()> {
        let copy = self.sealed_terms_copy(&files.segment_file()?)?;
        self.seal_terms(copy);
        Ok(())
    }

    /// Returns true if inverted indexes have postings that the bank has too.
    pub(crate) fn can_drop(&self) -> bool {
        self.dropped.left > 0 || self.indexed_rows() > self.dropped.first
    }

    /// Drops the postings of some terms that inverted indexes have.
    pub(crate) fn drop_some(&mut self) {
        let dropped = &mut self.dropped;
        if dropped.left == 0 {
            dropped.first = self.sealed.rows();
            dropped.left = self.terms.len();
            dropped.counts.resize(self.terms.len(), 0);
        }
        let terms = dropped.left.saturating_sub(DROPPED_TOGETHER)..dropped.left;
        dropped.left = terms.start;
        let counts = &mut dropped.counts[terms.clone()];
        for (postings, count) in self.terms[terms].iter_mut().zip(counts) {
            let before = postings.heap_bytes();
            *count += postings.drop_below(dropped.first);
            self.posting_bytes -= before - postings.heap_bytes();
        }
    }

    /// Takes the inverted indexes of a checkpoint for the postings of their rows, before it [settles](Self::settle).
    pub(crate) fn take_parts(&mut self, parts: Vec<SealedPart>) {
        for part in parts {
            part.look_for_removed(&self.spans);
            self.sealed.push(part);
        }
        self.dropped.first = self.sealed.rows();
    }

    /// Counts, by term, the postings of the rows below `first`.
    pub(super) fn count_dropped(&mut self, first: u32) {
        let mut counts = vec![0; self.terms.len()];
        for row in 0..first {
            for &entry in self.entries(row) {
                counts[(entry >> FREQUENCY_BITS) as usize] += 1;
            }
        }
        self.dropped.counts = counts;
    }

    /// The rows that hold a term, of consecutive ones, and its frequencies: read from the rows' own terms.
    pub(super) fn holders(&self, term: u32, rows: std::ops::Range<u32>) -> Vec<(u32, u32)> {
        let (mut found, first) = (Vec::new(), rows.start);
        for row in rows {
            let mut entries = self.entries(row).iter();
            if let Some(&entry) = entries.find(|&&entry| entry >> FREQUENCY_BITS == term) {
                found.push((row - first, self.frequency_of(entry, row) as u32));
            }
        }
        found
    }

    /// An index of the same rows with all postings of its own, in which rows have the numbers of `new_rows`; those of
    /// `u32::MAX` are left out. With `files` the terms of whole groups of rows are in files.
    pub(crate) fn rebuilt(&self, new_rows: &[u32], mut files: Option<&Scratch>) -> Self {
        let mut new = Self {
            renumberings: self.renumberings + 1,
            ..Self::default()
        };
        let mut numbers = vec![u32::MAX; self.terms.len()];
        let mut bound = 0;
        for (row, &number) in (0..).zip(new_rows) {
            if number == u32::MAX {
                continue;
            }
            bound = number as usize + 1;
            if row < self.spans.len() as u32 {
                self.copy_row(row, number, &mut numbers, &mut new);
            }
            if new.can_seal_terms() {
                // Where a file cannot be written, the rest stays in memory.
                files = files.filter(|files| new.seal_next_terms(files).is_ok());
            }
        }
        new.lengths.grow(bound);
        new.spans.resize(bound, 0);
        new.posting_bytes = new.terms.iter().map(Postings::heap_bytes).sum();
        new
    }

    /// Appends a row of this index to another, as number `number`. `numbers` are the other's numbers of terms.
    fn copy_row(&self, row: u32, number: u32, numbers: &mut [u32], into: &mut Self) {
        let (length, counted) = (self.lengths.get(row), self.lengths.is_counted(row));
        let (start, entries) = (into.forward.len(), self.entries(row));
        reserve_exactly(into.forward.tail(), entries.len());
        for &entry in entries {
            let old = (entry >> FREQUENCY_BITS) as usize;
            if numbers[old] == u32::MAX {
                numbers[old] = into.term_number(self.terms[old].fingerprint);
            }
            let (term, frequency) = (numbers[old], self.frequency_of(entry, row) as u32);
            let postings = &mut into.terms[term as usize];
            if postings.push(number, frequency, length) {
                into.overflow.insert((term, number), frequency);
            }
            postings.document_frequency += u32::from(counted);
            let entry = term << FREQUENCY_BITS | frequency.min(FREQUENCY_MASK);
            into.forward.tail().push(entry);
        }
        into.lengths.push(number, length, counted);
        into.spans.resize(number as usize, 0);
        let removed = self.spans[row as usize] == REMOVED;
        let span = (start << COUNT_BITS | entries.len()) as u64;
        into.spans.push(if removed { REMOVED } else { span });
        into.counted_rows += u64::from(counted);
        into.counted_length += if counted { u64::from(length) } else { 0 };
    }
}
