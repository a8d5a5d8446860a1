//! Keyword search: Okapi BM25 over one bank's rows, with exact statistics.
//!
//! Source: Robertson and Zaragoza, The Probabilistic Relevance Framework: BM25 and Beyond, 2009.

mod bm25;
mod compaction;
mod disk;
mod feedback;
mod format;
mod forward;
mod lengths;
mod part_postings;
mod posting_sums;
mod postings;
mod sealed;
mod sealed_part;
mod sums;
mod unions;

pub use bm25::Bm25Index;
pub(crate) use sealed::{Generation, SealPlan};
pub(crate) use sealed_part::{SavedWords, SealedPart, SealedPartBuilder};
pub(crate) use sums::RowWindow;
pub use sums::Sums;

use smallvec::SmallVec;

use crate::bitmap::Bitmap;
use astrocyte_text::analysis::{AnalyzedQuery, AnalyzedText};

/// Rows that an index can number: a posting is 32 bits, of which four hold the frequency.
pub(crate) const MAX_ROWS: u32 = 1 << 28;

/// Rows whose words are fetched together: they stay in the first cache until they are scored.
pub(crate) const FETCHED: usize = 64;

/// A term of a query, as an index holds it; or several that count as one, of which a row's frequencies are added up.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryTerm {
    /// Its number in the index.
    pub number: u32,
    /// The numbers of the further terms that count as this one; no other term of the query has them.
    pub others: Vec<u32>,
    /// The limit of its score as its frequency grows.
    pub factor: f32,
    /// The largest amount that it adds to the score of a row.
    pub most: f32,
    /// Rows that hold it, some of which may be removed. A row that holds several of a union counts for each.
    pub rows: u32,
}

impl QueryTerm {
    /// The numbers of all terms that count as this one.
    pub fn numbers(&self) -> impl Iterator<Item = u32> {
        std::iter::once(self.number).chain(self.others.iter().copied())
    }
}

/// The stems of a query, each with its inverse document frequency as a share of the largest: 1 for a stem that no row
/// holds, whatever the number of rows.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryStems {
    /// The number in the index and the bit of each stem that the index holds.
    pub(crate) known: SmallVec<[(u32, u32); 16]>,
    /// Weight of each stem by bit; those that the index does not hold included.
    pub(crate) weights: SmallVec<[f32; 16]>,
    pub(crate) filter: TermFilter,
}

impl QueryStems {
    /// The weighted share of the stems whose bits are set in `held`, from 0 to 1.
    pub fn share(&self, held: u64) -> f32 {
        self.weight(held) / self.weight(u64::MAX)
    }

    /// The sum of the weights of the stems whose bits are set.
    pub(crate) fn weight(&self, bits: u64) -> f32 {
        let weights = self.weights.iter().zip(0..64);
        weights
            .filter(|&(_, bit)| bits >> bit & 1 == 1)
            .map(|(&weight, _)| weight)
            .sum()
    }
}

/// A filter that excludes most numbers of terms that a query does not hold, by one bit each.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TermFilter([u64; 4]);

impl TermFilter {
    /// A filter of the numbers of `terms`.
    pub fn new(terms: &[QueryTerm]) -> Self {
        Self::of(terms.iter().flat_map(QueryTerm::numbers))
    }

    /// A filter of these numbers.
    pub(crate) fn of(numbers: impl Iterator<Item = u32>) -> Self {
        let mut bits = [0; 4];
        for number in numbers {
            bits[(number >> 6 & 3) as usize] |= 1 << (number & 63);
        }
        Self(bits)
    }

    /// Returns true if a term of this number may be one of them.
    #[inline]
    pub fn may_hold(self, number: u32) -> bool {
        self.0[(number >> 6 & 3) as usize] >> (number & 63) & 1 == 1
    }
}

