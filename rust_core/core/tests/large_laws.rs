//! The large tier beside the flat one, which is its oracle: the same commits, the same questions.

mod common;

use std::collections::BTreeSet;

use astrocyte_core::{Bank, Chunk, Core, PlannerOptions, RecallRequest, RecallResponse, Row};
use common::cores::{core, walking};
use common::{Random, clustered, id};
use proptest::prelude::*;

const DIMENSIONS: usize = 64;

fn flat() -> Core {
    core(0, PlannerOptions::default())
}

struct Pair {
    large: Bank,
    flat: Bank,
    position: u64,
}

impl Pair {
    fn new(large: &Core) -> Self {
        Self {
            large: large.bank(DIMENSIONS).expect("the dimensions are in range"),
            flat: flat()
                .bank(DIMENSIONS)
                .expect("the dimensions are in range"),
            position: 0,
        }
    }

    fn apply(&mut self, rows: &[Row], ended: &[(u64, i64)], removed: &[u64]) {
        self.position += 1;
        for bank in [&self.large, &self.flat] {
            bank.apply(self.position, rows, ended, removed)
                .expect("the rows are right");
        }
    }

    fn recall(&self, request: &RecallRequest) -> (RecallResponse, RecallResponse) {
        let answer = |bank: &Bank| bank.recall(request).expect("the request is right");
        (answer(&self.large), answer(&self.flat))
    }
}

/// The kind of memories of a bank.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Notes,
    Turns,
    Diary,
    Chunked,
}

fn rows(random: &mut Random, count: usize, kind: Kind) -> Vec<Row> {
    let vectors = clustered(random, DIMENSIONS, count * 2);
    (0..count)
        .map(|number| {
            let mut row = common::row(number as u64 + 1, random.text(12));
            row.vector = Some(vectors[number].clone());
            row.tokens = random.below(220) as u32;
            if random.below(100) == 0 {
                row.tags.push("rare".to_owned());
            }
            match kind {
                Kind::Notes => {}
                Kind::Turns => row.session = Some(format!("s{}", number / 15)),
                Kind::Diary => row.occurred_at = Some(random.below(1 << 36) as i64),
                Kind::Chunked => {
                    row.chunks = (0..random.below(3))
                        .map(|_| Chunk {
                            text: random.text(6),
                            vector: Some(vectors[count + number].clone()),
                            tokens: 6,
                        })
                        .collect();
                }
            }
            row
        })
        .collect()
}

fn question(random: &mut Random, rows: &[Row]) -> RecallRequest {
    let near = &rows[random.below(rows.len() as u64) as usize];
    let vector = near.vector.as_ref().expect("every row has a vector");
    RecallRequest {
        text: Some(format!(
            "{} {}",
            random.text(3),
            &near.text[..near.text.len() / 3]
        )),
        vector: Some(vector.iter().map(|x| x + random.normal() * 0.6).collect()),
        ..RecallRequest::default()
    }
}

fn ids(response: &RecallResponse) -> BTreeSet<u64> {
    response.hits.iter().map(|hit| hit.key).collect()
}

/// Share of the flat tier's hits that the large tier has, over many questions.
fn overlap(
    pair: &Pair,
    random: &mut Random,
    rows: &[Row],
    ask: impl Fn(&mut RecallRequest),
) -> f64 {
    let (mut met, mut wanted) = (0, 0);
    for _ in 0..60 {
        let mut request = question(random, rows);
        ask(&mut request);
        let (large, flat) = pair.recall(&request);
        assert!(large.plan.starts_with("graph"), "{}", large.plan);
        met += ids(&large).intersection(&ids(&flat)).count();
        wanted += flat.hits.len();
    }
    met as f64 / f64::from(wanted as u32)
}

fn folded(kind: Kind) -> (Pair, Random, Vec<Row>) {
    let mut random = Random(7 + kind as u64);
    let rows = rows(&mut random, 4000, kind);
    let mut pair = Pair::new(&walking(1000));
    // Two segments and a tail.
    pair.apply(&rows[..2500], &[], &[]);
    pair.large.build_graphs().expect("there is memory");
    pair.apply(&rows[2500..3700], &[], &[]);
    pair.large.build_graphs().expect("there is memory");
    pair.apply(&rows[3700..], &[], &[]);
    assert_eq!(pair.large.stats().segments, 2);
    (pair, random, rows)
}

