//! The bytes of a graph that usearch saved, in a mapped file or in memory.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use memmap2::{Advice, MmapRaw};

use crate::{Result, SegmentBytes};

/// A path under which usearch can open a file that has no name.
pub(super) fn path_of(file: &File) -> String {
    let directory = if cfg!(target_os = "linux") {
        "/proc/self/fd"
    } else {
        "/dev/fd"
    };
    format!("{directory}/{}", file.as_raw_fd())
}

/// A saved graph, where usearch reads it.
pub(super) enum Held {
    /// Only the vectors of the dead are written to, by [`VectorGraph::erase`], and through the file. No slice of the map
    /// is kept.
    File(File, MmapRaw),
    Memory(Vec<u8>),
}

impl Held {
    pub(super) fn new(bytes: SegmentBytes) -> Result<Self> {
        match bytes {
            SegmentBytes::Memory(bytes) => Ok(Self::Memory(bytes)),
            SegmentBytes::File(file) => {
                let map = MmapRaw::map_raw(&file)?;
                // A search reads a vector here and there. To read on would fill memory with what nobody wants. Where
                // the advice is refused it is only slower.
                _ = map.advise(Advice::Random);
                Ok(Self::File(file, map))
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::File(_, map) => map.len(),
            Self::Memory(bytes) => bytes.len(),
        }
    }

    pub(super) fn read(&self, start: usize, into: &mut [u8]) -> io::Result<()> {
        match self {
            Self::File(file, _) => file.read_exact_at(into, start as u64),
            Self::Memory(bytes) => {
                into.copy_from_slice(&bytes[start..start + into.len()]);
                Ok(())
            }
        }
    }
}
