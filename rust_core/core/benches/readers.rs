//! Latencies of one reader beside one writer at full speed.
//!
//! `cargo bench -p astrocyte-core --bench readers`, or with sizes: `... -- 10000 200000`. The line to compare with is
//! "commits to another bank": there the writer takes the same processor time and memory bandwidth, and no lock of the
//! reader's.

#![expect(clippy::print_stdout, reason = "a benchmark says what it measured")]

#[path = "../tests/common/mod.rs"]
mod common;

use std::hint::black_box;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use astrocyte_core::checkpoint::Label;
use astrocyte_core::simd_path;
use astrocyte_core::{Bank, Core, RecallRequest, Row};
use common::{Random, clustered, row};

const DIMENSIONS: usize = 384;
const WORDS: usize = 16;
const SEED: u64 = 7;
/// A round ends when the bank has grown by this share, so that its size changes little.
const GROWTH: usize = 8;
const ROUNDS: usize = 8;

/// The writer's work on the bank, or on another one, in one round.
type Work = fn(&Bank, &Data) -> Written;

struct Data {
    stored: Vec<Row>,
    fresh: Vec<Row>,
    questions: Vec<RecallRequest>,
}

#[derive(Default)]
struct Written {
    rows: usize,
    longest: Duration,
    took: Duration,
}

fn main() {
    let sizes: Vec<usize> = std::env::args()
        .filter_map(|size| size.parse().ok())
        .collect();
    let sizes = if sizes.is_empty() {
        vec![10_000, 50_000]
    } else {
        sizes
    };
    println!(
        "{DIMENSIONS} dimensions, {WORDS} words a text, seed {SEED}, simd {}, one reader, {ROUNDS} rounds",
        simd_path()
    );
    for size in sizes {
        let data = data(size);
        println!("{size} rows, times in microseconds");
        println!(
            "{:<36}{:>9}{:>9}{:>9}{:>9}{:>10}{:>12}{:>10}",
            "", "p50", "p99", "p99.9", "max", "recalls", "rows/s", "longest"
        );
        measure("alone", &data, false, |_, _| rest());
        measure(
            "commits of 256 to another bank",
            &data,
            true,
            |bank, data| commits(bank, data, 256),
        );
        measure("commits of 256", &data, false, |bank, data| {
            commits(bank, data, 256)
        });
        measure("commits of 1", &data, false, |bank, data| {
            commits(bank, data, 1)
        });
        measure("removals, with a compaction", &data, false, removals);
        measure("a checkpoint", &data, false, checkpoint);
    }
}

fn data(size: usize) -> Data {
    let mut random = Random(SEED);
    let count = size + size / GROWTH;
    let vectors = clustered(&mut random, DIMENSIONS, count);
    let rows = vectors.into_iter().zip(1..).map(|(vector, number)| {
        let mut row = row(number, random.text(WORDS));
        row.vector = Some(vector);
        row
    });
    let mut stored: Vec<Row> = rows.collect();
    let fresh = stored.split_off(size);
    let question = |near: &Row| RecallRequest {
        text: Some(near.text.split(' ').take(6).collect::<Vec<_>>().join(" ")),
        vector: near.vector.clone(),
        ..RecallRequest::default()
    };
    let questions = stored.iter().step_by(size / 64).map(question).collect();
    Data {
        stored,
        fresh,
        questions,
    }
}

fn filled(rows: &[Row]) -> Bank {
    let core = Core::new(Some(&std::env::temp_dir())).expect("the temporary directory is writable");
    let bank = core.bank(DIMENSIONS).expect("the dimensions are in range");
    for part in rows.chunks(1024) {
        bank.apply(bank.position() + 1, part, &[], &[])
            .expect("the rows are valid");
    }
    bank
}

/// Asks the bank while `work` goes on, in some rounds, and prints what that took.
fn measure(name: &str, data: &Data, elsewhere: bool, work: Work) {
    let (mut times, mut written) = (Vec::new(), Written::default());
    for _ in 0..ROUNDS {
        let bank = filled(&data.stored);
        let other = elsewhere.then(|| filled(&data.stored));
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let mut times = Vec::new();
                for question in data.questions.iter().cycle() {
                    if done.load(Ordering::Relaxed) {
                        break;
                    }
                    let start = Instant::now();
                    black_box(bank.recall(question)).expect("the request is valid");
                    times.push(start.elapsed());
                }
                times
            });
            let start = Instant::now();
            let round = work(other.as_ref().unwrap_or(&bank), data);
            written.took += start.elapsed();
            done.store(true, Ordering::Relaxed);
            written.rows += round.rows;
            written.longest = written.longest.max(round.longest);
            times.extend(reader.join().expect("no panic"));
        });
    }
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e6;
    println!(
        "{name:<36}{:>9.0}{:>9.0}{:>9.0}{:>9.0}{:>10}{:>12.0}{:>10.0}",
        at(0.5),
        at(0.99),
        at(0.999),
        at(1.0),
        times.len(),
        written.rows as f64 / written.took.as_secs_f64(),
        written.longest.as_secs_f64() * 1e6,
    );
}

fn rest() -> Written {
    std::thread::sleep(Duration::from_millis(200));
    Written::default()
}

fn commits(bank: &Bank, data: &Data, together: usize) -> Written {
    let mut written = Written::default();
    for part in data.fresh.chunks(together) {
        apply(bank, part, &[], &mut written);
    }
    written
}

/// Removes a quarter, some at a time: on the way the dead rows become a fifth of all and are dropped.
fn removals(bank: &Bank, data: &Data) -> Written {
    let mut written = Written::default();
    let keys: Vec<u64> = data.stored.iter().step_by(4).map(|row| row.key).collect();
    for part in keys.chunks(64) {
        apply(bank, &[], part, &mut written);
    }
    written
}

fn apply(bank: &Bank, rows: &[Row], removed: &[u64], written: &mut Written) {
    let start = Instant::now();
    bank.apply(bank.position() + 1, rows, &[], removed)
        .expect("the rows are valid");
    written.longest = written.longest.max(start.elapsed());
    written.rows += rows.len() + removed.len();
}

fn checkpoint(bank: &Bank, data: &Data) -> Written {
    let directory: PathBuf = std::env::temp_dir().join(format!("readers-{}", std::process::id()));
    std::fs::create_dir(&directory).expect("a new directory");
    let label = Label {
        bank: "bank".to_owned(),
        model: "model".to_owned(),
        recipe: "recipe".to_owned(),
        note: String::new(),
    };
    let (mut written, done) = (Written::default(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            bank.checkpoint(&directory, &label, true)
                .expect("room for a checkpoint");
            done.store(true, Ordering::Relaxed);
        });
        // Commits go on, one row at a time and at their leisure: what they wait is the longest.
        for part in data.fresh.chunks(1) {
            if done.load(Ordering::Relaxed) {
                break;
            }
            apply(bank, part, &[], &mut written);
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    std::fs::remove_dir_all(&directory).expect("the directory is ours");
    written
}