#[test]
fn the_large_tier_finds_what_the_flat_one_finds() {
    for kind in [Kind::Notes, Kind::Turns, Kind::Diary, Kind::Chunked] {
        let (pair, mut random, rows) = folded(kind);
        let hybrid = overlap(&pair, &mut random, &rows, |_| {});
        assert!(hybrid >= 0.97, "{kind:?}: hybrid {hybrid}");
        let dense = overlap(&pair, &mut random, &rows, |request| {
            request.text = None;
            request.context_windows = false;
        });
        assert!(dense >= 0.98, "{kind:?}: dense {dense}");
        let keyword = overlap(&pair, &mut random, &rows, |request| {
            request.weights = [0.0, 1.0, 1.0];
            request.context_windows = false;
        });
        assert!(keyword >= 0.999, "{kind:?}: keyword {keyword}");
    }
}

#[test]
fn the_first_hits_do_not_depend_on_how_many_are_wanted() {
    for kind in [Kind::Notes, Kind::Turns, Kind::Diary, Kind::Chunked] {
        let (pair, mut random, rows) = folded(kind);
        for _ in 0..40 {
            let most = RecallRequest {
                k: 60,
                feedback: 0.25,
                ..question(&mut random, &rows)
            };
            let (large, flat) = pair.recall(&most);
            for k in [1, 5, 10, 20] {
                let request = RecallRequest { k, ..most.clone() };
                let (fewer, fewer_flat) = pair.recall(&request);
                for (fewer, more) in [(fewer, &large), (fewer_flat, &flat)] {
                    let keys = |response: &RecallResponse| -> Vec<(u64, f64)> {
                        let first = response.hits.iter().take(k);
                        first.map(|hit| (hit.key, hit.score)).collect()
                    };
                    assert_eq!(keys(&fewer), keys(more), "{kind:?}, {k}: {}", more.plan);
                }
            }
        }
    }
}

#[test]
fn a_text_scores_the_same_in_either_tier() {
    for kind in [Kind::Notes, Kind::Chunked] {
        let (pair, mut random, rows) = folded(kind);
        let mut compared = 0;
        for _ in 0..30 {
            let mut request = question(&mut random, &rows);
            request.context_windows = false;
            let (large, flat) = pair.recall(&request);
            for hit in &large.hits {
                let Some(same) = flat.hits.iter().find(|other| other.key == hit.key) else {
                    continue;
                };
                let raw = |hit: &astrocyte_core::Hit, arm: u32| {
                    hit.arms
                        .iter()
                        .find(|word| word.arm == arm)
                        .map(|word| word.score)
                };
                // The semantic arm to what rounding of bytes leaves, the keyword arm to the bit.
                if let (Some(one), Some(other)) = (raw(hit, 0), raw(same, 0)) {
                    assert!((one - other).abs() < 0.01, "{one} {other}");
                }
                if let (Some(one), Some(other)) = (raw(hit, 1), raw(same, 1)) {
                    assert!((one - other).abs() < f64::EPSILON, "{one} {other}");
                    compared += 1;
                }
            }
        }
        assert!(compared > 30, "only {compared} were compared");
    }
}

/// Words that nearly every row holds, some of them often: their postings are more than are read in any case.
#[test]
fn what_common_words_add_is_not_missed() {
    let mut random = Random(29);
    let word = |random: &mut Random| {
        let pick = random.unit();
        format!("w{}", (pick.powi(6) * 400.0) as u32)
    };
    let text = |random: &mut Random, most: u64| {
        let words = 1 + random.below(most);
        let words: Vec<String> = (0..words).map(|_| word(random)).collect();
        words.join(" ")
    };
    let mut rows: Vec<Row> = (1..=120_000)
        .map(|number| common::row(number, text(&mut random, 12)))
        .collect();
    // A graph of a few is enough to have the recall go that way.
    for row in &mut rows[..200] {
        row.vector = Some(random.vector(DIMENSIONS));
    }
    let mut pair = Pair::new(&walking(100));
    pair.apply(&rows, &[], &[]);
    pair.large.build_graphs().expect("there is memory");
    let (mut compared, mut errors) = (0, Vec::new());
    for _ in 0..80 {
        let request = RecallRequest {
            text: Some(text(&mut random, 12)),
            k: 30,
            depth: 30,
            ..RecallRequest::default()
        };
        let (large, flat) = pair.recall(&request);
        assert!(large.plan.starts_with("graph"), "{}", large.plan);
        let keys = |response: &RecallResponse| -> Vec<u64> {
            response.hits.iter().map(|hit| hit.key).collect()
        };
        assert_eq!(keys(&large), keys(&flat), "{:?}", request.text);
        compared += large.hits.len();
        let ((mean, deviation), (wanted, width)) = (large.arm_stats[0], flat.arm_stats[0]);
        errors.push([mean / wanted - 1.0, deviation / width - 1.0]);
    }
    assert!(compared > 80 * 20, "only {compared} were compared");
    // So does a sample of some hundred rows tell what they add to the mean and the deviation of all.
    for which in 0..2 {
        let squares = errors.iter().map(|error| error[which] * error[which]);
        let typical = (squares.sum::<f64>() / errors.len() as f64).sqrt();
        assert!(
            typical < 0.05,
            "mean or deviation differ by {typical}: {errors:?}"
        );
    }
}

