//! A large bank: graph builds, graph searches, keyword search and loads of checkpoints.
//!
//! `cargo bench -p astrocyte-core --bench large`, or with a number of rows in `ROWS`. Compare ratios within one run.

#![expect(clippy::print_stdout, reason = "a benchmark says what it measured")]

#[path = "../tests/common/mod.rs"]
mod common;

use std::hint::black_box;

use astrocyte_core::checkpoint::Label;
use astrocyte_core::{Bank, Core, CoreOptions, PlannerOptions, RecallRequest, Row, simd_path};
use common::files::TemporaryFolder;
use common::{Random, clustered, row};
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput};

const DIMENSIONS: usize = 384;
const WORDS: usize = 16;
const SEED: u64 = 7;
/// Enough rows for a graph to be worth it, few enough for a build in seconds.
const ROWS: usize = 50_000;
/// Queries that a benchmark takes turns with.
const QUERIES: usize = 64;

fn rows(count: usize) -> Vec<Row> {
    let mut random = Random(SEED);
    let vectors = clustered(&mut random, DIMENSIONS, count);
    let rows = vectors.into_iter().enumerate().map(|(number, vector)| {
        let mut row = row(number as u64 + 1, random.text(WORDS));
        row.vector = Some(vector);
        row
    });
    rows.collect()
}

/// A core that builds graphs when it is told to, on one thread, and searches them always.
fn core() -> Core {
    let options = CoreOptions {
        graph_rows: 1_000,
        build_share: 1.0,
        planner: PlannerOptions {
            scan_rows: 1,
            sampling: 0.0,
            ..PlannerOptions::default()
        },
        ..CoreOptions::default()
    };
    let folder = std::env::temp_dir();
    Core::with_options(Some(&folder), options).expect("the temporary directory is writable")
}

fn filled(core: &Core, rows: &[Row]) -> Bank {
    let bank = core.bank(DIMENSIONS).expect("the dimensions are in range");
    bank.apply(1, rows, &[], &[]).expect("the rows are valid");
    bank
}

/// Requests with the vectors of some rows moved a little, with words, or with both.
fn requests(rows: &[Row], text: bool, vector: bool) -> Vec<RecallRequest> {
    let mut random = Random(SEED + 1);
    let near = |random: &mut Random| {
        let row = &rows[random.below(rows.len() as u64) as usize];
        let values = row.vector.iter().flatten();
        values.map(|x| x + random.normal()).collect()
    };
    (0..QUERIES)
        .map(|_| RecallRequest {
            text: text.then(|| random.text(8)),
            vector: vector.then(|| near(&mut random)),
            ..RecallRequest::default()
        })
        .collect()
}

fn bench_build(criterion: &mut Criterion, core: &Core, rows: &[Row]) {
    let mut group = criterion.benchmark_group("graph build");
    group.throughput(Throughput::Elements(rows.len() as u64));
    group.sample_size(10);
    group.bench_function(BenchmarkId::from_parameter(rows.len()), |bencher| {
        bencher.iter_batched(
            || filled(core, rows),
            |bank| {
                bank.build_graphs().expect("there is memory");
                bank
            },
            BatchSize::PerIteration,
        );
    });
    group.finish();
}

fn bench_recall(criterion: &mut Criterion, bank: &Bank, rows: &[Row]) {
    for (name, text, vector) in [
        ("graph search", false, true),
        ("keyword search", true, false),
        ("hybrid", true, true),
    ] {
        let requests = requests(rows, text, vector);
        let mut turn = 0;
        criterion.bench_function(&format!("{name}/{}", rows.len()), |bencher| {
            bencher.iter(|| {
                turn = (turn + 1) % requests.len();
                black_box(bank.recall(&requests[turn])).expect("the request is valid")
            });
        });
    }
}

fn bench_load(criterion: &mut Criterion, core: &Core, bank: &Bank, count: usize) {
    let folder = TemporaryFolder::new();
    let directory = folder.make("bank");
    let label = Label::default();
    bank.checkpoint(&directory, &label, false)
        .expect("the directory is writable");
    let mut group = criterion.benchmark_group("checkpoint load");
    group.throughput(Throughput::Elements(count as u64));
    group.sample_size(10);
    group.bench_function(BenchmarkId::from_parameter(count), |bencher| {
        bencher.iter(|| core.load(&directory, &label, DIMENSIONS));
    });
    group.finish();
}

fn main() {
    let count = std::env::var("ROWS").map_or(ROWS, |rows| rows.parse().expect("a number of rows"));
    println!(
        "{count} rows of {DIMENSIONS} dimensions, {WORDS} words a text, seed {SEED}, simd {}",
        simd_path()
    );
    let (core, rows) = (core(), rows(count));
    let mut criterion = Criterion::default().configure_from_args();
    bench_build(&mut criterion, &core, &rows);
    let bank = filled(&core, &rows);
    bank.build_graphs().expect("there is memory");
    bench_recall(&mut criterion, &bank, &rows);
    bench_load(&mut criterion, &core, &bank, count);
    criterion.final_summary();
}
