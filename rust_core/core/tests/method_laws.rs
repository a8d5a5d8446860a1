//! Banks searched by usearch and tantivy beside banks searched by the core alone: the same commits, the same requests.

mod common;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use astrocyte_core::{
    Bank, Core, CoreError, CoreOptions, DenseMethod, Hit, LexicalMethod, PlannerOptions,
    RecallRequest, RecallResponse, Row,
};
use common::commits::{commits, random_request};
use common::{Random, clustered};

const DIMENSIONS: usize = 64;

/// A core that builds from `graph_rows` on when a test says so.
fn core(dense: DenseMethod, lexical: LexicalMethod, graph_rows: u32) -> Core {
    try_core(dense, lexical, graph_rows).expect("the options are in their ranges")
}

fn try_core(
    dense: DenseMethod,
    lexical: LexicalMethod,
    graph_rows: u32,
) -> astrocyte_core::Result<Core> {
    let options = CoreOptions {
        graph_rows,
        build_share: 1.0,
        dense,
        lexical,
        planner: PlannerOptions {
            scan_rows: 1,
            sampling: 0.0,
            ..PlannerOptions::default()
        },
        ..CoreOptions::default()
    };
    Core::with_options(None, options)
}

fn bank(core: &Core, dimensions: usize) -> Bank {
    core.bank(dimensions).expect("the dimensions are in range")
}

fn ask(bank: &Bank, request: &RecallRequest) -> RecallResponse {
    bank.recall(request).expect("the request is right")
}

fn keys(response: &RecallResponse) -> Vec<u64> {
    response.hits.iter().map(|hit| hit.key).collect()
}

/// Hits; mean and deviation of the arms; their candidates; all candidates; memories that pass.
type Answer<'a> = (&'a [Hit], &'a [(f64, f64)], &'a [u32], u32, u32);

/// The parts of a response that do not depend on time.
fn answer(response: &RecallResponse) -> Answer<'_> {
    let RecallResponse {
        hits,
        arm_stats,
        arm_candidates,
        candidates,
        allowed,
        ..
    } = response;
    (hits, arm_stats, arm_candidates, *candidates, *allowed)
}

/// Rows around subjects, some with a tag that one in fifty has.
fn rows(random: &mut Random, count: usize) -> Vec<Row> {
    let vectors = clustered(random, DIMENSIONS, count);
    let row = |(number, vector)| {
        let mut row = common::row(number as u64 + 1, random.text(12));
        row.vector = Some(vector);
        if random.below(50) == 0 {
            row.tags.push("rare".to_owned());
        }
        row
    };
    vectors.into_iter().enumerate().map(row).collect()
}

fn question(random: &mut Random, rows: &[Row]) -> RecallRequest {
    let near = &rows[random.below(rows.len() as u64) as usize];
    let vector = near.vector.iter().flatten();
    RecallRequest {
        text: Some(random.text(4)),
        vector: Some(vector.map(|x| x + random.normal() * 0.6).collect()),
        ..RecallRequest::default()
    }
}

#[test]
fn postings_of_tantivy_give_the_scores_of_the_own_postings_to_the_bit() {
    let mut operations = 0;
    for seed in 1..=4 {
        let own = bank(&core(DenseMethod::Scan, LexicalMethod::Postings, 16), 8);
        let with_tantivy = core(DenseMethod::Scan, LexicalMethod::Tantivy, 16);
        let with_tantivy = bank(&with_tantivy, 8);
        let (mut random, mut by_tantivy, mut position) = (Random(seed * 101), 0, 0);
        for commit in commits(seed, 260, 12) {
            position += 1;
            operations += commit.upserts.len() + commit.ended.len() + commit.removed.len();
            for bank in [&own, &with_tantivy] {
                bank.apply(position, &commit.upserts, &commit.ended, &commit.removed)
                    .expect("the rows are right");
            }
            if random.below(3) == 0 {
                with_tantivy.build_graphs().expect("there is memory");
            }
            for _ in 0..3 {
                let request = random_request(&mut random);
                let (expected, found) = (ask(&own, &request), ask(&with_tantivy, &request));
                assert_eq!(answer(&found), answer(&expected), "{request:?}");
                by_tantivy += usize::from(found.plan.contains("; postings of tantivy: "));
                operations += 1;
            }
        }
        assert!(by_tantivy > 400, "tantivy was asked {by_tantivy} times");
    }
    assert!(operations > 10_000, "{operations} operations");
}

