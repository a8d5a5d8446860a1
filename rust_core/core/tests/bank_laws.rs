//! A bank against a plain list: random commits, then every kind of filter.

mod common;

use std::collections::{BTreeMap, BTreeSet};

use astrocyte_core::{Bank, Chunk, Core, RecallRequest, RecallResponse, Row, TagMatch};
use common::commits::{Commit, DIMENSIONS, commits, random_request, random_row, some};
use common::{Random, id};
use proptest::prelude::*;

/// The oracle's memory: every version, with its end.
#[derive(Debug, Default, Clone)]
struct Oracle {
    versions: BTreeMap<u64, Row>,
}

impl Oracle {
    fn apply(&mut self, commit: &Commit) {
        for row in &commit.upserts {
            self.versions.insert(row.key, row.clone());
        }
        for (key, until) in &commit.ended {
            if let Some(row) = self.versions.get_mut(key) {
                row.known_until = Some(*until);
            }
        }
        for key in &commit.removed {
            self.versions.remove(key);
        }
    }

    fn allowed(&self, request: &RecallRequest) -> BTreeSet<u64> {
        self.versions
            .values()
            .filter(|row| passes(row, request))
            .map(|row| row.key)
            .collect()
    }
}

fn passes(row: &Row, request: &RecallRequest) -> bool {
    let tagged = |tag: &String| row.tags.contains(tag);
    let tags = request.tags.is_empty()
        || match request.tag_match {
            TagMatch::Any => request.tags.iter().any(tagged),
            TagMatch::All => request.tags.iter().all(tagged),
            TagMatch::None => !request.tags.iter().any(tagged),
        };
    let within = |time: i64, range: Option<(Option<i64>, Option<i64>)>| {
        range.is_none_or(|(first, last)| {
            first.is_none_or(|f| f <= time) && last.is_none_or(|l| time <= l)
        })
    };
    let retained = row.retained_at.unwrap_or(row.known_from);
    let known = match request.as_of {
        None => row.known_until.is_none(),
        Some(instant) => {
            row.known_from <= instant && row.known_until.is_none_or(|until| instant < until)
        }
    };
    let valid = request.valid_at.is_none_or(|instant| {
        row.valid_from.is_none_or(|from| from <= instant)
            && row.valid_until.is_none_or(|until| instant <= until)
    });
    tags && known
        && valid
        && (request.fact_types.is_empty() || request.fact_types.contains(&row.fact_type))
        && request
            .metadata
            .iter()
            .all(|pair| row.metadata.contains(pair))
        && request
            .session
            .as_ref()
            .is_none_or(|session| row.session.as_ref() == Some(session))
        && within(row.occurred_at.unwrap_or(retained), request.occurred)
        && within(retained, request.retained)
        && request
            .memory_ids
            .as_ref()
            .is_none_or(|ids| ids.contains(&row.memory_id))
}

fn empty_bank() -> Bank {
    Core::new(None)
        .and_then(|core| core.bank(DIMENSIONS))
        .expect("a bank of eight dimensions")
}

fn filled(commits: &[Commit]) -> (Bank, Oracle) {
    let (bank, mut oracle) = (empty_bank(), Oracle::default());
    for (index, commit) in commits.iter().enumerate() {
        let position = index as u64 + 1;
        bank.apply(position, &commit.upserts, &commit.ended, &commit.removed)
            .expect("the rows are valid");
        oracle.apply(commit);
    }
    (bank, oracle)
}

/// The answer without its timings.
fn settled(bank: &Bank, request: &RecallRequest) -> RecallResponse {
    without_times(bank.recall(request).expect("the request is valid"))
}

fn without_times(mut response: RecallResponse) -> RecallResponse {
    response.arm_micros.clear();
    (response.feedback_micros, response.boost_micros) = (0.0, 0.0);
    response
}

/// Rows enough that a recall which is alone takes a second thread.
#[test]
fn a_recall_alone_equals_one_among_others() {
    let core = Core::new(None).expect("no scratch file");
    let bank = core.bank(WIDE).expect("a bank");
    let mut random = Random(3);
    let rows = many_rows(&mut random, 66_000, false);
    bank.apply(1, &rows, &[], &[]).expect("the rows are valid");
    let requests: Vec<_> = (0..6)
        .map(|number| {
            let request = RecallRequest {
                vector: (number != 4).then(|| random.vector(WIDE)),
                text: (number != 5).then(|| random.text(5)),
                context_windows: number % 2 == 0,
                feedback: if number < 3 { 0.25 } else { 0.0 },
                ..RecallRequest::default()
            };
            (&bank, request)
        })
        .collect();
    let together = core.recall_many(&requests).expect("they are valid");
    for (response, (bank, request)) in together.into_iter().zip(&requests) {
        assert!(!response.hits.is_empty());
        assert_eq!(without_times(response), settled(bank, request));
    }
}

