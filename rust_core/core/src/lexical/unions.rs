//! Unions: terms of a query that count as one, such as all words that begin with a prefix.
//!
//! A row's frequency of a union is the sum of those of its terms, and a union is as rare as all its terms together. So a
//! union adds no more to a score than one word does, however many of its terms a row holds.

use super::QueryTerm;
use super::bm25::{Bm25Index, REMOVED};
use super::posting_sums::PostingCursor;

impl Bm25Index {
    /// Number of counted rows that hold a term; with `past`, of all rows that do, but for removed ones.
    pub(crate) fn rows_with(&self, fingerprint: u64, past: bool) -> u32 {
        self.find_term(fingerprint).map_or(0, |term| {
            if past {
                self.present_rows(term)
            } else {
                self.terms[term as usize].document_frequency
            }
        })
    }

    /// Number of rows that hold a term and are not removed. It reads the postings: only as they are dropped do their
    /// counts tell which rows are there.
    fn present_rows(&self, term: u32) -> u32 {
        let mut rows = 0;
        let count = |row: u32, _| rows += u32::from(self.spans[row as usize] != REMOVED);
        if self.sealed.is_empty() {
            self.terms[term as usize].for_each(term, &self.overflow, count);
        } else {
            let end = self.spans.len() as u32;
            self.sealed_cursor(term, 0).read(end, &self.overflow, count);
        }
        rows
    }

    /// Counted rows that hold a term of the union, each counted once for each such term; at most all counted rows.
    pub(super) fn union_rows(&self, union: &[u64]) -> u64 {
        let rows = union
            .iter()
            .map(|&one| u64::from(self.rows_with(one, false)));
        rows.sum::<u64>().min(self.counted_rows)
    }

    /// The union of the terms that the index holds; none where it holds none of them.
    pub(super) fn union_term(&self, union: &[u64], scale: f32) -> Option<QueryTerm> {
        let mut numbers = union.iter().filter_map(|&one| self.find_term(one));
        let number = numbers.next()?;
        let others: Vec<u32> = numbers.collect();
        let factor = self.rarity(self.union_rows(union) as f64) * scale;
        let held = std::iter::once(number).chain(others.iter().copied());
        let rows: u64 = held.map(|one| u64::from(self.posting_count(one))).sum();
        Some(QueryTerm {
            number,
            others,
            factor,
            most: factor,
            rows: rows.try_into().unwrap_or(u32::MAX),
        })
    }

    /// Calls `found` with the place in `rows`, ascending, and the frequency of each row that holds the term.
    pub(super) fn frequencies_of(&self, number: u32, rows: &[u32], found: impl FnMut(usize, f32)) {
        if self.sealed.is_empty() {
            let postings = &self.terms[number as usize];
            postings.for_each_of(number, &self.overflow, rows, found);
        } else {
            self.sealed_cursor(number, rows.first().copied().unwrap_or(0))
                .read_of(rows, &self.overflow, found);
        }
    }

    /// The frequency of the union in each of `rows`, which are ascending.
    pub(super) fn union_frequencies(&self, term: &QueryTerm, rows: &[u32]) -> Vec<f32> {
        let mut sums = vec![0.0; rows.len()];
        for number in term.numbers() {
            self.frequencies_of(number, rows, |at, frequency| sums[at] += frequency);
        }
        sums
    }

    /// All rows that hold a term of the union, ascending, with the frequency of the union.
    pub(super) fn union_postings(&self, term: &QueryTerm) -> Vec<(u32, f32)> {
        let mut found = Vec::new();
        for number in term.numbers() {
            let mut add = |row, frequency| found.push((row, frequency));
            if self.sealed.is_empty() {
                self.terms[number as usize].for_each(number, &self.overflow, add);
            } else {
                let mut cursor = self.sealed_cursor(number, 0);
                cursor.read(u32::MAX, &self.overflow, &mut add);
            }
        }
        add_up(&mut found);
        found
    }

    /// Fills `found` with the rows below `end` that the cursors are still to read, ascending, with the sums of their
    /// frequencies.
    pub(super) fn read_union<C: PostingCursor>(
        &self,
        cursors: &mut [C],
        end: u32,
        found: &mut Vec<(u32, f32)>,
    ) {
        found.clear();
        for cursor in cursors {
            cursor.read(end, &self.overflow, |row, frequency| {
                found.push((row, frequency));
            });
        }
        add_up(found);
    }
}

/// The place of the union that has a term besides its first. Few rows ask: what a query has is mostly words.
#[cold]
pub(super) fn union_with(terms: &[QueryTerm], number: u32) -> Option<usize> {
    terms.iter().position(|term| term.others.contains(&number))
}

/// Sorts by row and adds up the frequencies of each, which are whole numbers: their order does not matter.
fn add_up(found: &mut Vec<(u32, f32)>) {
    found.sort_unstable_by_key(|&(row, _)| row);
    found.dedup_by(|later, kept| {
        let same = later.0 == kept.0;
        if same {
            kept.1 += later.1;
        }
        same
    });
}