#[test]
fn the_normalisation_is_near_that_of_the_flat_tier() {
    for kind in [Kind::Notes, Kind::Turns, Kind::Chunked] {
        // More than are looked at one by one, so that the sample must tell.
        let mut random = Random(17);
        let rows = rows(&mut random, 18_000, kind);
        let mut pair = Pair::new(&walking(15_000));
        pair.apply(&rows, &[], &[]);
        pair.large.build_graphs().expect("there is memory");
        let mut errors = Vec::new();
        for _ in 0..60 {
            let request = question(&mut random, &rows);
            let (large, flat) = pair.recall(&request);
            for hit in &large.hits {
                if let Some(same) = flat.hits.iter().find(|other| other.key == hit.key) {
                    errors.push(hit.score / same.score - 1.0);
                }
            }
        }
        let typical =
            (errors.iter().map(|error| error * error).sum::<f64>() / errors.len() as f64).sqrt();
        assert!(typical < 0.06, "{kind:?}: fused scores differ by {typical}");
    }
}

#[test]
fn filters_hold_and_what_is_gone_stays_gone() {
    let (mut pair, mut random, rows) = folded(Kind::Turns);
    let removed: Vec<u64> = (1..=4000).filter(|key| key % 7 == 0).collect();
    let ended: Vec<(u64, i64)> = (1..=4000)
        .filter(|key| key % 11 == 0)
        .map(|key| (key, 2000))
        .collect();
    pair.apply(&[], &ended, &removed);
    for turn in 0..40 {
        let mut request = question(&mut random, &rows);
        if turn % 2 == 0 {
            request.tags = vec!["rare".to_owned()];
        }
        if turn % 3 == 0 {
            request.as_of = Some(1500);
        }
        let (large, flat) = pair.recall(&request);
        assert_eq!(large.allowed, flat.allowed);
        for hit in &large.hits {
            assert!(hit.key % 7 != 0, "{} was removed", hit.key);
            assert!(
                request.as_of.is_some() || hit.key % 11 != 0,
                "{} has ended",
                hit.key
            );
            assert!(turn % 2 == 1 || rows[hit.key as usize - 1].tags.contains(&"rare".to_owned()));
        }
        assert_eq!(large.hits.len(), flat.hits.len());
    }
}

/// Far more than a segment is built anew for, before the background has looked.
#[test]
fn what_is_gone_leads_on_to_its_neighbours() {
    let mut random = Random(31);
    let rows = rows(&mut random, 4000, Kind::Notes);
    let mut pair = Pair::new(&walking(1000));
    pair.apply(&rows, &[], &[]);
    pair.large.build_graphs().expect("there is memory");
    let is_kept = |row: &&Row| row.key.is_multiple_of(4);
    let removed = rows.iter().filter(|row| !is_kept(row)).map(|row| row.key);
    pair.apply(&[], &[], &removed.collect::<Vec<u64>>());
    let left: Vec<Row> = rows.iter().filter(is_kept).cloned().collect();
    let dense = overlap(&pair, &mut random, &left, |request| request.text = None);
    assert!(dense >= 0.98, "{dense}");
}

#[test]
fn a_bank_that_is_scanned_faster_than_its_graphs_are_searched_is_scanned() {
    let mut random = Random(4);
    let rows = rows(&mut random, 4000, Kind::Notes);
    let mut pair = Pair::new(&core(1000, PlannerOptions::default()));
    pair.apply(&rows, &[], &[]);
    pair.large.build_graphs().expect("there is memory");
    assert!(pair.large.stats().segments > 0);
    let (large, flat) = pair.recall(&question(&mut random, &rows));
    assert_eq!(ids(&large), ids(&flat));
    let (plan, basis) = large.plan.split_once(';').expect("the plan says why");
    assert_eq!(plan, flat.plan);
    assert!(basis.starts_with(" estimated: "), "{basis}");
}

