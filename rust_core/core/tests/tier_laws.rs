//! Banks in the disk tier beside banks in memory: the same commits, the same requests, with a reopen between any two;
//! damage is found.
#![cfg(all(feature = "usearch", target_os = "linux"))]

mod common;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::time::{Duration, Instant};

use astrocyte_core::checkpoint::Label;
use astrocyte_core::{
    Bank, BankOptions, Core, CoreError, DenseMethod, Hit, RecallRequest, RecallResponse, Row, Tier,
    TierLimits,
};
use common::commits::{Commit, DIMENSIONS, random_request, random_row};
use common::files::TemporaryFolder;
use common::tiers::{GROUP, WIDE, ask, bank, built, core, disk, filled, memory, ranked, rows};
use common::{Random, id};

const PATIENCE: Duration = Duration::from_secs(60);

fn apply(bank: &Bank, position: u64, commit: &Commit) {
    bank.apply(position, &commit.upserts, &commit.ended, &commit.removed)
        .expect("the rows are right");
}

/// The parts of a response that depend neither on time nor on the plan.
type Answer<'a> = (&'a [Hit], &'a [(f64, f64)], &'a [u32], u32, u32);

fn answer(response: &RecallResponse) -> Answer<'_> {
    (
        &response.hits,
        &response.arm_stats,
        &response.arm_candidates,
        response.candidates,
        response.allowed,
    )
}

/// A checkpoint of the bank, loaded again.
fn reopened(core: &Core, bank: &Bank, folder: &TemporaryFolder, name: &str) -> Bank {
    let directory = folder.make(name);
    bank.checkpoint(&directory, &Label::default(), false)
        .expect("there is room");
    core.load(&directory, &Label::default(), bank.dimensions())
        .expect("the bank is whole")
}

