//! A bank that comes back from a checkpoint answers as one that never went, and a damaged checkpoint is never used.

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use astrocyte_core::BankOptions;
use astrocyte_core::checkpoint::{Label, describe};
use astrocyte_core::{Bank, Core, RecallRequest, RecallResponse, Row};
use astrocyte_text::analysis::Language;
use common::Random;
use common::commits::{Commit, DIMENSIONS, commits, random_request};
use common::files::{FILES, TemporaryFolder, forge};
use proptest::prelude::*;

fn label() -> Label {
    Label {
        bank: "one".to_owned(),
        model: "table".to_owned(),
        recipe: "1".to_owned(),
        note: "17:abc".to_owned(),
    }
}

fn core() -> Core {
    Core::new(None).expect("no scratch file")
}

fn apply(bank: &Bank, position: u64, commit: &Commit) {
    bank.apply(position, &commit.upserts, &commit.ended, &commit.removed)
        .expect("the rows are valid");
}

fn replay(bank: &Bank, commits: &[Commit]) {
    for (position, commit) in (1..).zip(commits) {
        apply(bank, position, commit);
    }
}

fn filled(commits: &[Commit]) -> Bank {
    let bank = core().bank(DIMENSIONS).expect("a bank of eight dimensions");
    replay(&bank, commits);
    bank
}

/// The answer without its timings.
fn settled(bank: &Bank, request: &RecallRequest) -> RecallResponse {
    let mut response = bank.recall(request).expect("the request is valid");
    response.arm_micros.clear();
    response
}

fn same_answers(left: &Bank, right: &Bank, seed: u64) -> Result<(), TestCaseError> {
    let mut random = Random(seed);
    for _ in 0..12 {
        let request = random_request(&mut random);
        prop_assert_eq!(
            settled(left, &request),
            settled(right, &request),
            "{:?}",
            request
        );
    }
    let (left, right) = (left.stats(), right.stats());
    prop_assert_eq!(
        (left.memories, left.versions, left.rows),
        (right.memories, right.versions, right.rows)
    );
    Ok(())
}

