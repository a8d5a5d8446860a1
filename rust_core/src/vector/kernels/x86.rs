//! AVX-512 with byte products, and AVX2.

use std::arch::x86_64::{
    __m128i, __m256i, __m512i, _MM_HINT_T0, _mm_add_epi32, _mm_load_si128, _mm_prefetch,
    _mm_storeu_si128, _mm256_add_epi32, _mm256_castsi256_si128, _mm256_cvtepi8_epi16,
    _mm256_cvtepu8_epi16, _mm256_extracti128_si256, _mm256_hadd_epi32, _mm256_madd_epi16,
    _mm256_setzero_si256, _mm512_add_epi32, _mm512_castsi512_si256, _mm512_dpbusd_epi32,
    _mm512_extracti64x4_epi64, _mm512_load_si512, _mm512_reduce_add_epi32, _mm512_setzero_si512,
    _mm512_unpackhi_epi32, _mm512_unpackhi_epi64, _mm512_unpacklo_epi32, _mm512_unpacklo_epi64,
};

use super::{AHEAD, Block, Work};

/// Asks for a row's cache lines.
#[inline]
fn prefetch(row: &[Block]) {
    for block in row {
        // SAFETY: a prefetch reads nothing that the program sees, and the address is that of a live block.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(block.0.as_ptr().cast()) };
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
pub(super) fn products_avx512(
    query: &[Block],
    rows: &[Block],
    out: &mut [i32],
    row_of: impl Fn(usize) -> usize,
) {
    in_groups_of_four!(query, rows, out, row_of, four_avx512, one_avx512);
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn load512(block: &Block) -> __m512i {
    // SAFETY: a block is 64 bytes on a 64-byte boundary.
    unsafe { _mm512_load_si512(block.0.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn one_avx512(query: &[Block], row: &[Block]) -> i32 {
    let mut sum = _mm512_setzero_si512();
    for (q, r) in query.iter().zip(row) {
        sum = _mm512_dpbusd_epi32(sum, load512(r), load512(q));
    }
    _mm512_reduce_add_epi32(sum)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn four_avx512(query: &[Block], rows: [&[Block]; 4]) -> [i32; 4] {
    let [a, b, c, d] = rows;
    let mut sums = [_mm512_setzero_si512(); 4];
    for ((((part, a), b), c), d) in query.iter().zip(a).zip(b).zip(c).zip(d) {
        let part = load512(part);
        sums[0] = _mm512_dpbusd_epi32(sums[0], load512(a), part);
        sums[1] = _mm512_dpbusd_epi32(sums[1], load512(b), part);
        sums[2] = _mm512_dpbusd_epi32(sums[2], load512(c), part);
        sums[3] = _mm512_dpbusd_epi32(sums[3], load512(d), part);
    }
    add_up(sums)
}

/// The sum of each of four registers.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn add_up(sums: [__m512i; 4]) -> [i32; 4] {
    // Transposes as it adds: each 128-bit lane ends as one partial sum of every register.
    let ab = _mm512_add_epi32(
        _mm512_unpacklo_epi32(sums[0], sums[1]),
        _mm512_unpackhi_epi32(sums[0], sums[1]),
    );
    let cd = _mm512_add_epi32(
        _mm512_unpacklo_epi32(sums[2], sums[3]),
        _mm512_unpackhi_epi32(sums[2], sums[3]),
    );
    let lanes = _mm512_add_epi32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd));
    let half = _mm256_add_epi32(
        _mm512_castsi512_si256(lanes),
        _mm512_extracti64x4_epi64::<1>(lanes),
    );
    store128(_mm_add_epi32(
        _mm256_castsi256_si128(half),
        _mm256_extracti128_si256::<1>(half),
    ))
}

/// Four rows with four queries: sixteen sums for eight loads.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn tile_avx512(queries: [&[Block]; 4], rows: [&[Block]; 4]) -> [[i32; 4]; 4] {
    let [a, b, c, d] = queries;
    let mut sums = [[_mm512_setzero_si512(); 4]; 4];
    for (block, (((a, b), c), d)) in a.iter().zip(b).zip(c).zip(d).enumerate() {
        let (a, b, c, d) = (load512(a), load512(b), load512(c), load512(d));
        for row in 0..4 {
            let part = load512(&rows[row][block]);
            sums[row][0] = _mm512_dpbusd_epi32(sums[row][0], part, a);
            sums[row][1] = _mm512_dpbusd_epi32(sums[row][1], part, b);
            sums[row][2] = _mm512_dpbusd_epi32(sums[row][2], part, c);
            sums[row][3] = _mm512_dpbusd_epi32(sums[row][3], part, d);
        }
    }
    [
        add_up(sums[0]),
        add_up(sums[1]),
        add_up(sums[2]),
        add_up(sums[3]),
    ]
}

#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
pub(super) fn four_queries_avx512(queries: [&[Block]; 4], rows: &[Block], out: &mut [[i32; 4]]) {
    let width = queries[0].len();
    let row = |index: usize| &rows[index * width..(index + 1) * width];
    let (groups, rest) = out.as_chunks_mut::<4>();
    let grouped = groups.len() * 4;
    for (group, out) in groups.iter_mut().enumerate() {
        let first = group * 4;
        *out = tile_avx512(
            queries,
            [row(first), row(first + 1), row(first + 2), row(first + 3)],
        );
    }
    for (index, out) in rest.iter_mut().enumerate() {
        *out = tile_avx512(queries, [row(grouped + index); 4])[0];
    }
}

/// Runs `work` with 512-bit vectors.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
pub(super) fn run_avx512<W: Work>(work: W) -> W::Output {
    work.run()
}

/// Runs `work` with 256-bit vectors.
#[target_feature(enable = "avx2")]
pub(super) fn run_avx2<W: Work>(work: W) -> W::Output {
    work.run()
}

#[inline]
#[target_feature(enable = "sse2")]
fn store128(sums: __m128i) -> [i32; 4] {
    let mut out = [0; 4];
    // SAFETY: `out` has room for 16 bytes; the store needs no alignment.
    unsafe { _mm_storeu_si128(out.as_mut_ptr().cast(), sums) };
    out
}

#[target_feature(enable = "avx2")]
pub(super) fn products_avx2(
    query: &[Block],
    rows: &[Block],
    out: &mut [i32],
    row_of: impl Fn(usize) -> usize,
) {
    in_groups_of_four!(query, rows, out, row_of, four_avx2, one_avx2);
}

/// The sixteen bytes from `at` on, sign-extended for the query.
#[inline]
#[target_feature(enable = "avx2")]
fn query16(block: &Block, at: usize) -> __m256i {
    // SAFETY: `at` is 0, 16, 32 or 48, so sixteen bytes follow it within the 64-byte aligned block.
    unsafe { _mm256_cvtepi8_epi16(_mm_load_si128(block.0.as_ptr().add(at).cast())) }
}

/// The sixteen bytes from `at` on, zero-extended for a row.
#[inline]
#[target_feature(enable = "avx2")]
fn row16(block: &Block, at: usize) -> __m256i {
    // SAFETY: as in `query16`.
    unsafe { _mm256_cvtepu8_epi16(_mm_load_si128(block.0.as_ptr().add(at).cast())) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn one_avx2(query: &[Block], row: &[Block]) -> i32 {
    four_avx2(query, [row; 4])[0]
}

#[inline]
#[target_feature(enable = "avx2")]
fn four_avx2(query: &[Block], rows: [&[Block]; 4]) -> [i32; 4] {
    let [a, b, c, d] = rows;
    let mut sums = [_mm256_setzero_si256(); 4];
    for ((((part, a), b), c), d) in query.iter().zip(a).zip(b).zip(c).zip(d) {
        for at in [0, 16, 32, 48] {
            let part = query16(part, at);
            sums[0] = _mm256_add_epi32(sums[0], _mm256_madd_epi16(row16(a, at), part));
            sums[1] = _mm256_add_epi32(sums[1], _mm256_madd_epi16(row16(b, at), part));
            sums[2] = _mm256_add_epi32(sums[2], _mm256_madd_epi16(row16(c, at), part));
            sums[3] = _mm256_add_epi32(sums[3], _mm256_madd_epi16(row16(d, at), part));
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
