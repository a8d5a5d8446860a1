//! The dense arm finds what an exact f32 search finds.

mod common;

use common::{Random, clustered, id, row};
use rust_core::vector::{dot, normalise};
use rust_core::{Core, RecallRequest};

/// Exact top `k` by f32 cosine, ties by id.
fn exact(units: &[Vec<f32>], query: &[f32], k: usize) -> Vec<u64> {
    let mut scored: Vec<(f32, u64)> = units
        .iter()
        .enumerate()
        .map(|(number, unit)| (dot(unit, query), number as u64))
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    scored
        .into_iter()
        .take(k)
        .map(|(_, number)| number)
        .collect()
}

fn check(vectors: &[Vec<f32>], scratch: bool, k: usize, seed: u64) {
    let dimensions = vectors[0].len();
    let directory = std::env::temp_dir();
    let core = Core::new(scratch.then_some(directory.as_path()))
        .expect("the temporary directory is writable");
    let bank = core.bank(dimensions).expect("the dimensions are in range");
    let rows: Vec<_> = vectors
        .iter()
        .enumerate()
        .map(|(number, vector)| {
            let mut row = row(number as u64, String::new());
            row.vector = Some(vector.clone());
            row
        })
        .collect();
    bank.apply(1, &rows, &[], &[]).expect("the rows are valid");
    let units: Vec<_> = vectors
        .iter()
        .map(|v| normalise(0, v, dimensions).expect("valid"))
        .collect();
    let mut random = Random(seed);
    for _ in 0..50 {
        let near = &vectors[random.below(vectors.len() as u64) as usize];
        let query: Vec<f32> = near.iter().map(|x| x + random.normal()).collect();
        let request = RecallRequest {
            vector: Some(query.clone()),
            k,
            depth: k.max(100),
            ..RecallRequest::default()
        };
        let hits = bank.recall(&request).expect("the request is valid").hits;
        let found: Vec<_> = hits.iter().map(|hit| hit.memory_id).collect();
        let unit = normalise(0, &query, dimensions).expect("valid");
        let expected: Vec<_> = exact(&units, &unit, k).into_iter().map(id).collect();
        assert_eq!(found, expected, "recall is not 1.000");
    }
}

#[test]
fn clustered_vectors_in_a_spilled_bank() {
    check(&clustered(&mut Random(1), 384, 6000), true, 10, 2);
}

#[test]
fn clustered_vectors_in_memory() {
    check(&clustered(&mut Random(3), 100, 3000), false, 10, 4);
}

#[test]
fn vectors_without_structure_and_a_long_list() {
    let mut random = Random(5);
    let vectors: Vec<_> = (0..3000).map(|_| random.vector(256)).collect();
    check(&vectors, true, 100, 6);
}

#[test]
fn sparse_vectors_whose_low_nibbles_are_not_spread() {
    let mut random = Random(7);
    let vectors: Vec<_> = (0..3000)
        .map(|_| {
            let mut vector = vec![0.0; 384];
            for _ in 0..8 {
                vector[random.below(64) as usize] += 1.0 + random.unit();
            }
            vector
        })
        .collect();
    check(&vectors, true, 10, 8);
}

#[test]
fn a_row_of_large_steps_among_others() {
    let mut random = Random(9);
    let mut vectors = clustered(&mut random, 384, 3000);
    // All in one component: its step is twenty times the others'.
    vectors[1500] = vec![0.0; 384];
    vectors[1500][7] = 1.0;
    check(&vectors, true, 10, 10);
}

#[test]
fn a_crowd_of_which_most_rows_are_looked_at_twice() {
    let mut random = Random(11);
    let centre = random.vector(384);
    let near = |random: &mut Random| -> Vec<f32> {
        centre.iter().map(|x| x + 0.3 * random.normal()).collect()
    };
    let vectors: Vec<_> = (0..3000).map(|_| near(&mut random)).collect();
    check(&vectors, true, 10, 12);
}
