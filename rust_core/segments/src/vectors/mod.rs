//! A sealed HNSW graph of usearch.
#![expect(
    unsafe_code,
    reason = "usearch reads bytes that it does not own, in a file that is mapped"
)]

mod builder;
mod held;
mod linked;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::os::unix::fs::FileExt;

use parking_lot::{Condvar, Mutex};
use usearch::Index;

pub use builder::VectorGraphBuilder;
use builder::reserved;
use held::Held;

use crate::{Result, SegmentBytes, SegmentError};

/// Bytes that usearch keeps of a vector beside its components: 33 links of the lowest layer, those of the upper layers,
/// key, level, and the tables from key to place.
const LINK_BYTES: usize = 200;
/// Bytes in memory of a vector whose graph lies elsewhere: the addresses of its links and of its components, and its
/// entry in the table from key to place. Measured.
const ADDRESS_BYTES: usize = 53;
/// Bytes before the first vector in what usearch saves: the numbers of vectors and of bytes of each.
const HEAD_BYTES: usize = 8;
/// Bytes of a saved graph that are read at once.
const PART_BYTES: usize = 1 << 20;

/// The release of usearch.
pub(crate) fn version() -> &'static str {
    usearch::version()
}

fn failed(error: &impl fmt::Display) -> SegmentError {
    SegmentError::Usearch(error.to_string())
}

/// Has the index read the bytes, which must outlive it.
fn view(index: &Index, held: &Held) -> Result<()> {
    let bytes = match held {
        // SAFETY: the map is as long as this. No slice is left after the call: usearch reads through pointers.
        Held::File(_, map) => unsafe { std::slice::from_raw_parts(map.as_ptr(), map.len()) },
        Held::Memory(bytes) => bytes,
    };
    // SAFETY: a graph drops its bytes after its index, and they stay where they are when it is moved.
    let viewed = unsafe { index.view_from_buffer(bytes) };
    viewed.map_err(|error| failed(&error))
}

/// A graph that nobody changes any more.
pub struct VectorGraph {
    /// Dropped before what it reads.
    index: Index,
    held: Held,
    count: usize,
    /// Searches that may begin. usearch has buffers for as many, and fails where they are all taken.
    free: Mutex<usize>,
    freed: Condvar,
}

impl fmt::Debug for VectorGraph {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("VectorGraph")
            .field("vectors", &self.count)
            .finish_non_exhaustive()
    }
}

/// The right to search, until it is dropped.
struct Turn<'a>(&'a VectorGraph);

impl<'a> Turn<'a> {
    fn take(graph: &'a VectorGraph) -> Self {
        let mut free = graph.free.lock();
        graph.freed.wait_while(&mut free, |free| *free == 0);
        *free -= 1;
        Self(graph)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *self.0.free.lock() += 1;
        self.0.freed.notify_one();
    }
}

impl VectorGraph {
    /// The graph of `count` vectors of `dimensions` that was [saved](Self::save). The caller has verified the bytes.
    ///
    /// # Errors
    /// When the file cannot be mapped, there is no memory, or the bytes are of another graph.
    pub fn open(bytes: SegmentBytes, dimensions: usize, count: usize) -> Result<Self> {
        let another = || SegmentError::Another("holds another graph than expected");
        let held = Held::new(bytes)?;
        let mut counts = [0; HEAD_BYTES];
        if held.len() < counts.len() {
            return Err(another());
        }
        held.read(0, &mut counts)?;
        let expected = [count as u32, dimensions as u32].map(u32::to_le_bytes);
        if counts != *expected.as_flattened() {
            return Err(another());
        }
        // The number of searches outlives the change to what is viewed.
        let (index, searches) = reserved(dimensions, 1)?;
        if count > 0 {
            view(&index, &held)?;
        }
        if index.size() != count || index.dimensions() != dimensions {
            return Err(another());
        }
        Ok(Self {
            index,
            held,
            count,
            free: Mutex::new(searches),
            freed: Condvar::new(),
        })
    }

    /// Hands all bytes to `put`, part by part, from which the graph can be [opened](Self::open) again. The vectors of
    /// the numbers that are `dead` are zeros.
    ///
    /// # Errors
    /// Those of `put`, and when the file cannot be read.
    pub fn save(
        &self,
        dead: impl Fn(u32) -> bool,
        mut put: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        let dimensions = self.index.dimensions();
        let mut part = vec![0; HEAD_BYTES];
        self.held.read(0, &mut part)?;
        put(&part)?;
        let together = (PART_BYTES / dimensions).max(1);
        for first in (0..self.count).step_by(together) {
            let some = together.min(self.count - first);
            part.resize(some * dimensions, 0);
            self.held.read(self.place(first as u32), &mut part)?;
            for (vector, number) in part.chunks_mut(dimensions).zip(first as u32..) {
                if dead(number) {
                    vector.fill(0);
                }
            }
            put(&part)?;
        }
        let mut start = self.place(self.count as u32);
        while start < self.held.len() {
            part.resize(PART_BYTES.min(self.held.len() - start), 0);
            self.held.read(start, &mut part)?;
            put(&part)?;
            start += part.len();
        }
        Ok(())
    }

    /// Overwrites the vectors of these numbers in the file, which do not pass any more. A graph in memory keeps them.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn erase(&self, numbers: &[u32]) -> io::Result<()> {
        if let Held::File(file, _) = &self.held {
            let zeros = vec![0; self.index.dimensions()];
            for &number in numbers {
                file.write_all_at(&zeros, self.place(number) as u64)?;
            }
        }
        Ok(())
    }

    /// The first byte of a vector.
    fn place(&self, number: u32) -> usize {
        HEAD_BYTES + number as usize * self.index.dimensions()
    }

    /// Appends to `found` the cosines and numbers of up to `count` vectors near to the query that pass, of quantised
    /// vectors. The walk goes through those that do not pass. `passes` may not panic.
    ///
    /// # Errors
    /// When the query has another length, or there is no memory for the search.
    pub fn nearest(
        &self,
        query: &[i8],
        count: usize,
        passes: impl Fn(u32) -> bool,
        found: &mut Vec<(f32, u32)>,
    ) -> Result<()> {
        let count = count.min(self.count);
        if count == 0 {
            return Ok(());
        }
        let _turn = Turn::take(self);
        let matches = self
            .index
            .filtered_search(query, count, |key| passes(key as u32));
        let matches = matches.map_err(|error| failed(&error))?;
        let cosines = matches.distances.iter().map(|distance| 1.0 - distance);
        found.extend(cosines.zip(matches.keys.iter().map(|&key| key as u32)));
        Ok(())
    }

    /// Number of vectors.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Returns true if there is none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes in memory that the system cannot drop. usearch itself counts arenas of megabytes that it has reserved and
    /// not touched.
    pub fn bytes(&self) -> usize {
        let held = self.held.len() - self.mapped_bytes();
        self.count * ADDRESS_BYTES + held
    }

    /// Bytes in a mapped file.
    pub fn mapped_bytes(&self) -> usize {
        match &self.held {
            Held::File(_, map) => map.len(),
            Held::Memory(_) => 0,
        }
    }

    /// Resident bytes of one vector while a graph is built.
    pub fn row_bytes(dimensions: usize) -> usize {
        dimensions + LINK_BYTES
    }
}
