//! Sealed words: the postings of most rows in inverted indexes of tantivy, which searches read in place of the bank's
//! own.
//!
//! The bank keeps its statistics, lengths and the words of each row, so scores are those of its own postings to the bit.
//! Each index covers a range of rows. Rows that are removed stay in it, and no filter lets them pass; the index is stale
//! from then on. Stale indexes are in no checkpoint: they are built anew for one. An erasure drops them. A compaction
//! gives rows other numbers and drops all indexes. The bank's own postings answer until new ones are built.

use std::ops::Range;
use std::sync::Arc;

use super::bm25::Bm25Index;
use super::part_postings::PartPostings;
use super::postings::{Cursor, FREQUENCY_BITS, Overflow};
use super::sealed_part::{RowWords, SealedPart};

/// Most rows of an index. A row of a hundred words takes some 800 bytes while tantivy builds one, and tantivy cannot
/// address more than 4 GB.
const MOST_ROWS: u32 = 1 << 20;
/// The same in the disk tier, where an erasure waits until the indexes that have the words are built again: these take
/// some seconds.
const MOST_DISK_ROWS: u32 = 1 << 18;

/// Rows to index, and the present indexes, by number, whose place the new one takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SealPlan {
    pub(crate) rows: Range<u32>,
    pub(crate) replaced: Range<usize>,
}

/// Numbers of the compactions and of the erasures of a bank. An index that was begun before one is not shown: its rows
/// have other numbers, or it may have what was erased.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Generation {
    renumberings: u64,
    erasures: u64,
}

/// The inverted indexes of a bank, in the order of their rows, without gaps from row 0 on.
#[derive(Debug, Clone, Default)]
pub(super) struct SealedWords {
    parts: Vec<Arc<SealedPart>>,
    erasures: u64,
}

impl SealedWords {
    /// Rows that they cover.
    pub(super) fn rows(&self) -> u32 {
        self.parts.last().map_or(0, |part| part.rows().end)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Adds an index of the rows after those that are covered.
    pub(super) fn push(&mut self, part: SealedPart) {
        debug_assert_eq!(part.rows().start, self.rows(), "no gap between indexes");
        self.parts.push(Arc::new(part));
    }

    /// Resident bytes.
    pub(super) fn bytes(&self) -> usize {
        self.parts.iter().map(|part| part.bytes()).sum()
    }

    /// Notes that a row is removed.
    pub(super) fn note_removed(&self, row: u32) {
        let before = |part: &Arc<SealedPart>| part.rows().end <= row;
        if let Some(part) = self.parts.get(self.parts.partition_point(before)) {
            part.note_removed(row);
        }
    }
}

/// The next build: all rows outside, if there are `word_rows`, together with the last indexes that have no more rows
/// than that. So every row is indexed a few times, and the indexes stay few.
fn plan(parts: &[Range<u32>], rows: u32, (word_rows, most): (u32, u32)) -> Option<SealPlan> {
    let end = parts.last().map_or(0, |part| part.end);
    if word_rows == 0 || rows - end < word_rows {
        return None;
    }
    let (mut kept, mut first) = (parts.len(), end);
    while let Some(last) = kept.checked_sub(1).map(|last| &parts[last])
        && last.len() as u32 <= rows - first
        && rows - last.start <= most
    {
        first = last.start;
        kept -= 1;
    }
    let rows = first..rows.min(first.saturating_add(most));
    let replaced = kept..parts.len();
    Some(SealPlan { rows, replaced })
}

impl Bm25Index {
    /// Rows outside all inverted indexes.
    pub(crate) fn unsealed(&self) -> u32 {
        self.spans.len() as u32 - self.sealed.rows()
    }

    /// Rows that inverted indexes cover.
    pub(crate) fn indexed_rows(&self) -> u32 {
        self.sealed.rows()
    }

    /// The rows that are to be indexed next, if there are enough outside; for the disk tier or not.
    pub(crate) fn seal_plan(&self, word_rows: u32, disk: bool) -> Option<SealPlan> {
        let parts = self.sealed.parts.iter();
        let parts: Vec<Range<u32>> = parts.map(|part| part.rows()).collect();
        let most = if disk { MOST_DISK_ROWS } else { MOST_ROWS };
        plan(&parts, self.spans.len() as u32, (word_rows, most))
    }