#[test]
fn a_narrow_filter_is_read_row_by_row_and_exact() {
    let mut random = Random(3);
    let rows = rows(&mut random, 4000, Kind::Turns);
    let mut pair = Pair::new(&core(
        1000,
        PlannerOptions {
            sampling: 0.0,
            ..PlannerOptions::default()
        },
    ));
    pair.apply(&rows, &[], &[]);
    pair.large.build_graphs().expect("there is memory");
    for turn in 0..40 {
        let mut request = question(&mut random, &rows);
        if turn % 2 == 0 {
            // By the scan, as in a bank without graphs.
            request.tags = vec!["rare".to_owned()];
        } else {
            let some = rows.iter().step_by(rows.len() / 12);
            request.memory_ids = Some(some.map(|row| row.memory_id).collect());
        }
        let (large, flat) = pair.recall(&request);
        assert!(large.plan.starts_with("gather"), "{}", large.plan);
        assert_eq!(ids(&large), ids(&flat));
        for hit in &large.hits {
            let same = flat.hits.iter().find(|other| other.key == hit.key);
            // The flat tier's mean and deviation are of cosines by bytes, those of so few rows are exact here.
            let difference = hit.score - same.map_or(0.0, |same| same.score);
            assert!(difference.abs() < 0.05, "{hit:?} {same:?}");
        }
    }
}

#[test]
fn a_segment_that_is_mostly_gone_is_built_anew() {
    let (mut pair, _, _) = folded(Kind::Notes);
    let before = pair.large.stats();
    // Below the share at which the bank drops dead rows altogether, and above that of one segment.
    let removed: Vec<u64> = (2501..=3150).collect();
    pair.apply(&[], &[], &removed);
    pair.large.build_graphs().expect("there is memory");
    let after = pair.large.stats();
    assert_eq!(after.segments, before.segments);
    assert_eq!(after.graph_rows, before.graph_rows - 650);
}

#[test]
fn bad_walks_are_noticed_and_given_up() {
    let planner = PlannerOptions {
        scan_rows: 1,
        sampling: 1.0,
        // Nothing is as good as this asks for.
        recall_floor: 1.0,
        candidates: 10,
    };
    let mut random = Random(11);
    let vectors: Vec<Row> = (1..=3000)
        .map(|number| {
            let mut row = common::row(number, String::new());
            // Without any structure a walk that keeps few candidates misses many.
            row.vector = Some(random.vector(DIMENSIONS));
            row
        })
        .collect();
    let mut pair = Pair::new(&core(1000, planner));
    pair.apply(&vectors, &[], &[]);
    pair.large.build_graphs().expect("there is memory");
    let mut request = RecallRequest {
        depth: 10,
        ..RecallRequest::default()
    };
    for _ in 0..4000 {
        request.vector = Some(random.vector(DIMENSIONS));
        let (large, flat) = pair.recall(&request);
        if large.plan.starts_with("scan") {
            assert_eq!(ids(&large), ids(&flat));
            assert!(large.plan.contains("graphs excluded"), "{}", large.plan);
            return;
        }
    }
    panic!("the walk is still used: {:?}", pair.large.stats());
}

#[test]
fn the_background_folds_by_itself() {
    let mut random = Random(5);
    let rows = rows(&mut random, 1500, Kind::Notes);
    let mut pair = Pair::new(&walking(1000));
    pair.apply(&rows, &[], &[]);
    let start = std::time::Instant::now();
    while pair.large.stats().segments == 0 {
        assert!(start.elapsed().as_secs() < 60, "nothing was built");
        std::thread::yield_now();
    }
    assert_eq!(pair.large.stats().graph_rows, 1500);
}

#[test]
fn an_import_is_waited_for_and_becomes_one_graph() {
    let mut random = Random(6);
    let rows = rows(&mut random, 4000, Kind::Notes);
    let mut pair = Pair::new(&walking(1000));
    // Each part is enough for a graph of its own.
    for part in rows.chunks(1000) {
        pair.apply(part, &[], &[]);
    }
    let start = std::time::Instant::now();
    while pair.large.stats().graph_rows < 4000 {
        assert!(start.elapsed().as_secs() < 60, "not all was built");
        std::thread::yield_now();
    }
    assert_eq!(pair.large.stats().segments, 1);
}