/// An index over the words of rows. New rows always have a larger number than any row before.
///
/// A seam: the bank knows this trait only, so that an index on disk can take the place of [`Bm25Index`].
pub trait LexicalIndex {
    /// Indexes `text` as `row`. A `counted` row (the whole of a current version) enters the statistics; others (chunks,
    /// versions that ended) can be found all the same.
    ///
    /// # Panics
    /// When `row` is not above all rows before, or not below the limit of rows of an index.
    fn add(&mut self, row: u32, text: &AnalyzedText, counted: bool);
    /// Takes a counted row out of the statistics; it can still be found. Nothing happens to a row not counted.
    fn retire(&mut self, row: u32);
    /// Forgets a row: its terms, its place in the statistics. It may no longer be allowed in a search.
    fn remove(&mut self, row: u32);
    /// Returns true if the postings of removed rows are worth a [`compact`](Self::compact).
    fn is_wasteful(&self) -> bool;
    /// Renumbers rows after removed ones were dropped: `new_rows[old]` is the new number, or `u32::MAX`. Order holds.
    fn compact(&mut self, new_rows: &[u32]);
    /// Adds each allowed matching row's score, above 0 and finite, to `scores[row]` (0.0 on entry). The 64 rarest terms
    /// of the query count, and each of its unions as one term.
    fn score(&self, query: &AnalyzedQuery, allowed: &Bitmap, scores: &mut [f32]);
    /// The stems that say most about `rows`, those of `query` left out, weighted up to `weight`; see
    /// `lexical::feedback`.
    fn feedback(&self, query: &AnalyzedQuery, rows: &[u32], weight: f32) -> AnalyzedQuery;
    /// The terms of the query that the index holds, in the order in which [`score`](Self::score) adds them.
    fn query_terms(&self, query: &AnalyzedQuery) -> Vec<QueryTerm>;
    /// Adds the terms' parts, in their order, to the sums of the allowed rows that hold one; with `spread` by two
    /// threads where that is worth it.
    fn add_terms(&self, terms: &[QueryTerm], allowed: &Bitmap, spread: bool, sums: &mut Sums);
    /// Adds the term's part to `sums`, one for each of `rows`, which are ascending.
    fn add_term_to(&self, term: &QueryTerm, rows: &[u32], sums: &mut [f32]);
    /// Returns true if so few rows are allowed that reading their words costs less than reading the postings.
    fn few(&self, terms: &[QueryTerm], allowed: &Bitmap) -> bool;
    /// Calls `scored` with the score of each row of `allowed` that holds one of `terms`: for few rows and words that
    /// many hold; see [`few`](Self::few).
    fn score_rows(&self, terms: &[QueryTerm], allowed: &Bitmap, scored: &mut dyn FnMut(u32, f32)) {
        let filter = TermFilter::new(terms);
        let mut parts = vec![0.0; terms.len()];
        let mut rows = allowed.iter();
        loop {
            let batch: SmallVec<[u32; FETCHED]> = rows.by_ref().take(FETCHED).collect();
            if batch.is_empty() {
                return;
            }
            self.fetch(&batch);
            for &row in &batch {
                self.score_row(terms, filter, row, &mut parts);
                let score: f32 = parts.iter().sum();
                if score > 0.0 {
                    scored(row, score);
                }
            }
        }
    }
    /// Brings what [`score_row`](Self::score_row) reads of a few rows into the cache, all at once: one after the other,
    /// each row would be waited for twice.
    fn fetch(&self, rows: &[u32]);
    /// Sets `parts` to what each of `terms` adds to one row's score; added in their order they are the score, to the
    /// bit.
    fn score_row(&self, terms: &[QueryTerm], filter: TermFilter, row: u32, parts: &mut [f32]);
    /// The stems of a query, then its unions; the first 64 count. None where it has none.
    fn stems(&self, query: &AnalyzedQuery) -> Option<QueryStems>;
    /// The bits of the stems that a row holds.
    fn held(&self, stems: &QueryStems, row: u32) -> u64;
    /// Distinct terms.
    fn terms(&self) -> usize;
    /// Resident bytes.
    fn bytes(&self) -> usize;
}
