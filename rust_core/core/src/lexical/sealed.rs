//! Sealed words: the postings of most rows in inverted indexes of tantivy, which searches read in place of the bank's
//! own.
//!
//! The bank keeps its statistics, lengths and the words of each row, so scores are those of its own postings to the bit.
//! Each index covers a range of rows. Rows that are removed stay in it, and no filter lets them pass. A compaction gives
//! rows other numbers and drops all indexes; the bank's own postings answer until new ones are built.

use std::ops::Range;
use std::sync::Arc;

use astrocyte_segments::{Result, WordIndex, WordIndexBuilder, WordPostings};

use super::QueryTerm;
use super::bm25::Bm25Index;
use super::postings::{Cursor, FREQUENCY_BITS, Overflow};

/// Most rows of an index. A row of a hundred words takes some 800 bytes while tantivy builds one, and tantivy cannot
/// address more than 4 GB.
const MOST_ROWS: u32 = 1 << 20;

/// The words of a row, each with its frequency.
pub(crate) type RowWords = Vec<(u64, u32)>;

/// An inverted index over consecutive rows.
#[derive(Debug)]
pub(crate) struct SealedPart {
    first: u32,
    words: WordIndex,
}

impl SealedPart {
    fn end(&self) -> u32 {
        self.first + self.words.rows()
    }
}

/// Rows that become an inverted index.
#[derive(Debug)]
pub(crate) struct SealedPartBuilder {
    first: u32,
    words: WordIndexBuilder,
}

impl SealedPartBuilder {
    /// An empty one, whose rows begin with `first`.
    pub(crate) fn new(first: u32) -> Result<Self> {
        let words = WordIndexBuilder::new()?;
        Ok(Self { first, words })
    }

    /// Adds the words of the next row.
    pub(crate) fn add(&mut self, words: RowWords) -> Result<()> {
        self.words.add(words)
    }

    /// The index; None without rows.
    pub(crate) fn finish(self) -> Result<Option<SealedPart>> {
        let first = self.first;
        let words = self.words.finish()?;
        Ok(words.map(|words| SealedPart { first, words }))
    }
}

/// Rows to index, and how many of the present indexes stay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SealPlan {
    pub(crate) rows: Range<u32>,
    pub(crate) kept: usize,
}

/// The inverted indexes of a bank, in the order of their rows, without gaps from row 0 on.
#[derive(Debug, Clone, Default)]
pub(super) struct SealedWords {
    parts: Vec<Arc<SealedPart>>,
}

impl SealedWords {
    /// Rows that they cover.
    fn rows(&self) -> u32 {
        self.parts.last().map_or(0, |part| part.end())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Resident bytes.
    pub(super) fn bytes(&self) -> usize {
        self.parts.iter().map(|part| part.words.bytes()).sum()
    }
}

/// The next build: all rows outside, if there are `word_rows`, together with the last indexes that have no more rows
/// than that. So every row is indexed a few times, and the indexes stay few.
fn plan(parts: &[Range<u32>], rows: u32, word_rows: u32) -> Option<SealPlan> {
    let end = parts.last().map_or(0, |part| part.end);
    if word_rows == 0 || rows - end < word_rows {
        return None;
    }
    let (mut kept, mut first) = (parts.len(), end);
    while let Some(last) = kept.checked_sub(1).map(|last| &parts[last])
        && last.len() as u32 <= rows - first
        && rows - last.start <= MOST_ROWS
    {
        first = last.start;
        kept -= 1;
    }
    let rows = first..rows.min(first.saturating_add(MOST_ROWS));
    Some(SealPlan { rows, kept })
}

impl Bm25Index {
    /// Rows outside all inverted indexes.
    pub(crate) fn unsealed(&self) -> u32 {
        self.spans.len() as u32 - self.sealed.rows()
    }

    /// The rows that are to be indexed next, if there are enough outside.
    pub(crate) fn seal_plan(&self, word_rows: u32) -> Option<SealPlan> {
        let parts = self.sealed.parts.iter();
        let parts: Vec<Range<u32>> = parts.map(|part| part.first..part.end()).collect();
        plan(&parts, self.spans.len() as u32, word_rows)
    }

    /// The words of some rows; of a removed row none.
    pub(crate) fn words_of(&self, rows: Range<u32>) -> Vec<RowWords> {
        let words = |row: u32| {
            let entries = self.forward[self.span(row)].iter();
            let word = |&entry: &u32| {
                let term = (entry >> FREQUENCY_BITS) as usize;
                let frequency = self.frequency_of(entry, row) as u32;
                (self.terms[term].fingerprint, frequency)
            };
            entries.map(word).collect()
        };
        rows.map(words).collect()
    }

    /// Adds an index after the first `kept`, and returns the others.
    pub(crate) fn seal(&mut self, kept: usize, part: SealedPart) -> Vec<Arc<SealedPart>> {
        let replaced = self.sealed.parts.split_off(kept);
        self.sealed.parts.push(Arc::new(part));
        replaced
    }

