//! Dot products of signed query bytes with the nibbles of a plane, for four instruction sets.
//!
//! Every path gives the same integers, so that the machine never changes which candidates are found. Most `unsafe` code
//! of the crate is here: intrinsics that read through pointers, and calls of functions that need an instruction set
//! that was detected first.
#![expect(
    unsafe_code,
    reason = "SIMD intrinsics; each block states why it is sound"
)]

use std::sync::OnceLock;

use super::quantise::Block;
use scalar::{flipped_scalar, products_scalar, signed_scalar};

/// A loop over arrays. Its result may not depend on the order of rounding, which the width of the loop changes.
pub(crate) trait Work {
    /// The result.
    type Output;
    /// The loop; to be marked `inline(always)`, as only what is inlined is compiled for another instruction set.
    fn run(self) -> Self::Output;
}

/// An instruction set to compute with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kernel {
    /// AVX-512 with byte products (VNNI): 64 components an instruction.
    #[cfg(target_arch = "x86_64")]
    Avx512Vnni,
    /// AVX2: sums of four products in 16 bits, which nibbles cannot fill.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// NEON, on every 64-bit ARM.
    #[cfg(target_arch = "aarch64")]
    Neon,
    /// Plain Rust.
    Scalar,
}

/// Bytes that rows of signed bytes are a multiple of: the widest register.
pub(crate) const BYTES: usize = 64;

impl Kernel {
    /// The fastest kernel of this machine, detected once.
    pub fn best() -> Self {
        static BEST: OnceLock<Kernel> = OnceLock::new();
        *BEST.get_or_init(|| Self::available()[0])
    }

