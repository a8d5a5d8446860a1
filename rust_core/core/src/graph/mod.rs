//! Segments: sealed proximity graphs over the vectors of many rows.
//!
//! A segment holds only links; a search reads the vectors from the dense index. A graph of usearch holds vectors of its
//! own, mostly in a file. It proposes rows, which are rescored. Rows that were removed or ended stay in the graph as waypoints but are not
//! proposed, until a fifth of the graph is dead and it is rebuilt. Rows that no segment covers are scanned.

mod build_method;
mod builder;
mod format;
mod layers;
mod links;
mod quality;
mod search;
mod segment;
mod segments;

pub(crate) use build_method::{BuildMethod, BuiltGraph, GraphBuilder, build_bytes};
pub(crate) use builder::BuildThreads;
pub(crate) use links::{Graph, GraphKind};
pub(crate) use quality::Quality;
pub(crate) use search::SearchBuffers;
pub(crate) use segment::{GONE, Proposed, Segment};
pub(crate) use segments::{DEAD_SHARE, Name, Saved, Segments};
