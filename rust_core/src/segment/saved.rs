//! A graph in a file: as the library writes it, without the codes of what is gone, and checked to the last link before the
//! library reads it back.
//!
//! The library follows the links of a file without a look at where they lead. A file whose checksum holds is what was
//! written; this check is for one that was made by somebody else.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::codes::{STEP_BYTES, code_bytes};
use super::graph::{CONNECTIVITY, Graph};
use crate::error::{CoreError, Result};

/// Before the codes: how many there are, and their length.
const SHAPE_BYTES: usize = 8;
/// After the codes: who wrote it, kinds of values, counts.
const HEAD_BYTES: usize = 64;
/// Of the head, what is the same in every graph that this version of the library writes: its name, version and kinds.
const HEAD_FIXED: usize = 17;
/// The name that a file has until it is open.
const NAMELESS: &str = "graph.tmp";
/// Codes that are read at once.
const TOGETHER: usize = 1024;
/// Bytes that are asked of the system at once.
const READ_BYTES: usize = 1 << 18;

/// Hands the graph's file to `put`, part by part; the codes of the `dead` numbers, ascending, are zeros.
///
/// The library writes to a file of `directory` that has no name: what was forgotten is in none that a crash would leave.
///
/// # Errors
/// [`CoreError::Graph`] when it cannot be written, or is not what the library says.
pub(crate) fn copy(
    graph: &Graph,
    directory: &Path,
    dead: &[u32],
    mut put: impl FnMut(&[u8]) -> io::Result<()>,
) -> Result<()> {
    let file = nameless(directory).map_err(|error| unreadable(&error))?;
    graph.save(Path::new(&format!("/dev/fd/{}", file.as_raw_fd())))?;
    check(&file, graph.dimensions(), graph.len())?;
    let mut parts = Parts::from(&file, 0)?;
    let mut hand = |bytes: &[u8]| put(bytes).map_err(|error| unreadable(&error));
    hand(parts.take(SHAPE_BYTES)?)?;
    let width = code_bytes(graph.dimensions());
    let (mut codes, mut dead) = (Vec::new(), dead.iter().peekable());
    for first in (0..graph.len()).step_by(TOGETHER) {
        let end = graph.len().min(first + TOGETHER);
        codes.clear();
        codes.extend_from_slice(parts.take(width * (end - first))?);
        while let Some(&number) = dead.next_if(|&&number| (number as usize) < end) {
            codes[(number as usize - first) * width..][..width].fill(0);
        }
        hand(&codes)?;
    }
    parts.rest(hand)
}

/// A file that goes when it is closed.
fn nameless(directory: &Path) -> io::Result<File> {
    let path = directory.join(NAMELESS);
    let mut options = OpenOptions::new();
    let options = options.read(true).write(true).create_new(true).mode(0o600);
    let file = options.open(&path)?;
    fs::remove_file(path)?;
    Ok(file)
}

/// Reads a graph of `count` vectors.
///
/// # Errors
/// [`CoreError::Graph`] when it is not one that [`copy`] has handed out.
pub(crate) fn read(path: &Path, dimensions: usize, count: usize) -> Result<Graph> {
    let file = File::open(path).map_err(|error| unreadable(&error))?;
    check(&file, dimensions, count)?;
    Graph::load(path, dimensions, count)
}

/// Reads numbers from a file, in the order in which they are there.
struct Parts<'a> {
    file: BufReader<&'a File>,
    buffer: Vec<u8>,
}

impl<'a> Parts<'a> {
    fn from(file: &'a File, place: u64) -> Result<Self> {
        let mut file = BufReader::with_capacity(READ_BYTES, file);
        let start = file.seek(SeekFrom::Start(place));
        start.map_err(|error| unreadable(&error))?;
        let buffer = Vec::new();
        Ok(Self { file, buffer })
    }

    fn take(&mut self, bytes: usize) -> Result<&[u8]> {
        self.buffer.resize(bytes, 0);
        let read = self.file.read_exact(&mut self.buffer);
        read.map_err(|error| unreadable(&error))?;
        Ok(&self.buffer)
    }

    fn number<const SIZE: usize>(&mut self) -> Result<[u8; SIZE]> {
        let bytes = self.take(SIZE)?;
        bytes.first_chunk().copied().ok_or_else(damaged)
    }

    fn u64(&mut self) -> Result<u64> {
        self.number().map(u64::from_le_bytes)
    }

