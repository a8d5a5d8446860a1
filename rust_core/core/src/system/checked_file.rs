//! Data files with checksums: written in hashed blocks, verified by all cores, read in parts.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use rayon::prelude::*;
use xxhash_rust::xxh3::xxh3_64;

use crate::api::{CoreError, Result};

/// The error of a checkpoint that is refused for `reason`.
pub(crate) fn refused(reason: impl Into<String>) -> CoreError {
    CoreError::Checkpoint(reason.into())
}

/// Bytes that are hashed together: few hashes for a large file, and enough blocks for all cores.
const BLOCK: usize = 1 << 20;

/// Length and checksum of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sum {
    pub(crate) length: u64,
    pub(crate) hash: u64,
}

/// Hash of a file from those of its blocks.
fn combine(blocks: &[u64]) -> u64 {
    let bytes: Vec<u8> = blocks.iter().flat_map(|hash| hash.to_le_bytes()).collect();
    xxh3_64(&bytes)
}

/// A new file that only its owner may read.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
}

/// A file on its way to the disk.
pub(crate) struct FileWriter {
    file: File,
    block: Vec<u8>,
    hashes: Vec<u64>,
    length: u64,
}

impl FileWriter {
    pub(crate) fn create(directory: &Path, name: &str) -> io::Result<Self> {
        Ok(Self {
            file: create(&directory.join(name))?,
            block: Vec::with_capacity(BLOCK),
            hashes: Vec::new(),
            length: 0,
        })
    }