#[test]
fn recalls_go_on_while_rows_come_and_go_and_graphs_are_built() {
    let mut random = Random(13);
    let rows = rows(&mut random, 3000, Kind::Turns);
    let mut pair = Pair::new(&walking(300));
    pair.apply(&rows[..500], &[], &[]);
    let gone: Vec<u64> = (1..=500).filter(|key| key % 5 == 0).collect();
    pair.apply(&[], &[], &gone);
    let done = std::sync::atomic::AtomicBool::new(false);
    let large = pair.large.clone();
    std::thread::scope(|scope| {
        for seed in 0..2 {
            let (large, rows, done) = (&large, &rows, &done);
            scope.spawn(move || {
                let mut random = Random(seed);
                let mut asked = 0;
                while asked < 20 || !done.load(std::sync::atomic::Ordering::Relaxed) {
                    let request = question(&mut random, rows);
                    let answer = large.recall(&request).expect("the request is right");
                    let keys: BTreeSet<u64> = ids(&answer);
                    assert_eq!(keys.len(), answer.hits.len(), "a memory came twice");
                    assert!(keys.iter().all(|key| *key > 500 || key % 5 != 0));
                    asked += 1;
                }
            });
        }
        for (number, part) in rows[500..].chunks(50).enumerate() {
            let ended = [(number as u64 * 9 + 501, 1500)];
            pair.apply(part, &ended, &[number as u64 * 7 + 501]);
        }
        pair.large.build_graphs().expect("there is memory");
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    assert!(pair.large.stats().segments > 0);
    let same = overlap(&pair, &mut random, &rows, |_| {});
    assert!(same >= 0.97, "{same}");
}

/// A step of a bank's life.
#[derive(Debug, Clone)]
enum Step {
    Add(u8),
    Remove(u8),
    End(u8),
    Replace(u8),
    Fold,
    Recall(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (1u8..40).prop_map(Step::Add),
        2 => any::<u8>().prop_map(Step::Remove),
        1 => any::<u8>().prop_map(Step::End),
        1 => any::<u8>().prop_map(Step::Replace),
        2 => Just(Step::Fold),
        3 => any::<u64>().prop_map(Step::Recall),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// With room for all rows among the candidates the walk misses nothing, so both tiers have the same hits.
    #[test]
    fn any_life_of_a_bank_ends_like_the_flat_one(steps in prop::collection::vec(step(), 1..60)) {
        let mut pair = Pair::new(&walking(30));
        let mut random = Random(steps.len() as u64);
        let mut next = 1u64;
        for step in steps {
            let some = |pick: u8| 1 + u64::from(pick) * next.max(1) / 256;
            match step {
                Step::Add(count) => {
                    let mut added = rows(&mut random, usize::from(count), Kind::Turns);
                    for row in &mut added {
                        (row.key, row.memory_id, row.content_hash) = (next, id(next), id(next ^ (1 << 60)));
                        next += 1;
                    }
                    pair.apply(&added, &[], &[]);
                }
                Step::Remove(pick) => {
                    let first = some(pick);
                    pair.apply(&[], &[], &(first..first + 9).collect::<Vec<_>>());
                }
                Step::End(pick) => pair.apply(&[], &[(some(pick), 1500)], &[]),
                Step::Replace(pick) => {
                    let mut row = common::row(some(pick), random.text(5));
                    row.vector = Some(random.vector(DIMENSIONS));
                    pair.apply(&[row], &[], &[]);
                }
                Step::Fold => pair.large.build_graphs().expect("there is memory"),
                Step::Recall(seed) => {
                    let mut random = Random(seed);
                    let everything = RecallRequest {
                        text: Some(random.text(4)),
                        vector: Some(random.vector(DIMENSIONS)),
                        k: 4000,
                        depth: 4000,
                        ..RecallRequest::default()
                    };
                    let (large, flat) = pair.recall(&everything);
                    prop_assert_eq!(large.allowed, flat.allowed);
                    prop_assert_eq!(ids(&large), ids(&flat));
                    // The first few are compared without context windows: of two neighbours whose own scores are equal
                    // but for rounding, either may be the lender, and each choice moves both by much.
                    let few = RecallRequest { k: 5, context_windows: false, ..everything };
                    let (large, flat) = pair.recall(&few);
                    prop_assert_eq!(large.hits.len(), flat.hits.len());
                    let alike = ids(&large).intersection(&ids(&flat)).count();
                    prop_assert!(alike + 1 >= flat.hits.len(), "{} {:?} {:?}", large.plan, large.hits, flat.hits);
                }
            }
        }
        let (large, flat) = (pair.large.stats(), pair.flat.stats());
        prop_assert_eq!((large.memories, large.rows), (flat.memories, flat.rows));
    }
}
