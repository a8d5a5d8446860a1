//! Context windows: only within a session, and never with a borrower above its lender.

mod common;

use std::collections::HashMap;

use astrocyte_core::{
    Bank, Core, CoreOptions, FusionMethod, MemoryId, PlannerOptions, RecallRequest, Row,
};
use common::{Random, id, row};
use proptest::prelude::*;

/// Beyond the first hits, cosines are those of quantised components.
const COARSE: f64 = 0.02;
const DAY_MS: i64 = 86_400_000;
const METHODS: [FusionMethod; 3] = [
    FusionMethod::ReciprocalRank,
    FusionMethod::RelativeScore,
    FusionMethod::DistributionBased,
];

fn bank_of(rows: &[Row]) -> Bank {
    let bank = Core::new(None)
        .and_then(|core| core.bank(8))
        .expect("a bank");
    bank.apply(1, rows, &[], &[]).expect("the rows are valid");
    bank
}

/// Turns of sessions of up to twenty, and notes of none; one in nine is long, one in eleven has no vector.
fn rows(seed: u64, count: u64) -> Vec<Row> {
    let mut random = Random(seed);
    let rows = (0..count).map(|number| {
        let mut row = row(number, random.text(6));
        row.vector = (number % 11 != 0).then(|| random.vector(8));
        row.occurred_at = (number % 5 != 0).then_some(number as i64 * 60_000);
        row.tokens = if number % 9 == 0 { 300 } else { 20 };
        row.session = (number % 4 != 3).then(|| format!("s{}", number / 20));
        row
    });
    rows.collect()
}

/// Fails where a memory stands above a lender of it.
fn check_order(bank: &Bank, request: &RecallRequest, ids: &[MemoryId]) -> usize {
    let explained = bank.explain(request, ids).expect("valid");
    let ranks: HashMap<MemoryId, u32> = explained
        .fates
        .iter()
        .map(|fate| (fate.memory_id, fate.fused_rank))
        .collect();
    let mut loans = 0;
    for fate in explained.fates.iter().filter(|fate| fate.fused_rank > 0) {
        for share in fate.shares.iter().filter(|share| share.lender) {
            let lender = ranks[&share.memory_id];
            assert!(
                lender > 0 && lender < fate.fused_rank,
                "{:?}: rank {} above its lender's {lender}",
                request.fusion,
                fate.fused_rank
            );
            loans += 1;
        }
    }
    loans
}