    /// The plan to build the first stale index anew.
    pub(crate) fn stale_plan(&self) -> Option<SealPlan> {
        let parts = &self.sealed.parts;
        let number = parts.iter().position(|part| part.is_stale())?;
        Some(SealPlan {
            rows: parts[number].rows(),
            replaced: number..number + 1,
        })
    }

    /// The plan to build this index anew, if it is still there.
    pub(crate) fn plan_of(&self, part: &Arc<SealedPart>) -> Option<SealPlan> {
        let mut parts = self.sealed.parts.iter();
        let number = parts.position(|one| Arc::ptr_eq(one, part))?;
        Some(SealPlan {
            rows: part.rows(),
            replaced: number..number + 1,
        })
    }

    /// The indexes that have words of removed rows. What is begun before is not shown any more.
    pub(crate) fn begin_erasure(&mut self) -> Vec<Arc<SealedPart>> {
        self.sealed.erasures += 1;
        let stale = self.sealed.parts.iter().filter(|part| part.is_stale());
        stale.cloned().collect()
    }

    pub(crate) fn generation(&self) -> Generation {
        Generation {
            renumberings: self.renumberings,
            erasures: self.sealed.erasures,
        }
    }

    /// Removes the stale indexes, and all after the first of them.
    pub(crate) fn drop_stale(&mut self) -> Vec<Arc<SealedPart>> {
        self.sealed.erasures += 1;
        let parts = &mut self.sealed.parts;
        let first = parts.iter().position(|part| part.is_stale());
        parts.split_off(first.unwrap_or(parts.len()))
    }

    /// The inverted indexes, in the order of their rows.
    pub(crate) fn sealed_parts(&self) -> &[Arc<SealedPart>] {
        &self.sealed.parts
    }

    /// Rows of inverted indexes that the newest checkpoint does not have.
    pub(crate) fn unsaved_rows(&self) -> u64 {
        let parts = self.sealed.parts.iter();
        let unsaved = parts.filter(|part| !part.is_saved());
        unsaved.map(|part| part.rows().len() as u64).sum()
    }

    /// Bytes in mapped files.
    pub(crate) fn mapped_bytes(&self) -> usize {
        let parts = self.sealed.parts.iter();
        parts.map(|part| part.mapped_bytes()).sum()
    }

    /// Returns true if the index can take the place of the planned ones: they are still there, and it is of these rows.
    /// Notes whether a row that it holds was removed meanwhile.
    pub(crate) fn admits(&self, plan: &SealPlan, part: &SealedPart) -> bool {
        let parts = &self.sealed.parts;
        let replaced = &plan.replaced;
        let end_of = |number: usize| parts.get(number).map(|part| part.rows().end);
        let begins = replaced.start.checked_sub(1).map_or(Some(0), end_of);
        // Another build may have put one of more rows there.
        let covered = replaced.end.checked_sub(1).map_or(Some(0), end_of);
        let next = parts.get(replaced.end).map(|part| part.rows().start);
        let rows = part.rows();
        let fits = replaced.end <= parts.len()
            && begins == Some(rows.start)
            && covered.is_some_and(|end| end <= rows.end)
            && next.is_none_or(|next| next == rows.end)
            && rows.end as usize <= self.spans.len();
        if fits {
            part.look_for_removed(&self.spans);
        }
        fits
    }

    /// The words of some rows; of a removed row none.
    pub(crate) fn words_of(&self, rows: Range<u32>) -> Vec<RowWords> {
        let words = |row: u32| {
            let entries = self.entries(row).iter();
            let word = |&entry: &u32| {
                let term = (entry >> FREQUENCY_BITS) as usize;
                let frequency = self.frequency_of(entry, row) as u32;
                (self.terms[term].fingerprint, frequency)
            };
            entries.map(word).collect()
        };
        rows.map(words).collect()
    }

