//! Directories of checkpoints, and their manifests.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use xxhash_rust::xxh3::xxh3_64;

/// Files of every checkpoint, in the order of their checksums.
pub const FILES: [&str; 6] = ["versions", "planes", "words", "vectors", "names", "members"];
/// Bytes of a file's length and checksum.
const SUM_BYTES: usize = 16;

/// A directory that goes with the test.
pub struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    pub fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("checkpoint-{}-{number}", std::process::id()));
        fs::create_dir(&path).expect("a directory of its own");
        Self(path)
    }

    /// A new and empty directory within.
    pub fn make(&self, name: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::create_dir(&path).expect("a new name");
        path
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Gives the manifest the checksum of changed bytes, of a data file or of the only graph; returns what it was.
pub fn forge(directory: &Path, name: &str, bytes: &[u8]) -> Vec<u8> {
    let path = directory.join("MANIFEST");
    let before = fs::read(&path).expect("it was written");
    let mut manifest = before.clone();
    let place = FILES.iter().position(|one| *one == name);
    // The sums of the graphs are before those of all others.
    let behind = place.map_or(FILES.len() + 1, |place| FILES.len() - place);
    let blocks: Vec<u8> = bytes
        .chunks(1 << 20)
        .flat_map(|block| xxh3_64(block).to_le_bytes())
        .collect();
    // At the end is the manifest's own.
    let at = manifest.len() - 8 - behind * SUM_BYTES;
    manifest[at + 8..at + SUM_BYTES].copy_from_slice(&xxh3_64(&blocks).to_le_bytes());
    let end = manifest.len() - 8;
    let own = xxh3_64(&manifest[..end]);
    manifest[end..].copy_from_slice(&own.to_le_bytes());
    fs::write(&path, &manifest).expect("the file is ours");
    before
}
