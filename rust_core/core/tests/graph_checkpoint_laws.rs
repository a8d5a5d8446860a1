//! Graphs come back from a checkpoint as they went, without what was forgotten; a damaged one is built anew.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use astrocyte_core::checkpoint::Label;
use astrocyte_core::{Bank, Chunk, RecallRequest, Row};
use common::cores::walking;
use common::files::{TemporaryFolder, forge};
use common::{Random, clustered};
use proptest::prelude::*;

const DIMENSIONS: usize = 64;
const FOLD_ROWS: u32 = 300;

fn label() -> Label {
    Label {
        bank: "one".to_owned(),
        ..Label::default()
    }
}

fn rows(random: &mut Random, keys: std::ops::Range<u64>, chunked: bool) -> Vec<Row> {
    let count = (keys.end - keys.start) as usize;
    let vectors = clustered(random, DIMENSIONS, count * 2);
    keys.zip(0..)
        .map(|(key, number)| {
            let mut row = common::row(key, random.text(8));
            row.vector = Some(vectors[number].clone());
            if chunked && key % 3 == 0 {
                row.chunks.push(Chunk {
                    text: random.text(4),
                    vector: Some(vectors[count + number].clone()),
                    tokens: 4,
                });
            }
            row
        })
        .collect()
}

/// A bank of so many rows in graphs, and what it is made of.
fn filled(random: &mut Random, count: u64, chunked: bool) -> (Bank, Vec<Row>) {
    let rows = rows(random, 1..count + 1, chunked);
    let bank = walking(FOLD_ROWS).bank(DIMENSIONS).expect("in range");
    bank.apply(1, &rows, &[], &[]).expect("the rows are right");
    bank.build_graphs().expect("there is memory");
    assert_eq!(bank.stats().segments, 1);
    (bank, rows)
}

fn write(bank: &Bank, directory: &Path) {
    bank.checkpoint(directory, &label(), true)
        .expect("there is room");
}

fn load(directory: &Path, graph_rows: u32) -> Bank {
    let bank = walking(graph_rows).load(directory, &label(), DIMENSIONS);
    bank.expect("the bank is whole")
}

/// The bank with its graph, which was put back, or built of so many rows.
fn settled(directory: &Path, built: u64) -> Bank {
    let bank = load(directory, FOLD_ROWS);
    bank.build_graphs().expect("there is memory");
    assert_eq!(
        (bank.stats().segments, bank.unsaved_graph_rows()),
        (1, built)
    );
    bank
}

fn hits(bank: &Bank, row: &Row) -> Vec<(u64, f64)> {
    let request = RecallRequest {
        text: Some(row.text.clone()),
        vector: row.vector.clone(),
        ..RecallRequest::default()
    };
    let response = bank.recall(&request).expect("the request is right");
    assert!(response.plan.starts_with("graph"), "{}", response.plan);
    let pair = |hit: &astrocyte_core::Hit| (hit.key, hit.score);
    response.hits.iter().map(pair).collect()
}

fn graph(directory: &Path) -> PathBuf {
    directory.join("graph0")
}

fn holds(file: &Path, part: &[u8]) -> bool {
    let bytes = fs::read(file).expect("it was written");
    bytes.windows(part.len()).any(|window| window == part)
}

#[test]
fn a_graph_that_was_put_back_answers_as_it_did() {
    for chunked in [false, true] {
        let folder = TemporaryFolder::new();
        let directory = folder.make("c");
        let mut random = Random(11);
        let (bank, rows) = filled(&mut random, 1200, chunked);
        let before = bank.stats();
        assert_eq!(bank.unsaved_graph_rows(), before.graph_rows);
        write(&bank, &directory);
        assert_eq!(bank.unsaved_graph_rows(), 0);
        // One that was built would not have been saved.
        let loaded = settled(&directory, 0);
        assert_eq!(loaded.stats().graph_rows, before.graph_rows);
        for row in rows.iter().step_by(60) {
            assert_eq!(hits(&loaded, row), hits(&bank, row));
        }
    }
}