    /// Hands on all that is left.
    fn rest(&mut self, mut hand: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        loop {
            let read = self.file.fill_buf();
            let bytes = read.map_err(|error| unreadable(&error))?;
            if bytes.is_empty() {
                return Ok(());
            }
            hand(bytes)?;
            let length = bytes.len();
            self.file.consume(length);
        }
    }
}

/// Reads all of the file and follows every link.
fn check(file: &File, dimensions: usize, count: usize) -> Result<()> {
    let width = code_bytes(dimensions);
    let mut parts = Parts::from(file, 0)?;
    let shape = [count as u32, width as u32].map(u32::to_le_bytes);
    require(parts.take(SHAPE_BYTES)? == shape.as_flattened())?;
    check_codes(&mut parts, count, width)?;
    check_head(&mut parts, dimensions, count)?;
    let levels = check_levels(&mut parts, count)?;
    for (number, &level) in levels.iter().enumerate() {
        require(parts.u64()? == number as u64)?;
        require(i16::from_le_bytes(parts.number()?) == level)?;
        for at in 0..=level {
            check_links(&mut parts, at, &levels)?;
        }
    }
    require(parts.file.read(&mut [0]).is_ok_and(|read| read == 0))
}

/// A step that is no number would make distances that cannot be compared.
fn check_codes(parts: &mut Parts<'_>, count: usize, width: usize) -> Result<()> {
    for first in (0..count).step_by(TOGETHER) {
        let codes = parts.take(width * TOGETHER.min(count - first))?;
        let steps = codes
            .chunks_exact(width)
            .filter_map(<[u8]>::last_chunk::<STEP_BYTES>);
        let step = |bytes: &[u8; STEP_BYTES]| f32::from_le_bytes(*bytes);
        require(steps.map(step).all(|step| (0.0..=1.0).contains(&step)))?;
    }
    Ok(())
}

/// The head must be that of an empty graph of this version, but for the counts.
fn check_head(parts: &mut Parts<'_>, dimensions: usize, count: usize) -> Result<()> {
    let own = Graph::new(dimensions, 0)?.head(SHAPE_BYTES, HEAD_BYTES)?;
    let head = parts.take(HEAD_BYTES)?;
    let (fixed, counts) = (&own[..HEAD_FIXED], HEAD_FIXED..HEAD_FIXED + 8);
    require(head[..HEAD_FIXED] == *fixed && head[counts.end..] == own[counts.end..])?;
    require(head[counts] == (count as u64).to_le_bytes())
}

/// The levels of all vectors, none above that of the one at which a search begins.
fn check_levels(parts: &mut Parts<'_>, count: usize) -> Result<Vec<i16>> {
    require(parts.u64()? == count as u64)?;
    require(parts.u64()? == CONNECTIVITY as u64 && parts.u64()? == 2 * CONNECTIVITY as u64)?;
    let (highest, entry) = (parts.u64()?, parts.u64()?);
    let bytes = parts.take(count * size_of::<i16>())?;
    let levels = bytes
        .as_chunks()
        .0
        .iter()
        .map(|&level| i16::from_le_bytes(level));
    let levels: Vec<i16> = levels.collect();
    let begins = levels.get(entry as usize).ok_or_else(damaged)?;
    require(u64::try_from(*begins).is_ok_and(|level| level == highest))?;
    require(levels.iter().all(|level| (0..=*begins).contains(level)))?;
    Ok(levels)
}

/// A vector's links on one level: to vectors that are there, and on that level.
fn check_links(parts: &mut Parts<'_>, level: i16, levels: &[i16]) -> Result<()> {
    let room = if level == 0 {
        2 * CONNECTIVITY
    } else {
        CONNECTIVITY
    };
    let used = u32::from_le_bytes(parts.number()?) as usize;
    require(used <= room)?;
    let links = parts.take(room * size_of::<u32>())?;
    let links = links.as_chunks().0[..used].iter();
    let there = |&link: &[u8; 4]| {
        let to = levels.get(u32::from_le_bytes(link) as usize);
        to.is_some_and(|&to| to >= level)
    };
    require(links.into_iter().all(there))
}

fn require(holds: bool) -> Result<()> {
    if holds { Ok(()) } else { Err(damaged()) }
}

fn damaged() -> CoreError {
    CoreError::Graph("the file is not as it was written".to_owned())
}

fn unreadable(error: &io::Error) -> CoreError {
    CoreError::Graph(format!("the file: {}", error.kind()))
}
