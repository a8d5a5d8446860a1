//! The scanner on ordinary texts, and on 100 KB made to slow it down.
//!
//! `cargo bench -p astrocyte-pii --bench pii`. Compare ratios within one run; the adversarial texts should each take less
//! than 5 ms.

use std::hint::black_box;

use astrocyte_pii::{KINDS, Scanner};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

/// A limit of the product on a memory's size.
const BYTES: usize = 100_000;
/// Some 100 tokens, without a finding.
const MEMORY: &str = "Ines told me on the phone that she would rather take the early train to Porto on 12 March, since \
    the later one was cancelled twice last week. We agreed to meet at 7:40 in front of the station, next to the \
    bakery with the blue door. She has order 4155550123 with her, and asked me to bring 2 umbrellas. In the evening \
    we will cook for six people, so I need 1.5 kg of rice, 3 onions and the good olive oil that Marco brought.";
const QUERY: &str = "what did Ines say about the early train to Porto";

/// Pieces that, repeated, make the most work for a careless scanner.
const ADVERSARIAL: &[(&str, &str)] = &[
    ("digits", "7"),
    ("at signs", "@"),
    ("mailboxes", "a@a."),
    (
        "local parts",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa@",
    ),
    ("colons", "a:"),
    ("urls", "://a:b"),
    ("spaced digits", "1 "),
    ("groups of three", "123 "),
    ("groups of four", "4111 "),
    ("dashed groups", "415-555-"),
    ("parentheses", "(415) 555 ("),
    ("plus signs", "+49 3 "),
    ("pairs", "ab-"),
    ("cards", "4111 1111 1111 1111 "),
    ("phones", "call 415-555-0123 "),
    ("order numbers", "order 4155550123 "),
    ("words of context", "phone ssn password "),
    ("named values", "password=a1b2c3d4,"),
    ("unfinished tokens", "sk-"),
    ("unfinished json tokens", "eyJhbGciOi."),
    ("unfinished keys", "-----BEGIN PRIVATE KEY"),
    ("accounts", "GB82 WEST 1234 5698 7654 33 "),
    ("coins", "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNb "),
    ("births", "born 12 March 1985 "),
    ("full width", "\u{ff14}\u{ff11}"),
    ("invisible", "\u{200b}"),
];

fn scanner(patterns: &[&str]) -> Scanner {
    let kinds: Vec<&str> = KINDS.iter().map(|(_, name, _)| *name).collect();
    Scanner::new(&kinds, patterns, 0.5).expect("the kinds are known")
}

fn ordinary(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("ordinary");
    let scanner = scanner(&[]);
    for (name, text) in [("memory", MEMORY), ("query", QUERY)] {
        group.bench_function(name, |bencher| {
            bencher.iter(|| scanner.find(black_box(text)));
        });
    }
    group.finish();
}

fn adversarial(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("adversarial");
    group.sample_size(10);
    let plain = scanner(&[]);
    for (name, piece) in ADVERSARIAL {
        let text = piece.repeat(BYTES / piece.len());
        group.throughput(Throughput::Bytes(text.len() as u64));
        group.bench_with_input(BenchmarkId::from_parameter(name), &text, |bencher, text| {
            bencher.iter(|| plain.find(black_box(text)));
        });
    }
    // A pattern that looks ahead in vain from every place.
    let own = scanner(&[r"\w+!"]);
    let text = "a".repeat(BYTES);
    group.bench_function("own pattern", |bencher| {
        bencher.iter(|| own.find(black_box(&text)));
    });
    group.finish();
}

criterion_group!(benches, ordinary, adversarial);
criterion_main!(benches);
