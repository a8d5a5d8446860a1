//! Sums of the BM25 scores of the postings of a term.

use std::ops::Range;

use smallvec::SmallVec;

use super::bm25::Bm25Index;
use super::postings::{Cursor, Overflow};
use super::sealed::SealedCursor;
use super::{QueryTerm, RowWindow, Sums};
use crate::bitmap::Bitmap;

// Postings, and sums that are there, from which on a second thread is worth waking, which takes as long as some 15,000
// of them.
const SPREAD_POSTINGS: u64 = 1 << 16;
// To look through so many rows for sums takes as long as a posting.
const POSTING_ROWS: u64 = 48;

/// The postings of one term that are still to be read.
pub(super) trait PostingCursor {
    /// Calls `found` with each row below `end` and its frequency, ascending.
    fn read(&mut self, end: u32, overflow: &Overflow, found: impl FnMut(u32, f32));
}

impl PostingCursor for Cursor<'_> {
    #[inline]
    fn read(&mut self, end: u32, overflow: &Overflow, found: impl FnMut(u32, f32)) {
        Cursor::read(self, end, overflow, found);
    }
}

impl PostingCursor for SealedCursor<'_> {
    fn read(&mut self, end: u32, overflow: &Overflow, found: impl FnMut(u32, f32)) {
        SealedCursor::read(self, end, overflow, found);
    }
}

impl Bm25Index {
    /// Adds the parts of the terms whose postings `begin` reads from a row on; see [`LexicalIndex::add_terms`].
    pub(super) fn add_postings<C: PostingCursor>(
        &self,
        terms: &[QueryTerm],
        allowed: &Bitmap,
        spread: bool,
        sums: &mut Sums,
        begin: impl Fn(u32, u32) -> C + Sync,
    ) {
        let all = self.all_pass(allowed);
        let (base, slope) = self.length_share();
        let postings: u64 = terms.iter().map(|term| u64::from(term.rows)).sum();
        let rows = self.spans.len() as u32;
        let work = postings + sums.rows.len() as u64 + u64::from(rows) / POSTING_ROWS;
        sums.add(rows, spread && work >= SPREAD_POSTINGS, |first| {
            let cursor = |term: &QueryTerm| {
                let cursors = term.numbers().map(|number| begin(number, first));
                (term.factor, cursors.collect::<SmallVec<[C; 1]>>())
            };
            let mut cursors: Vec<_> = terms.iter().map(cursor).collect();
            let mut union = Vec::new();
            move |rows: Range<u32>, window: &mut RowWindow| {
                for (factor, cursors) in &mut cursors {
                    let mut add = |row: u32, frequency: f32| {
                        if all || allowed.contains(row) {
                            let length = self.lengths.get(row) as f32;
                            window.add(
                                row,
                                *factor * frequency / (frequency + base + slope * length),
                            );
                        }
                    };
                    if let [cursor] = cursors.as_mut_slice() {
                        cursor.read(rows.end, &self.overflow, add);
                    } else {
                        self.read_union(cursors, rows.end, &mut union);
                        for &(row, frequency) in &union {
                            add(row, frequency);
                        }
                    }
                }
            }
        });
    }
}
