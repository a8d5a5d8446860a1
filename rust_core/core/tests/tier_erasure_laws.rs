//! Erasures in the disk tier: removed and scrubbed rows are in no file, however many erasures there are at once.
#![cfg(all(feature = "usearch", target_os = "linux"))]

mod common;

use std::collections::BTreeSet;
use std::sync::Mutex;

use astrocyte_core::{DenseMethod, RecallRequest, Row};
use common::Random;
use common::files::TemporaryFolder;
use common::tiers::{self, Contents, GROUP, WIDE};
use common::tiers::{ask, built, disk, filled, mapped, memory, overwritten, places, ranked};

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
    let more: Vec<Row> = tiers::rows(&mut Random(46), 20_001..20_001 + GROUP);
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
    assert_eq!(gone.len(), 3, "files");
    let lines: BTreeSet<Vec<u8>> = gone.into_values().flatten().collect();
    assert!(lines.len() >= 4, "{} lines", lines.len());
    assert!(places(&lines, &before) >= lines.len());
    assert_eq!(places(&lines, &after), 0);
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
    let exact = tiers::bank(&memory(DenseMethod::Scan), WIDE);
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

/// Erasures at the same time, and how often.
const THREADS: u64 = 4;
const ROUNDS: u64 = 5;

/// The files of tantivy, which name their only field, or the others.
fn of_tantivy(files: &Contents, wanted: bool) -> Contents {
    let name = br#""words""#;
    let is_one = |bytes: &[u8]| bytes.windows(name.len()).any(|window| window == name);
    let chosen = files.iter().filter(|(_, bytes)| is_one(bytes) == wanted);
    chosen
        .map(|(inode, bytes)| (inode.clone(), bytes.clone()))
        .collect()
}

#[test]
fn erasures_at_once_leave_the_bank_in_its_tier_and_nothing_of_what_they_erase() {
    let folder = TemporaryFolder::new();
    let scratch = folder.make("scratch");
    let core = disk(&scratch, DenseMethod::Auto);
    let (bank, _) = filled(&core, &mut Random(50));
    // An index of tantivy of their own.
    let more = tiers::rows(&mut Random(51), 20_001..20_001 + GROUP);
    bank.apply(2, &more, &[], &[]).expect("they are right");
    built(&bank);
    let before = mapped(&scratch);
    let words = of_tantivy(&before, true);
    assert_eq!(words.len(), 2);
    let position = Mutex::new(2);
    let erase = |keys: [u64; 2]| {
        let mut position = position.lock().expect("no thread panics");
        *position += 1;
        bank.apply::<Row>(*position, &[], &[], &keys)
            .expect("it is right");
        drop(position);
        bank.scrub();
    };
    let request = RecallRequest {
        text: Some(more[9].text.clone()),
        ..RecallRequest::default()
    };
    for round in 0..ROUNDS {
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                // Of both indexes, so that all erasures build the same ones again.
                let at = 100 + round * THREADS + thread;
                scope.spawn(move || erase([at, 20_001 + at]));
            }
        });
        let (plan, stats) = (ask(&bank, &request).plan, bank.stats());
        assert!(
            plan.contains("postings of tantivy: 12587 of 12587 rows"),
            "{plan}"
        );
        assert_eq!((stats.on_disk, stats.disk_rows), (1, 3 * GROUP));
    }
    let after = mapped(&scratch);
    let others = of_tantivy(&before, false);
    let gone: BTreeSet<Vec<u8>> = overwritten(&others, &after)
        .into_values()
        .flatten()
        .collect();
    let erased = (2 * ROUNDS * THREADS) as usize;
    assert!(gone.len() >= 3 * erased, "{} lines", gone.len());
    assert_eq!(places(&gone, &after), 0);
    // None of the indexes that had their words is there any more.
    let left: BTreeSet<&Vec<u8>> = after.values().collect();
    assert!(words.values().all(|bytes| !left.contains(bytes)));
}