/// Up to four recalls of a bank share one reading of its rows; those with a filter or without a vector do not.
#[test]
fn recalls_that_read_the_rows_together_equal_single_ones() {
    let mut random = Random(11);
    let rows = many_rows(&mut random, 6_000, false);
    let banks = [&rows[..3_000], &rows[3_000..]].map(|rows| with_a_history(&mut random, rows, 99));
    let requests: Vec<_> = (0..40)
        .map(|number| {
            let request = RecallRequest {
                vector: (number % 13 != 4).then(|| random.vector(WIDE)),
                text: (number % 3 > 0 || number % 13 == 4).then(|| random.text(4)),
                tags: if number % 9 == 5 {
                    vec!["red".to_owned()]
                } else {
                    Vec::new()
                },
                k: 1 + number % 12,
                context_windows: number % 2 == 0,
                feedback: if number % 5 == 0 { 0.25 } else { 0.0 },
                ..RecallRequest::default()
            };
            // Crews of all sizes: the bank changes now and then.
            (&banks[usize::from(number % 7 == 6)], request)
        })
        .collect();
    let together = Core::new(None)
        .and_then(|core| core.recall_many(&requests))
        .expect("they are valid");
    for (response, (bank, request)) in together.into_iter().zip(&requests) {
        assert!(!response.hits.is_empty());
        assert_eq!(without_times(response), settled(bank, request));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn what_passes_is_what_a_plain_list_says(seed in any::<u64>()) {
        let (bank, oracle) = filled(&commits(seed, 20, 8));
        let mut random = Random(seed ^ 1);
        for _ in 0..12 {
            let request = random_request(&mut random);
            let response = settled(&bank, &request);
            let allowed = oracle.allowed(&request);
            prop_assert_eq!(response.allowed as usize, allowed.len(), "{:?}", request);
            for hit in &response.hits {
                prop_assert!(allowed.contains(&hit.key), "{:?} let {} pass", request, hit.key);
                prop_assert!(hit.score.is_finite());
                prop_assert_eq!(oracle.versions[&hit.key].memory_id, hit.memory_id);
                let chunks = oracle.versions[&hit.key].chunks.len() as i32;
                let known = if chunks == 0 { -1..0 } else { 0..chunks };
                prop_assert!(known.contains(&hit.ordinal), "{:?}", hit);
            }
            // With room for all, every memory with a vector is there once, unless a better one has its content.
            let contents: BTreeSet<_> = response.hits.iter().map(|hit| oracle.versions[&hit.key].content_hash).collect();
            prop_assert_eq!(contents.len(), response.hits.len());
            for key in &allowed {
                let row = &oracle.versions[key];
                let embedded = row.vector.is_some();
                prop_assert!(!embedded || contents.contains(&row.content_hash), "{} is missing", key);
            }
            let ordered = |a: &astrocyte_core::Hit, b: &astrocyte_core::Hit| {
                a.score > b.score || (a.score.total_cmp(&b.score).is_eq() && a.memory_id < b.memory_id)
            };
            prop_assert!(response.hits.windows(2).all(|pair| ordered(&pair[0], &pair[1])));
        }
    }

    #[test]
    fn replaying_commits_changes_nothing(seed in any::<u64>()) {
        let commits = commits(seed, 10, 5);
        let (bank, _) = filled(&commits);
        let request = random_request(&mut Random(seed));
        let (before, stats) = (settled(&bank, &request), bank.stats());
        for (index, commit) in commits.iter().enumerate() {
            bank.apply(index as u64 + 1, &commit.upserts, &commit.ended, &commit.removed).expect("a no-op");
        }
        prop_assert_eq!(before, settled(&bank, &request));
        prop_assert_eq!(stats, bank.stats());
    }

    #[test]
    fn many_recalls_equal_single_ones(seed in any::<u64>()) {
        let core = Core::new(None).expect("no scratch file");
        let (bank, _) = filled(&commits(seed, 10, 5));
        let mut random = Random(seed);
        let requests: Vec<_> = (0..16).map(|_| (bank.clone(), random_request(&mut random))).collect();
        let together = core.recall_many(&requests).expect("the requests are valid");
        for (response, (bank, request)) in together.into_iter().zip(&requests) {
            prop_assert_eq!(without_times(response), settled(bank, request));
        }
        // One request to several banks is analysed once, and is that to each.
        let (other, _) = filled(&commits(seed ^ 1, 10, 5));
        let request = &requests[0].1;
        let together = core.recall_many(&[(&bank, request), (&other, request), (&bank, request)]).expect("valid");
        for (response, bank) in together.into_iter().zip([&bank, &other, &bank]) {
            prop_assert_eq!(without_times(response), settled(bank, request));
        }
    }

    #[test]
    fn a_bank_after_removals_equals_one_that_never_held_them(seed in any::<u64>()) {
        let commits = commits(seed, 30, 10);
        let (bank, oracle) = filled(&commits);
        let fresh = empty_bank();
        let rows: Vec<_> = oracle.versions.values().cloned().collect();
        fresh.apply(commits.len() as u64, &rows, &[], &[]).expect("the rows are valid");
        let (held, new) = (bank.stats(), fresh.stats());
        prop_assert_eq!((held.memories, held.versions, held.rows), (new.memories, new.versions, new.rows));
        // Terms of removed rows go when dead rows are dropped.
        prop_assert!(held.terms == new.terms || held.dead_rows > 0);
        // Bit for bit, with context windows too: what came and went leaves no trace, nor does where rows lie.
        let mut random = Random(seed ^ 3);
        for _ in 0..12 {
            let request = random_request(&mut random);
            prop_assert_eq!(settled(&bank, &request), settled(&fresh, &request), "{:?}", request);
        }
    }

    #[test]
    fn single_versions_that_go_and_come_back_leave_no_trace(seed in any::<u64>()) {
        let (bank, mut oracle) = filled(&commits(seed, 15, 6));
        let mut random = Random(seed ^ 4);
        let keys: Vec<u64> = oracle.versions.keys().copied().filter(|_| random.below(4) == 0).collect();
        let gone: Vec<Row> = keys.iter().filter_map(|key| oracle.versions.get(key).cloned()).collect();
        bank.apply::<Row>(50, &[], &[], &keys).expect("removal is always possible");
        let back: Vec<Row> = gone.into_iter().filter(|_| random.below(2) == 0).collect();
        bank.apply(51, &back, &[], &[]).expect("the rows are valid");
        oracle.versions.retain(|key, _| !keys.contains(key));
        oracle.versions.extend(back.into_iter().map(|row| (row.key, row)));
        let fresh = empty_bank();
        for (number, row) in oracle.versions.values().enumerate() {
            fresh.apply(37 + number as u64, std::slice::from_ref(row), &[], &[]).expect("the row is valid");
        }
        fresh.apply::<Row>(51, &[], &[], &[]).expect("a position");
        for _ in 0..12 {
            let request = random_request(&mut random);
            let (mut held, mut new) = (settled(&bank, &request), settled(&fresh, &request));
            (held.position, new.position) = (0, 0);
            prop_assert_eq!(held, new, "{:?}", request);
        }
    }

    #[test]
    fn a_bad_row_refuses_the_whole_batch(seed in any::<u64>(), bad in 0usize..5) {
        let (bank, _) = filled(&commits(seed, 5, 3));
        let before = bank.stats();
        let mut random = Random(seed);
        let mut rows: Vec<_> = (0..5).map(|n| random_row(&mut random, 9000 + n, id(9000 + n), 0)).collect();
        rows[bad].vector = Some(vec![f32::NAN; DIMENSIONS]);
        let error = bank.apply(99, &rows, &[], &[]).expect_err("a NaN is refused").to_string();
        prop_assert!(error.starts_with(&format!("row {bad}:")), "{}", error);
        prop_assert_eq!(before, bank.stats());
        prop_assert_eq!(bank.position(), 5);
    }
}

#[test]
fn a_forgotten_conversation_leaves_no_trace_in_the_scores() {
    let (bank, fresh) = (empty_bank(), empty_bank());
    let (mut turn, note) = (
        common::row(1, "tea".to_owned()),
        common::row(2, "tea".to_owned()),
    );
    turn.session = Some("s".to_owned());
    bank.apply(1, &[turn, note.clone()], &[], &[])
        .expect("the rows are valid");
    bank.apply::<Row>(2, &[], &[], &[1])
        .expect("removal is always possible");
    fresh.apply(2, &[note], &[], &[]).expect("the row is valid");
    let request = RecallRequest {
        text: Some("tea".to_owned()),
        ..RecallRequest::default()
    };
    assert_eq!(settled(&bank, &request), settled(&fresh, &request));
}

#[test]
fn a_version_forgotten_among_those_of_another_memory_leaves_no_trace_in_the_scores() {
    let turn = |key: u64, memory: u64, session: &str, occurred_at: i64| {
        let mut row = common::row(
            key,
            ["tea", "rain", "tea rain"][key as usize % 3].to_owned(),
        );
        row.memory_id = id(memory);
        row.session = Some(session.to_owned());
        row.occurred_at = Some(occurred_at);
        row.known_until = (key == 2).then_some(1);
        row
    };
    let kept = [
        turn(1, 1, "s", 1),
        turn(2, 2, "s", 2),
        turn(4, 2, "s", 4),
        turn(5, 5, "s", 5),
    ];
    // Of another memory, where the turn that was corrected now has its place; of the same one, in another conversation.
    for gone in [turn(3, 3, "s", 3), turn(3, 2, "other", 3)] {
        for order in [[0, 1, 2, 3], [3, 2, 1, 0]] {
            let (bank, fresh) = (empty_bank(), empty_bank());
            let rows = order.map(|number: usize| kept[number].clone());
            bank.apply(1, std::slice::from_ref(&gone), &[], &[])
                .expect("the row is valid");
            bank.apply(2, &rows, &[], &[]).expect("the rows are valid");
            bank.apply::<Row>(3, &[], &[], &[3])
                .expect("removal is always possible");
            fresh.apply(3, &rows, &[], &[]).expect("the rows are valid");
            let request = RecallRequest {
                text: Some("tea rain".to_owned()),
                ..RecallRequest::default()
            };
            assert_eq!(settled(&bank, &request), settled(&fresh, &request));
        }
    }
}

#[test]
fn removing_everything_leaves_nothing() {
    let (bank, oracle) = filled(&commits(11, 20, 20));
    let keys: Vec<_> = oracle.versions.keys().copied().collect();
    bank.apply::<Row>(99, &[], &[], &keys)
        .expect("removal is always possible");
    let stats = bank.stats();
    assert_eq!(
        (
            stats.memories,
            stats.versions,
            stats.rows,
            stats.terms,
            stats.sessions
        ),
        (0, 0, 0, 0, 0)
    );
    let mut random = Random(1);
    for _ in 0..20 {
        let response = bank
            .recall(&random_request(&mut random))
            .expect("the request is valid");
        assert_eq!(
            (response.hits.len(), response.allowed, response.candidates),
            (0, 0, 0)
        );
    }
    let hashes: Vec<_> = (0..50).map(id).collect();
    assert!(bank.contains_hashes(&hashes).iter().all(Option::is_none));
    let vectors: Vec<_> = (0..5).map(|_| random.vector(DIMENSIONS)).collect();
    assert!(
        bank.near_duplicates(&vectors, -1.0)
            .expect("valid")
            .iter()
            .all(Vec::is_empty)
    );
}

const WIDE: usize = 96;

/// Rows around a few centres, so that a short list cuts through a crowd. From 2,049 on most are looked at coarsely
/// only.
fn many_rows(random: &mut Random, count: usize, sparse: bool) -> Vec<Row> {
    let mut vectors = common::clustered(random, WIDE, count);
    for vector in vectors.iter_mut().filter(|_| sparse) {
        for x in vector.iter_mut().filter(|x| x.abs() < 2.5) {
            *x = 0.0;
        }
        vector[random.below(WIDE as u64) as usize] += 1.0;
    }
    let rows = vectors.into_iter().enumerate().map(|(number, vector)| {
        let mut row = common::row(number as u64 + 1, random.text(4));
        row.vector = (number % 17 != 0).then_some(vector);
        row.tokens = 20;
        row.tags = some(random, &["red"]);
        row.session = (number % 3 == 0).then(|| format!("s{}", number / 90));
        row.chunks = (0..if number % 11 == 0 { 2 } else { 0 })
            .map(|_| Chunk {
                text: random.text(2),
                vector: row.vector.is_some().then(|| random.vector(WIDE)),
                tokens: 5,
            })
            .collect();
        row
    });
    rows.collect()
}

/// A bank that got `rows` in an order of its own, in parts, with others that went again.
fn with_a_history(random: &mut Random, rows: &[Row], position: u64) -> Bank {
    let bank = wide_bank();
    let mut order: Vec<usize> = (0..rows.len()).collect();
    for last in (1..order.len()).rev() {
        order.swap(last, random.below(last as u64 + 1) as usize);
    }
    let strangers = many_rows(random, 700, false).into_iter().map(|mut row| {
        row.key += 100_000;
        row.memory_id = id(row.key);
        row
    });
    let strangers: Vec<_> = strangers.collect();
    bank.apply(1, &strangers, &[], &[])
        .expect("the rows are valid");
    for (part, order) in order.chunks(400).enumerate() {
        let part_rows: Vec<_> = order.iter().map(|&at| rows[at].clone()).collect();
        let gone: Vec<_> = strangers
            .iter()
            .map(|row| row.key)
            .skip(part * 100)
            .take(100)
            .collect();
        bank.apply(part as u64 + 2, &part_rows, &[], &gone)
            .expect("the rows are valid");
    }
    let left: Vec<_> = strangers.iter().map(|row| row.key).collect();
    bank.apply::<Row>(position, &[], &[], &left)
        .expect("removal is always possible");
    bank
}

fn wide_bank() -> Bank {
    Core::new(None)
        .and_then(|core| core.bank(WIDE))
        .expect("a bank")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    #[test]
    fn a_short_list_from_many_rows_does_not_depend_on_their_history(seed in any::<u64>(), sparse in any::<bool>()) {
        let mut random = Random(seed);
        let rows = many_rows(&mut random, 2600, sparse);
        let fresh = wide_bank();
        fresh.apply(900, &rows, &[], &[]).expect("the rows are valid");
        let bank = with_a_history(&mut random, &rows, 900);
        for turn in 0..16 {
            let near = &rows[random.below(2600) as usize].vector;
            let request = RecallRequest {
                text: (turn % 3 > 0).then(|| random.text(3)),
                vector: Some(near.clone().unwrap_or_else(|| random.vector(WIDE))),
                k: [1, 5, 20][turn % 3],
                depth: [3, 30, 100][turn % 3],
                tags: if turn % 4 == 3 { vec!["red".to_owned()] } else { Vec::new() },
                context_windows: turn % 2 == 0,
                ..RecallRequest::default()
            };
            prop_assert_eq!(settled(&bank, &request), settled(&fresh, &request), "{:?}", request);
        }
    }

    #[test]
    fn the_plan_changes_the_time_only(seed in any::<u64>(), sparse in any::<bool>()) {
        // All rows wanted are allowed by a filter; with as many others beside them they are read one by one, without
        // them in order.
        let mut random = Random(seed);
        let mut rows = many_rows(&mut random, 2200, sparse);
        for row in &mut rows {
            row.tags = vec!["wanted".to_owned()];
            row.session = None;
        }
        let others: Vec<_> = many_rows(&mut random, 2200, sparse).into_iter().map(|mut row| {
            row.key += 100_000;
            (row.memory_id, row.session, row.tags) = (id(row.key), None, Vec::new());
            row
        }).collect();
        let (alone, mixed) = (wide_bank(), wide_bank());
        alone.apply(1, &rows, &[], &[]).expect("the rows are valid");
        mixed.apply(1, &[rows.clone(), others].concat(), &[], &[]).expect("the rows are valid");
        for turn in 0..8 {
            let request = RecallRequest {
                vector: Some(random.vector(WIDE)),
                k: [1, 10][turn % 2],
                depth: [3, 40][turn % 2],
                tags: vec!["wanted".to_owned()],
                ..RecallRequest::default()
            };
            let (mut scanned, mut gathered) = (settled(&alone, &request), settled(&mixed, &request));
            prop_assert!(scanned.plan.starts_with("scan") && gathered.plan.starts_with("gather"));
            (scanned.plan, gathered.plan) = (String::new(), String::new());
            prop_assert_eq!(scanned, gathered, "{:?}", request);
        }
    }
}

#[test]
fn an_empty_bank_has_nothing_of_the_bank_that_was_asked_before() {
    let core = Core::new(None).expect("no file is needed");
    let new_bank = || core.bank(DIMENSIONS).expect("the dimensions are in range");
    let (full, empty) = (new_bank(), new_bank());
    let mut row = common::row(1, "green tea".to_owned());
    row.chunks = vec![Chunk {
        text: "tea".to_owned(),
        vector: None,
        tokens: 1,
    }];
    full.apply(1, &[row], &[], &[]).expect("the row is right");
    let request = RecallRequest {
        text: Some("tea".to_owned()),
        feedback: 0.5,
        ..RecallRequest::default()
    };
    let answer = |bank: &Bank| {
        bank.recall(&request)
            .expect("the request is right")
            .hits
            .len()
    };
    assert_eq!((answer(&full), answer(&empty)), (1, 0));
}