    /// Describes whose postings are searched; empty for the bank's own.
    pub(crate) fn method(&self) -> String {
        if self.sealed.is_empty() {
            return String::new();
        }
        let (sealed, parts) = (self.sealed.rows(), self.sealed.parts.len());
        let rows = self.spans.len();
        format!("; postings of tantivy: {sealed} of {rows} rows, {parts} segments")
    }

    /// The postings of a term from the row `first` on. Where tantivy fails, all of them are the bank's own.
    pub(super) fn sealed_cursor(&self, term: &QueryTerm, first: u32) -> SealedCursor<'_> {
        let own = &self.terms[term.number as usize];
        let mut parts = Vec::with_capacity(self.sealed.parts.len());
        for part in self.sealed.parts.iter().filter(|part| part.end() > first) {
            match part.words.postings(own.fingerprint) {
                Ok(None) => {}
                Ok(Some(postings)) => parts.push((part.first..part.end(), postings)),
                Err(_) => {
                    return SealedCursor {
                        first,
                        parts: Vec::new(),
                        at: 0,
                        own: own.cursor(term.number, first),
                    };
                }
            }
        }
        SealedCursor {
            first,
            parts,
            at: 0,
            own: own.cursor(term.number, self.sealed.rows().max(first)),
        }
    }
}

/// A term's postings that are still to be read: those of the inverted indexes, then the bank's own.
pub(super) struct SealedCursor<'a> {
    first: u32,
    parts: Vec<(Range<u32>, WordPostings)>,
    /// Indexes that are read.
    at: usize,
    own: Cursor<'a>,
}

impl SealedCursor<'_> {
    /// Calls `found` with each row below `end` and its frequency, ascending.
    pub(super) fn read(&mut self, end: u32, overflow: &Overflow, mut found: impl FnMut(u32, f32)) {
        while let Some((rows, postings)) = self.parts.get_mut(self.at) {
            let start = rows.start;
            let wanted = self.first.saturating_sub(start)..end.min(rows.end) - start.min(end);
            postings.read(wanted, |row, frequency| {
                found(start + row, frequency as f32);
            });
            if end < rows.end {
                return;
            }
            self.at += 1;
        }
        self.own.read(end, overflow, found);
    }

    /// Calls `found` with the place in `wanted`, ascending, and the frequency of each row that holds the term.
    pub(super) fn read_of(
        &mut self,
        wanted: &[u32],
        overflow: &Overflow,
        mut found: impl FnMut(usize, f32),
    ) {
        let mut at = 0;
        for (rows, postings) in &mut self.parts {
            while let Some(&row) = wanted.get(at).filter(|&&row| row < rows.end) {
                if row >= rows.start {
                    let row = row - rows.start;
                    if postings.peek().is_some_and(|(next, _)| next < row) {
                        postings.seek(row);
                    }
                    if let Some((_, frequency)) = postings.peek().filter(|&(next, _)| next == row) {
                        found(at, frequency as f32);
                    }
                }
                at += 1;
            }
        }
        for (&row, at) in wanted[at..].iter().zip(at..) {
            self.own.read(row, overflow, |_, _| {});
            self.own
                .read(row + 1, overflow, |_, frequency| found(at, frequency));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::single_range_in_vec_init, reason = "one index of one range")]
    #[test]
    fn the_rows_outside_are_indexed_with_indexes_that_are_no_larger() {
        let planned = |rows: Range<u32>, kept| Some(SealPlan { rows, kept });
        assert_eq!(plan(&[], 99, 100), None);
        assert_eq!(plan(&[], 100, 0), None);
        assert_eq!(plan(&[], 100, 100), planned(0..100, 0));
        assert_eq!(plan(&[0..1000], 1099, 100), None);
        assert_eq!(plan(&[0..1000], 1100, 100), planned(1000..1100, 1));
        let parts = [0..1000, 1000..1100];
        assert_eq!(plan(&parts, 1250, 100), planned(1000..1250, 1));
        assert_eq!(plan(&parts, 2300, 100), planned(0..2300, 0));
        let most = [0..MOST_ROWS - 10];
        assert_eq!(
            plan(&most, 2 * MOST_ROWS, 100),
            planned(MOST_ROWS - 10..2 * MOST_ROWS - 10, 1)
        );
    }

    #[test]
    fn every_row_is_indexed_a_few_times() {
        let (mut parts, mut built) = (Vec::new(), 0u64);
        for step in 1..=1000 {
            if let Some(next) = plan(&parts, step * 100, 100) {
                built += next.rows.len() as u64;
                parts.truncate(next.kept);
                parts.push(next.rows);
            }
        }
        assert!(parts.len() <= 11, "{parts:?}");
        assert!(built < 100_000 * 11, "{built}");
    }
}