    /// All kernels that this machine can run, fastest first.
    pub fn available() -> Vec<Self> {
        let mut kernels = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512vnni")
            {
                kernels.push(Self::Avx512Vnni);
            }
            if is_x86_feature_detected!("avx2") {
                kernels.push(Self::Avx2);
            }
        }
        #[cfg(target_arch = "aarch64")]
        kernels.push(Self::Neon);
        kernels.push(Self::Scalar);
        kernels
    }

    /// The kernel's name, as reports print it.
    pub fn name(self) -> &'static str {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Vnni => "avx512-vnni",
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => "avx2",
            #[cfg(target_arch = "aarch64")]
            Self::Neon => "neon",
            Self::Scalar => "scalar",
        }
    }

    /// `out[i]` = product of `query` with the nibbles of row `i` of `rows`, offset included. A row has one block for
    /// two of the query's.
    ///
    /// # Panics
    /// When `rows` does not hold `out.len()` rows of half the query's length, or the kernel is not of this machine.
    pub fn scan(self, query: &[Block], rows: &[Block], out: &mut [i32]) {
        let width = query.len() / 2;
        assert_eq!(
            rows.len(),
            width * out.len(),
            "rows and results differ in number"
        );
        let row_of = |index: usize| &rows[index * width..(index + 1) * width];
        self.products(query, row_of, |first| fetch_behind(rows, width, first), out);
    }

    /// `out[i]` = product of `query` with the nibbles of the row that `row_of` gives for `i`, offset included.
    ///
    /// # Panics
    /// When the kernel is not of this machine.
    pub fn gather<'a>(
        self,
        query: &[Block],
        row_of: impl Fn(usize) -> &'a [Block],
        out: &mut [i32],
    ) {
        let count = out.len();
        let ahead = |first: usize| {
            for row in first + AHEAD..count.min(first + AHEAD + GROUP) {
                prefetch(row_of(row).as_ptr(), query.len() / 2);
            }
        };
        self.products(query, &row_of, ahead, out);
    }

    /// As [`gather`](Self::gather); `ahead` prefetches what is read after the group of rows that begins with one.
    fn products<'a>(
        self,
        query: &[Block],
        row_of: impl Fn(usize) -> &'a [Block],
        ahead: impl Fn(usize),
        out: &mut [i32],
    ) {
        self.check();
        let (query, _) = query.as_chunks::<2>();
        match self {
            // SAFETY: the instruction set was detected on this machine by the check above.
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Vnni => unsafe { x86::products_avx512(query, row_of, ahead, out) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => unsafe { x86::products_avx2(query, row_of, ahead, out) },
            // SAFETY: NEON is part of the base instruction set of aarch64.
            #[cfg(target_arch = "aarch64")]
            Self::Neon => unsafe { arm::products_neon(query, row_of, ahead, out) },
            Self::Scalar => products_scalar(query, row_of, out),
        }
    }

    /// Product of two rows of signed bytes, in whole registers of 64.
    ///
    /// # Panics
    /// When the lengths differ or are no multiple of 64, or the kernel is not of this machine.
    pub(crate) fn signed(self, left: &[i8], right: &[i8]) -> i32 {
        let ((left, rest), (right, others)) = (left.as_chunks(), right.as_chunks());
        assert!(
            left.len() == right.len() && rest.is_empty() && others.is_empty(),
            "the rows differ in length or have a rest"
        );
        self.check();
        match self {
            // SAFETY: the instruction set was detected on this machine by the check above.
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Vnni => unsafe { x86::signed_avx512(left, right) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => unsafe { x86::signed_avx2(left, right) },
            _ => signed_scalar(left, right),
        }
    }

    /// `out[i][j]` = product of row `j` of `lefts`, 128 added to each of its bytes, with row `i` of `rights`.
    ///
    /// # Panics
    /// When the lengths do not fit each other or are no multiple of 64, or the kernel is not of this machine.
    pub(crate) fn signed_four(self, lefts: [&[i8]; 4], rights: &[i8], out: &mut [[i32; 4]]) {
        let length = lefts[0].len();
        assert!(
            length.is_multiple_of(BYTES)
                && lefts.iter().all(|left| left.len() == length)
                && rights.len() == length * out.len(),
            "rows and results differ in number, or rows in length"
        );
        self.check();
        match self {
            // SAFETY: the instruction set was detected on this machine by the check above.
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Vnni => unsafe {
                let lefts = lefts.map(|left| left.as_chunks().0);
                x86::signed_four_avx512(lefts, rights.as_chunks().0, out);
            },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => unsafe {
                let lefts = lefts.map(|left| left.as_chunks().0);
                x86::signed_four_avx2(lefts, rights.as_chunks().0, out);
            },
            _ => {
                for (out, right) in out.iter_mut().zip(rights.chunks(length.max(1))) {
                    *out = lefts.map(|left| flipped_scalar(left, right));
                }
            }
        }
    }

    /// `out[i][j]` = product of query `j` with row `i` of `rows`, offset included: each row is read once for four.
    ///
    /// # Panics
    /// When the lengths do not fit each other, or the kernel is not of this machine.
    pub fn scan_four(self, queries: [&[Block]; 4], rows: &[Block], out: &mut [[i32; 4]]) {
        let length = queries[0].len();
        assert!(
            queries.iter().all(|query| query.len() == length)
                && rows.len() == length / 2 * out.len(),
            "rows and results differ in number, or queries in length"
        );
        self.check();
        match self {
            // SAFETY: the instruction set was detected on this machine by the check above.
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Vnni => unsafe { x86::four_queries_avx512(queries, rows, out) },
            _ => self.four_in_turn(queries, rows, out),
        }
    }

    /// For kernels without enough registers: few rows at a time, which stay in the first cache for the next query.
    fn four_in_turn(self, queries: [&[Block]; 4], rows: &[Block], out: &mut [[i32; 4]]) {
        let width = queries[0].len() / 2;
        let mut products = [0; ROWS_IN_TURN];
        for (out, rows) in out
            .chunks_mut(ROWS_IN_TURN)
            .zip(rows.chunks(ROWS_IN_TURN * width))
        {
            for (number, query) in queries.iter().enumerate() {
                let products = &mut products[..out.len()];
                self.scan(query, rows, products);
                for (out, &product) in out.iter_mut().zip(&*products) {
                    out[number] = product;
                }
            }
        }
    }

    /// Appends the values whose bits are set, 64 in a word, and their numbers, of which `first` is that of the first
    /// value. All others are 0, and so are these afterwards; no bit is left.
    ///
    /// # Panics
    /// When there are not 64 values a word, or the kernel is not of this machine.
    pub(crate) fn pick(
        self,
        first: u32,
        wanted: &mut [u64],
        values: &mut [f32],
        picked: (&mut Vec<u32>, &mut Vec<f32>),
    ) {
        let (values, rest) = values.as_chunks_mut::<64>();
        assert!(
            values.len() == wanted.len() && rest.is_empty(),
            "there are not 64 values a word"
        );
        self.check();
        match self {
            // SAFETY: the instruction set was detected on this machine by the check above.
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Vnni => unsafe { x86::pick_avx512(first, wanted, values, picked) },
            _ => pick_in_turn(first, wanted, values, picked),
        }
        wanted.fill(0);
    }

    /// Runs `work` compiled for this kernel's instruction set: the crate itself is compiled for any machine.
    ///
    /// # Panics
    /// When the kernel is not of this machine.
    #[inline]
    pub(crate) fn run<W: Work>(self, work: W) -> W::Output {
        self.check();
        match self {
            // SAFETY: the instruction set was detected on this machine by the check above.
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Vnni => unsafe { x86::run_avx512(work) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => unsafe { x86::run_avx2(work) },
            _ => work.run(),
        }
    }

    fn check(self) {
        assert!(
            self.available_now(),
            "{} is not available on this machine",
            self.name()
        );
    }

    /// The standard library caches what it detected, so that asking costs a load.
    fn available_now(self) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Vnni => {
                is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512vnni")
            }
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => is_x86_feature_detected!("avx2"),
            #[cfg(target_arch = "aarch64")]
            Self::Neon => true,
            Self::Scalar => true,
        }
    }
}

