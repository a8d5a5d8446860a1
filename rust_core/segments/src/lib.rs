//! Sealed segments of usearch and tantivy over the rows of a bank.
//!
//! [`VectorGraph`] is a sealed HNSW graph of usearch over quantised vectors. [`WordIndex`] is a sealed inverted index of
//! tantivy over fingerprints of words. Both are built aside and never change afterwards, because neither library allows
//! readers beside a writer. Rows that are removed later are left out by the caller's filter. The caller also computes
//! the scores: exact cosines, and BM25 with the statistics of the whole bank.
//!
//! Both lie in files without names, which are mapped, or in memory where there is no directory for files
//! ([`SegmentBytes`]). Both can be saved and opened again. Neither library finds damage in what it opens: the caller
//! verifies checksums first.

mod bytes;
mod directory;
mod error;
mod linked_graph;
#[cfg(feature = "usearch")]
mod vectors;
#[cfg(not(feature = "usearch"))]
#[path = "no_vectors.rs"]
mod vectors;
mod words;

pub use bytes::SegmentBytes;
pub use error::{Result, SegmentError};
pub use linked_graph::LinkedGraph;
pub use vectors::{VectorGraph, VectorGraphBuilder};
pub use words::{WordIndex, WordIndexBuilder, WordPostings};

/// The releases of the libraries, which decide what their files mean.
pub fn libraries() -> String {
    let tantivy = tantivy::version_string();
    format!("usearch {}; {tantivy}", vectors::version())
}

/// True if this build holds usearch.
pub const HAS_USEARCH: bool = cfg!(feature = "usearch");
