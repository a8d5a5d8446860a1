//! AVX2.

use std::arch::x86_64::{
    __m128i, __m256i, _mm_add_epi32, _mm_loadu_si128, _mm_set1_epi8, _mm_storeu_si128,
    _mm_xor_si128, _mm256_add_epi16, _mm256_add_epi32, _mm256_and_si256, _mm256_castsi256_si128,
    _mm256_cvtepi8_epi16, _mm256_cvtepu8_epi16, _mm256_extracti128_si256, _mm256_hadd_epi32,
    _mm256_load_si256, _mm256_madd_epi16, _mm256_maddubs_epi16, _mm256_set1_epi8,
    _mm256_set1_epi16, _mm256_setzero_si256, _mm256_srli_epi16, _mm256_storeu_si256,
};

use super::super::{BYTES, Block, Work};

/// Four sums for each row, whose bytes are widened once for all.
#[target_feature(enable = "avx2")]
pub(in super::super) fn signed_four_avx2(
    lefts: [&[[i8; BYTES]]; 4],
    rights: &[[i8; BYTES]],
    out: &mut [[i32; 4]],
) {
    let width = lefts[0].len();
    let flip = _mm_set1_epi8(i8::MIN);
    for (out, right) in out.iter_mut().zip(rights.chunks(width)) {
        let mut sums = [_mm256_setzero_si256(); 4];
        for (at, right) in right.iter().enumerate() {
            for half in (0..BYTES).step_by(16) {
                let right = _mm256_cvtepi8_epi16(load_signed128(right, half));
                for (sum, left) in sums.iter_mut().zip(lefts) {
                    let left = _mm_xor_si128(load_signed128(&left[at], half), flip);
                    // No larger than 255 and 127: two products fit 32 bits.
                    let products = _mm256_madd_epi16(_mm256_cvtepu8_epi16(left), right);
                    *sum = _mm256_add_epi32(*sum, products);
                }
            }
        }
        for (out, sum) in out.iter_mut().zip(sums) {
            *out = add_up256(sum);
        }
    }
}

/// 16 bytes from a multiple of 16 below 64.
#[inline]
#[target_feature(enable = "avx2")]
fn load_signed128(bytes: &[i8; BYTES], at: usize) -> __m128i {
    let half = &bytes[at..at + 16];
    // SAFETY: the slice is 16 bytes; the load needs no alignment.
    unsafe { _mm_loadu_si128(half.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn add_up256(sum: __m256i) -> i32 {
    let mut lanes = [0i32; 8];
    // SAFETY: eight lanes of four bytes; the store needs no alignment.
    unsafe { _mm256_storeu_si256(lanes.as_mut_ptr().cast(), sum) };
    lanes.iter().sum()
}

/// Product of signed bytes, widened to 16 bits.
#[target_feature(enable = "avx2")]
pub(in super::super) fn signed_avx2(left: &[[i8; BYTES]], right: &[[i8; BYTES]]) -> i32 {
    let mut sum = _mm256_setzero_si256();
    for (left, right) in left.iter().zip(right) {
        for half in (0..BYTES).step_by(16) {
            let left = _mm256_cvtepi8_epi16(load_signed128(left, half));
            let right = _mm256_cvtepi8_epi16(load_signed128(right, half));
            sum = _mm256_add_epi32(sum, _mm256_madd_epi16(left, right));
        }
    }
    add_up256(sum)
}

/// Runs `work` with 256-bit vectors.
#[target_feature(enable = "avx2")]
pub(in super::super) fn run_avx2<W: Work>(work: W) -> W::Output {
    work.run()
}

#[inline]
#[target_feature(enable = "sse2")]
pub(super) fn store128(sums: __m128i) -> [i32; 4] {
    let mut out = [0; 4];
    // SAFETY: `out` has room for 16 bytes; the store needs no alignment.
    unsafe { _mm_storeu_si128(out.as_mut_ptr().cast(), sums) };
    out
}

#[target_feature(enable = "avx2")]
pub(in super::super) fn products_avx2<'a>(
    query: &[[Block; 2]],
    row_of: impl Fn(usize) -> &'a [Block],
    ahead: impl Fn(usize),
    out: &mut [i32],
) {
    in_groups_of_four!(query, row_of, ahead, out, four_avx2, one_avx2);
}

/// The 32 bytes from `at` on.
#[inline]
#[target_feature(enable = "avx2")]
fn load256(block: &Block, at: usize) -> __m256i {
    // SAFETY: `at` is 0 or 32, so 32 bytes follow it within the 64-byte aligned block.
    unsafe { _mm256_load_si256(block.0.as_ptr().add(at).cast()) }
}

/// Adds the products of 64 of a row's nibbles. Two pairs of products of 15 and 128 stay within 16 bits.
#[inline]
#[target_feature(enable = "avx2")]
fn add256(sum: __m256i, row: __m256i, low: __m256i, high: __m256i) -> __m256i {
    let mask = _mm256_set1_epi8(15);
    let upper = _mm256_and_si256(_mm256_srli_epi16::<4>(row), mask);
    let pairs = _mm256_add_epi16(
        _mm256_maddubs_epi16(_mm256_and_si256(row, mask), low),
        _mm256_maddubs_epi16(upper, high),
    );
    _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)))
}

#[inline]
#[target_feature(enable = "avx2")]
fn one_avx2(query: &[[Block; 2]], row: &[Block]) -> i32 {
    four_avx2(query, [row; 4])[0]
}

#[inline]
#[target_feature(enable = "avx2")]
fn four_avx2(query: &[[Block; 2]], rows: [&[Block]; 4]) -> [i32; 4] {
    let [a, b, c, d] = rows;
    let mut sums = [_mm256_setzero_si256(); 4];
    for (((([low, high], a), b), c), d) in query.iter().zip(a).zip(b).zip(c).zip(d) {
        for at in [0, 32] {
            let (low, high) = (load256(low, at), load256(high, at));
            sums[0] = add256(sums[0], load256(a, at), low, high);
            sums[1] = add256(sums[1], load256(b, at), low, high);
            sums[2] = add256(sums[2], load256(c, at), low, high);
            sums[3] = add256(sums[3], load256(d, at), low, high);
        }
    }
    let lanes = _mm256_hadd_epi32(
        _mm256_hadd_epi32(sums[0], sums[1]),
        _mm256_hadd_epi32(sums[2], sums[3]),
    );
    store128(_mm_add_epi32(
        _mm256_castsi256_si128(lanes),
        _mm256_extracti128_si256::<1>(lanes),
    ))
}
