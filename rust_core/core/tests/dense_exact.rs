//! The dense arm finds what an exact f32 search finds.

mod common;

use astrocyte_core::internals::{dot, normalise};
use astrocyte_core::{Core, RecallRequest};
use common::{Random, clustered, id, row};

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

/// Vectors about one subject, each near to all others.
fn crowd(random: &mut Random, dimensions: usize, count: usize) -> Vec<Vec<f32>> {
    let centre = random.vector(dimensions);
    (0..count)
        .map(|_| centre.iter().map(|x| x + 0.3 * random.normal()).collect())
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
    check(&crowd(&mut Random(11), 384, 3000), true, 10, 12);
}

/// Thousands of rows lie within the coarse look's error of the last hit: of those that it puts far too low, some are
/// hits. Without the reach below the floors several of them are missed.
#[test]
fn a_list_of_thousands_in_which_rows_are_closer_than_the_coarse_look_errs() {
    let mut random = Random(17);
    let vectors: Vec<_> = (0..40_000).map(|_| random.vector(64)).collect();
    check(&vectors, false, 2000, 18);
}

/// Smoothed exact cosines of short turns in conversations of `length`: shares of .4 and .2, an only neighbour twice.
fn smoothed(cosines: &[f32], length: usize) -> Vec<f32> {
    let give = |turn: usize, step: isize| {
        let other = turn.checked_add_signed(step)?;
        (other < cosines.len() && other / length == turn / length).then(|| cosines[other])
    };
    let pair = |turn: usize, step: isize| match (give(turn, -step), give(turn, step)) {
        (Some(before), Some(after)) => before + after,
        (Some(only), None) | (None, Some(only)) => 2.0 * only,
        (None, None) => 0.0,
    };
    (0..cosines.len())
        .map(|turn| cosines[turn] + 0.4 * pair(turn, 1) + 0.2 * pair(turn, 2))
        .collect()
}

/// The tolerance of a smoothed score: neighbours give scores of whole bytes.
const TOLERANCE: f32 = 0.006;

/// Recalls turns of conversations, and checks that none is left out that is better than the last by more than the
/// tolerance, but for turns whose places lenders take.
fn check_conversations(vectors: &[Vec<f32>], length: usize, seed: u64) {
    let bank = Core::new(None)
        .expect("nothing is spilled")
        .bank(vectors[0].len())
        .expect("the dimensions are in range");
    let rows: Vec<_> = (0..vectors.len())
        .map(|number| {
            let mut row = row(number as u64, String::new());
            row.vector = Some(vectors[number].clone());
            (row.tokens, row.session) = (9, Some(format!("s{}", number / length)));
            row
        })
        .collect();
    bank.apply(1, &rows, &[], &[]).expect("the rows are valid");
    let mut random = Random(seed);
    for _ in 0..30 {
        let near = &vectors[random.below(vectors.len() as u64) as usize];
        let query: Vec<f32> = near.iter().map(|x| x + random.normal()).collect();
        let request = RecallRequest {
            vector: Some(query.clone()),
            k: 40,
            depth: 60,
            ..RecallRequest::default()
        };
        let hits = bank.recall(&request).expect("the request is valid").hits;
        let unit = normalise(0, &query, query.len()).expect("valid");
        let cosine =
            |vector: &Vec<f32>| dot(&normalise(0, vector, query.len()).expect("valid"), &unit);
        let own: Vec<f32> = vectors.iter().map(cosine).collect();
        let scores = smoothed(&own, length);
        let mut best = scores.clone();
        best.sort_by(|a, b| b.total_cmp(a));
        let last = best[hits.len() - 1];
        let is_hit = |number: usize| hits.iter().any(|hit| hit.memory_id == id(number as u64));
        // A turn ranks above those that borrow from it, and these above those that borrow from them: it may take the
        // place of another where a turn of its conversation has the score of a hit.
        let lends = |number: usize| {
            let first = number / length * length;
            (first..first + length).any(|other| other != number && scores[other] > last - TOLERANCE)
        };
        let (mut lifted, mut missed) = (0, 0);
        for (number, &score) in scores.iter().enumerate() {
            if is_hit(number) && score < last {
                let settled = score < last - TOLERANCE;
                assert!(!settled || lends(number), "{number}: {score}, {last}");
                lifted += 1;
            }
            missed += usize::from(!is_hit(number) && score > last + TOLERANCE);
        }
        assert!(missed <= lifted, "{missed} missed, {lifted} lifted");
    }
}

#[test]
fn conversations_about_many_subjects() {
    check_conversations(&clustered(&mut Random(13), 256, 4000), 20, 14);
}

#[test]
fn conversations_about_one_subject_are_a_crowd() {
    let vectors = crowd(&mut Random(15), 256, 4000);
    check_conversations(&vectors, 20, 16);
    // So few are read whole at once.
    check_conversations(&vectors[..200], 20, 17);
}