fn pick_in_turn(
    first: u32,
    wanted: &[u64],
    values: &mut [[f32; 64]],
    (numbers, picked): (&mut Vec<u32>, &mut Vec<f32>),
) {
    for ((first, &word), values) in (first..).step_by(64).zip(wanted).zip(values) {
        let (mut left, mut count) = (word, 0);
        let (mut some, mut of_some) = ([0; 64], [0.0; 64]);
        while left != 0 {
            let at = left.trailing_zeros();
            left &= left - 1;
            some[count] = first + at;
            of_some[count] = std::mem::take(&mut values[at as usize]);
            count += 1;
        }
        numbers.extend_from_slice(&some[..count]);
        picked.extend_from_slice(&of_some[..count]);
    }
}

/// Rows that are looked at together, so that their loads and sums overlap.
const GROUP: usize = 4;
/// Rows here and there that are asked for ahead of their use: about as many as arrive while one cache miss is served.
const AHEAD: usize = 16;
/// Bytes that are asked for ahead of those that are read in order: the processor reads ahead by itself, but up to the
/// end of a page only.
const PAGE_AHEAD: usize = 4096;
/// Rows of 384 dimensions that take a quarter of a first cache of 48 KB.
const ROWS_IN_TURN: usize = 64;

/// Prefetches the memory behind some rows, which is mostly read next.
#[inline]
fn fetch_behind(rows: &[Block], width: usize, first: usize) {
    let here = rows.as_ptr().wrapping_add(first * width);
    prefetch(here.wrapping_byte_add(PAGE_AHEAD), GROUP * width);
}

/// Splits `out` into groups of four rows, whose loads and sums overlap, and single rows at the end.
macro_rules! in_groups_of_four {
    ($query:expr, $row_of:expr, $ahead:expr, $out:expr, $four:ident, $one:ident) => {{
        let (row, ahead) = ($row_of, $ahead);
        let (groups, rest) = $out.as_chunks_mut::<4>();
        let grouped = groups.len() * 4;
        for (group, products) in groups.iter_mut().enumerate() {
            let first = group * 4;
            ahead(first);
            *products = $four(
                $query,
                [row(first), row(first + 1), row(first + 2), row(first + 3)],
            );
        }
        for (index, product) in rest.iter_mut().enumerate() {
            *product = $one($query, row(grouped + index));
        }
    }};
}

mod scalar;
// Below the macro, which they use.
#[cfg(target_arch = "aarch64")]
mod arm;
#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(target_arch = "x86_64")]
use x86::prefetch;

/// Prefetches cache lines, where the architecture has a way. The processor prefetches consecutive lines by itself.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn prefetch(_first: *const Block, _count: usize) {}

#[cfg(test)]
mod tests;
