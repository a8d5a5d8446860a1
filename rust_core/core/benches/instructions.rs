//! One call of each hot kernel, whose instructions callgrind counts.
//!
//! `python -m benches.instructions` builds this, runs it under valgrind once for each kernel and compares the counts
//! with the stored ones. Time tells nothing here. Valgrind knows no AVX-512 and says so to who asks the processor, so
//! the kernels are those for AVX2 on every machine that has it; which they are is printed with each run.

#![expect(
    clippy::print_stdout,
    reason = "whoever counts reads the list of kernels"
)]

#[path = "../tests/common/mod.rs"]
mod common;

use std::hint::black_box;

use astrocyte_core::internals::{Block, Kernel, QuantisedQuery};
use astrocyte_core::simd_path;
use astrocyte_core::{Bank, Core, ExternalList, RecallRequest, Row};
use astrocyte_pii::{KINDS, Scanner};
use common::{Random, id, row};

const DIMENSIONS: usize = 384;
const WORDS: usize = 16;
const SEED: u64 = 7;
/// Enough that what grows with the bank outweighs what a call costs at any size, and few enough to be made under
/// valgrind, which takes fifty times as long.
const ROWS: usize = 2_000;
/// Below the size from which on the core spreads a batch over threads, which valgrind runs by turns.
const BATCH: usize = 64;
const SCANNED_ROWS: usize = 4_096;
const MEMORY: &str = "Ines told me on the phone that she would rather take the early train to Porto on 12 March, since \
    the later one was cancelled twice last week. We agreed to meet at 7:40 in front of the station, next to the \
    bakery with the blue door. She has order 4155550123 with her, and asked me to bring 2 umbrellas. In the evening \
    we will cook for six people, so I need 1.5 kg of rice, 3 onions and the good olive oil that Marco brought.";

/// The counted call.
type Call = Box<dyn FnMut()>;
/// Makes everything that a call needs.
type Prepare = fn() -> Call;

/// The counted kernels, by name.
const KERNELS: &[(&str, Prepare)] = &[
    ("scan", scan),
    ("dense", dense),
    ("keyword", keyword),
    ("filter", filter),
    ("fusion", fusion),
    ("hybrid", hybrid),
    ("hybrid-filtered", hybrid_filtered),
    ("hybrid-sessions", hybrid_sessions),
    ("duplicates", duplicates),
    ("apply", apply),
    ("personal-data", personal_data),
];

fn main() {
    // Cargo adds a flag of its own.
    let mut arguments = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench");
    let wanted = arguments.next().unwrap_or_default();
    let calls: usize = arguments
        .next()
        .map_or(1, |count| count.parse().expect("how often to call"));
    let Some((_, prepare)) = KERNELS.iter().find(|(name, _)| *name == wanted) else {
        println!("simd {}", simd_path());
        for (name, _) in KERNELS {
            println!("kernel {name}");
        }
        return;
    };
    let mut call = prepare();
    // Buffers and layouts are made by the first call.
    call();
    counted_call(&mut call, calls);
}

/// Callgrind counts from the entry into this function to its end, and knows it by its name.
#[inline(never)]
fn counted_call(call: &mut Call, calls: usize) {
    for _ in 0..calls {
        call();
    }
}

/// Rows of 16 words around 16 centres; every fiftieth has the tag of the 2 % filter.
fn rows(count: usize, sessions: bool) -> Vec<Row> {
    let mut random = Random(SEED);
    let mut vector = || -> Vec<f32> { (0..DIMENSIONS).map(|_| random.unit() - 0.5).collect() };
    let centres: Vec<_> = (0..16).map(|_| vector()).collect();
    let vectors: Vec<Vec<f32>> = (0..count)
        .map(|number| {
            let centre = &centres[number % centres.len()];
            vector().iter().zip(centre).map(|(x, y)| x + y).collect()
        })
        .collect();
    let made = vectors.into_iter().zip(1..).map(|(vector, number)| {
        let mut row = row(number, random.text(WORDS));
        row.vector = Some(vector);
        row.tokens = 20;
        row.occurred_at = Some(number as i64 * 1_000);
        row.tags = if number % 50 == 0 {
            vec!["rare".to_owned()]
        } else {
            Vec::new()
        };
        row.session = sessions.then(|| format!("session {}", number / 30));
        row
    });
    made.collect()
}