    pub(crate) fn put(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let room = (BLOCK - self.block.len()).min(bytes.len());
            let (now, later) = bytes.split_at(room);
            self.block.extend_from_slice(now);
            bytes = later;
            if self.block.len() == BLOCK {
                self.flush()?;
            }
        }
        Ok(())
    }

    /// Writes the rest; with `durable` it survives a loss of power.
    pub(crate) fn finish(mut self, durable: bool) -> io::Result<Sum> {
        if !self.block.is_empty() {
            self.flush()?;
        }
        if durable {
            self.file.sync_all()?;
        }
        Ok(Sum {
            length: self.length,
            hash: combine(&self.hashes),
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.write_all(&self.block)?;
        self.hashes.push(xxh3_64(&self.block));
        self.length += self.block.len() as u64;
        self.block.clear();
        Ok(())
    }
}

/// Opens a file and holds every byte of it against its checksum. `sane` looks at the blocks in passing, and nobody at
/// what it says before the checksum holds.
///
/// # Errors
/// When it cannot be read, or is not what was written, or that is not sane.
pub(crate) fn open_verified(
    directory: &Path,
    name: &str,
    sum: Sum,
    sane: fn(&[u8]) -> bool,
) -> Result<File> {
    let (file, all_sane) = read_verified(directory, name, sum, |_, block| Ok(sane(block)))?;
    if !all_sane {
        return Err(refused(format!(
            "{name} has a value that is not a finite number"
        )));
    }
    Ok(file)
}

/// Copies a file to an empty one, and holds every byte that is copied against the checksum.
///
/// # Errors
/// When it cannot be read, is not what was written, or the other cannot be written.
pub(crate) fn copy_verified(directory: &Path, name: &str, sum: Sum, to: &File) -> Result<()> {
    let copy = |start, block: &[u8]| to.write_all_at(block, start).map(|()| true);
    read_verified(directory, name, sum, copy).map(drop)
}

/// Opens a file, has `each` look at every block of it and the block's offset, and holds every byte against the
/// checksum. Returns also whether `each` always returned true.
fn read_verified(
    directory: &Path,
    name: &str,
    sum: Sum,
    each: impl Fn(u64, &[u8]) -> io::Result<bool> + Sync,
) -> Result<(File, bool)> {
    let failed = |error: io::Error| refused(format!("{name} cannot be read: {}", error.kind()));
    let file = File::open(directory.join(name)).map_err(failed)?;
    let length = file.metadata().map_err(failed)?.len();
    if length != sum.length {
        return Err(refused(format!(
            "{name} has {length} bytes, not {}",
            sum.length
        )));
    }
    let (hash, all) = read_through(&file, length, each).map_err(failed)?;
    if hash != sum.hash {
        return Err(refused(format!("{name} is damaged")));
    }
    Ok((file, all))
}

/// The file's hash, and whether `each` returned true for all its blocks.
fn read_through(
    file: &File,
    length: u64,
    each: impl Fn(u64, &[u8]) -> io::Result<bool> + Sync,
) -> io::Result<(u64, bool)> {
    let blocks = length.div_ceil(BLOCK as u64);
    let looked: io::Result<Vec<(u64, bool)>> = (0..blocks)
        .into_par_iter()
        .map_init(Vec::new, |buffer, number| {
            let start = number * BLOCK as u64;
            buffer.resize((length - start).min(BLOCK as u64) as usize, 0);
            file.read_exact_at(buffer, start)?;
            Ok((xxh3_64(buffer), each(start, buffer)?))
        })
        .collect();
    let (hashes, all): (Vec<u64>, Vec<bool>) = looked?.into_iter().unzip();
    Ok((combine(&hashes), all.into_iter().all(|one| one)))
}

/// Reads a verified file from its beginning; no part may be longer than what is left of it.
pub(crate) struct FileReader {
    file: File,
    name: &'static str,
    left: u64,
    buffer: Vec<u8>,
}

impl FileReader {
    pub(crate) fn new(file: File, name: &'static str, length: u64) -> Self {
        Self {
            file,
            name,
            left: length,
            buffer: Vec::new(),
        }
    }

    /// The next `count` items of `size` bytes.
    pub(crate) fn take(&mut self, count: usize, size: usize) -> Result<&[u8]> {
        let bytes = count
            .checked_mul(size)
            .filter(|&bytes| bytes as u64 <= self.left)
            .ok_or_else(|| refused(format!("{} has fewer bytes than expected", self.name)))?;
        self.left -= bytes as u64;
        self.buffer.resize(bytes, 0);
        self.file
            .read_exact(&mut self.buffer)
            .map_err(|error| refused(format!("{} cannot be read: {}", self.name, error.kind())))?;
        Ok(&self.buffer)
    }

    /// The next numbers.
    pub(crate) fn take_array<const SIZE: usize, T>(
        &mut self,
        count: usize,
        decode: fn([u8; SIZE]) -> T,
        into: &mut Vec<T>,
    ) -> Result<()> {
        let bytes = self.take(count, SIZE)?;
        into.extend(bytes.as_chunks::<SIZE>().0.iter().map(|&one| decode(one)));
        Ok(())
    }

    /// The next number.
    pub(crate) fn take_u32(&mut self) -> Result<u32> {
        let bytes = self.take(1, 4)?;
        Ok(bytes
            .first_chunk::<4>()
            .map_or(0, |&four| u32::from_le_bytes(four)))
    }

    /// The next number, with a sign.
    pub(crate) fn take_i64(&mut self) -> Result<i64> {
        let bytes = self.take(1, 8)?;
        Ok(bytes
            .first_chunk::<8>()
            .map_or(0, |&eight| i64::from_le_bytes(eight)))
    }

    /// The next text.
    pub(crate) fn take_text(&mut self) -> Result<String> {
        let length = self.take_u32()? as usize;
        let name = self.name;
        let bytes = self.take(length, 1)?.to_vec();
        String::from_utf8(bytes)
            .map_err(|_| refused(format!("{name} has a text that is not UTF-8")))
    }

    /// # Errors
    /// When something is left.
    pub(crate) fn end(&self) -> Result<()> {
        if self.left > 0 {
            return Err(refused(format!(
                "{} has more bytes than expected",
                self.name
            )));
        }
        Ok(())
    }
}

/// Appends numbers as they are read back by [`FileReader::take_array`].
pub(crate) fn put_array<const SIZE: usize, T: Copy>(
    values: &[T],
    encode: fn(T) -> [u8; SIZE],
    out: &mut Vec<u8>,
) {
    out.reserve(values.len() * SIZE);
    for &value in values {
        out.extend_from_slice(&encode(value));
    }
}

/// Appends a text as it is read back by [`FileReader::take_text`].
pub(crate) fn put_text(text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(&(text.len() as u32).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}

/// Appends a number as it is read back by [`FileReader::take_u32`].
pub(crate) fn put_u32(number: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(&number.to_le_bytes());
}
