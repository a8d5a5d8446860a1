//! Checkpoints: the index of a bank in files, so that a restart need not index every row again.
//!
//! A checkpoint is a directory of data files and a manifest with the length and checksum of each. It is written while
//! the bank is in use: some rows or versions at a time, each slice under the read lock for about a millisecond. A
//! commit during the writing may therefore be in one slice and not in another. The manifest holds the position before
//! the first slice. The loader replays all later commits, whole memories at a time, and thereby replaces whatever they
//! touched.
//!
//! No byte is decoded before all checksums are verified, and no decoded number is trusted: each is checked against what
//! it counts or points at.

mod graphs;
mod loader;
mod manifest;
mod postings;
mod segment_copy;
mod writer;

use std::path::Path;
use std::time::Duration;

pub(crate) use loader::load;
pub use manifest::Label;
pub(crate) use writer::write;

use crate::api::Result;

/// Data files, in the order in which they are written.
const VERSIONS: &str = "versions";
const PLANES: &str = "planes";
const WORDS: &str = "words";
const VECTORS: &str = "vectors";
const NAMES: &str = "names";
const MEMBERS: &str = "members";
const FILES: [&str; 6] = [VERSIONS, PLANES, WORDS, VECTORS, NAMES, MEMBERS];

/// The result of writing a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// The position from which on changes are to be replayed.
    pub position: u64,
    /// Bytes of all files.
    pub bytes: u64,
    /// The longest time for which a commit had to wait.
    pub longest_hold: Duration,
}

/// Reads the label and the position of a checkpoint.
///
/// # Errors
/// [`CoreError::Checkpoint`](crate::CoreError::Checkpoint) when the manifest is not there, not whole, or of another
/// format.
pub fn describe(directory: &Path) -> Result<(Label, u64)> {
    let manifest = manifest::read(directory)?;
    Ok((manifest.label, manifest.position))
}