fn bank(rows: &[Row]) -> Bank {
    let bank = Core::new(None).and_then(|core| core.bank(DIMENSIONS));
    let bank = bank.expect("the dimensions are in range");
    for (part, position) in rows.chunks(BATCH).zip(1..) {
        bank.apply(position, part, &[], &[])
            .expect("the rows are valid");
    }
    bank
}

/// A question about the bank, with the words and near the vector of one of its rows.
fn question(rows: &[Row]) -> RecallRequest {
    let near = &rows[rows.len() / 3];
    RecallRequest {
        text: Some(near.text.split(' ').take(8).collect::<Vec<_>>().join(" ")),
        vector: near
            .vector
            .as_ref()
            .map(|vector| vector.iter().map(|x| x + 0.1).collect()),
        ..RecallRequest::default()
    }
}

fn recall(sessions: bool, change: impl FnOnce(&mut RecallRequest)) -> Call {
    let rows = rows(ROWS, sessions);
    let bank = bank(&rows);
    let mut request = question(&rows);
    change(&mut request);
    Box::new(move || {
        black_box(bank.recall(black_box(&request))).expect("the request is valid");
    })
}

fn scan() -> Call {
    let mut random = Random(SEED);
    let query = QuantisedQuery::new(&random.vector(DIMENSIONS));
    let mut blocks = vec![Block([0; 64]); SCANNED_ROWS * query.blocks.len() / 2];
    for byte in blocks.iter_mut().flat_map(|block| &mut block.0) {
        *byte = random.below(256) as u8;
    }
    let mut out = vec![0; SCANNED_ROWS];
    let kernel = Kernel::best();
    Box::new(move || kernel.scan(black_box(&query.blocks), &blocks, &mut out))
}

fn dense() -> Call {
    recall(false, |request| request.text = None)
}

fn keyword() -> Call {
    recall(false, |request| request.vector = None)
}

/// No arm runs, so that the filter is most of it.
fn filter() -> Call {
    recall(false, |request| {
        (request.text, request.vector) = (None, None);
        request.tags = vec!["rare".to_owned()];
        request.occurred = Some((Some(100_000), Some(1_500_000)));
        request.retained = Some((None, Some(1_000_000)));
    })
}

/// Three lists from outside and no arm of our own.
fn fusion() -> Call {
    recall(false, |request| {
        (request.text, request.vector) = (None, None);
        let list = |step: u64| ExternalList {
            name: format!("every {step}"),
            weight: 1.0,
            hits: (1..=200)
                .map(|rank| (id(rank * step), 1.0 / rank as f64))
                .collect(),
        };
        request.external = [3, 5, 7].map(list).to_vec();
    })
}

fn hybrid() -> Call {
    recall(false, |_| {})
}

fn hybrid_filtered() -> Call {
    recall(false, |request| request.tags = vec!["rare".to_owned()])
}

/// With context windows, and with words that the first hits add.
fn hybrid_sessions() -> Call {
    recall(true, |request| request.feedback = 0.3)
}

fn duplicates() -> Call {
    let rows = rows(ROWS, false);
    let bank = bank(&rows);
    let vectors: Vec<_> = rows
        .iter()
        .filter_map(|row| row.vector.clone())
        .take(4)
        .collect();
    Box::new(move || {
        black_box(bank.near_duplicates(&vectors, 0.95)).expect("the vectors are valid");
    })
}

fn apply() -> Call {
    let rows = rows(ROWS, false);
    let bank = bank(&rows[..ROWS - BATCH * 4]);
    let mut position = bank.position();
    Box::new(move || {
        let first = ROWS - BATCH * 4 + (position as usize % 4) * BATCH;
        position += 1;
        bank.apply(position, &rows[first..first + BATCH], &[], &[])
            .expect("the rows are valid");
    })
}

fn personal_data() -> Call {
    let kinds: Vec<&str> = KINDS.iter().map(|(_, name, _)| *name).collect();
    let scanner = Scanner::new(&kinds, &[""; 0], 0.5).expect("the kinds are known");
    Box::new(move || _ = black_box(scanner.find(black_box(MEMORY))))
}
