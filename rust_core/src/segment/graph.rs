//! A navigable graph over codes. The only code that knows the library that makes it.
#![expect(
    unsafe_code,
    reason = "the library hands vectors to the metric as pointers; the block states why it is sound"
)]

use parking_lot::{Condvar, Mutex};
use usearch::{Index, IndexOptions, MetricKind, ScalarKind, VectorType};

use super::codes::{Code, code_bytes, distance};
use crate::error::{CoreError, Result};

/// Neighbours of a vector on the upper levels; twice as many on the lowest.
const CONNECTIVITY: usize = 16;
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
        let bytes = code_bytes(dimensions);
        let options = IndexOptions {
            dimensions: bytes,
            metric: MetricKind::Cos,
            quantization: ScalarKind::I8,
            connectivity: CONNECTIVITY,
            expansion_add: EXPANSION_ADD,
            ..IndexOptions::default()
        };
        let mut index = Index::new(&options).map_err(failed)?;
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
        let threads = 2 * std::thread::available_parallelism().map_or(1, usize::from);
        index
            .reserve_capacity_and_threads(capacity, threads)
            .map_err(failed)?;
        Ok(Self {
            index,
            dimensions,
            permits: Permits::new(threads),
        })
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
