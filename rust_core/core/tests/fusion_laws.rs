//! Fusion, windows, outside lists, duplicates and budgets, each on a bank small enough to check by hand.

mod common;

use astrocyte_core::{Bank, Core, ExternalList, FusionMethod, RecallRequest, Row};
use common::{Random, id, row};
use proptest::prelude::*;

fn bank_of(rows: &[Row], dimensions: usize) -> Bank {
    let bank = Core::new(None)
        .and_then(|core| core.bank(dimensions))
        .expect("a bank");
    bank.apply(1, rows, &[], &[]).expect("the rows are valid");
    bank
}

fn random_rows(seed: u64, count: u64) -> Vec<Row> {
    let mut random = Random(seed);
    (0..count)
        .map(|number| {
            let mut row = row(number, random.text(5));
            row.vector = Some(random.vector(8));
            row.occurred_at = Some(random.below(1_000) as i64);
            row.tokens = 1 + random.below(50) as u32;
            row
        })
        .collect()
}

fn request(seed: u64) -> RecallRequest {
    let mut random = Random(seed.wrapping_add(99));
    RecallRequest {
        text: Some(random.text(6)),
        vector: Some(random.vector(8)),
        time_windows: vec![(100, 200)],
        time_tail_ms: 1_000,
        k: 50,
        depth: 20,
        context_windows: false,
        ..RecallRequest::default()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn reciprocal_rank_is_the_sum_over_the_arms(seed in any::<u64>(), constant in 1.0f64..100.0) {
        let bank = bank_of(&random_rows(seed, 60), 8);
        let request = RecallRequest { fusion: FusionMethod::ReciprocalRank, rank_constant: constant, ..request(seed) };
        let weights = [0.5, 1.0, 0.3];
        let request = RecallRequest { weights, ..request };
        let response = bank.recall(&request).expect("valid");
        let weight = |arm: u32| weights[arm as usize];
        for hit in &response.hits {
            let sum: f64 = hit.arms.iter().map(|a| weight(a.arm) / (constant + f64::from(a.rank))).sum();
            prop_assert!((sum - hit.score).abs() < 1e-12, "{:?}", hit);
        }
    }

    #[test]
    fn one_arm_keeps_its_order_under_both_methods(seed in any::<u64>()) {
        let bank = bank_of(&random_rows(seed, 60), 8);
        for fusion in [FusionMethod::ReciprocalRank, FusionMethod::DistributionBased] {
            let request = RecallRequest { text: None, time_windows: Vec::new(), fusion, ..request(seed) };
            let ranks: Vec<u32> = bank.recall(&request).expect("valid").hits.iter().map(|hit| hit.arms[0].rank).collect();
            prop_assert_eq!(ranks, (1..=20).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_larger_weight_never_lowers_the_arm_s_first(seed in any::<u64>()) {
        let bank = bank_of(&random_rows(seed, 60), 8);
        let place = |weight: f64| {
            let request = RecallRequest { weights: [weight, 1.0, 1.0], ..request(seed) };
            let hits = bank.recall(&request).expect("valid").hits;
            hits.iter().position(|hit| hit.arms.iter().any(|arm| arm.arm == 0 && arm.rank == 1))
        };
        prop_assert!(place(50.0) <= place(1.0));
        prop_assert_eq!(place(1e6), Some(0));
    }

    #[test]
    fn the_budget_holds_and_the_first_hit_stays(seed in any::<u64>(), budget in 0u64..300) {
        let bank = bank_of(&random_rows(seed, 60), 8);
        let free = bank.recall(&request(seed)).expect("valid");
        let response = bank.recall(&RecallRequest { budget: Some(budget), ..request(seed) }).expect("valid");
        prop_assert_eq!(response.hits[0].key, free.hits[0].key);
        let spent: u64 = response.hits.iter().map(|hit| u64::from(hit.tokens)).sum();
        prop_assert!(spent <= budget || response.hits.len() == 1);
        let needed: u64 = free.hits.iter().map(|hit| u64::from(hit.tokens)).sum();
        prop_assert_eq!(response.truncated, needed > budget);
    }
}

#[test]
fn an_outside_list_is_an_arm_and_keeps_to_the_filter() {
    let mut rows = random_rows(1, 10);
    rows[3].tags = vec!["kept".to_owned()];
    let bank = bank_of(&rows, 8);
    let hits = vec![(id(3), 0.9), (id(4), 0.8), (id(77), 0.7)];
    let request = RecallRequest {
        tags: vec!["kept".to_owned()],
        external: vec![ExternalList {
            name: "graph".to_owned(),
            weight: 1.0,
            hits,
        }],
        ..RecallRequest::default()
    };
    let response = bank.recall(&request).expect("valid");
    let keys: Vec<u64> = response.hits.iter().map(|hit| hit.key).collect();
    assert_eq!((keys, response.arm_names), (vec![3], vec!["graph".into()]));
    assert_eq!((response.unknown_external, response.candidates), (1, 1));
}

#[test]
fn an_outside_list_names_a_memory_where_it_does_so_first() {
    let rows: Vec<Row> = (1..=3)
        .map(|number| row(number, "tea".to_owned()))
        .collect();
    let bank = bank_of(&rows, 1);
    let hits = vec![(id(2), 0.9), (id(3), 0.8), (id(2), 0.7), (id(1), 0.6)];
    let request = RecallRequest {
        external: vec![ExternalList {
            name: "graph".to_owned(),
            weight: 1.0,
            hits,
        }],
        fusion: FusionMethod::ReciprocalRank,
        ..RecallRequest::default()
    };
    let response = bank.recall(&request).expect("valid");
    let ranks = response.hits.iter().map(|hit| {
        let ranks: Vec<u32> = hit.arms.iter().map(|arm| arm.rank).collect();
        (hit.key, ranks)
    });
    let expected = [(2, vec![1]), (3, vec![2]), (1, vec![3])];
    assert_eq!(ranks.collect::<Vec<_>>(), expected);
}

#[test]
fn equal_contents_and_near_vectors_are_one_hit() {
    let mut rows = random_rows(2, 6);
    rows[1].content_hash = rows[0].content_hash;
    let copied = rows[2].vector.clone();
    rows[3].vector = copied;
    let bank = bank_of(&rows, 8);
    let all = RecallRequest {
        vector: rows[0].vector.clone(),
        ..RecallRequest::default()
    };
    assert_eq!(bank.recall(&all).expect("valid").hits.len(), 5);
    let near = RecallRequest {
        dedup_threshold: Some(0.9999),
        ..all
    };
    assert_eq!(bank.recall(&near).expect("valid").hits.len(), 4);
}

/// Turns of one conversation; only the turn in the middle has the word that is asked for.
fn conversation() -> Vec<Row> {
    let turns = [
        "alpha", "bravo", "charlie", "needle", "delta", "echo", "foxtrot",
    ];
    let rows = turns.iter().enumerate().map(|(number, text)| {
        let mut row = row(number as u64, (*text).to_owned());
        row.session = Some("talk".to_owned());
        row
    });
    rows.collect()
}

fn keyword_scores(bank: &Bank, request: &RecallRequest) -> Vec<(u64, f64)> {
    let mut scores: Vec<_> = bank
        .recall(request)
        .expect("valid")
        .hits
        .iter()
        .map(|hit| (hit.key, hit.arms[0].score))
        .collect();
    scores.sort_by_key(|&(key, _)| key);
    scores
}

#[test]
fn a_turn_gives_four_and_two_tenths_to_its_neighbours() {
    let bank = bank_of(&conversation(), 8);
    let request = RecallRequest {
        text: Some("needle".to_owned()),
        ..RecallRequest::default()
    };
    let scores = keyword_scores(&bank, &request);
    let own = scores
        .iter()
        .find(|(key, _)| *key == 3)
        .expect("the turn itself")
        .1;
    let shares: Vec<(u64, f64)> = scores
        .iter()
        .map(|&(key, score)| (key, (score / own * 1e4).round() / 1e4))
        .collect();
    // Both neighbours one step away have two neighbours themselves. Two steps away, turns 1 and 5 have a turn at two
    // steps on one side only (the other side is the end), so that one counts twice.
    assert_eq!(shares, [(1, 0.4), (2, 0.4), (3, 1.0), (4, 0.4), (5, 0.4)]);
    let plain = keyword_scores(
        &bank,
        &RecallRequest {
            context_windows: false,
            ..request
        },
    );
    assert_eq!(plain.len(), 1);
}

#[test]
fn what_does_not_pass_cuts_the_chain() {
    let mut rows = conversation();
    for row in rows.iter_mut().filter(|row| row.key != 4) {
        row.tags = vec!["kept".to_owned()];
    }
    let bank = bank_of(&rows, 8);
    let request = RecallRequest {
        text: Some("needle".to_owned()),
        tags: vec!["kept".to_owned()],
        ..RecallRequest::default()
    };
    let keys: Vec<u64> = keyword_scores(&bank, &request)
        .iter()
        .map(|&(key, _)| key)
        .collect();
    assert_eq!(keys, [1, 2, 3]);
}

#[test]
fn a_new_version_takes_its_predecessor_s_place() {
    let bank = bank_of(&conversation(), 8);
    let mut changed = row(100, "needle again".to_owned());
    (changed.memory_id, changed.session) = (id(3), Some("talk".to_owned()));
    bank.apply(2, &[changed], &[(3, 2000)], &[]).expect("valid");
    let request = RecallRequest {
        text: Some("needle".to_owned()),
        ..RecallRequest::default()
    };
    let keys: Vec<u64> = keyword_scores(&bank, &request)
        .iter()
        .map(|&(key, _)| key)
        .collect();
    assert_eq!(keys, [1, 2, 4, 5, 100]);
}