/// Words that nearly every row holds: all ways of reading postings are taken, also by a second thread.
#[test]
fn long_postings_of_tantivy_give_what_own_ones_give() {
    let mut random = Random(29);
    let text = |random: &mut Random| {
        let words = 1 + random.below(12);
        let word = |random: &mut Random| format!("w{}", (random.unit().powi(6) * 400.0) as u32);
        let words: Vec<String> = (0..words).map(|_| word(random)).collect();
        words.join(" ")
    };
    let mut rows: Vec<Row> = (1..=120_000)
        .map(|number| common::row(number, text(&mut random)))
        .collect();
    // A graph of a few is enough to have the recall go that way.
    for row in &mut rows[..200] {
        row.vector = Some(random.vector(8));
    }
    for dense in [DenseMethod::Scan, DenseMethod::Graph] {
        let own = bank(&core(dense, LexicalMethod::Postings, 100), 8);
        let with_tantivy = bank(&core(dense, LexicalMethod::Tantivy, 100), 8);
        for bank in [&own, &with_tantivy] {
            for (part, position) in rows[..119_950].chunks(40_000).zip(1..) {
                bank.apply(position, part, &[], &[])
                    .expect("the rows are right");
                bank.build_graphs().expect("there is memory");
            }
            // A tail that tantivy does not have, and removed rows that it still has.
            bank.apply(9, &rows[119_950..], &[], &[17, 40_001, 119_990])
                .expect("the rows are right");
        }
        for _ in 0..60 {
            let request = RecallRequest {
                text: Some(text(&mut random)),
                k: 30,
                depth: 30,
                ..RecallRequest::default()
            };
            let (expected, found) = (ask(&own, &request), ask(&with_tantivy, &request));
            assert_eq!(answer(&found), answer(&expected), "{:?}", request.text);
            assert!(
                found.plan.contains("tantivy: 119950 of 120000 rows"),
                "{}",
                found.plan
            );
        }
    }
}

/// Share of the exact ten nearest that a bank finds.
fn recall_at_10(bank: &Bank, exact: &Bank, random: &mut Random, rows: &[Row]) -> f64 {
    let (mut met, mut wanted) = (0, 0);
    for _ in 0..100 {
        let mut request = question(random, rows);
        request.text = None;
        let (found, expected) = (ask(bank, &request), ask(exact, &request));
        assert!(
            found.plan.starts_with("graph of usearch: "),
            "{}",
            found.plan
        );
        let expected: BTreeSet<u64> = keys(&expected).into_iter().collect();
        met += keys(&found)
            .iter()
            .filter(|key| expected.contains(key))
            .count();
        wanted += expected.len();
    }
    met as f64 / f64::from(wanted as u32)
}

#[cfg(feature = "usearch")]
#[test]
fn graphs_of_usearch_find_the_nearest_with_a_tail_and_with_removed_rows() {
    let mut random = Random(7);
    let rows = rows(&mut random, 6000);
    let exact = bank(
        &core(DenseMethod::Scan, LexicalMethod::Postings, 1000),
        DIMENSIONS,
    );
    let usearch = core(DenseMethod::Usearch, LexicalMethod::Tantivy, 1000);
    let usearch = bank(&usearch, DIMENSIONS);
    let both = |position, rows: &[Row], ended: &[(u64, i64)], removed: &[u64]| {
        for bank in [&exact, &usearch] {
            bank.apply(position, rows, ended, removed)
                .expect("the rows are right");
        }
    };
    both(1, &rows[..3000], &[], &[]);
    usearch.build_graphs().expect("there is memory");
    both(2, &rows[3000..5500], &[], &[]);
    usearch.build_graphs().expect("there is memory");
    both(3, &rows[5500..], &[], &[]);
    let stats = usearch.stats();
    assert_eq!((stats.segments, stats.graph_rows), (2, 5500));
    assert!(stats.bytes_graphs > 5500 * DIMENSIONS as u64);
    let share = recall_at_10(&usearch, &exact, &mut random, &rows);
    assert!(share >= 0.98, "{share}");

    let removed: Vec<u64> = (1..=6000).filter(|key| key % 7 == 0).collect();
    let ended = (1..=6000)
        .filter(|key| key % 11 == 0)
        .map(|key| (key, 2000));
    both(4, &[], &ended.collect::<Vec<_>>(), &removed);
    let share = recall_at_10(&usearch, &exact, &mut random, &rows);
    assert!(share >= 0.98, "{share} after rows were removed");
    for turn in 0..60 {
        let mut request = question(&mut random, &rows);
        if turn % 2 == 0 {
            request.tags = vec!["rare".to_owned()];
        }
        if turn % 3 == 0 {
            request.as_of = Some(1500);
        }
        let (found, expected) = (ask(&usearch, &request), ask(&exact, &request));
        assert_eq!(found.allowed, expected.allowed);
        assert_eq!(found.hits.len(), expected.hits.len());
        for hit in &found.hits {
            assert!(hit.key % 7 != 0, "{} was removed", hit.key);
            assert!(
                request.as_of.is_some() || hit.key % 11 != 0,
                "{} ended",
                hit.key
            );
            let row = &rows[hit.key as usize - 1];
            assert!(request.tags.is_empty() || !row.tags.is_empty());
        }
        // The words are exact, whichever method finds the vectors.
        request.vector = None;
        let (found, expected) = (ask(&usearch, &request), ask(&exact, &request));
        assert_eq!(keys(&found), keys(&expected), "{request:?}");
    }
}

