//! Faults on purpose, which `scripts/sanitize.sh` runs to see that each is reported. Never run otherwise: they are
//! wrong.
#![expect(unsafe_code, reason = "what safe code cannot do is what is tried")]

use std::cell::UnsafeCell;
use std::hint::black_box;

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
