//! Keyword search: Okapi BM25 over one bank's rows, with exact statistics.
//!
//! Source: Robertson and Zaragoza, The Probabilistic Relevance Framework: BM25 and Beyond, 2009.

mod bm25;
mod feedback;
mod postings;

pub use bm25::Bm25Index;

use crate::analysis::{AnalyzedQuery, AnalyzedText};
use crate::rowset::RowSet;

/// Rows that an index can number: a posting is 32 bits, of which four hold the frequency.
pub const MAX_ROWS: u32 = 1 << 28;

/// An index over the words of rows. New rows always have a larger number than any row before.
///
/// A seam: the bank knows this trait only, so that an index on disk can take the place of [`Bm25Index`].
pub trait LexicalIndex {
    /// Indexes `text` as `row`. A `counted` row (the whole of a current version) enters the statistics; others (chunks,
    /// versions that ended) can be found all the same.
    ///
    /// # Panics
    /// When `row` is not above all rows before, or not below [`MAX_ROWS`].
    fn add(&mut self, row: u32, text: &AnalyzedText, counted: bool);
    /// Takes a counted row out of the statistics; it can still be found. Nothing happens to a row not counted.
    fn retire(&mut self, row: u32);
    /// Forgets a row: its terms, its place in the statistics. It may no longer be allowed in a search.
    fn remove(&mut self, row: u32);
    /// Renumbers rows after removed ones were dropped: `new_rows[old]` is the new number, or `u32::MAX`. Order holds.
    fn compact(&mut self, new_rows: &[u32]);
    /// Adds each allowed matching row's score, above 0 and finite, to `scores[row]` (0.0 on entry). The 64 rarest terms
    /// of the query count.
    fn score(&self, query: &AnalyzedQuery, allowed: &RowSet, scores: &mut [f32]);
    /// The stems that say most about `rows`, those of `query` left out, weighted up to `weight`; see
    /// [`feedback`](self::feedback).
    fn feedback(&self, query: &AnalyzedQuery, rows: &[u32], weight: f32) -> AnalyzedQuery;
    /// Distinct terms.
    fn terms(&self) -> usize;
    /// Resident bytes.
    fn bytes(&self) -> usize;
}
