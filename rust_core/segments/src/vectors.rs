//! A sealed HNSW graph of usearch.

use std::fmt;
use std::thread::available_parallelism;

use parking_lot::{Condvar, Mutex};
use usearch::{Index, IndexOptions, MetricKind, ScalarKind};

use crate::{Result, SegmentError};

/// Links of a vector on the upper layers; twice as many on the lowest. The default of usearch.
const CONNECTIVITY: usize = 16;
/// Candidates that an insertion keeps. The default of usearch.
const EXPANSION_ADD: usize = 128;
/// Least candidates that a search keeps; one that asks for more results keeps as many as these.
const EXPANSION_SEARCH: usize = 64;
/// The largest magnitude of a component; -128 is not used.
const LEVELS: f32 = 127.0;
/// Bytes that usearch keeps of a vector beside its components: 33 links of the lowest layer, those of the upper layers,
/// key, level, and the tables from key to place.
const LINK_BYTES: usize = 200;
/// Searches at a time for each processor: callers and the threads of the pool search side by side.
const SEARCHES_PER_PROCESSOR: usize = 2;

fn failed(error: &impl fmt::Display) -> SegmentError {
    SegmentError::Usearch(error.to_string())
}

/// Vectors that become a graph.
pub struct VectorGraphBuilder {
    index: Index,
    searches: usize,
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
        Ok(Self {
            index,
            searches,
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

    /// The graph of all vectors that were added.
    pub fn finish(self) -> VectorGraph {
        VectorGraph {
            count: self.index.size(),
            index: self.index,
            free: Mutex::new(self.searches),
            freed: Condvar::new(),
        }
    }
}

/// A graph that nobody changes any more.
pub struct VectorGraph {
    index: Index,
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
    /// Appends to `found` the numbers of up to `count` vectors near to the query that pass. The walk goes through those
    /// that do not pass. `passes` may not panic.
    ///
    /// # Errors
    /// When the query has another length, or there is no memory for the search.
    pub fn nearest(
        &self,
        query: &[i8],
        count: usize,
        passes: impl Fn(u32) -> bool,
        found: &mut Vec<u32>,
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
        found.extend(matches.keys.iter().map(|&key| key as u32));
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

    /// Resident bytes. usearch itself counts arenas of megabytes that it has reserved and not touched.
    pub fn bytes(&self) -> usize {
        self.count * Self::row_bytes(self.index.dimensions())
    }

    /// Resident bytes of one vector.
    pub fn row_bytes(dimensions: usize) -> usize {
        dimensions + LINK_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIMENSIONS: usize = 24;

    fn vector(seed: u32) -> Vec<f32> {
        let mut state = seed;
        let mut component = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / 8_388_608.0 - 1.0
        };
        (0..DIMENSIONS).map(|_| component()).collect()
    }

    fn query(vector: &[f32]) -> Vec<i8> {
        vector.iter().map(|x| (x * LEVELS) as i8).collect()
    }

    fn graph(count: u32) -> VectorGraph {
        let mut builder = VectorGraphBuilder::new(DIMENSIONS, count as usize).expect("memory");
        for seed in 0..count {
            builder.add(&vector(seed)).expect("there is room");
        }
        builder.finish()
    }

    #[test]
    fn a_vector_is_found_by_itself_and_only_where_it_passes() {
        let graph = graph(500);
        assert_eq!(graph.len(), 500);
        for seed in (0..500).step_by(7) {
            let mut found = Vec::new();
            let query = query(&vector(seed));
            graph
                .nearest(&query, 10, |_| true, &mut found)
                .expect("it can be searched");
            assert_eq!((found.len(), found[0]), (10, seed));
            found.clear();
            graph
                .nearest(
                    &query,
                    10,
                    |number| number != seed && number % 2 == 1,
                    &mut found,
                )
                .expect("it can be searched");
            assert!(found.len() == 10 && found.iter().all(|&n| n != seed && n % 2 == 1));
        }
    }

    #[test]
    fn more_callers_than_buffers_wait_for_each_other() {
        let graph = graph(300);
        let callers = 4 * *graph.free.lock();
        std::thread::scope(|scope| {
            for caller in 0..callers as u32 {
                let graph = &graph;
                scope.spawn(move || {
                    for seed in 0..50 {
                        let seed = (seed * 13 + caller) % 300;
                        let mut found = Vec::new();
                        let query = query(&vector(seed));
                        graph
                            .nearest(&query, 5, |_| true, &mut found)
                            .expect("every search has its turn");
                        assert_eq!(found[0], seed);
                    }
                });
            }
        });
    }

    #[test]
    fn the_same_vectors_make_the_same_graph() {
        let (one, other) = (graph(400), graph(400));
        for seed in 0..50 {
            let query = query(&vector(seed + 1000));
            let (mut first, mut second) = (Vec::new(), Vec::new());
            for (graph, found) in [(&one, &mut first), (&other, &mut second)] {
                graph
                    .nearest(&query, 20, |_| true, found)
                    .expect("it can be searched");
            }
            assert_eq!(first, second);
        }
    }

    /// Without kernels for the processor usearch falls back to serial ones, ten times slower, and says nothing.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn the_kernels_of_the_processor_are_used() {
        let kernel = graph(1).index.hardware_acceleration();
        assert!(
            !is_x86_feature_detected!("avx2") || kernel != "serial",
            "{kernel}"
        );
    }

    #[test]
    fn another_length_is_refused() {
        let graph = graph(3);
        let error = graph.nearest(&[1, 2, 3], 2, |_| true, &mut Vec::new());
        let error = error.expect_err("three components of 24").to_string();
        assert!(error.starts_with("usearch: "), "{error}");
        let mut full = VectorGraphBuilder::new(DIMENSIONS, 1).expect("memory");
        assert!(full.add(&[1.0, 2.0]).is_err());
    }
}
