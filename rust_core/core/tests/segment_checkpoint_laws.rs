//! Graphs of usearch and indexes of tantivy come back from a checkpoint without being built; damaged ones are found;
//! what is removed is in no file.
#![cfg(all(feature = "usearch", target_os = "linux"))]

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use astrocyte_core::checkpoint::Label;
use astrocyte_core::internals::normalise;
use astrocyte_core::{
    Bank, Core, CoreOptions, DenseMethod, Hit, LexicalMethod, PlannerOptions, RecallRequest,
    RecallResponse, Row,
};
use common::commits::{self, Commit, commits, random_request};
use common::files::TemporaryFolder;
use common::{Random, clustered};
use proptest::prelude::*;

const DIMENSIONS: usize = 64;
const BUILD_ROWS: u32 = 300;

/// A core of both libraries, with files in `scratch`, that builds when a test says so.
fn core(scratch: Option<&Path>, build_rows: u32) -> Core {
    methods(
        scratch,
        build_rows,
        DenseMethod::Usearch,
        LexicalMethod::Tantivy,
    )
}

fn methods(
    scratch: Option<&Path>,
    graph_rows: u32,
    dense: DenseMethod,
    lexical: LexicalMethod,
) -> Core {
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
    Core::with_options(scratch, options).expect("the options are in their ranges")
}

fn rows(random: &mut Random, keys: std::ops::Range<u64>) -> Vec<Row> {
    let vectors = clustered(random, DIMENSIONS, (keys.end - keys.start) as usize);
    let row = |(key, vector)| {
        let mut row = common::row(key, random.text(8));
        row.vector = Some(vector);
        row
    };
    keys.zip(vectors).map(row).collect()
}

/// A bank of so many rows in segments, and what it is made of.
fn filled(core: &Core, random: &mut Random, count: u64) -> (Bank, Vec<Row>) {
    let rows = rows(random, 1..count + 1);
    let bank = core.bank(DIMENSIONS).expect("in range");
    apply(&bank, 1, &rows, &[]);
    built(&bank);
    (bank, rows)
}

fn apply(bank: &Bank, position: u64, rows: &[Row], removed: &[u64]) {
    bank.apply(position, rows, &[], removed)
        .expect("the rows are right");
}

fn built(bank: &Bank) {
    bank.build_graphs().expect("there is memory");
}

fn write(bank: &Bank, directory: &Path) {
    bank.checkpoint(directory, &Label::default(), true)
        .expect("there is room");
}

fn load(core: &Core, directory: &Path) -> Bank {
    core.load(directory, &Label::default(), DIMENSIONS)
        .expect("the bank is whole")
}

/// Rows of graphs and of inverted indexes that the checkpoint does not have.
fn unsaved(bank: &Bank) -> (u64, u64) {
    (bank.unsaved_graph_rows(), bank.unsaved_word_rows())
}

fn ask(bank: &Bank, request: &RecallRequest) -> RecallResponse {
    bank.recall(request).expect("the request is right")
}

fn question(row: &Row) -> RecallRequest {
    RecallRequest {
        text: Some(row.text.clone()),
        vector: row.vector.clone(),
        ..RecallRequest::default()
    }
}

/// The hits by both libraries.
fn hits(bank: &Bank, row: &Row) -> Vec<Hit> {
    let response = ask(bank, &question(row));
    assert!(
        response.plan.starts_with("graph of usearch: ")
            && response.plan.contains("; postings of tantivy: "),
        "{}",
        response.plan
    );
    response.hits
}

/// The contents of the files without names that this process has below a folder.
fn unnamed(folder: &Path) -> Vec<Vec<u8>> {
    let folder = folder.to_string_lossy().into_owned();
    let descriptors = fs::read_dir("/proc/self/fd").expect("Linux has it");
    let mut contents = Vec::new();
    for descriptor in descriptors.flatten() {
        let path = descriptor.path();
        let Ok(target) = fs::read_link(&path) else {
            continue;
        };
        let target = target.to_string_lossy();
        if target.starts_with(&folder) && target.ends_with("(deleted)") {
            contents.push(fs::read(&path).expect("it is open"));
        }
    }
    contents
}

