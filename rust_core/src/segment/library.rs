//! The links of a graph, from what the library writes to a file.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek};
use std::os::fd::AsRawFd;
use std::path::Path;

use super::layers::{CONNECTIVITY, LOWEST, Layer, Layers, Links};
use crate::error::{CoreError, Result};
use crate::nameless;

/// After the vectors: who wrote it, kinds of values, counts.
const HEAD_BYTES: usize = 64;
/// Bytes that are asked of the system at once.
const READ_BYTES: usize = 1 << 18;

/// The layers of a graph of `count` vectors of `width` bytes, which `save` writes to a file of `directory`. It has no name
/// for longer than it takes to open it.
///
/// # Errors
/// [`CoreError::Graph`] when it cannot be written, or is not of the form that this version of the library writes.
pub(super) fn layers(
    directory: &Path,
    save: impl FnOnce(&str) -> Result<()>,
    count: usize,
    width: usize,
) -> Result<Layers> {
    if count == 0 {
        return Ok(Layers::default());
    }
    let file = nameless::create(directory).map_err(|error| unreadable(&error))?;
    save(&format!("/dev/fd/{}", file.as_raw_fd()))?;
    let mut file = BufReader::with_capacity(READ_BYTES, file);
    file.rewind().map_err(|error| unreadable(&error))?;
    let mut parts = Parts(file);
    let shape = [parts.u32()?, parts.u32()?];
    require(shape == [count as u32, width as u32])?;
    parts.skip(count * width + HEAD_BYTES)?;
    require(parts.u64()? == count as u64)?;
    require(parts.u64()? == CONNECTIVITY as u64 && parts.u64()? == LOWEST as u64)?;
    let (highest, entry) = (parts.u64()?, parts.u64()?);
    let mut layers = Layers {
        lowest: Vec::with_capacity(count),
        upper: Vec::new(),
        entry: entry as u32,
    };
    let levels = (0..count).map(|_| parts.take().map(i16::from_le_bytes));
    let levels = levels.collect::<Result<Vec<i16>>>()?;
    let top = levels.get(entry as usize).copied().unwrap_or(-1);
    require(i64::from(top) == highest as i64)?;
    require(levels.iter().all(|level| (0..=top).contains(level)))?;
    layers.upper.resize_with(highest as usize, Layer::default);
    for (number, &level) in levels.iter().enumerate() {
        require(parts.u64()? == number as u64)?;
        require(i16::from_le_bytes(parts.take()?) == level)?;
        layers.lowest.push(parts.links()?);
        for layer in &mut layers.upper[..level as usize] {
            layer.members.push(number as u32);
            layer.links.push(parts.links()?);
        }
    }
    require(layers.is_closed())?;
    Ok(layers)
}

/// Numbers as the library writes them.
struct Parts(BufReader<File>);

impl Parts {
    fn take<const SIZE: usize>(&mut self) -> Result<[u8; SIZE]> {
        let mut bytes = [0; SIZE];
        let read = self.0.read_exact(&mut bytes);
        read.map(|()| bytes).map_err(|error| unreadable(&error))
    }

    fn u32(&mut self) -> Result<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn skip(&mut self, bytes: usize) -> Result<()> {
        let skipped = self.0.seek_relative(bytes as i64);
        skipped.map_err(|error| unreadable(&error))
    }

    /// How many there are, and room for as many as there can be.
    fn links<const ROOM: usize>(&mut self) -> Result<Links<ROOM>> {
        let used = self.u32()? as usize;
        require(used <= ROOM)?;
        let mut links = [0; ROOM];
        for link in &mut links {
            *link = self.u32()?;
        }
        Ok(Links::new(links[..used].iter().copied()))
    }
}

fn require(holds: bool) -> Result<()> {
    let other = || CoreError::Graph("the library writes another form".to_owned());
    holds.then_some(()).ok_or_else(other)
}

fn unreadable(error: &io::Error) -> CoreError {
    CoreError::Graph(format!("its file: {}", error.kind()))
}
