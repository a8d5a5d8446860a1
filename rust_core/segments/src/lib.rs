//! Sealed segments of usearch and tantivy over the rows of a bank.
//!
//! [`VectorGraph`] is a sealed HNSW graph of usearch over quantised vectors. [`WordIndex`] is a sealed inverted index of
//! tantivy over fingerprints of words. Both are built aside and never change afterwards, because neither library allows
//! readers beside a writer. Rows that are removed later are left out by the caller's filter. The caller also computes
//! the scores: exact cosines, and BM25 with the statistics of the whole bank.

mod error;
#[cfg(feature = "usearch")]
mod vectors;
#[cfg(not(feature = "usearch"))]
#[path = "no_vectors.rs"]
mod vectors;
mod words;

pub use error::{Result, SegmentError};
pub use vectors::{VectorGraph, VectorGraphBuilder};
pub use words::{WordIndex, WordIndexBuilder, WordPostings};

/// True if this build holds usearch.
pub const HAS_USEARCH: bool = cfg!(feature = "usearch");
