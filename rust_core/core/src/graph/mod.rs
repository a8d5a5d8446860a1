//! Sealed segments: graphs over the vectors of many rows, built aside and never changed while a reader can see them.
//!
//! A segment holds links alone: a walk reads the vectors where the bank has them. It proposes rows; what they are worth is
//! computed from more of their bytes. Removed and ended rows stay in the graph and lead on, but are not proposed, until a fifth
//! of it is dead and it is built anew. Rows that no segment covers are scanned.

mod builder;
mod format;
mod layers;
mod links;
mod quality;
mod search;
mod segment;
mod segments;

pub(crate) use builder::{BuildThreads, Builder};
pub(crate) use links::Graph;
pub(crate) use quality::Quality;
pub(crate) use search::SearchBuffers;
pub(crate) use segment::{GONE, Segment};
pub(crate) use segments::{DEAD_SHARE, Name, Saved, Segments};

/// Resident bytes of one vector while a graph of `dimensions` is made, which are more than those of the sealed one.
pub(crate) fn build_bytes(dimensions: usize) -> usize {
    builder::Builder::row_bytes(dimensions)
}
