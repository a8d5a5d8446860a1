//! What is removed is in no file of a segment.
#![cfg(all(feature = "usearch", target_os = "linux"))]

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use astrocyte_core::internals::normalise;
use common::Random;
use common::files::TemporaryFolder;
use common::segments::{
    BUILD_ROWS, apply, ask, built, core, filled, hits, load, question, rows, unsaved, write,
};

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