fn request(seed: u64, feedback: f32, fusion: FusionMethod) -> RecallRequest {
    let mut random = Random(seed.wrapping_add(7));
    RecallRequest {
        text: Some(random.text(5)),
        vector: Some(random.vector(8)),
        k: 20,
        depth: 30,
        feedback,
        fusion,
        time_windows: if seed.is_multiple_of(3) {
            vec![(60_000, 3_600_000)]
        } else {
            Vec::new()
        },
        ..RecallRequest::default()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_neighbour_never_outranks_its_lender(seed in any::<u64>(), feedback in prop_oneof![Just(0.0f32), Just(0.25)]) {
        let bank = bank_of(&rows(seed, 160));
        let ids: Vec<MemoryId> = (0..160).map(id).collect();
        let loans: usize = METHODS
            .iter()
            .map(|&method| check_order(&bank, &request(seed, feedback, method), &ids))
            .sum();
        prop_assert!(loans > 10, "{} loans", loans);
    }

    #[test]
    fn an_arm_s_score_is_its_own_and_the_shares_of_neighbours(seed in any::<u64>()) {
        let bank = bank_of(&rows(seed, 160));
        let ids: Vec<MemoryId> = (0..160).map(id).collect();
        let with = RecallRequest { depth: 160, ..request(seed, 0.25, FusionMethod::DistributionBased) };
        let shared = bank.explain(&with, &ids).expect("valid");
        let alone = RecallRequest { context_windows: false, feedback: 0.0, ..with.clone() };
        let plain = bank.explain(&alone, &ids).expect("valid");
        // Without feedback words, so that own scores are the same.
        let shared = if shared.response.feedback_terms == 0 {
            shared
        } else {
            bank.explain(&RecallRequest { feedback: 0.0, ..with }, &ids).expect("valid")
        };
        for (fate, own) in shared.fates.iter().zip(&plain.fates).filter(|(fate, _)| !fate.shares.is_empty()) {
            for arm in 0..2u32 {
                let (score, own) = (fate.arms[arm as usize].score, own.arms[arm as usize].score);
                let borrowed: f64 = fate.shares.iter().filter(|share| share.arm == arm).map(|share| share.amount).sum();
                if let (Some(score), Some(own)) = (score, own) {
                    prop_assert!((score - own - borrowed).abs() < COARSE, "{} {} {}", score, own, borrowed);
                }
            }
        }
    }
}

#[test]
fn memories_without_a_session_have_no_neighbours() {
    // A note an hour, as an agent writes them, beside a conversation.
    let mut all = rows(3, 40);
    for row in &mut all {
        row.session = None;
        row.occurred_at = Some(row.key as i64 * DAY_MS / 24);
        row.tokens = 20;
    }
    let ids: Vec<MemoryId> = (0..40).map(id).collect();
    let request = request(1, 0.0, FusionMethod::DistributionBased);
    let plain = RecallRequest {
        context_windows: false,
        ..request.clone()
    };
    let bank = bank_of(&all);
    let (with, without) = (bank.recall(&request), bank.recall(&plain));
    assert_eq!(
        with.expect("valid").hits,
        without.expect("valid").hits,
        "nothing is shared"
    );
    for row in all.iter_mut().take(10) {
        row.session = Some("talk".to_owned());
    }
    let explained = bank_of(&all).explain(&request, &ids).expect("valid");
    for (number, fate) in explained.fates.iter().enumerate() {
        assert!(
            number < 10 || fate.shares.is_empty(),
            "memory {number} is in no session"
        );
    }
    assert!(explained.fates[5].shares.len() > 1);
}

#[test]
fn a_memory_asked_by_its_own_vector_is_above_those_that_borrow_from_it() {
    let all = rows(11, 200);
    let bank = bank_of(&all);
    let ids: Vec<MemoryId> = (0..200).map(id).collect();
    let mut loans = 0;
    for row in all.iter().filter(|row| row.vector.is_some()) {
        let request = RecallRequest {
            vector: row.vector.clone(),
            ..RecallRequest::default()
        };
        loans += check_order(&bank, &request, &ids);
    }
    assert!(loans > 100, "{loans} loans");
}

#[test]
fn graphs_keep_the_order_too() {
    let options = CoreOptions {
        graph_rows: 1_000,
        build_share: 1.0,
        planner: PlannerOptions {
            scan_rows: 1,
            sampling: 0.0,
            ..PlannerOptions::default()
        },
        ..CoreOptions::default()
    };
    let core = Core::with_options(Some(&std::env::temp_dir()), options).expect("a core");
    let bank = core.bank(8).expect("a bank");
    let all = rows(5, 4_000);
    bank.apply(1, &all, &[], &[]).expect("the rows are valid");
    bank.build_graphs().expect("there is memory");
    let ids: Vec<MemoryId> = (0..4_000).map(id).collect();
    for seed in 0..12 {
        let request = request(seed, 0.25, METHODS[seed as usize % 3]);
        let response = bank.recall(&request).expect("valid");
        assert!(response.plan.starts_with("graph"), "{}", response.plan);
        let explained = bank.explain(&request, &ids).expect("valid");
        let places: HashMap<MemoryId, usize> = response
            .hits
            .iter()
            .enumerate()
            .map(|(at, hit)| (hit.memory_id, at))
            .collect();
        for fate in &explained.fates {
            let Some(place) = places.get(&fate.memory_id) else {
                continue;
            };
            for share in fate.shares.iter().filter(|share| share.lender) {
                let lender = places.get(&share.memory_id);
                assert!(lender.is_some_and(|lender| lender < place));
            }
        }
    }
}