/// An event of a bank between two commits.
#[derive(Debug, Clone, Copy)]
enum Event {
    Checkpoint,
    Evict,
    Nothing,
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let one = prop_oneof![
        Just(Event::Checkpoint),
        Just(Event::Evict),
        Just(Event::Nothing),
        Just(Event::Nothing)
    ];
    prop::collection::vec(one, 40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_bank_that_came_and_went_equals_one_that_stayed(seed in any::<u64>(), events in events()) {
        let commits = commits(seed, events.len(), 8);
        let folder = TemporaryFolder::new();
        let core = core();
        let mut bank = core.bank(DIMENSIONS).expect("a bank of eight dimensions");
        let mut newest: Option<PathBuf> = None;
        for (number, (commit, event)) in commits.iter().zip(&events).enumerate() {
            match event {
                Event::Checkpoint => {
                    let directory = folder.make(&number.to_string());
                    let written = bank.checkpoint(&directory, &label(), true).expect("room for some rows");
                    prop_assert_eq!(written.position, bank.position());
                    prop_assert_eq!(describe(&directory).expect("a manifest"), (label(), written.position));
                    newest = Some(directory);
                }
                Event::Evict => {
                    bank = match &newest {
                        Some(directory) => core.load(directory, &label(), DIMENSIONS).expect("what was written"),
                        None => core.bank(DIMENSIONS).expect("a bank of eight dimensions"),
                    };
                    replay(&bank, &commits[..number]);
                }
                Event::Nothing => {}
            }
            apply(&bank, number as u64 + 1, commit);
        }
        same_answers(&bank, &filled(&commits), seed ^ 5)?;
    }

    #[test]
    fn commits_while_it_is_written_are_made_up_for(seed in any::<u64>(), before in 0usize..25) {
        let commits = commits(seed, 60, 30);
        let folder = TemporaryFolder::new();
        let directory = folder.make("c");
        let bank = filled(&commits[..before]);
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| replay(&bank, &commits));
            let written = bank.checkpoint(&directory, &label(), true);
            writer.join().expect("no panic");
            // Rows that get new numbers again and again leave no checkpoint.
            prop_assert!(written.is_ok() || before + 5 < commits.len());
            if let Ok(written) = written {
                prop_assert!(written.position >= before as u64);
                let loaded = core().load(&directory, &label(), DIMENSIONS).expect("what was written");
                prop_assert_eq!(loaded.position(), written.position);
                replay(&loaded, &commits);
                same_answers(&loaded, &bank, seed ^ 6)?;
            }
            Ok(())
        })?;
    }

    #[test]
    fn changed_bytes_are_found_before_they_are_decoded(seed in any::<u64>(), at in any::<prop::sample::Index>(), change in 0usize..4) {
        let folder = TemporaryFolder::new();
        let directory = folder.make("c");
        filled(&commits(seed, 12, 8)).checkpoint(&directory, &label(), true).expect("room for some rows");
        for file in files(&directory) {
            let whole = fs::read(&file).expect("it was written");
            let mut bytes = whole.clone();
            let place = at.index(bytes.len());
            match change {
                0 => bytes.truncate(place),
                1 => bytes[place] ^= 1 << (seed % 8),
                2 => bytes.push(seed as u8),
                _ => {
                    let end = bytes.len().min(place + 512);
                    // Zeros where there were none.
                    bytes[place..end].fill(0);
                    if bytes == whole {
                        bytes[place] = 1;
                    }
                }
            }
            fs::write(&file, &bytes).expect("the file is ours");
            let error = core().load(&directory, &label(), DIMENSIONS).expect_err("it is damaged").to_string();
            prop_assert!(error.starts_with("checkpoint: "), "{}", error);
            fs::write(&file, &whole).expect("the file is ours");
        }
        core().load(&directory, &label(), DIMENSIONS).expect("it is whole again");
    }

    /// With checksums made good, so that the decoders see it.
    #[test]
    fn hostile_bytes_make_no_panic(seed in any::<u64>()) {
        let folder = TemporaryFolder::new();
        let directory = folder.make("c");
        let commits = commits(seed, 12, 8);
        filled(&commits).checkpoint(&directory, &label(), true).expect("room for some rows");
        let mut random = Random(seed);
        let mut loaded = 0;
        for _ in 0..40 {
            let name = FILES[random.below(FILES.len() as u64) as usize];
            let whole = fs::read(directory.join(name)).expect("it was written");
            if whole.is_empty() {
                continue;
            }
            let mut bytes = whole.clone();
            for _ in 0..=random.below(3) {
                let place = random.below(bytes.len() as u64) as usize;
                bytes[place] = [0, 1, 0x7f, 0x80, 0xff, random.next() as u8][random.below(6) as usize];
            }
            fs::write(directory.join(name), &bytes).expect("the file is ours");
            let manifest = forge(&directory, name, &bytes);
            if let Ok(bank) = core().load(&directory, &label(), DIMENSIONS) {
                loaded += 1;
                for _ in 0..4 {
                    // Any answer will do.
                    let _ = bank.recall(&random_request(&mut random));
                }
                for (number, commit) in commits.iter().enumerate() {
                    let _ = bank.apply(100 + number as u64, &commit.upserts, &commit.ended, &commit.removed);
                }
                let all: Vec<u64> = (0..400).collect();
                bank.apply::<Row>(1_000, &[], &[], &all).expect("removal is always possible");
                let _ = bank.recall(&random_request(&mut random));
            }
            fs::write(directory.join(name), &whole).expect("the file is ours");
            fs::write(directory.join("MANIFEST"), manifest).expect("the file is ours");
        }
        // Not all is refused: the decoders were there.
        prop_assert!(loaded > 0);
    }
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("a directory");
    let paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .collect();
    assert_eq!(paths.len(), FILES.len() + 1, "these and the manifest");
    paths
}

#[test]
fn a_checkpoint_is_of_one_bank_one_model_and_one_version() {
    let folder = TemporaryFolder::new();
    let directory = folder.make("c");
    let bank = filled(&commits(1, 10, 5));
    bank.checkpoint(&directory, &label(), true)
        .expect("room for some rows");
    let other = || "another".to_owned();
    for wrong in [
        Label {
            bank: other(),
            ..label()
        },
        Label {
            model: other(),
            ..label()
        },
        Label {
            recipe: other(),
            ..label()
        },
    ] {
        let error = core()
            .load(&directory, &wrong, DIMENSIONS)
            .expect_err("it is another's");
        assert!(error.to_string().contains("it is of another"), "{error}");
    }
    assert!(core().load(&directory, &label(), DIMENSIONS + 1).is_err());
    let german = BankOptions {
        dimensions: DIMENSIONS,
        language: Language::German,
        tier: None,
    };
    let error = core()
        .load(&directory, &label(), german)
        .expect_err("its words are English");
    assert!(
        error.to_string().contains("another text analysis"),
        "{error}"
    );
    // The note is the writer's own.
    let noted = Label {
        note: other(),
        ..label()
    };
    assert!(core().load(&directory, &noted, DIMENSIONS).is_ok());
}