fn wait_until(what: &str, done: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A commit of new versions, replaced ones and removed ones, of a bank of mostly new memories.
fn commit(random: &mut Random, next: &mut u64, inserts: u64, now: i64) -> Commit {
    let mut commit = Commit::default();
    for _ in 0..inserts {
        *next += 1;
        let memory = if random.below(5) == 0 && *next > 10 {
            let old = 1 + random.below(*next - 1);
            commit.ended.push((old, now));
            id(old)
        } else {
            id(*next)
        };
        commit.upserts.push(random_row(random, *next, memory, now));
    }
    for _ in 0..random.below(3 + inserts / 40) {
        commit.removed.push(1 + random.below(*next));
    }
    commit
}

#[test]
fn a_bank_on_disk_answers_as_one_in_memory_to_the_bit_whatever_happens_between() {
    let folder = TemporaryFolder::new();
    let (own, other) = (
        memory(DenseMethod::Scan),
        disk(&folder.make("scratch"), DenseMethod::Scan),
    );
    let mut operations = 0;
    for seed in 1..=3 {
        let (mut random, mut next) = (Random(seed * 7001), 0);
        let expected_bank = bank(&own, DIMENSIONS);
        let mut found_bank = bank(&other, DIMENSIONS);
        for position in 1..=220 {
            let inserts = if position == 1 {
                5000
            } else {
                random.below(30)
            };
            let commit = commit(&mut random, &mut next, inserts, position as i64 % 20);
            operations += commit.upserts.len() + commit.ended.len() + commit.removed.len();
            apply(&expected_bank, position, &commit);
            apply(&found_bank, position, &commit);
            match random.below(12) {
                0 | 1 => built(&found_bank),
                2 => found_bank.scrub(),
                3 => {
                    let name = format!("{seed}-{position}");
                    found_bank = reopened(&other, &found_bank, &folder, &name);
                }
                4 => found_bank.set_tier(Tier::Memory),
                5 => found_bank.set_tier(Tier::Disk),
                _ => {}
            }
            for _ in 0..2 {
                let request = random_request(&mut random);
                let expected = ask(&expected_bank, &request);
                let found = ask(&found_bank, &request);
                assert_eq!(answer(&found), answer(&expected), "{position} {request:?}");
                let ids: Vec<_> = (0..3).map(|_| id(1 + random.below(next))).collect();
                let explained = |bank: &Bank| {
                    let explained = bank.explain(&request, &ids).expect("it is right");
                    format!("{:?}", explained.fates)
                };
                assert_eq!(explained(&found_bank), explained(&expected_bank));
                let mut phrases = vec![random.text(1), random.text(1)];
                phrases.truncate(1 + random.below(2) as usize);
                let holding = |bank: &Bank| {
                    bank.phrase_candidates(&request, &phrases, 7)
                        .expect("each has a word")
                };
                assert_eq!(holding(&found_bank), holding(&expected_bank));
                operations += 2;
            }
        }
        found_bank.set_tier(Tier::Disk);
        built(&found_bank);
        let stats = found_bank.stats();
        assert!(stats.disk_rows >= GROUP && stats.on_disk == 1, "{stats:?}");
    }
    assert!(operations > 10_000, "{operations} operations");
}

fn question(random: &mut Random, rows: &[Row]) -> RecallRequest {
    let near = &rows[random.below(rows.len() as u64) as usize];
    let vector = near.vector.iter().flatten();
    RecallRequest {
        text: None,
        vector: Some(vector.map(|x| x + random.normal() * 0.6).collect()),
        ..RecallRequest::default()
    }
}

#[test]
fn graphs_on_disk_find_the_nearest_and_words_the_same_after_a_reopen_too() {
    let folder = TemporaryFolder::new();
    let core = disk(&folder.make("scratch"), DenseMethod::Auto);
    let mut random = Random(41);
    let (first, rows) = filled(&core, &mut random);
    let exact = bank(&memory(DenseMethod::Scan), WIDE);
    exact.apply(1, &rows, &[], &[]).expect("they are right");
    let again = reopened(&core, &first, &folder, "c");
    built(&again);
    assert_eq!(again.unsaved_graph_rows(), 0, "it was built anew");
    for bank in [&first, &again] {
        let (mut met, mut wanted) = (0, 0);
        for _ in 0..100 {
            let request = question(&mut random, &rows);
            let (found, expected) = (ask(bank, &request), ask(&exact, &request));
            let plan = &found.plan;
            assert!(plan.starts_with("graph of usearch: "), "{plan}");
            assert!(
                plan.contains("; disk tier: 8192 of 8491 rows in files"),
                "{plan}"
            );
            let expected: BTreeSet<u64> = expected.hits.iter().map(|hit| hit.key).collect();
            met += found
                .hits
                .iter()
                .filter(|hit| expected.contains(&hit.key))
                .count();
            wanted += expected.len();
            let words = RecallRequest {
                text: Some(random.text(5)),
                ..RecallRequest::default()
            };
            let (found, expected) = (ask(bank, &words), ask(&exact, &words));
            assert_eq!(ranked(&found.hits), ranked(&expected.hits));
        }
        assert!(met * 100 >= wanted * 98, "{met} of {wanted}");
    }
}

#[test]
fn a_bank_moves_both_ways_in_the_background_as_it_grows_shrinks_or_is_set() {
    let folder = TemporaryFolder::new();
    let limits = TierLimits {
        rows: 6000,
        bytes: 0,
    };
    let scratch = folder.make("scratch");
    let core = core(Some(&scratch), DenseMethod::Auto, Tier::Auto, limits);
    let mut random = Random(43);
    let all = rows(&mut random, 1..9000);
    let bank = bank(&core, WIDE);
    let on_disk = |rows: u64| {
        let stats = bank.stats();
        (stats.on_disk, stats.disk_rows) == (u64::from(rows > 0), rows)
    };
    bank.apply(1, &all[..5000], &[], &[])
        .expect("they are right");
    built(&bank);
    assert!(on_disk(0));
    bank.apply(2, &all[5000..], &[], &[])
        .expect("they are right");
    wait_until("it never went to disk", || on_disk(2 * GROUP));
    let expected = ask(&bank, &question(&mut Random(5), &all)).hits;
    bank.set_tier(Tier::Memory);
    wait_until("it never came back", || on_disk(0));
    built(&bank);
    let found = ask(&bank, &question(&mut Random(5), &all));
    assert!(
        !found.plan.contains("disk") && !found.plan.contains("usearch"),
        "{}",
        found.plan
    );
    assert_eq!(found.hits[0], expected[0]);
    bank.set_tier(Tier::Auto);
    wait_until("it never went to disk again", || on_disk(2 * GROUP));
    // Below three quarters of the limit it comes back by itself.
    let removed: Vec<u64> = (1..=4800).collect();
    bank.apply::<Row>(3, &[], &[], &removed)
        .expect("they are right");
    wait_until("it never shrank into memory", || on_disk(0));
}

#[test]
fn the_memory_tier_says_nothing_of_tiers_and_a_bank_without_files_stays_there() {
    let mut random = Random(44);
    let bank = bank(
        &core(None, DenseMethod::Scan, Tier::Disk, TierLimits::default()),
        WIDE,
    );
    let all = rows(&mut random, 1..5000);
    bank.apply(1, &all, &[], &[]).expect("they are right");
    built(&bank);
    assert_eq!((bank.stats().on_disk, bank.stats().bytes_mapped), (0, 0));
    assert!(
        !ask(&bank, &question(&mut random, &all))
            .plan
            .contains("tier")
    );
}

#[test]
fn every_damaged_file_of_a_checkpoint_is_found_and_postings_are_built_again() {
    let folder = TemporaryFolder::new();
    let core = disk(&folder.make("scratch"), DenseMethod::Auto);
    let (bank, rows) = filled(&core, &mut Random(47));
    let directory = folder.make("c");
    bank.checkpoint(&directory, &Label::default(), false)
        .expect("there is room");
    let load = || core.load(&directory, &Label::default(), WIDE);
    let request = RecallRequest {
        text: Some(rows[9].text.clone()),
        ..RecallRequest::default()
    };
    let expected = ranked(&ask(&bank, &request).hits);
    let mut random = Random(48);
    for entry in fs::read_dir(&directory).expect("it is there").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let whole = fs::read(entry.path()).expect("it is there");
        for _ in 0..4 {
            let mut damaged = whole.clone();
            let at = random.below(whole.len() as u64) as usize;
            if random.below(4) == 0 {
                damaged.truncate(at);
            } else {
                damaged[at] ^= 1 << random.below(8);
            }
            fs::write(entry.path(), &damaged).expect("it is ours");
            match load() {
                // A bank without a graph or an index of words answers all the same, and builds them again.
                Ok(bank) if name.starts_with("graph") || name.starts_with("postings") => {
                    assert_eq!(ranked(&ask(&bank, &request).hits), expected, "{name}");
                    built(&bank);
                    let unsaved = bank.unsaved_graph_rows() + bank.unsaved_word_rows();
                    assert!(unsaved > 0, "{name} was used");
                    assert_eq!(ranked(&ask(&bank, &request).hits), expected, "{name}");
                }
                Ok(_) => panic!("{name} was used"),
                Err(_) => {}
            }
        }
        fs::write(entry.path(), &whole).expect("it is ours");
    }
    assert_eq!(
        ranked(&ask(&load().expect("it is whole"), &request).hits),
        expected
    );
}

