//! A bank's index in files, so that a restart need not read every row again.
//!
//! A checkpoint is a directory of data files and a manifest that names each with its length and checksum. It is written
//! while the bank goes on: some rows or versions at a time, each slice under the reading lock for about a millisecond, so
//! that what a commit changes meanwhile may be in one slice and not yet, or no more, in another. The manifest bears the
//! position before the first slice. Whoever loads it replays all that came after, whole memories at a time, and has the
//! bank as it is then: what a commit after the position touched is not taken from the checkpoint.
//!
//! Nothing is decoded before every byte of every file is as its checksum says, and nothing that a decoder reads is taken
//! for granted: numbers are checked against what they count or point at.

mod graphs;
mod load;
mod manifest;
mod write;

use std::path::Path;
use std::time::Duration;

pub(crate) use load::load;
pub use manifest::Label;
pub(crate) use write::write;

use crate::api::Result;

/// Data files, in the order in which they are written.
const VERSIONS: &str = "versions";
const PLANES: &str = "planes";
const WORDS: &str = "words";
const VECTORS: &str = "vectors";
const NAMES: &str = "names";
const MEMBERS: &str = "members";
const FILES: [&str; 6] = [VERSIONS, PLANES, WORDS, VECTORS, NAMES, MEMBERS];

/// What was written, and what it cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// The position from which on changes are to be replayed.
    pub position: u64,
    /// Bytes of all files.
    pub bytes: u64,
    /// The longest time for which a commit had to wait.
    pub longest_hold: Duration,
}

/// What a checkpoint says of itself: label and position.
///
/// # Errors
/// [`CoreError::Checkpoint`](crate::CoreError::Checkpoint) when the manifest is not there, not whole, or of another format.
pub fn describe(directory: &Path) -> Result<(Label, u64)> {
    let manifest = manifest::read(directory)?;
    Ok((manifest.label, manifest.position))
}