/// The number of files without names below a folder that this process has mapped.
fn mapped(folder: &Path) -> usize {
    let folder = folder.to_string_lossy().into_owned();
    let maps = fs::read_to_string("/proc/self/maps").expect("Linux has it");
    let ours = |line: &&str| line.contains(&folder) && line.ends_with("(deleted)");
    // The inode is the fifth of the fields.
    let inodes = maps
        .lines()
        .filter(ours)
        .filter_map(|line| line.split_whitespace().nth(4));
    inodes.collect::<BTreeSet<_>>().len()
}

/// The bytes by which usearch knows a vector.
fn levels(vector: &[f32]) -> Vec<u8> {
    let unit = normalise(0, vector, vector.len()).expect("it has a direction");
    let largest = unit.iter().fold(0.0f32, |most, x| most.max(x.abs()));
    let inverse = 127.0 / largest;
    unit.iter()
        .map(|x| ((x * inverse).round() as i8).cast_unsigned())
        .collect()
}

fn holds(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[test]
fn segments_that_were_put_back_answer_as_they_did() {
    for in_files in [true, false] {
        let folder = TemporaryFolder::new();
        let (directory, scratch) = (folder.make("c"), folder.make("scratch"));
        let core = core(in_files.then_some(&*scratch), BUILD_ROWS);
        let (bank, rows) = filled(&core, &mut Random(11), 1200);
        assert_eq!(unsaved(&bank), (1200, 1200));
        assert_eq!(bank.stats().bytes_mapped > 0, in_files);
        write(&bank, &directory);
        assert_eq!(unsaved(&bank), (0, 0));
        let loaded = load(&core, &directory);
        // What was built would not be saved.
        built(&loaded);
        assert_eq!(unsaved(&loaded), (0, 0));
        let (before, after) = (bank.stats(), loaded.stats());
        assert_eq!(
            (after.segments, after.graph_rows, after.bytes_mapped),
            (1, before.graph_rows, before.bytes_mapped)
        );
        for row in rows.iter().step_by(40) {
            assert_eq!(hits(&loaded, row), hits(&bank, row));
        }
    }
}

#[test]
fn the_background_puts_them_back_and_a_next_checkpoint_has_them_all_the_same() {
    let folder = TemporaryFolder::new();
    let (directory, scratch) = (folder.make("c"), folder.make("scratch"));
    let core = core(Some(&scratch), BUILD_ROWS);
    let (bank, rows) = filled(&core, &mut Random(12), 1200);
    write(&bank, &directory);
    let next = folder.make("next");
    // The background has hardly begun.
    write(&load(&core, &directory), &next);
    let loaded = load(&core, &next);
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while loaded.stats().segments == 0 {
        assert!(std::time::Instant::now() < deadline, "they never came");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert_eq!(unsaved(&loaded), (0, 0));
    assert_eq!(hits(&loaded, &rows[7]), hits(&bank, &rows[7]));
}

#[test]
fn other_methods_build_their_own() {
    let folder = TemporaryFolder::new();
    let (directory, scratch) = (folder.make("c"), folder.make("scratch"));
    let (bank, rows) = filled(&core(Some(&scratch), BUILD_ROWS), &mut Random(13), 1200);
    write(&bank, &directory);
    for (dense, lexical, plan) in [
        (DenseMethod::Graph, LexicalMethod::Postings, "graph: "),
        (DenseMethod::Scan, LexicalMethod::Tantivy, "scan"),
        (
            DenseMethod::Usearch,
            LexicalMethod::Postings,
            "graph of usearch: ",
        ),
    ] {
        let loaded = load(
            &methods(Some(&scratch), BUILD_ROWS, dense, lexical),
            &directory,
        );
        built(&loaded);
        let found = ask(&loaded, &question(&rows[5]));
        assert!(found.plan.starts_with(plan), "{}", found.plan);
        assert_eq!(
            found.plan.contains("tantivy"),
            lexical == LexicalMethod::Tantivy
        );
        assert_eq!(found.hits[0].key, rows[5].key);
        let unsaved_graph = if dense == DenseMethod::Graph { 1200 } else { 0 };
        assert_eq!(unsaved(&loaded), (unsaved_graph, 0));
    }
}

#[test]
fn what_happened_after_the_checkpoint_is_made_up_for() {
    let folder = TemporaryFolder::new();
    let (directory, scratch) = (folder.make("c"), folder.make("scratch"));
    let core = core(Some(&scratch), BUILD_ROWS);
    let mut random = Random(14);
    let (bank, old) = filled(&core, &mut random, 1200);
    write(&bank, &directory);
    let fresh = rows(&mut random, 2000..2050);
    let removed: Vec<u64> = (1..=100).collect();
    let loaded = load(&core, &directory);
    // Before they are back or after it, whichever comes first.
    apply(&loaded, 2, &fresh, &removed);
    built(&loaded);
    assert_eq!(unsaved(&loaded), (0, 0));
    for row in &fresh {
        assert_eq!(hits(&loaded, row)[0].key, row.key);
    }
    for row in old.iter().step_by(50) {
        assert!(hits(&loaded, row).iter().all(|hit| hit.key > 100));
    }
}

#[test]
fn vectors_of_removed_rows_are_in_no_file() {
    let folder = TemporaryFolder::new();
    let (before, after) = (folder.make("before"), folder.make("after"));
    let scratch = folder.make("scratch");
    let core = core(Some(&scratch), BUILD_ROWS);
    let (bank, rows) = filled(&core, &mut Random(15), 1200);
    write(&bank, &before);
    let kept = levels(rows[50].vector.as_ref().expect("it has one"));
    let gone = levels(rows[41].vector.as_ref().expect("it has one"));
    let graph = |directory: &Path| fs::read(directory.join("graph0")).expect("it was written");
    let somewhere = |part: &[u8]| unnamed(&scratch).iter().any(|file| holds(file, part));
    assert!(holds(&graph(&before), &gone) && somewhere(&gone) && somewhere(&kept));
    apply(&bank, 2, &[], &[42]);
    assert!(!somewhere(&gone) && somewhere(&kept));
    write(&bank, &after);
    assert!(!holds(&graph(&after), &gone) && holds(&graph(&after), &kept));
    // The checkpoint from before still has it; what is loaded of it does not once the removal is applied again.
    drop(bank);
    let loaded = load(&core, &before);
    apply(&loaded, 2, &[], &[42]);
    built(&loaded);
    assert_eq!(unsaved(&loaded).0, 0);
    assert!(!somewhere(&gone) && somewhere(&kept));
    drop(loaded);
    let loaded = load(&core, &before);
    built(&loaded);
    assert!(somewhere(&gone));
    apply(&loaded, 2, &[], &[42]);
    assert!(!somewhere(&gone) && somewhere(&kept));
    assert_eq!(hits(&loaded, &rows[50])[0].key, 51);
}

#[test]
fn words_of_removed_rows_are_in_no_file_after_a_scrub() {
    let folder = TemporaryFolder::new();
    let scratch = folder.make("scratch");
    let core = core(Some(&scratch), BUILD_ROWS);
    let (bank, rows) = filled(&core, &mut Random(16), 1200);
    let bytes = bank.stats().bytes_mapped;
    bank.scrub();
    // Nothing is removed: nothing is dropped.
    assert_eq!((mapped(&scratch), bank.stats().bytes_mapped), (2, bytes));
    apply(&bank, 2, &[], &[42]);
    assert_eq!(mapped(&scratch), 2);
    bank.scrub();
    let found = ask(&bank, &question(&rows[50]));
    assert_eq!(found.hits[0].key, 51);
    let expected = ask(&bank, &question(&rows[60])).hits;
    built(&bank);
    // It is built again, of what is left.
    assert_eq!((mapped(&scratch), bank.unsaved_word_rows()), (2, 1200));
    assert_eq!(hits(&bank, &rows[60]), expected);
}

#[test]
fn a_scrub_drops_the_file_at_once() {
    let folder = TemporaryFolder::new();
    let (directory, scratch) = (folder.make("c"), folder.make("scratch"));
    let builder = core(Some(&scratch), BUILD_ROWS);
    let (bank, _) = filled(&builder, &mut Random(17), 1200);
    write(&bank, &directory);
    drop((bank, builder));
    // This one restores, and would build from a number of rows that the bank does not have.
    let core = core(Some(&scratch), 100_000);
    let loaded = load(&core, &directory);
    built(&loaded);
    assert_eq!(mapped(&scratch), 2);
    apply(&loaded, 2, &[], &[42]);
    loaded.scrub();
    assert_eq!(mapped(&scratch), 1);
    assert_eq!(loaded.unsaved_word_rows(), 0);
}

#[test]
fn indexes_with_words_of_removed_rows_are_built_anew_for_a_checkpoint() {
    let folder = TemporaryFolder::new();
    let (directory, scratch) = (folder.make("c"), folder.make("scratch"));
    let core = core(Some(&scratch), BUILD_ROWS);
    let (bank, rows) = filled(&core, &mut Random(18), 1200);
    apply(&bank, 2, &[], &[42, 77]);
    write(&bank, &directory);
    assert_eq!(unsaved(&bank), (0, 0));
    let loaded = load(&core, &directory);
    built(&loaded);
    assert_eq!(unsaved(&loaded), (0, 0));
    // Nothing that is removed is in it.
    let bytes = loaded.stats().bytes_mapped;
    loaded.scrub();
    assert_eq!(loaded.stats().bytes_mapped, bytes);
    for row in rows.iter().skip(80).step_by(40) {
        assert_eq!(hits(&loaded, row), hits(&bank, row));
    }
}

/// The bank answers right, and has both segments, by whatever way.
fn settled(core: &Core, directory: &Path, rows: &[Row]) -> Bank {
    let bank = load(core, directory);
    built(&bank);
    assert_eq!(bank.stats().segments, 1);
    for row in rows.iter().step_by(100) {
        assert_eq!(hits(&bank, row)[0].key, row.key);
    }
    bank
}

#[test]
fn one_that_is_missing_or_another_banks_is_built_anew() {
    let folder = TemporaryFolder::new();
    let (directory, other) = (folder.make("c"), folder.make("other"));
    let scratch = folder.make("scratch");
    let core = core(Some(&scratch), BUILD_ROWS);
    let (bank, rows) = filled(&core, &mut Random(19), 1200);
    write(&bank, &directory);
    write(&filled(&core, &mut Random(20), 1200).0, &other);
    let changes: [fn(&Path, &Path); 3] = [
        |file, _| fs::remove_file(file).expect("it is ours"),
        |file, other| _ = fs::copy(other, file).expect("it is ours"),
        |file, _| fs::write(file, []).expect("it is ours"),
    ];
    for (name, expected) in [("graph0", (1200, 0)), ("postings0", (0, 1200))] {
        let whole = fs::read(directory.join(name)).expect("it was written");
        for change in changes {
            change(&directory.join(name), &other.join(name));
            assert_eq!(unsaved(&settled(&core, &directory, &rows)), expected);
        }
        fs::write(directory.join(name), whole).expect("it is ours");
    }
    assert_eq!(unsaved(&settled(&core, &directory, &rows)), (0, 0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn changed_bytes_are_found(
        at in any::<prop::sample::Index>(),
        bit in 0..8u8,
        cut in any::<bool>(),
        words in any::<bool>(),
    ) {
        let folder = TemporaryFolder::new();
        let (directory, scratch) = (folder.make("c"), folder.make("scratch"));
        let core = core(Some(&scratch), BUILD_ROWS);
        let (bank, rows) = filled(&core, &mut Random(21), 400);
        write(&bank, &directory);
        let path = directory.join(if words { "postings0" } else { "graph0" });
        let mut bytes = fs::read(&path).expect("it was written");
        let place = at.index(bytes.len());
        if cut {
            bytes.truncate(place);
        } else {
            bytes[place] ^= 1u8 << bit;
        }
        fs::write(&path, bytes).expect("it is ours");
        let expected = if words { (0, 400) } else { (400, 0) };
        prop_assert_eq!(unsaved(&settled(&core, &directory, &rows)), expected);
    }
}

/// A bank with segments in files beside one without any, over the same commits, with checkpoints and reopens between.
struct Pair {
    folder: TemporaryFolder,
    core: Core,
    exact: Bank,
    sealed: Bank,
    commits: Vec<Commit>,
    newest: Option<(PathBuf, usize)>,
}

impl Pair {
    fn new() -> Self {
        let folder = TemporaryFolder::new();
        let core = core(Some(&folder.make("scratch")), 24);
        let scans = methods(None, 24, DenseMethod::Scan, LexicalMethod::Postings);
        let bank = |core: &Core| core.bank(commits::DIMENSIONS).expect("in range");
        Self {
            exact: bank(&scans),
            sealed: bank(&core),
            core,
            folder,
            commits: Vec::new(),
            newest: None,
        }
    }

    fn apply(&mut self, commit: Commit) {
        self.commits.push(commit);
        let position = self.commits.len();
        for bank in [&self.exact, &self.sealed] {
            replay(bank, &self.commits[position - 1..], position);
        }
    }

    fn checkpoint(&mut self) {
        let position = self.commits.len();
        let directory = self.folder.make(&position.to_string());
        write(&self.sealed, &directory);
        self.newest = Some((directory, position));
    }

    fn reopen(&mut self) {
        let Some((directory, position)) = &self.newest else {
            return;
        };
        let loaded = self
            .core
            .load(directory, &Label::default(), commits::DIMENSIONS);
        self.sealed = loaded.expect("the bank is whole");
        replay(&self.sealed, &self.commits[*position..], position + 1);
    }
}

fn replay(bank: &Bank, commits: &[Commit], first: usize) {
    for (commit, position) in commits.iter().zip(first as u64..) {
        bank.apply(position, &commit.upserts, &commit.ended, &commit.removed)
            .expect("the rows are right");
    }
}

fn keys(response: &RecallResponse) -> Vec<u64> {
    response.hits.iter().map(|hit| hit.key).collect()
}

#[test]
fn random_commits_with_reopens_answer_as_a_bank_in_memory() {
    let (mut operations, mut by_both, mut met, mut wanted) = (0, 0, 0, 0);
    for seed in 31..=34 {
        let (mut pair, mut random, mut removed) = (Pair::new(), Random(seed), BTreeSet::new());
        for commit in commits(seed, 200, 12) {
            operations += commit.upserts.len() + commit.ended.len() + commit.removed.len();
            removed.extend(commit.removed.iter().copied());
            pair.apply(commit);
            match random.below(8) {
                0..3 => built(&pair.sealed),
                3 => pair.checkpoint(),
                4..6 => pair.reopen(),
                6 => pair.sealed.scrub(),
                _ => {}
            }
            for _ in 0..3 {
                let mut request = RecallRequest {
                    k: 10,
                    context_windows: false,
                    ..random_request(&mut random)
                };
                let (found, expected) = (ask(&pair.sealed, &request), ask(&pair.exact, &request));
                assert_eq!(found.allowed, expected.allowed, "{request:?}");
                assert!(keys(&found).iter().all(|key| !removed.contains(key)));
                by_both += usize::from(found.plan.contains("of usearch: "));
                let expected: BTreeSet<u64> = keys(&expected).into_iter().collect();
                let same = keys(&found)
                    .iter()
                    .filter(|key| expected.contains(key))
                    .count();
                met += same;
                wanted += expected.len();
                request.vector = None;
                let (found, expected) = (ask(&pair.sealed, &request), ask(&pair.exact, &request));
                assert_eq!(keys(&found), keys(&expected), "{request:?}");
                operations += 2;
            }
        }
    }
    assert!(operations > 10_000, "{operations} operations");
    assert!(by_both > 300, "usearch was asked {by_both} times");
    let share = met as f64 / wanted as f64;
    assert!(share >= 0.98, "{share} of {wanted}");
}

#[test]
fn recalls_go_on_while_files_are_built_erased_saved_and_scrubbed() {
    let folder = TemporaryFolder::new();
    let core = core(Some(&folder.make("scratch")), BUILD_ROWS);
    let mut random = Random(22);
    let rows = rows(&mut random, 1..4001);
    let bank = core.bank(DIMENSIONS).expect("in range");
    apply(&bank, 1, &rows[..400], &[]);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for (part, position) in rows[400..].chunks(300).zip(2u64..) {
                let gone: Vec<u64> = (1..=position * 20).collect();
                apply(&bank, position, part, &gone);
                built(&bank);
                write(&bank, &folder.make(&position.to_string()));
                bank.scrub();
            }
            done.store(true, Ordering::Relaxed);
        });
        for reader in 0..3 {
            let (bank, rows, done) = (&bank, &rows, &done);
            scope.spawn(move || {
                let mut random = Random(100 + reader);
                while !done.load(Ordering::Relaxed) {
                    let row = &rows[random.below(rows.len() as u64) as usize];
                    let found = ask(bank, &question(row));
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
    built(&bank);
    for row in rows[400..].iter().step_by(200) {
        assert_eq!(hits(&bank, row)[0].key, row.key);
    }
}