#[test]
fn what_is_missing_or_closed_is_refused() {
    let folder = TemporaryFolder::new();
    let directory = folder.make("c");
    assert!(describe(&directory).is_err());
    filled(&commits(2, 10, 5))
        .checkpoint(&directory, &label(), true)
        .expect("room for some rows");
    for file in files(&directory) {
        let whole = fs::read(&file).expect("it was written");
        fs::remove_file(&file).expect("the file is ours");
        assert!(
            core().load(&directory, &label(), DIMENSIONS).is_err(),
            "{}",
            file.display()
        );
        fs::write(&file, &whole).expect("the directory is ours");
        let open = fs::metadata(&file).expect("it is there").permissions();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o000)).expect("the file is ours");
        // The superuser may read everything.
        if fs::read(&file).is_err() {
            assert!(core().load(&directory, &label(), DIMENSIONS).is_err());
        }
        fs::set_permissions(&file, open).expect("the file is ours");
    }
    let bank = core()
        .load(&directory, &label(), DIMENSIONS)
        .expect("it is whole");
    assert_eq!(bank.position(), 10);
}

#[test]
fn the_files_are_their_owners_alone() {
    let folder = TemporaryFolder::new();
    let directory = folder.make("c");
    filled(&commits(3, 5, 5))
        .checkpoint(&directory, &label(), true)
        .expect("room for some rows");
    for file in files(&directory) {
        let mode = fs::metadata(&file)
            .expect("it is there")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600, "{}", file.display());
    }
}

#[test]
fn many_rows_come_back_from_the_scratch_file_and_go_there() {
    let folder = TemporaryFolder::new();
    let directory = folder.make("c");
    let core = Core::new(Some(&std::env::temp_dir())).expect("a scratch file");
    let bank = core.bank(DIMENSIONS).expect("a bank of eight dimensions");
    let mut random = Random(9);
    let rows: Vec<Row> = (1..=5000)
        .map(|key| {
            let mut row = common::row(key, random.text(8));
            row.vector = (key % 7 > 0).then(|| random.vector(DIMENSIONS));
            row
        })
        .collect();
    bank.apply(1, &rows, &[], &[]).expect("the rows are valid");
    // Freed slots are used again, so that slots and rows part.
    bank.apply::<Row>(2, &[], &[], &(100..300).collect::<Vec<u64>>())
        .expect("removal is always possible");
    bank.apply(3, &rows[150..250], &[], &[])
        .expect("the rows are valid");
    let written = bank
        .checkpoint(&directory, &label(), true)
        .expect("room for some rows");
    assert!(written.bytes > 5000 * 100, "{written:?}");
    let loaded = core
        .load(&directory, &label(), DIMENSIONS)
        .expect("what was written");
    same_answers(&bank, &loaded, 4).expect("they are equal");
    assert_eq!(loaded.times(), bank.times());
    let ids = [rows[150].memory_id, rows[120].memory_id, rows[5].memory_id];
    assert_eq!(loaded.keys_of(&ids), vec![151, 6]);
    // And both go on alike.
    for bank in [&bank, &loaded] {
        bank.apply(4, &rows[100..120], &[], &[1, 2, 3])
            .expect("the rows are valid");
    }
    same_answers(&bank, &loaded, 5).expect("they are equal");
}

#[cfg(target_os = "linux")]
#[test]
fn a_checkpoint_is_closed_soon_after_the_bank_answers() {
    let folder = TemporaryFolder::new();
    let directory = folder.make("c");
    let core = Core::new(Some(&std::env::temp_dir())).expect("a scratch file");
    let bank = core.bank(DIMENSIONS).expect("a bank of eight dimensions");
    let mut random = Random(10);
    let rows: Vec<Row> = (1..=50_000)
        .map(|key| {
            let mut row = common::row(key, String::new());
            row.vector = Some(random.vector(DIMENSIONS));
            row
        })
        .collect();
    bank.apply(1, &rows, &[], &[]).expect("the rows are valid");
    bank.checkpoint(&directory, &label(), false)
        .expect("room for some rows");
    let loaded = core
        .load(&directory, &label(), DIMENSIONS)
        .expect("what was written");
    let open = || {
        let files = fs::read_dir("/proc/self/fd").expect("what this process has open");
        let mut paths = files.filter_map(|file| fs::read_link(file.ok()?.path()).ok());
        paths.any(|path| path.starts_with(&directory))
    };
    for _ in 0..500 {
        if !open() {
            return same_answers(&bank, &loaded, 6).expect("they are equal");
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    panic!("the checkpoint is still open after ten seconds");
}