#[cfg(feature = "usearch")]
#[test]
fn random_commits_answer_alike_and_removed_rows_never_come_back() {
    for seed in 11..=13 {
        let exact = bank(&core(DenseMethod::Scan, LexicalMethod::Postings, 24), 8);
        let both_libraries = core(DenseMethod::Usearch, LexicalMethod::Tantivy, 24);
        let sealed = bank(&both_libraries, 8);
        let (mut random, mut position, mut removed) = (Random(seed), 0, BTreeSet::new());
        let (mut met, mut wanted, mut by_graph) = (0, 0, 0);
        for commit in commits(seed, 200, 12) {
            position += 1;
            removed.extend(commit.removed.iter().copied());
            for bank in [&exact, &sealed] {
                bank.apply(position, &commit.upserts, &commit.ended, &commit.removed)
                    .expect("the rows are right");
            }
            if random.below(3) == 0 {
                sealed.build_graphs().expect("there is memory");
            }
            for _ in 0..3 {
                let request = RecallRequest {
                    k: 10,
                    context_windows: false,
                    ..random_request(&mut random)
                };
                let (found, expected) = (ask(&sealed, &request), ask(&exact, &request));
                assert_eq!(found.allowed, expected.allowed, "{request:?}");
                assert!(keys(&found).iter().all(|key| !removed.contains(key)));
                by_graph += usize::from(found.plan.starts_with("graph of usearch: "));
                let expected: BTreeSet<u64> = keys(&expected).into_iter().collect();
                met += keys(&found)
                    .iter()
                    .filter(|key| expected.contains(key))
                    .count();
                wanted += expected.len();
            }
        }
        let share = met as f64 / f64::from(wanted as u32);
        assert!(share >= 0.98, "{share} of {wanted}");
        assert!(by_graph > 100, "usearch was asked {by_graph} times");
    }
}

#[cfg(feature = "usearch")]
#[test]
fn recalls_go_on_while_segments_are_built_and_rows_come_and_go() {
    let mut random = Random(5);
    let rows = rows(&mut random, 4000);
    let both_libraries = core(DenseMethod::Usearch, LexicalMethod::Tantivy, 300);
    let sealed = bank(&both_libraries, DIMENSIONS);
    sealed
        .apply(1, &rows[..400], &[], &[])
        .expect("the rows are right");
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for (part, position) in rows[400..].chunks(200).zip(2u64..) {
                let gone: Vec<u64> = (1..=position * 20).collect();
                sealed
                    .apply(position, part, &[], &gone)
                    .expect("the rows are right");
                sealed.build_graphs().expect("there is memory");
            }
            done.store(true, Ordering::Relaxed);
        });
        for reader in 0..3 {
            let (sealed, rows, done) = (&sealed, &rows, &done);
            scope.spawn(move || {
                let mut random = Random(100 + reader);
                while !done.load(Ordering::Relaxed) {
                    let found = ask(sealed, &question(&mut random, rows));
                    assert_eq!(found.hits.len(), RecallRequest::default().k);
                    let gone = if found.position > 1 {
                        found.position * 20
                    } else {
                        0
                    };
                    assert!(found.hits.iter().all(|hit| hit.key > gone));
                }
            });
        }
    });
    let found = ask(&sealed, &question(&mut random, &rows));
    assert!(
        found.plan.starts_with("graph of usearch: "),
        "{}",
        found.plan
    );
    assert!(
        found.plan.contains("; postings of tantivy: "),
        "{}",
        found.plan
    );
}

#[test]
fn a_narrow_filter_is_read_row_by_row_by_any_method() {
    let mut random = Random(13);
    let rows = rows(&mut random, 4000);
    for dense in [DenseMethod::Graph, DenseMethod::Usearch] {
        if try_core(dense, LexicalMethod::Postings, 1000).is_err() {
            continue;
        }
        let options = CoreOptions {
            graph_rows: 1000,
            build_share: 1.0,
            dense,
            ..CoreOptions::default()
        };
        let core = Core::with_options(None, options).expect("the options are in their ranges");
        let bank = bank(&core, DIMENSIONS);
        bank.apply(1, &rows, &[], &[]).expect("the rows are right");
        bank.build_graphs().expect("there is memory");
        let mut request = question(&mut random, &rows);
        let all = ask(&bank, &request);
        assert!(all.plan.starts_with("graph"), "{}", all.plan);
        request.tags = vec!["rare".to_owned()];
        let few = ask(&bank, &request);
        assert!(!few.plan.starts_with("graph"), "{}", few.plan);
    }
}

#[test]
fn methods_for_which_nothing_would_be_built_are_refused() {
    for (dense, lexical) in [
        (DenseMethod::Graph, LexicalMethod::Postings),
        (DenseMethod::Auto, LexicalMethod::Tantivy),
    ] {
        let error = try_core(dense, lexical, 0).expect_err("nothing would be built");
        assert!(
            matches!(
                error,
                CoreError::Invalid {
                    field: "graph_rows",
                    ..
                }
            ),
            "{error}"
        );
    }
    assert!(try_core(DenseMethod::Scan, LexicalMethod::Postings, 0).is_ok());
    let usearch = try_core(DenseMethod::Usearch, LexicalMethod::Postings, 1000);
    assert_eq!(usearch.is_ok(), cfg!(feature = "usearch"));
}
