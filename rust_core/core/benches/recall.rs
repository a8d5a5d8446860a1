//! Dense scan, hybrid recall with and without a filter, apply, and the near-duplicate check.
//!
//! `cargo bench -p astrocyte-core --bench recall`. Sizes and seed are printed; compare ratios within one run.

#![expect(clippy::print_stdout, reason = "a benchmark says what it measured")]

#[path = "../tests/common/mod.rs"]
mod common;

use std::hint::black_box;
use std::time::{Duration, Instant};

use astrocyte_core::internals::{Block, Kernel, QuantisedQuery, dot};
use astrocyte_core::simd_path;
use astrocyte_core::{Bank, Core, RecallRequest, Row};
use common::{Random, clustered, row};
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput};

const DIMENSIONS: usize = 384;
const WORDS: usize = 16;
const SEED: u64 = 7;
/// Queries that a benchmark takes turns with.
const QUERIES: usize = 64;

/// Rows of 16 words; every fiftieth has the tag of the 2 % filter. With `sessions`, conversations of 30 turns.
fn rows(count: usize, sessions: bool) -> Vec<Row> {
    let mut random = Random(SEED);
    let vectors = clustered(&mut random, DIMENSIONS, count);
    let rows = vectors.into_iter().enumerate().map(|(index, vector)| {
        let mut row = row(index as u64 + 1, random.text(WORDS));
        row.vector = Some(vector);
        row.tokens = 20;
        row.tags = if index % 50 == 0 {
            vec!["rare".to_owned()]
        } else {
            Vec::new()
        };
        row.session = sessions.then(|| format!("session {}", index / 30));
        row
    });
    rows.collect()
}

fn bank(rows: &[Row]) -> Bank {
    let core = Core::new(Some(&std::env::temp_dir())).expect("the temporary directory is writable");
    let bank = core.bank(DIMENSIONS).expect("the dimensions are in range");
    for (commit, part) in rows.chunks(256).enumerate() {
        bank.apply(commit as u64 + 1, part, &[], &[])
            .expect("the rows are valid");
    }
    bank
}

fn queries(rows: &[Row], template: &RecallRequest, text: bool, vector: bool) -> Vec<RecallRequest> {
    let mut random = Random(SEED + 1);
    let near = |random: &mut Random| {
        let row = &rows[random.below(rows.len() as u64) as usize];
        row.vector
            .iter()
            .flatten()
            .map(|x| x + random.normal())
            .collect()
    };
    (0..QUERIES)
        .map(|_| RecallRequest {
            text: text.then(|| random.text(8)),
            vector: vector.then(|| near(&mut random)),
            ..template.clone()
        })
        .collect()
}

fn bench_queries(
    criterion: &mut Criterion,
    name: &str,
    count: usize,
    bank: &Bank,
    queries: &[RecallRequest],
) {
    let mut turn = 0;
    criterion.bench_with_input(BenchmarkId::new(name, count), &count, |bencher, _| {
        bencher.iter(|| {
            turn = (turn + 1) % queries.len();
            black_box(bank.recall(&queries[turn])).expect("the request is valid")
        });
    });
}

fn bench_recall(criterion: &mut Criterion) {
    let plain = RecallRequest::default();
    let filtered = RecallRequest {
        tags: vec!["rare".to_owned()],
        ..RecallRequest::default()
    };
    for count in [1_000, 10_000, 50_000] {
        let rows = rows(count, false);
        let bank = bank(&rows);
        let stats = bank.stats();
        println!(
            "{count} rows: {} resident bytes a row, {stats:?}",
            stats.bytes / count as u64
        );
        print_ratio(count, &bank, &rows, &queries(&rows, &plain, false, true));
        bench_queries(
            criterion,
            "dense arm",
            count,
            &bank,
            &queries(&rows, &plain, false, true),
        );
        bench_queries(
            criterion,
            "keyword arm",
            count,
            &bank,
            &queries(&rows, &plain, true, false),
        );
        bench_queries(
            criterion,
            "hybrid",
            count,
            &bank,
            &queries(&rows, &plain, true, true),
        );
        bench_queries(
            criterion,
            "hybrid, 2 % filter",
            count,
            &bank,
            &queries(&rows, &filtered, true, true),
        );
        bench_duplicates(criterion, count, &bank, &rows);
    }
    for count in [10_000, 50_000] {
        let rows = rows(count, true);
        let bank = bank(&rows);
        bench_queries(
            criterion,
            "hybrid in sessions",
            count,
            &bank,
            &queries(&rows, &plain, true, true),
        );
    }
}

