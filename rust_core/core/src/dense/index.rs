//! The operations that banks and recalls need of an index over vectors.

use super::quantise::{QuantisedQuery, QuantisedRow};
use crate::bitmap::Bitmap;
use crate::dense::exact_vectors::Scratch;

/// The score of a row that has no vector or does not pass.
pub(crate) const NO_SCORE: f32 = f32::NEG_INFINITY;

/// The order in which rows are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadOrder {
    /// All of them, in order.
    Scan,
    /// The rows that pass, one by one.
    Gather,
}

/// Work for a second thread during a scan.
pub(crate) type Beside<'a> = &'a mut (dyn FnMut() + Send);

/// An index over the vectors of rows. New rows always have a larger number than any row before.
///
/// A seam: the bank knows this trait only, so that an index that visits fewer rows can take the place of the flat one.
pub(crate) trait DenseIndex {
    /// Number of rows.
    fn len(&self) -> usize;
    /// Appends a row; None holds the place of a row without a vector.
    fn push(&mut self, row: Option<&QuantisedRow>);
    /// Wipes a row's vector.
    fn erase(&mut self, row: u32);
    /// A copy without removed rows: `new_rows[old]` is the new number, or `u32::MAX`. Order holds. Of an index with rows
    /// in files the copy has its rows in `files` too.
    fn compacted(&self, new_rows: &[u32], files: Option<&Scratch>) -> Self
    where
        Self: Sized;
    /// Fills `scores` with the coarse cosines of the allowed rows, [`NO_SCORE`] elsewhere. They are at most the query's
    /// reach times the row's step from what [`rescore`](Self::rescore) makes of them; or, where they are wanted
    /// `whole`, that. With something to do `beside`, a thread of the pool does that, and then its share of a scan.
    fn coarse_scan(
        &self,
        query: &QuantisedQuery,
        allowed: &Bitmap,
        how: (ReadOrder, bool),
        beside: Option<Beside<'_>>,
        scores: &mut Vec<f32>,
    );
    /// As [`coarse_scan`](Self::coarse_scan) by a coarse scan, for up to [`TOGETHER`](super::TOGETHER) queries at once,
    /// each with scores of its own.
    fn coarse_scan_many(
        &self,
        queries: &[&QuantisedQuery],
        allowed: &Bitmap,
        scores: &mut [Vec<f32>],
    );
    /// Adds to the coarse cosines of `rows`, in any order and each there once, what they leave out. To be called once
    /// for a row.
    fn rescore(&self, query: &QuantisedQuery, rows: &[u32], scores: &mut [f32]);
    /// Sets `cosines` to the approximate cosines of `rows`, in their order, [`NO_SCORE`] for a row without a vector.
    fn cosines(&self, query: &QuantisedQuery, rows: &[u32], cosines: &mut Vec<f32>);
    /// As [`cosines`](Self::cosines), from half of the rows' bytes; a row of no number of the index has none either.
    fn coarse_cosines(&self, query: &QuantisedQuery, rows: &[u32], cosines: &mut Vec<f32>);
    /// Calls `found` with query, row and approximate cosine of whatever reaches the query's floor; rows in ascending
    /// order.
    fn near(
        &self,
        queries: &[QuantisedQuery],
        floors: &[f32],
        found: &mut dyn FnMut(usize, u32, f32),
    );
    /// Size of one step of the row's quantisation, from which the error follows; 0 for a row without a vector.
    fn step(&self, row: u32) -> f32;
    /// The steps of all rows.
    fn steps(&self) -> &[f32];
    /// The largest of them.
    fn largest_step(&self) -> f32;
    /// Resident bytes.
    fn bytes(&self) -> usize;
}