#[test]
fn the_background_puts_it_back() {
    let folder = TemporaryFolder::new();
    let directory = folder.make("c");
    let (bank, _) = filled(&mut Random(12), 1200, false);
    write(&bank, &directory);
    let loaded = load(&directory, FOLD_ROWS);
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while loaded.stats().segments == 0 {
        assert!(std::time::Instant::now() < deadline, "it never came");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert_eq!(loaded.unsaved_graph_rows(), 0);
}

#[test]
fn one_that_is_not_back_yet_is_in_the_next_checkpoint_all_the_same() {
    let folder = TemporaryFolder::new();
    let directory = folder.make("c");
    let (bank, _) = filled(&mut Random(20), 1200, false);
    write(&bank, &directory);
    for number in 0..10 {
        let next = folder.make(&number.to_string());
        // The background has hardly begun.
        write(&load(&directory, FOLD_ROWS), &next);
        assert_eq!(settled(&next, 0).stats().graph_rows, 1200);
    }
}

#[test]
fn one_whose_rows_are_mostly_gone_is_left_out() {
    let folder = TemporaryFolder::new();
    let (some, all) = (folder.make("some"), folder.make("all"));
    let (bank, _) = filled(&mut Random(21), 1200, false);
    let forget = |position, keys: std::ops::RangeInclusive<u64>| {
        bank.apply::<Row>(position, &[], &[], &keys.collect::<Vec<u64>>())
            .expect("removal is always possible");
    };
    forget(2, 1..=300);
    write(&bank, &some);
    assert!(!graph(&some).exists());
    // It is not to be tried once more.
    assert_eq!(bank.unsaved_graph_rows(), 0);
    forget(3, 1..=1200);
    // What is built of nothing is empty.
    bank.build_graphs().expect("there is memory");
    write(&bank, &all);
    assert!(!graph(&all).exists());
    assert_eq!(load(&all, FOLD_ROWS).stats().memories, 0);
}

#[test]
fn what_happened_after_the_checkpoint_is_made_up_for() {
    let folder = TemporaryFolder::new();
    let directory = folder.make("c");
    let mut random = Random(13);
    let (bank, old) = filled(&mut random, 1200, false);
    write(&bank, &directory);
    let fresh = rows(&mut random, 2000..2050, false);
    let removed: Vec<u64> = (1..=100).collect();
    let loaded = load(&directory, FOLD_ROWS);
    // Before the graph is back or after it, whichever comes first.
    loaded
        .apply(2, &fresh, &[], &removed)
        .expect("the rows are right");
    loaded.build_graphs().expect("there is memory");
    assert_eq!(loaded.unsaved_graph_rows(), 0);
    for row in &fresh {
        assert_eq!(hits(&loaded, row)[0].0, row.key);
    }
    for row in old.iter().step_by(50) {
        let found = hits(&loaded, row);
        assert!(found.iter().all(|&(key, _)| key > 100), "{found:?}");
    }
}

#[test]
fn names_of_the_forgotten_are_not_written() {
    let folder = TemporaryFolder::new();
    let (whole, without) = (folder.make("whole"), folder.make("without"));
    let (bank, _) = filled(&mut Random(14), 1200, false);
    write(&bank, &whole);
    bank.apply::<Row>(2, &[], &[], &[42])
        .expect("removal is always possible");
    write(&bank, &without);
    let name = 42u64.to_le_bytes();
    assert!(holds(&whole.join("members"), &name));
    assert!(!holds(&without.join("members"), &name));
    // And what is left is found as before.
    assert_eq!(settled(&without, 0).stats().memories, 1199);
}

#[test]
fn without_graphs_they_are_left_alone() {
    let folder = TemporaryFolder::new();
    let directory = folder.make("c");
    let (bank, rows) = filled(&mut Random(15), 1200, false);
    write(&bank, &directory);
    let flat = load(&directory, 0);
    assert_eq!(flat.stats().segments, 0);
    let request = RecallRequest {
        vector: rows[7].vector.clone(),
        ..RecallRequest::default()
    };
    let response = flat.recall(&request).expect("the request is right");
    assert_eq!(response.hits[0].key, rows[7].key);
}

#[test]
fn one_that_is_missing_or_another_banks_is_built_anew() {
    let folder = TemporaryFolder::new();
    let (directory, other) = (folder.make("c"), folder.make("other"));
    let (bank, _) = filled(&mut Random(16), 1200, false);
    write(&bank, &directory);
    write(&filled(&mut Random(17), 1200, false).0, &other);
    let changes: [fn(&Path, &Path); 3] = [
        |file, _| fs::remove_file(file).expect("it is ours"),
        |file, other| _ = fs::copy(other, file).expect("it is ours"),
        |file, _| fs::write(file, []).expect("it is ours"),
    ];
    for change in changes {
        change(&graph(&directory), &graph(&other));
        settled(&directory, 1200);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn changed_bytes_are_found(at in any::<prop::sample::Index>(), bit in 0..8u8, cut in any::<bool>()) {
        let folder = TemporaryFolder::new();
        let directory = folder.make("c");
        let (bank, _) = filled(&mut Random(18), 400, false);
        write(&bank, &directory);
        let mut bytes = fs::read(graph(&directory)).expect("it was written");
        let place = at.index(bytes.len());
        if cut {
            bytes.truncate(place);
        } else {
            bytes[place] ^= 1u8 << bit;
        }
        fs::write(graph(&directory), bytes).expect("it is ours");
        settled(&directory, 400);
    }

    /// With checksums made good: what the check lets pass can be walked.
    #[test]
    fn hostile_links_do_no_harm(seed in any::<u64>()) {
        let folder = TemporaryFolder::new();
        let directory = folder.make("c");
        let mut random = Random(seed);
        let (bank, rows) = filled(&mut Random(19), 400, false);
        write(&bank, &directory);
        let whole = fs::read(graph(&directory)).expect("it was written");
        for _ in 0..12 {
            let mut bytes = whole.clone();
            for _ in 0..=random.below(2) {
                let place = random.below(bytes.len() as u64) as usize;
                bytes[place] = [0, 1, 0x7f, 0x80, 0xff, random.next() as u8][random.below(6) as usize];
            }
            fs::write(graph(&directory), &bytes).expect("it is ours");
            let manifest = forge(&directory, "graph0", &bytes);
            let bank = load(&directory, FOLD_ROWS);
            bank.build_graphs().expect("there is memory");
            prop_assert_eq!(bank.stats().segments, 1);
            for row in rows.iter().step_by(40) {
                hits(&bank, row);
            }
            fs::write(directory.join("MANIFEST"), manifest).expect("it is ours");
        }
    }
}