/// The median time of 101 calls.
fn median(mut call: impl FnMut(usize)) -> Duration {
    let mut times: Vec<_> = (0..101)
        .map(|turn| {
            let start = Instant::now();
            call(turn);
            start.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[times.len() / 2]
}

/// Prints how much faster the dense arm is than plain f32 products over the same rows, both timed here and now.
fn print_ratio(count: usize, bank: &Bank, rows: &[Row], queries: &[RecallRequest]) {
    let flat: Vec<f32> = rows
        .iter()
        .filter_map(|row| row.vector.as_ref())
        .flatten()
        .copied()
        .collect();
    let mut out = vec![0.0; count];
    let naive = median(|turn| {
        let query = queries[turn % queries.len()].vector.as_deref();
        for (out, row) in out.iter_mut().zip(flat.chunks(DIMENSIONS)) {
            *out = query.map_or(0.0, |query| dot(query, row));
        }
        black_box(&out);
    });
    let dense = median(|turn| {
        black_box(bank.recall(&queries[turn % queries.len()])).expect("the request is valid");
    });
    let ratio = naive.as_secs_f64() / dense.as_secs_f64();
    println!("{count} rows: f32 scan {naive:?}, dense arm {dense:?}, ratio {ratio:.2}");
}

fn bench_duplicates(criterion: &mut Criterion, count: usize, bank: &Bank, rows: &[Row]) {
    let vectors: Vec<_> = rows
        .iter()
        .filter_map(|row| row.vector.clone())
        .take(64)
        .collect();
    let mut group = criterion.benchmark_group("near duplicates of 64");
    group.throughput(Throughput::Elements(64));
    group.bench_function(BenchmarkId::from_parameter(count), |bencher| {
        bencher.iter(|| {
            black_box(bank.near_duplicates(&vectors, 0.95)).expect("the vectors are valid")
        });
    });
    group.finish();
}

fn bench_scan(criterion: &mut Criterion) {
    let mut random = Random(SEED);
    let query = QuantisedQuery::new(&random.vector(DIMENSIONS));
    for count in [1_000, 10_000, 50_000] {
        let mut blocks = vec![Block([0; 64]); count * query.blocks.len() / 2];
        blocks
            .iter_mut()
            .flat_map(|block| &mut block.0)
            .for_each(|byte| *byte = random.below(256) as u8);
        let mut out = vec![0; count];
        for kernel in Kernel::available() {
            criterion.bench_function(&format!("scan {}/{count}", kernel.name()), |bencher| {
                bencher.iter(|| kernel.scan(black_box(&query.blocks), &blocks, &mut out));
            });
        }
    }
}

fn bench_apply(criterion: &mut Criterion) {
    let rows = rows(10_240, false);
    let mut group = criterion.benchmark_group("apply");
    group.throughput(Throughput::Elements(rows.len() as u64));
    group.sample_size(10);
    group.bench_function(BenchmarkId::new("batches of 256", rows.len()), |bencher| {
        bencher.iter_batched(|| (), |()| bank(&rows), BatchSize::PerIteration);
    });
    group.finish();
}

fn main() {
    let profile = if cfg!(debug_assertions) {
        "debug"
    } else {
        "release"
    };
    println!(
        "{DIMENSIONS} dimensions, {WORDS} words a text, seed {SEED}, simd {}, profile {profile}",
        simd_path()
    );
    let mut criterion = Criterion::default().configure_from_args();
    bench_scan(&mut criterion);
    bench_recall(&mut criterion);
    bench_apply(&mut criterion);
    criterion.final_summary();
}
