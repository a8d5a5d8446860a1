//! A navigable graph over codes. The only code that knows the library that makes it.
#![expect(
    unsafe_code,
    reason = "the library hands vectors to the metric as pointers; the block states why it is sound"
)]

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Condvar, Mutex};
use usearch::{Index, IndexOptions, MetricKind, ScalarKind, VectorType};

use super::codes::{Code, code_bytes, distance};
use crate::error::{CoreError, Result};

/// Neighbours of a vector on the upper levels; twice as many on the lowest.
pub(super) const CONNECTIVITY: usize = 16;
/// Candidates that are weighed for a new vector's neighbours.
const EXPANSION_ADD: usize = 128;
/// Bytes beside codes and links: the library's table of keys, its nodes' addresses.
const TABLE_BYTES: usize = 48;
/// Bytes of a node's links and header on the lowest level, and those of the levels above, on average.
const LINK_BYTES: usize = 4 * (2 * CONNECTIVITY) + 4 + 10 + 5;

/// A graph of sealed vectors. Adding is for its builder, before anybody else sees it.
pub(crate) struct Graph {
    index: Index,
    dimensions: usize,
    permits: Permits,
    saved: AtomicBool,
}

impl std::fmt::Debug for Graph {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Graph")
            .field("vectors", &self.index.size())
            .finish_non_exhaustive()
    }
}

impl Graph {
    /// An empty graph for up to `capacity` vectors.
    ///
    /// # Errors
    /// [`CoreError::Graph`] when there is no memory for it.
    pub(super) fn new(dimensions: usize, capacity: usize) -> Result<Self> {
        let (index, threads) = bare(dimensions, capacity)?;
        Self::measuring(index, dimensions, threads)
    }

    /// The graph of an index that has no metric of ours yet: the library keeps the memory of one that another takes the
    /// place of.
    fn measuring(mut index: Index, dimensions: usize, threads: usize) -> Result<Self> {
        let bytes = code_bytes(dimensions);
        let metric = move |left: *const i8, right: *const i8| {
            // SAFETY: the library calls the metric with vectors of this index alone, each of its `dimensions`, which are
            // `bytes` values of one byte; they live for the call.
            let (left, right) = unsafe {
                (
                    std::slice::from_raw_parts(left, bytes),
                    std::slice::from_raw_parts(right, bytes),
                )
            };
            distance(left, right)
        };
        <i8 as VectorType>::change_metric(&mut index, Box::new(metric)).map_err(failed)?;
        Ok(Self {
            index,
            dimensions,
            permits: Permits::new(threads),
            saved: AtomicBool::new(false),
        })
    }

    /// The graph of a file that was checked, of `count` vectors.
    ///
    /// # Errors
    /// [`CoreError::Graph`] when there is no memory for it, or the file changed.
    pub(super) fn load(path: &Path, dimensions: usize, count: usize) -> Result<Self> {
        // The library does not look whether it got the memory that it asks for.
        let mut room: Vec<u8> = Vec::new();
        let reserved = room.try_reserve_exact(count * Self::row_bytes(dimensions));
        reserved.map_err(failed)?;
        drop(room);
        let (index, threads) = bare(dimensions, 0)?;
        index.load(text_of(path)?).map_err(failed)?;
        if (index.size(), index.dimensions()) != (count, code_bytes(dimensions)) {
            return Err(CoreError::Graph("it is another".to_owned()));
        }
        // Reading has put a metric of the library's in the place of ours.
        let graph = Self::measuring(index, dimensions, threads)?;
        graph.note_saved(true);
        Ok(graph)
    }

    /// Writes the graph to a file.
    ///
    /// # Errors
    /// [`CoreError::Graph`] when it cannot be written.
    pub(super) fn save(&self, path: &Path) -> Result<()> {
        self.index.save(text_of(path)?).map_err(failed)
    }

