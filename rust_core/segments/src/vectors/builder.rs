//! Builds graphs of usearch.

use std::fmt;
use std::fs::File;
use std::thread::available_parallelism;

use usearch::{Index, IndexOptions, MetricKind, ScalarKind};

use super::held::path_of;
use super::{VectorGraph, failed};
use crate::{Result, SegmentBytes, SegmentError};

/// Links of a vector on the upper layers. The default of usearch.
pub(super) const CONNECTIVITY: usize = 16;
/// Links of a vector on the lowest layer: usearch has twice as many there.
pub(super) const LOWEST_LINKS: usize = 2 * CONNECTIVITY;
/// Candidates that an insertion keeps. The default of usearch.
const EXPANSION_ADD: usize = 128;
/// Least candidates that a search keeps; one that asks for more results keeps as many as these.
const EXPANSION_SEARCH: usize = 64;
/// The largest magnitude of a component; -128 is not used.
pub(super) const LEVELS: f32 = 127.0;
/// Searches at a time for each processor: callers and the threads of the pool search side by side.
const SEARCHES_PER_PROCESSOR: usize = 2;

/// An empty index with room for `capacity` vectors, and the number of searches for which it has buffers.
pub(super) fn reserved(dimensions: usize, capacity: usize) -> Result<(Index, usize)> {
    let options = IndexOptions {
        dimensions,
        metric: MetricKind::Cos,
        quantization: ScalarKind::I8,
        connectivity: CONNECTIVITY,
        expansion_add: EXPANSION_ADD,
        expansion_search: EXPANSION_SEARCH,
        multi: false,
    };
    let index = Index::new(&options).map_err(|error| failed(&error))?;
    let searches = available_parallelism().map_or(1, usize::from) * SEARCHES_PER_PROCESSOR;
    let reserved = index.reserve_capacity_and_threads(capacity.max(1), searches);
    reserved.map_err(|error| failed(&error))?;
    Ok((index, searches))
}

/// Vectors that become a graph.
pub struct VectorGraphBuilder {
    index: Index,
    levels: Vec<i8>,
}

impl fmt::Debug for VectorGraphBuilder {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("VectorGraphBuilder")
            .field("vectors", &self.index.size())
            .finish_non_exhaustive()
    }
}

impl VectorGraphBuilder {
    /// A builder for up to `capacity` vectors of `dimensions`.
    ///
    /// # Errors
    /// When there is no memory for them.
    pub fn new(dimensions: usize, capacity: usize) -> Result<Self> {
        Ok(Self {
            index: reserved(dimensions, capacity)?.0,
            levels: Vec::with_capacity(dimensions),
        })
    }

    /// Inserts a finite vector that is not zero, under the next number. Its components are scaled by the largest one:
    /// scaled by the norm, as usearch does it, they would use a sixth of the levels.
    ///
    /// # Errors
    /// When it has another length, or there are as many vectors as the builder was made for.
    pub fn add(&mut self, vector: &[f32]) -> Result<()> {
        let largest = vector.iter().fold(0.0f32, |most, x| most.max(x.abs()));
        let inverse = LEVELS / largest;
        self.levels.clear();
        self.levels
            .extend(vector.iter().map(|x| (x * inverse).round() as i8));
        let number = self.index.size() as u64;
        let added = self.index.add(number, &self.levels);
        added.map_err(|error| failed(&error))
    }

    /// The graph of all vectors that were added, in the empty `file`, or in memory where there is none or it cannot be
    /// written.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub fn finish(self, file: Option<File>) -> Result<VectorGraph> {
        let (dimensions, count) = (self.index.dimensions(), self.index.size());
        let written = file.filter(|file| self.write(file).is_ok());
        let bytes = if let Some(file) = written {
            SegmentBytes::File(file)
        } else {
            let mut bytes = vec![0; self.index.serialized_length()];
            let saved = self.index.save_to_buffer(&mut bytes);
            saved.map_err(|error| failed(&error))?;
            SegmentBytes::Memory(bytes)
        };
        drop(self);
        VectorGraph::open(bytes, dimensions, count)
    }

    /// Writes the graph to an empty file.
    fn write(&self, file: &File) -> Result<()> {
        self.index
            .save(&path_of(file))
            .map_err(|error| failed(&error))?;
        // usearch does not look whether the last bytes could be written.
        let length = file.metadata()?.len();
        if length != self.index.serialized_length() as u64 {
            return Err(SegmentError::Another("was not written as a whole"));
        }
        Ok(())
    }
}
