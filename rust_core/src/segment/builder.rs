//! A graph in the making. The only code that knows the library that finds the links.
#![expect(
    unsafe_code,
    reason = "the library hands vectors to the metric as pointers; the block states why it is sound"
)]

use std::path::Path;

use usearch::{Index, IndexOptions, MetricKind, ScalarKind, VectorType};

use super::codes::{Code, code_bytes, distance};
use super::graph::Graph;
use super::layers::{CONNECTIVITY, LOWEST};
use super::library;
use crate::error::{CoreError, Result};

/// Candidates that are weighed for a new vector's neighbours.
const EXPANSION_ADD: usize = 128;

/// Bytes beside codes and links: the library's table of keys, its nodes' addresses.
const TABLE_BYTES: usize = 48;
/// Bytes of a node's links and header on the lowest level, and those of the levels above, on average.
const LINK_BYTES: usize = 4 * LOWEST + 4 + 10 + 5;

/// A graph that takes vectors; nobody else sees it.
pub(super) struct Builder {
    index: Index,
    dimensions: usize,
}

impl Builder {
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
        let reserved = index.reserve_capacity_and_threads(capacity, 1);
        reserved.map_err(failed)?;
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
        Ok(Self { index, dimensions })
    }

    /// Adds a vector under the next number.
    ///
    /// # Errors
    /// [`CoreError::Graph`] when there is no memory for it.
    pub(super) fn add(&self, number: u32, code: &Code) -> Result<()> {
        self.index.add(u64::from(number), &code.0).map_err(failed)
    }

    /// The graph, without the vectors and the library's tables. Its links are read from a nameless file of `directory`: the
    /// library gives them in no other way, and in memory it would be as large again.
    ///
    /// # Errors
    /// [`CoreError::Graph`] when the file cannot be written, or is not what the library says.
    pub(super) fn seal(self, directory: &Path) -> Result<Graph> {
        let (count, width) = (self.index.size(), code_bytes(self.dimensions));
        let save = |path: &str| self.index.save(path).map_err(failed);
        let layers = library::layers(directory, save, count, width)?;
        Ok(Graph::new(layers))
    }

    /// Resident bytes of one vector.
    pub(super) fn row_bytes(dimensions: usize) -> usize {
        code_bytes(dimensions) + LINK_BYTES + TABLE_BYTES
    }
}

fn failed(error: impl std::fmt::Display) -> CoreError {
    CoreError::Graph(error.to_string())
}