    /// Some bytes of what [`save`](Self::save) writes of a small graph.
    pub(super) fn head(&self, start: usize, length: usize) -> Result<Vec<u8>> {
        let mut bytes = vec![0; self.index.serialized_length()];
        self.index.save_to_buffer(&mut bytes).map_err(failed)?;
        let head = bytes.get(start..start + length).map(<[u8]>::to_vec);
        head.ok_or_else(|| CoreError::Graph("it has another form".to_owned()))
    }

    /// Says whether the newest checkpoint has it.
    pub(crate) fn note_saved(&self, saved: bool) {
        self.saved.store(saved, Ordering::Relaxed);
    }

    /// Whether the newest checkpoint has it.
    pub(crate) fn is_saved(&self) -> bool {
        self.saved.load(Ordering::Relaxed)
    }

    pub(crate) fn len(&self) -> usize {
        self.index.size()
    }

    pub(super) fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// Adds a vector under the next number.
    ///
    /// # Errors
    /// [`CoreError::Graph`] when there is no memory for it.
    pub(super) fn add(&self, number: u32, code: &Code) -> Result<()> {
        self.index.add(u64::from(number), &code.0).map_err(failed)
    }

    /// Numbers of up to `count` vectors near to the query; None when the search failed.
    pub(super) fn search(&self, query: &Code, count: usize) -> Option<Vec<u64>> {
        let _permit = self.permits.take();
        let found = self.index.search(&query.0, count);
        found.ok().map(|found| found.keys)
    }

    /// As [`search`](Self::search), among those for which `passes` holds, which may not panic.
    pub(super) fn search_among(
        &self,
        query: &Code,
        count: usize,
        passes: impl Fn(u64) -> bool,
    ) -> Option<Vec<u64>> {
        let _permit = self.permits.take();
        let found = self.index.filtered_search(&query.0, count, passes);
        found.ok().map(|found| found.keys)
    }

    /// Resident bytes by our own count: the library's includes what it has only reserved.
    pub(crate) fn bytes(&self) -> usize {
        self.index.size() * Self::row_bytes(self.dimensions)
    }

    /// Resident bytes of one vector.
    pub(crate) fn row_bytes(dimensions: usize) -> usize {
        code_bytes(dimensions) + LINK_BYTES + TABLE_BYTES
    }
}

/// An index without our metric, and how many searches at once it has places for.
fn bare(dimensions: usize, capacity: usize) -> Result<(Index, usize)> {
    let options = IndexOptions {
        dimensions: code_bytes(dimensions),
        metric: MetricKind::Cos,
        quantization: ScalarKind::I8,
        connectivity: CONNECTIVITY,
        expansion_add: EXPANSION_ADD,
        ..IndexOptions::default()
    };
    let index = Index::new(&options).map_err(failed)?;
    let threads = 2 * std::thread::available_parallelism().map_or(1, usize::from);
    index
        .reserve_capacity_and_threads(capacity, threads)
        .map_err(failed)?;
    Ok((index, threads))
}

fn text_of(path: &Path) -> Result<&str> {
    let text = path.to_str();
    text.ok_or_else(|| CoreError::Graph("a path is not UTF-8".to_owned()))
}

fn failed(error: impl std::fmt::Display) -> CoreError {
    CoreError::Graph(error.to_string())
}

/// As many searches at once as the library has places for; more would fail, not wait.
struct Permits {
    free: Mutex<usize>,
    returned: Condvar,
}

impl Permits {
    fn new(count: usize) -> Self {
        Self {
            free: Mutex::new(count),
            returned: Condvar::new(),
        }
    }

    fn take(&self) -> Permit<'_> {
        let mut free = self.free.lock();
        while *free == 0 {
            self.returned.wait(&mut free);
        }
        *free -= 1;
        Permit(self)
    }
}

struct Permit<'a>(&'a Permits);

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        *self.0.free.lock() += 1;
        self.0.returned.notify_one();
    }
}
