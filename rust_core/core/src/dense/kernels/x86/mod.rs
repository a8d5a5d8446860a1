//! Kernels of x86: AVX-512 with byte products, and AVX2.

mod avx2;
mod avx512;

use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

use super::Block;

pub(super) use avx2::*;
pub(super) use avx512::*;

/// Prefetches the cache lines of some blocks, which need not exist.
#[inline]
pub(super) fn prefetch(first: *const Block, count: usize) {
    for number in 0..count {
        // SAFETY: a prefetch reads nothing that the program sees, and is left out where there is no memory.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(first.wrapping_add(number).cast()) };
    }
}