    /// Puts an index, which was [admitted](Self::admits), in the place of the planned ones, and returns these.
    pub(crate) fn seal(&mut self, plan: &SealPlan, part: Arc<SealedPart>) -> Vec<Arc<SealedPart>> {
        let replaced = self.sealed.parts.splice(plan.replaced.clone(), [part]);
        replaced.collect()
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

    /// The postings of a term from the row `first` on. Where tantivy fails, all of them are the bank's own, or those of
    /// the rows' own terms where the bank has no other.
    pub(super) fn sealed_cursor(&self, number: u32, first: u32) -> SealedCursor<'_> {
        let own = &self.terms[number as usize];
        let mut parts = Vec::with_capacity(self.sealed.parts.len());
        for part in &self.sealed.parts {
            let rows = part.rows();
            if rows.end <= first {
                continue;
            }
            match part.postings(own.fingerprint) {
                Ok(None) => {}
                Ok(Some(postings)) => parts.push((rows, PartPostings::Sealed(Box::new(postings)))),
                Err(_) if self.lacks_postings() => {
                    let listed = self.holders(number, rows.clone());
                    parts.push((rows, PartPostings::Listed(listed, 0)));
                }
                Err(_) => {
                    return SealedCursor {
                        first,
                        parts: Vec::new(),
                        at: 0,
                        own: own.cursor(number, first),
                    };
                }
            }
        }
        SealedCursor {
            first,
            parts,
            at: 0,
            own: own.cursor(number, self.sealed.rows().max(first)),
        }
    }
}

/// A term's postings that are still to be read: those of the inverted indexes, then the bank's own.
pub(super) struct SealedCursor<'a> {
    first: u32,
    parts: Vec<(Range<u32>, PartPostings)>,
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
    use astrocyte_text::analysis::analyze_text;

    use super::*;
    use crate::lexical::{LexicalIndex, SealedPartBuilder};

    #[expect(clippy::single_range_in_vec_init, reason = "one index of one range")]
    #[test]
    fn the_rows_outside_are_indexed_with_indexes_that_are_no_larger() {
        let planned = |rows: Range<u32>, replaced| Some(SealPlan { rows, replaced });
        assert_eq!(plan(&[], 99, (100, MOST_ROWS)), None);
        assert_eq!(plan(&[], 100, (0, MOST_ROWS)), None);
        assert_eq!(plan(&[], 100, (100, MOST_ROWS)), planned(0..100, 0..0));
        assert_eq!(plan(&[0..1000], 1099, (100, MOST_ROWS)), None);
        assert_eq!(
            plan(&[0..1000], 1100, (100, MOST_ROWS)),
            planned(1000..1100, 1..1)
        );
        let parts = [0..1000, 1000..1100];
        assert_eq!(
            plan(&parts, 1250, (100, MOST_ROWS)),
            planned(1000..1250, 1..2)
        );
        assert_eq!(plan(&parts, 2300, (100, MOST_ROWS)), planned(0..2300, 0..2));
        let most = [0..MOST_ROWS - 10];
        assert_eq!(
            plan(&most, 2 * MOST_ROWS, (100, MOST_ROWS)),
            planned(MOST_ROWS - 10..2 * MOST_ROWS - 10, 1..1)
        );
    }

    #[test]
    fn an_index_does_not_take_the_place_of_one_of_more_rows() {
        let mut index = Bm25Index::new();
        for row in 0..20 {
            index.add(row, &analyze_text(&format!("tea {row}")), true);
        }
        let part = |index: &Bm25Index, rows: Range<u32>| {
            let mut builder = SealedPartBuilder::new(&rows).expect("memory");
            for words in index.words_of(rows) {
                builder.add(words).expect("memory");
            }
            Arc::new(builder.finish(None).expect("memory").expect("rows"))
        };
        let planned = |rows: Range<u32>, replaced| SealPlan { rows, replaced };
        let first = planned(0..10, 0..0);
        index.seal(&first, part(&index, 0..10));
        let again = planned(0..10, 0..1);
        assert!(index.admits(&again, &part(&index, 0..10)));
        // Two builds at once, of which the larger one ends first.
        index.seal(&planned(0..20, 0..1), part(&index, 0..20));
        assert!(!index.admits(&again, &part(&index, 0..10)));
        assert!(index.admits(&planned(0..20, 0..1), &part(&index, 0..20)));
    }

    #[test]
    fn every_row_is_indexed_a_few_times() {
        let (mut parts, mut built) = (Vec::new(), 0u64);
        for step in 1..=1000 {
            if let Some(next) = plan(&parts, step * 100, (100, MOST_ROWS)) {
                built += next.rows.len() as u64;
                parts.truncate(next.replaced.start);
                parts.push(next.rows);
            }
        }
        assert!(parts.len() <= 11, "{parts:?}");
        assert!(built < 100_000 * 11, "{built}");
    }
}
