//! The files of an index of tantivy one after the other in one sequence of bytes, and a directory that reads them there.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tantivy::directory::error::{DeleteError, LockError, OpenReadError, OpenWriteError};
use tantivy::directory::{
    Directory, DirectoryLock, FileHandle, Lock, OwnedBytes, RamDirectory, WatchCallback,
    WatchHandle, WritePtr,
};
use tantivy::index::SegmentComponent;
use tantivy::{Index, TantivyError};

use crate::{Result, SegmentError};

const MAGIC: &[u8; 8] = b"astrowix";
/// The file in which tantivy describes an index.
const META: &str = "meta.json";
/// The parts of a segment that nobody deletes from. A schema that does not ask for one leaves it out.
const COMPONENTS: [SegmentComponent; 6] = [
    SegmentComponent::Terms,
    SegmentComponent::Postings,
    SegmentComponent::Positions,
    SegmentComponent::FastFields,
    SegmentComponent::FieldNorms,
    SegmentComponent::Store,
];
/// Bytes of a number in the table of files.
const NUMBER: usize = 8;

/// Writes all files of a sealed index to `out`: a table of names and lengths, then their contents.
///
/// # Errors
/// When tantivy or `out` fails.
pub(crate) fn write(index: &Index, directory: &RamDirectory, out: &mut impl Write) -> Result<()> {
    let mut files = Vec::new();
    for segment in index.searchable_segment_metas()? {
        for component in COMPONENTS {
            files.push(segment.relative_path(component));
        }
    }
    files.push(PathBuf::from(META));
    let mut contents = Vec::with_capacity(files.len());
    for name in files {
        if directory.exists(&name).map_err(TantivyError::from)? {
            let file = directory.open_read(&name).map_err(TantivyError::from)?;
            contents.push((name.to_string_lossy().into_owned(), file.read_bytes()?));
        }
    }
    out.write_all(MAGIC)?;
    out.write_all(&(contents.len() as u64).to_le_bytes())?;
    for (name, bytes) in &contents {
        out.write_all(&(name.len() as u64).to_le_bytes())?;
        out.write_all(name.as_bytes())?;
        out.write_all(&(bytes.len() as u64).to_le_bytes())?;
    }
    for (_, bytes) in &contents {
        out.write_all(bytes)?;
    }
    Ok(())
}

/// The files of a sealed index. They can be read, and nothing else.
#[derive(Debug, Clone)]
pub(crate) struct SealedDirectory(Arc<HashMap<PathBuf, OwnedBytes>>);

impl SealedDirectory {
    /// The files that [`write`] has written.
    ///
    /// # Errors
    /// [`SegmentError::Another`] where the table does not describe the bytes.
    pub(crate) fn open(bytes: &OwnedBytes) -> Result<Self> {
        let files = read_table(bytes).ok_or(SegmentError::Another("has no table of its files"))?;
        Ok(Self(Arc::new(files)))
    }
}

/// The files by name; None where the bytes are not what [`write`] has written.
fn read_table(bytes: &OwnedBytes) -> Option<HashMap<PathBuf, OwnedBytes>> {
    let mut rest = bytes.strip_prefix(MAGIC)?;
    let mut take = |length: usize| {
        let (taken, left) = rest.split_at_checked(length)?;
        rest = left;
        Some(taken)
    };
    let number = |bytes: &[u8]| Some(u64::from_le_bytes(*bytes.first_chunk::<NUMBER>()?));
    let count = number(take(NUMBER)?)?;
    let mut table = Vec::new();
    for _ in 0..count {
        let length = usize::try_from(number(take(NUMBER)?)?).ok()?;
        let name = std::str::from_utf8(take(length)?).ok()?.to_owned();
        table.push((name, usize::try_from(number(take(NUMBER)?)?).ok()?));
    }
    let mut start = bytes.len() - rest.len();
    let mut files = HashMap::new();
    for (name, length) in table {
        let end = start
            .checked_add(length)
            .filter(|&end| end <= bytes.len())?;
        files.insert(PathBuf::from(name), bytes.slice(start..end));
        start = end;
    }
    (start == bytes.len()).then_some(files)
}

fn sealed() -> io::Error {
    io::Error::new(io::ErrorKind::ReadOnlyFilesystem, "a segment is sealed")
}

impl Directory for SealedDirectory {
    fn get_file_handle(
        &self,
        path: &Path,
    ) -> std::result::Result<Arc<dyn FileHandle>, OpenReadError> {
        let file = self.0.get(path);
        let file = file.ok_or_else(|| OpenReadError::FileDoesNotExist(path.to_owned()))?;
        Ok(Arc::new(file.clone()))
    }

    fn delete(&self, path: &Path) -> std::result::Result<(), DeleteError> {
        Err(DeleteError::IoError {
            io_error: Arc::new(sealed()),
            filepath: path.to_owned(),
        })
    }

    fn exists(&self, path: &Path) -> std::result::Result<bool, OpenReadError> {
        Ok(self.0.contains_key(path))
    }

    fn open_write(&self, path: &Path) -> std::result::Result<WritePtr, OpenWriteError> {
        Err(OpenWriteError::wrap_io_error(sealed(), path.to_owned()))
    }

    fn atomic_read(&self, path: &Path) -> std::result::Result<Vec<u8>, OpenReadError> {
        let file = self.0.get(path);
        let file = file.ok_or_else(|| OpenReadError::FileDoesNotExist(path.to_owned()))?;
        Ok(file.to_vec())
    }

    fn atomic_write(&self, _path: &Path, _data: &[u8]) -> io::Result<()> {
        Err(sealed())
    }

    fn sync_directory(&self) -> io::Result<()> {
        Ok(())
    }

    fn acquire_lock(&self, _lock: &Lock) -> std::result::Result<DirectoryLock, LockError> {
        // Nobody writes.
        Ok(DirectoryLock::from(Box::new(())))
    }

    fn watch(&self, _callback: WatchCallback) -> tantivy::Result<WatchHandle> {
        // What is sealed does not change.
        Ok(WatchHandle::empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_that_does_not_describe_the_bytes_is_refused() {
        let mut whole = MAGIC.to_vec();
        whole.extend(1u64.to_le_bytes());
        whole.extend(1u64.to_le_bytes());
        whole.extend(b"a");
        whole.extend(3u64.to_le_bytes());
        whole.extend(b"abc");
        let open = |bytes: &[u8]| SealedDirectory::open(&OwnedBytes::new(bytes.to_vec()));
        let directory = open(&whole).expect("it is whole");
        let read = directory.atomic_read(Path::new("a")).expect("it is there");
        assert_eq!(read, b"abc");
        assert!(directory.atomic_read(Path::new("b")).is_err());
        assert!(directory.atomic_write(Path::new("a"), b"").is_err());
        for end in 0..whole.len() {
            assert!(open(&whole[..end]).is_err(), "{end}");
        }
        for at in 0..whole.len() - 3 {
            let mut other = whole.clone();
            other[at] ^= 0x80;
            // A name of other bytes is a name.
            let named = open(&other).is_ok_and(|all| all.atomic_read(Path::new("a")).is_err());
            assert!(open(&other).is_err() || named, "{at}");
        }
    }
}
