//! Unlinked temporary files, which disappear with the process however it ends.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Makes a file in `directory` that only its owner may read, and unlinks it.
///
/// # Errors
/// The error of the file system.
pub(crate) fn create(directory: &Path) -> io::Result<File> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let nanos = since.map_or(0, |since| since.as_nanos());
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let path = directory.join(format!(".scratch-{}-{nanos}-{count}", std::process::id()));
    let mut options = OpenOptions::new();
    let options = options.read(true).write(true).create_new(true).mode(0o600);
    let file = options.open(&path)?;
    fs::remove_file(&path)?;
    Ok(file)
}
