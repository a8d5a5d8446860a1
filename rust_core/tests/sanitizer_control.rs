//! Faults on purpose, which `scripts/sanitize.sh` runs to see that each is reported. Never run otherwise: they are wrong.
#![expect(unsafe_code, reason = "what safe code cannot do is what is tried")]

use std::cell::UnsafeCell;
use std::hint::black_box;

use usearch::{Index, IndexOptions, MetricKind, ScalarKind};

#[test]
#[ignore = "a fault on purpose, for scripts/sanitize.sh"]
fn use_after_free() {
    let bytes = black_box(vec![1u8; 64]);
    let first = bytes.as_ptr();
    drop(bytes);
    // SAFETY: there is none; the memory is freed.
    black_box(unsafe { first.read() });
}

#[test]
#[ignore = "a fault on purpose, for scripts/sanitize.sh"]
fn out_of_bounds() {
    let bytes = black_box(vec![1u8; 64]);
    // SAFETY: there is none; the byte behind the last one is another's.
    black_box(unsafe { bytes.as_ptr().add(64).read() });
}

/// The library's C++ reads a query of which only the half is there.
#[test]
#[ignore = "a fault on purpose, for scripts/sanitize.sh"]
fn foreign_out_of_bounds() {
    let options = IndexOptions {
        dimensions: 64,
        metric: MetricKind::Cos,
        quantization: ScalarKind::F32,
        ..IndexOptions::default()
    };
    let index = Index::new(&options).expect("an index");
    index.reserve(2).expect("there is memory");
    index.add(0, &[1f32; 64]).expect("there is memory");
    let half = black_box(vec![1f32; 32]);
    // SAFETY: there is none; the slice is twice as long as the memory.
    let query = unsafe { std::slice::from_raw_parts(half.as_ptr(), 64) };
    let _ = black_box(index.search(query, 1));
}

struct Shared(UnsafeCell<u64>);

// SAFETY: there is none; two threads change it without an order.
unsafe impl Sync for Shared {}

#[test]
#[ignore = "a fault on purpose, for scripts/sanitize.sh"]
fn data_race() {
    let shared = Shared(UnsafeCell::new(0));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let shared = &shared;
            scope.spawn(move || {
                // As long as both take to start, so that neither ends before the other begins.
                for _ in 0..1_000_000 {
                    // SAFETY: there is none; the other thread writes as well.
                    unsafe { *black_box(shared.0.get()) += 1 };
                }
            });
        }
    });
    // SAFETY: both threads are done.
    assert!(black_box(unsafe { *shared.0.get() }) > 0);
}
