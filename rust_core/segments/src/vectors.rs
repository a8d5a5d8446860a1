//! A sealed HNSW graph of usearch.
#![expect(
    unsafe_code,
    reason = "usearch reads bytes that it does not own, in a file that is mapped"
)]

use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::thread::available_parallelism;

use memmap2::{Advice, MmapRaw};
use parking_lot::{Condvar, Mutex};
use usearch::{Index, IndexOptions, MetricKind, ScalarKind};

use crate::{Result, SegmentBytes, SegmentError};

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
/// Bytes in memory of a vector whose graph lies elsewhere: the addresses of its links and of its components, and its
/// entry in the table from key to place. Measured.
const ADDRESS_BYTES: usize = 53;
/// Bytes before the first vector in what usearch saves: the numbers of vectors and of bytes of each.
const HEAD_BYTES: usize = 8;
/// Bytes of a saved graph that are read at once.
const PART_BYTES: usize = 1 << 20;
/// Searches at a time for each processor: callers and the threads of the pool search side by side.
const SEARCHES_PER_PROCESSOR: usize = 2;

/// The release of usearch.
pub(crate) fn version() -> &'static str {
    usearch::version()
}

fn failed(error: &impl fmt::Display) -> SegmentError {
    SegmentError::Usearch(error.to_string())
}

/// An empty index with room for `capacity` vectors, and the number of searches for which it has buffers.
fn reserved(dimensions: usize, capacity: usize) -> Result<(Index, usize)> {
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

/// A path under which usearch can open a file that has no name.
fn path_of(file: &File) -> String {
    let directory = if cfg!(target_os = "linux") {
        "/proc/self/fd"
    } else {
        "/dev/fd"
    };
    format!("{directory}/{}", file.as_raw_fd())
}

/// What usearch saved of a graph, where it reads it.
enum Held {
    /// Only the vectors of the dead are written to, by [`VectorGraph::erase`], and through the file. No slice of the map
    /// is kept.
    File(File, MmapRaw),
    Memory(Vec<u8>),
}

impl Held {
    fn new(bytes: SegmentBytes) -> Result<Self> {
        match bytes {
            SegmentBytes::Memory(bytes) => Ok(Self::Memory(bytes)),
            SegmentBytes::File(file) => {
                let map = MmapRaw::map_raw(&file)?;
                // A search reads a vector here and there. To read on would fill memory with what nobody wants. Where
                // the advice is refused it is only slower.
                _ = map.advise(Advice::Random);
                Ok(Self::File(file, map))
            }
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::File(_, map) => map.len(),
            Self::Memory(bytes) => bytes.len(),
        }
    }

    fn read(&self, start: usize, into: &mut [u8]) -> io::Result<()> {
        match self {
            Self::File(file, _) => file.read_exact_at(into, start as u64),
            Self::Memory(bytes) => {
                into.copy_from_slice(&bytes[start..start + into.len()]);
                Ok(())
            }
        }
    }
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
        let mut head = [0; HEAD_BYTES];
        if held.len() < head.len() {
            return Err(another());
        }
        held.read(0, &mut head)?;
        let expected = [count as u32, dimensions as u32].map(u32::to_le_bytes);
        if head != *expected.as_flattened() {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::tests::unnamed_file;

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
        builder.finish(None).expect("memory")
    }

    /// As [`graph`], in a file.
    fn graph_in_file(count: u32) -> VectorGraph {
        let mut builder = VectorGraphBuilder::new(DIMENSIONS, count as usize).expect("memory");
        for seed in 0..count {
            builder.add(&vector(seed)).expect("there is room");
        }
        builder.finish(Some(unnamed_file())).expect("memory")
    }

    fn nearest(graph: &VectorGraph, seed: u32, passes: impl Fn(u32) -> bool) -> Vec<u32> {
        let mut found = Vec::new();
        graph
            .nearest(&query(&vector(seed)), 20, passes, &mut found)
            .expect("it can be searched");
        found
    }

    fn saved(graph: &VectorGraph, dead: impl Fn(u32) -> bool) -> Vec<u8> {
        let mut bytes = Vec::new();
        let put = |part: &[u8]| {
            bytes.extend_from_slice(part);
            Ok(())
        };
        graph.save(dead, put).expect("it can be read");
        bytes
    }

    #[test]
    fn a_graph_in_a_file_answers_as_one_in_memory_and_is_opened_again() {
        let (memory, file) = (graph(500), graph_in_file(500));
        assert_eq!(memory.mapped_bytes(), 0);
        assert_eq!(file.bytes(), 500 * ADDRESS_BYTES);
        assert_eq!(file.mapped_bytes() + file.bytes(), memory.bytes());
        let bytes = saved(&file, |_| false);
        assert_eq!(bytes, saved(&memory, |_| false));
        let open = |bytes: &[u8], dimensions, count| {
            VectorGraph::open(SegmentBytes::Memory(bytes.to_vec()), dimensions, count)
        };
        let again = open(&bytes, DIMENSIONS, 500).expect("it is whole");
        for seed in 0..100 {
            let expected = nearest(&memory, seed * 7, |_| true);
            assert_eq!(nearest(&file, seed * 7, |_| true), expected);
            assert_eq!(nearest(&again, seed * 7, |_| true), expected);
        }
        assert!(open(&bytes, DIMENSIONS, 499).is_err());
        assert!(open(&bytes, DIMENSIONS + 1, 500).is_err());
        assert!(open(&bytes[..5], DIMENSIONS, 500).is_err());
        assert!(open(&bytes[..bytes.len() - 1], DIMENSIONS, 500).is_err());
    }

    #[test]
    fn vectors_of_the_dead_are_in_no_file_and_the_others_are_found_as_before() {
        let graph = graph_in_file(2000);
        let dead = |number: u32| number % 7 == 3;
        let vectors = |bytes: &[u8]| -> Vec<Vec<u8>> {
            let all = bytes[HEAD_BYTES..].chunks(DIMENSIONS);
            all.take(2000).map(<[u8]>::to_vec).collect()
        };
        let before = vectors(&saved(&graph, |_| false));
        let masked = vectors(&saved(&graph, dead));
        let numbers: Vec<u32> = (0..2000).filter(|&number| dead(number)).collect();
        graph.erase(&numbers).expect("the file is ours");
        assert_eq!(vectors(&saved(&graph, |_| false)), masked);
        for (number, vector) in (0..).zip(&masked) {
            let erased = vector.iter().all(|&byte| byte == 0);
            assert_eq!(erased, dead(number), "{number}");
            assert!(erased || *vector == before[number as usize]);
        }
        let mut met = 0;
        for seed in (0..2000).filter(|&seed| !dead(seed)) {
            let found = nearest(&graph, seed, |number| !dead(number));
            assert!(found.len() == 20 && found.iter().all(|&number| !dead(number)));
            met += u32::from(found[0] == seed);
        }
        assert!(met > 1650, "{met} of 1714 find themselves");
    }

    #[test]
    fn a_graph_of_nothing_finds_nothing() {
        for graph in [graph(0), graph_in_file(0)] {
            assert_eq!((graph.len(), nearest(&graph, 1, |_| true).len()), (0, 0));
        }
    }

    #[test]
    fn a_file_that_cannot_be_written_leaves_the_graph_in_memory() {
        let mut builder = VectorGraphBuilder::new(DIMENSIONS, 10).expect("memory");
        builder.add(&vector(1)).expect("there is room");
        let full = File::options().write(true).open("/dev/full");
        let graph = builder.finish(full.ok()).expect("memory");
        assert_eq!((graph.len(), graph.mapped_bytes()), (1, 0));
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
