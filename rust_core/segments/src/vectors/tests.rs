//! Laws of graphs of usearch.

use std::fs::File;

use super::builder::LEVELS;
use super::*;
use crate::LinkedGraph;
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

/// The numbers of the `count` nearest to a query.
fn found(
    graph: &VectorGraph,
    query: &[i8],
    count: usize,
    passes: impl Fn(u32) -> bool,
) -> Vec<u32> {
    let mut scored = Vec::new();
    let all = graph.nearest(query, count, passes, &mut scored);
    all.expect("it can be searched");
    assert!(scored.is_sorted_by(|one, other| one.0 >= other.0));
    scored.into_iter().map(|(_, number)| number).collect()
}

fn nearest(graph: &VectorGraph, seed: u32, passes: impl Fn(u32) -> bool) -> Vec<u32> {
    found(graph, &query(&vector(seed)), 20, passes)
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

/// Vectors that are linked to those of near numbers, and on the upper layers, of each eighth, to the next ones there.
struct Ring(Vec<Vec<i8>>);

const EIGHTH: u32 = 8;

impl LinkedGraph for Ring {
    fn count(&self) -> u32 {
        self.0.len() as u32
    }

    fn entry(&self) -> u32 {
        0
    }

    fn highest_layer(&self, number: u32) -> u16 {
        let layers = 1..u32::MAX;
        layers
            .take_while(|&layer| EIGHTH.pow(layer) < self.count())
            .take_while(|&layer| number.is_multiple_of(EIGHTH.pow(layer)))
            .count() as u16
    }

    fn components(&self, number: u32) -> &[i8] {
        &self.0[number as usize]
    }

    fn links(&self, number: u32, layer: u16) -> impl Iterator<Item = u32> {
        let (step, count) = (EIGHTH.pow(layer.into()), self.count());
        (1..=EIGHTH).map(move |far| (number + far * step) / step % count.div_ceil(step) * step)
    }
}

fn ring(count: u32) -> Ring {
    Ring((0..count).map(|seed| query(&vector(seed))).collect())
}

#[test]
fn a_linked_graph_is_written_as_usearch_writes_it() {
    for count in [1, 7, 300] {
        let ring = ring(count);
        let file = VectorGraph::linked(&ring, DIMENSIONS, Some(unnamed_file())).expect("memory");
        let memory = VectorGraph::linked(&ring, DIMENSIONS, None).expect("memory");
        assert!(file.mapped_bytes() > 0 && memory.mapped_bytes() == 0);
        let mut theirs = vec![0; memory.index.serialized_length()];
        let written = memory.index.save_to_buffer(&mut theirs);
        written.expect("there is room");
        assert!(saved(&memory, |_| false) == theirs);
        assert!(saved(&file, |_| false) == theirs);
    }
}

#[test]
fn a_linked_graph_is_searched_along_its_links() {
    let count = 300;
    let graph = VectorGraph::linked(&ring(count), DIMENSIONS, None).expect("memory");
    let mut met = 0;
    for seed in 0..count {
        // As many candidates as vectors: all that can be reached are compared.
        let found = found(&graph, &query(&vector(seed)), 300, |_| true);
        assert_eq!(found.len(), 300);
        met += u32::from(found[0] == seed);
    }
    assert_eq!(met, count);
}

#[test]
fn a_graph_of_nothing_finds_nothing() {
    let linked = VectorGraph::linked(&ring(0), DIMENSIONS, Some(unnamed_file())).expect("memory");
    for graph in [graph(0), graph_in_file(0), linked] {
        assert_eq!((graph.len(), nearest(&graph, 1, |_| true).len()), (0, 0));
    }
}

#[test]
fn a_file_that_cannot_be_written_leaves_the_graph_in_memory() {
    let mut builder = VectorGraphBuilder::new(DIMENSIONS, 10).expect("memory");
    builder.add(&vector(1)).expect("there is room");
    let full = File::options().write(true).open("/dev/full");
    let graph = builder.finish(full.ok()).expect("memory");
    let full = File::options().write(true).open("/dev/full");
    let linked = VectorGraph::linked(&ring(1), DIMENSIONS, full.ok()).expect("memory");
    for graph in [graph, linked] {
        assert_eq!((graph.len(), graph.mapped_bytes()), (1, 0));
    }
}

#[test]
fn a_vector_is_found_by_itself_and_only_where_it_passes() {
    let graph = graph(500);
    assert_eq!(graph.len(), 500);
    for seed in (0..500).step_by(7) {
        let query = query(&vector(seed));
        let all = found(&graph, &query, 10, |_| true);
        assert_eq!((all.len(), all[0]), (10, seed));
        let odd = |number| number != seed && number % 2 == 1;
        let some = found(&graph, &query, 10, odd);
        assert!(some.len() == 10 && some.into_iter().all(odd));
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
                    let found = found(graph, &query(&vector(seed)), 5, |_| true);
                    assert_eq!(found[0], seed);
                }
            });
        }
    });
}

#[test]
fn cosines_are_those_of_the_quantised_vectors() {
    let (graph, query) = (graph(300), query(&vector(1000)));
    let mut scored = Vec::new();
    let all = graph.nearest(&query, 10, |_| true, &mut scored);
    all.expect("it can be searched");
    let dot = |one: &[i8], other: &[i8]| -> f32 {
        let products = one
            .iter()
            .zip(other)
            .map(|(&x, &y)| i32::from(x) * i32::from(y));
        products.sum::<i32>() as f32
    };
    for (cosine, number) in scored {
        let mut levels = vec![0; DIMENSIONS];
        let read = graph.held.read(graph.place(number), &mut levels);
        read.expect("it is in memory");
        let levels: Vec<i8> = levels.into_iter().map(u8::cast_signed).collect();
        let exact = dot(&query, &levels) / (dot(&query, &query) * dot(&levels, &levels)).sqrt();
        assert!((cosine - exact).abs() < 1e-3, "{cosine} {exact}");
    }
}

#[test]
fn the_same_vectors_make_the_same_graph() {
    let (one, other) = (graph(400), graph(400));
    for seed in 0..50 {
        let found = [&one, &other].map(|graph| nearest(graph, seed + 1000, |_| true));
        assert_eq!(found[0], found[1]);
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
