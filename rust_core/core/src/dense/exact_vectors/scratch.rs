//! The scratch file: one unlinked file with the exact vectors of large banks, allocated in slabs.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use crate::system::temp_file;

/// Bytes per slab: large enough that a bank of 50k vectors needs few, small enough that the last one wastes little.
pub(crate) const SLAB_BYTES: usize = 1 << 20;

/// The file. It has no name once it is open, so that nothing is left behind by a crash.
#[derive(Debug)]
pub(crate) struct Scratch {
    file: File,
    directory: PathBuf,
    slabs: Mutex<Slabs>,
}

#[derive(Debug, Default)]
struct Slabs {
    end: u64,
    free: Vec<u64>,
}

impl Scratch {
    /// Makes the file in `directory`, and unlinks it.
    ///
    /// # Errors
    /// The error of the file system.
    pub(crate) fn create(directory: &Path) -> io::Result<Self> {
        Ok(Self {
            file: temp_file::create(directory)?,
            directory: directory.to_owned(),
            slabs: Mutex::default(),
        })
    }

    /// An empty file without a name beside it, for a segment.
    ///
    /// # Errors
    /// The error of the file system.
    pub(crate) fn segment_file(&self) -> io::Result<File> {
        temp_file::create(&self.directory)
    }

    /// Offset of a slab that nobody uses.
    pub(crate) fn take(&self, bytes: usize) -> u64 {
        let mut slabs = self.slabs.lock();
        // Slabs are all alike unless one vector is larger than a slab, which then takes its own place at the end.
        if bytes == SLAB_BYTES
            && let Some(offset) = slabs.free.pop()
        {
            return offset;
        }
        let offset = slabs.end;
        slabs.end += bytes as u64;
        offset
    }

    /// Takes back a slab.
    pub(crate) fn give_back(&self, offset: u64, bytes: usize) {
        // What was in it is overwritten at once: a freed slab may never be used again.
        let zeros = vec![0; bytes];
        if self.file.write_all_at(&zeros, offset).is_ok() && bytes == SLAB_BYTES {
            self.slabs.lock().free.push(offset);
        }
    }

    pub(crate) fn write(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    pub(crate) fn read(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_exact_at(bytes, offset)
    }
}

#[cfg(test)]
impl Scratch {
    /// One that takes nothing.
    pub(super) fn full() -> Self {
        Self {
            file: File::open("/dev/null").expect("there is one"),
            directory: PathBuf::from("/dev/null"),
            slabs: Mutex::default(),
        }
    }
}