#[test]
fn a_bank_of_a_tier_of_its_own_wins_over_the_core() {
    let folder = TemporaryFolder::new();
    let core = core(
        Some(&folder.make("scratch")),
        DenseMethod::Auto,
        Tier::Memory,
        TierLimits::default(),
    );
    let options = BankOptions {
        tier: Some(Tier::Disk),
        ..BankOptions::from(WIDE)
    };
    let bank = core.bank(options).expect("in range");
    bank.apply(1, &rows(&mut Random(49), 1..5000), &[], &[])
        .expect("they are right");
    built(&bank);
    assert_eq!((bank.stats().on_disk, bank.stats().disk_rows), (1, GROUP));
    let directory = folder.make("c");
    bank.checkpoint(&directory, &Label::default(), false)
        .expect("there is room");
    // Loaded rows go to files at once, in the tier that the bank has now.
    let loaded = |options: BankOptions| {
        let bank = core.load(&directory, &Label::default(), options);
        bank.expect("it is whole").stats()
    };
    assert_eq!(loaded(options).disk_rows, GROUP);
    assert_eq!(loaded(BankOptions::from(WIDE)).disk_rows, 0);
}

#[test]
fn a_bank_whose_files_cannot_be_made_says_why_and_moves_when_they_can() {
    let folder = TemporaryFolder::new();
    let scratch = folder.make("scratch");
    let bank = bank(&disk(&scratch, DenseMethod::Scan), WIDE);
    let aside = scratch.with_extension("aside");
    fs::rename(&scratch, &aside).expect("it is ours");
    File::create(&scratch).expect("the name is free");
    let all = rows(&mut Random(52), 1..5000);
    bank.apply(1, &all, &[], &[]).expect("they are right");
    let refused = bank.build_graphs().expect_err("it is no directory");
    let of_the_system =
        matches!(&refused, CoreError::Io(error) if error.kind() == io::ErrorKind::NotADirectory);
    assert!(of_the_system, "{refused}");
    assert_eq!(bank.stats().disk_rows, 0);
    assert_eq!(ask(&bank, &question(&mut Random(5), &all)).hits.len(), 10);
    fs::remove_file(&scratch).expect("it is ours");
    fs::rename(&aside, &scratch).expect("it is ours");
    built(&bank);
    assert_eq!(bank.stats().disk_rows, GROUP);
}

#[test]
fn words_of_an_import_are_indexed_before_it_ends() {
    let (folder, mut random) = (TemporaryFolder::new(), Random(31));
    let core = disk(&folder.make("scratch"), DenseMethod::Auto);
    let bank = bank(&core, WIDE);
    let request = RecallRequest {
        text: Some(random.text(3)),
        ..RecallRequest::default()
    };
    let mut first = 1;
    // A tail that grows by a tenth, or more, each time does not settle.
    for position in 1..40 {
        let end = first + (first / 10).max(2000);
        let rows = rows(&mut random, first..end);
        bank.apply(position, &rows, &[], &[])
            .expect("the rows are right");
        first = end;
        let plan = ask(&bank, &request).plan;
        if plan.contains("postings of tantivy") {
            assert_eq!(bank.stats().graph_rows, 0);
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("all postings are in memory");
}
