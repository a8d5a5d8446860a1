//! The place of the bytes of a sealed segment.

use std::fs::File;

/// The bytes of a sealed segment.
#[derive(Debug)]
pub enum SegmentBytes {
    /// A whole file without a name, open for reading and writing, which nobody but this process has. It is mapped: the
    /// system reads what is used, and drops it where memory is short.
    File(File),
    /// Memory, where there is no directory for files.
    Memory(Vec<u8>),
}

#[cfg(test)]
pub(crate) mod tests {
    use std::fs::{self, OpenOptions};
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    /// An empty file without a name.
    pub(crate) fn unnamed_file() -> File {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("segment-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create_new(true);
        let file = options.open(&path).expect("a file can be made");
        fs::remove_file(&path).expect("it is ours");
        file
    }
}
