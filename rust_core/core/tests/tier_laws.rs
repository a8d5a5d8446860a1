//! Banks in the disk tier beside banks in memory: the same commits, the same requests, with a reopen between any two;
//! what is removed is in no file; damage is found.
#![cfg(all(feature = "usearch", target_os = "linux"))]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use astrocyte_core::checkpoint::Label;
use astrocyte_core::{
    ArmScore, Bank, BankOptions, Core, CoreOptions, DenseMethod, Hit, LexicalMethod,
    PlannerOptions, RecallRequest, RecallResponse, Row, Tier, TierLimits,
};
use common::commits::{Commit, DIMENSIONS, random_request, random_row};
use common::files::TemporaryFolder;
use common::{Random, clustered, id};

/// Rows that are sealed together.
const GROUP: u64 = 4096;
const PATIENCE: Duration = Duration::from_secs(60);

fn core(scratch: Option<&Path>, dense: DenseMethod, tier: Tier, limits: TierLimits) -> Core {
    let options = CoreOptions {
        graph_rows: 1000,
        build_share: 1.0,
        dense,
        lexical: LexicalMethod::Postings,
        tier,
        tier_limits: limits,
        planner: PlannerOptions {
            scan_rows: 1,
            sampling: 0.0,
            ..PlannerOptions::default()
        },
        ..CoreOptions::default()
    };
    Core::with_options(scratch, options).expect("the options are in their ranges")
}

fn disk(scratch: &Path, dense: DenseMethod) -> Core {
    core(Some(scratch), dense, Tier::Disk, TierLimits::default())
}

fn memory(dense: DenseMethod) -> Core {
    core(None, dense, Tier::Memory, TierLimits::default())
}

fn bank(core: &Core, dimensions: usize) -> Bank {
    core.bank(dimensions).expect("the dimensions are in range")
}

fn apply(bank: &Bank, position: u64, commit: &Commit) {
    bank.apply(position, &commit.upserts, &commit.ended, &commit.removed)
        .expect("the rows are right");
}

fn built(bank: &Bank) {
    bank.build_graphs().expect("there is room");
}

fn ask(bank: &Bank, request: &RecallRequest) -> RecallResponse {
    bank.recall(request).expect("the request is right")
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

const WIDE: usize = 64;

fn rows(random: &mut Random, keys: std::ops::Range<u64>) -> Vec<Row> {
    let vectors = clustered(random, WIDE, (keys.end - keys.start) as usize);
    let row = |(key, vector)| {
        let mut row = common::row(key, random.text(8));
        row.vector = Some(vector);
        row
    };
    keys.zip(vectors).map(row).collect()
}

/// A bank of two groups and a tail in the disk tier, and its rows.
fn filled(core: &Core, random: &mut Random) -> (Bank, Vec<Row>) {
    let rows = rows(random, 1..2 * GROUP + 300);
    let bank = bank(core, WIDE);
    bank.apply(1, &rows, &[], &[]).expect("the rows are right");
    built(&bank);
    (bank, rows)
}

/// Keys and arm scores of hits, in their order. Fused scores are standardised by statistics that graphs estimate.
fn ranked(hits: &[Hit]) -> Vec<(u64, Vec<ArmScore>)> {
    hits.iter().map(|hit| (hit.key, hit.arms.clone())).collect()
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

/// The contents of all maps of files without names below a folder, by the file's inode.
fn mapped(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let folder = folder.to_string_lossy().into_owned();
    let maps = fs::read_to_string("/proc/self/maps").expect("Linux has it");
    let memory = File::open("/proc/self/mem").expect("it is ours");
    let ours = |line: &&str| line.contains(&folder) && line.ends_with("(deleted)");
    let read = |line: &str| {
        let mut fields = line.split_whitespace();
        let range = fields.next().expect("a range of addresses");
        let (start, end) = range.split_once('-').expect("two addresses");
        let address = |digits| u64::from_str_radix(digits, 16).expect("in hexadecimal");
        let mut bytes = vec![0; (address(end) - address(start)) as usize];
        memory
            .read_exact_at(&mut bytes, address(start))
            .expect("it is mapped");
        // The inode is the fifth of the fields.
        (fields.nth(3).expect("an inode").to_owned(), bytes)
    };
    maps.lines().filter(ours).map(read).collect()
}

/// The former contents of the cache lines that changed in files that are still there.
fn overwritten(
    before: &BTreeMap<String, Vec<u8>>,
    after: &BTreeMap<String, Vec<u8>>,
) -> Vec<Vec<u8>> {
    let mut lines = Vec::new();
    for (inode, old) in before {
        let new = after.get(inode).map_or(&old[..], |new| new);
        let pairs = old.chunks(64).zip(new.chunks(64));
        lines.extend(
            pairs
                .filter(|(old, new)| old != new)
                .map(|(old, _)| old.to_vec()),
        );
    }
    lines
}

#[test]
fn what_is_removed_and_scrubbed_is_in_no_map_and_the_rest_is() {
    let folder = TemporaryFolder::new();
    let scratch = folder.make("scratch");
    let core = disk(&scratch, DenseMethod::Auto);
    let (bank, mut rows) = {
        let mut random = Random(45);
        let (bank, rows) = filled(&core, &mut random);
        (bank, rows)
    };
    // A word of its own, in a row of its own: what stands in the files for it is found nowhere else.
    rows[70].text = "quagga".repeat(3);
    bank.apply(2, &rows[70..71], &[], &[]).expect("it is right");
    // Into a group of its own, with whatever fills it.
    let more: Vec<Row> = self::rows(&mut Random(46), 20_001..20_001 + GROUP);
    bank.apply(3, &more, &[], &[]).expect("they are right");
    built(&bank);
    assert_eq!(bank.stats().disk_rows, 3 * GROUP);
    let before = mapped(&scratch);
    let key = rows[70].key;
    bank.apply::<Row>(4, &[], &[], &[key]).expect("it is right");
    bank.scrub();
    let after = mapped(&scratch);
    // Both planes of the vector, the terms of the row, and its vector in a graph.
    let gone = overwritten(&before, &after);
    assert!(gone.len() >= 4, "{} lines", gone.len());
    let holds = |part: &[u8]| {
        let mut files = after.values();
        files.any(|bytes| bytes.windows(part.len()).any(|window| window == part))
    };
    for line in &gone {
        assert!(!holds(line));
    }
    // The indexes of tantivy with its words, in the first text and in the second.
    let dropped = before.keys().filter(|inode| !after.contains_key(*inode));
    assert_eq!(dropped.count(), 2);
    let found = ask(
        &bank,
        &RecallRequest {
            text: Some(rows[70].text.clone()),
            ..RecallRequest::default()
        },
    );
    assert!(found.hits.iter().all(|hit| hit.key != key));
    // The words of all others are still found without postings of the bank's own.
    assert!(
        found.plan.contains("postings of tantivy: "),
        "{}",
        found.plan
    );
    let exact = self::bank(&memory(DenseMethod::Scan), WIDE);
    rows.remove(70);
    rows.extend(more);
    exact.apply(1, &rows, &[], &[]).expect("they are right");
    for _ in 0..20 {
        let request = RecallRequest {
            text: Some(Random(key).text(4)),
            ..RecallRequest::default()
        };
        assert_eq!(
            ranked(&ask(&bank, &request).hits),
            ranked(&ask(&exact, &request).hits)
        );
    }
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
