//! AVX-512 with byte products.

use std::arch::x86_64::{
    __m512i, _mm_add_epi32, _mm256_add_epi32, _mm256_castsi256_si128, _mm256_extracti128_si256,
    _mm512_add_epi32, _mm512_and_si512, _mm512_castsi512_si256, _mm512_dpbusd_epi32,
    _mm512_extracti64x4_epi64, _mm512_load_si512, _mm512_loadu_ps, _mm512_loadu_si512,
    _mm512_maskz_compress_epi32, _mm512_maskz_compress_ps, _mm512_reduce_add_epi32,
    _mm512_set_epi32, _mm512_set1_epi8, _mm512_set1_epi32, _mm512_setzero_si512, _mm512_srli_epi16,
    _mm512_storeu_ps, _mm512_storeu_si512, _mm512_unpackhi_epi32, _mm512_unpackhi_epi64,
    _mm512_unpacklo_epi32, _mm512_unpacklo_epi64, _mm512_xor_si512,
};
use std::mem::MaybeUninit;

use super::super::{BYTES, Block, Work, fetch_behind};
use super::avx2::store128;

/// Numbers of 32 bits in a register.
const LANES: usize = 16;

#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
pub(in super::super) fn products_avx512<'a>(
    query: &[[Block; 2]],
    row_of: impl Fn(usize) -> &'a [Block],
    ahead: impl Fn(usize),
    out: &mut [i32],
) {
    in_groups_of_four!(query, row_of, ahead, out, four_avx512, one_avx512);
}

/// Product of signed bytes. The instruction wants one side without a sign: 128 is added to it by flipping the sign's
/// bit, and taken out again by the sum of the other side.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
pub(in super::super) fn signed_avx512(left: &[[i8; BYTES]], right: &[[i8; BYTES]]) -> i32 {
    let (flip, ones) = (_mm512_set1_epi8(i8::MIN), _mm512_set1_epi8(1));
    let (mut products, mut sums) = (_mm512_setzero_si512(), _mm512_setzero_si512());
    for (left, right) in left.iter().zip(right) {
        // SAFETY: each is 64 bytes; the loads need no alignment.
        let (left, right) = unsafe {
            (
                _mm512_loadu_si512(left.as_ptr().cast()),
                _mm512_loadu_si512(right.as_ptr().cast()),
            )
        };
        products = _mm512_dpbusd_epi32(products, _mm512_xor_si512(left, flip), right);
        sums = _mm512_dpbusd_epi32(sums, ones, right);
    }
    _mm512_reduce_add_epi32(products) - 128 * _mm512_reduce_add_epi32(sums)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn load_signed512(bytes: &[i8; BYTES]) -> __m512i {
    // SAFETY: it is 64 bytes; the load needs no alignment.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

/// The bytes of four rows at one place, 128 added to each.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn load_flipped512([a, b, c, d]: [&[[i8; BYTES]]; 4], at: usize) -> [__m512i; 4] {
    let flip = _mm512_set1_epi8(i8::MIN);
    [
        _mm512_xor_si512(load_signed512(&a[at]), flip),
        _mm512_xor_si512(load_signed512(&b[at]), flip),
        _mm512_xor_si512(load_signed512(&c[at]), flip),
        _mm512_xor_si512(load_signed512(&d[at]), flip),
    ]
}

/// Sixteen sums for eight loads.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
pub(in super::super) fn signed_four_avx512(
    lefts: [&[[i8; BYTES]]; 4],
    rights: &[[i8; BYTES]],
    out: &mut [[i32; 4]],
) {
    let width = lefts[0].len();
    let row = |index: usize| &rights[index * width..(index + 1) * width];
    let (groups, rest) = out.as_chunks_mut::<4>();
    let grouped = groups.len() * 4;
    for (group, out) in groups.iter_mut().enumerate() {
        let first = group * 4;
        let rights = [row(first), row(first + 1), row(first + 2), row(first + 3)];
        let mut sums = [[_mm512_setzero_si512(); 4]; 4];
        for at in 0..width {
            let left = load_flipped512(lefts, at);
            for (sums, right) in sums.iter_mut().zip(rights) {
                let right = load_signed512(&right[at]);
                for (sum, left) in sums.iter_mut().zip(left) {
                    *sum = _mm512_dpbusd_epi32(*sum, left, right);
                }
            }
        }
        *out = [
            add_up(sums[0]),
            add_up(sums[1]),
            add_up(sums[2]),
            add_up(sums[3]),
        ];
    }
    for (index, out) in rest.iter_mut().enumerate() {
        let right = row(grouped + index);
        let mut sums = [_mm512_setzero_si512(); 4];
        for at in 0..width {
            let right = load_signed512(&right[at]);
            for (sum, left) in sums.iter_mut().zip(load_flipped512(lefts, at)) {
                *sum = _mm512_dpbusd_epi32(*sum, left, right);
            }
        }
        *out = add_up(sums);
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn load512(block: &Block) -> __m512i {
    // SAFETY: a block is 64 bytes on a 64-byte boundary.
    unsafe { _mm512_load_si512(block.0.as_ptr().cast()) }
}

/// Adds the products of a row's 128 nibbles.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn add512(sum: __m512i, row: __m512i, low: __m512i, high: __m512i) -> __m512i {
    let mask = _mm512_set1_epi8(15);
    let sum = _mm512_dpbusd_epi32(sum, _mm512_and_si512(row, mask), low);
    let upper = _mm512_and_si512(_mm512_srli_epi16::<4>(row), mask);
    _mm512_dpbusd_epi32(sum, upper, high)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn one_avx512(query: &[[Block; 2]], row: &[Block]) -> i32 {
    let mut sum = _mm512_setzero_si512();
    for ([low, high], row) in query.iter().zip(row) {
        sum = add512(sum, load512(row), load512(low), load512(high));
    }
    _mm512_reduce_add_epi32(sum)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn four_avx512(query: &[[Block; 2]], rows: [&[Block]; 4]) -> [i32; 4] {
    let [a, b, c, d] = rows;
    let mut sums = [_mm512_setzero_si512(); 4];
    for (((([low, high], a), b), c), d) in query.iter().zip(a).zip(b).zip(c).zip(d) {
        let (low, high) = (load512(low), load512(high));
        sums[0] = add512(sums[0], load512(a), low, high);
        sums[1] = add512(sums[1], load512(b), low, high);
        sums[2] = add512(sums[2], load512(c), low, high);
        sums[3] = add512(sums[3], load512(d), low, high);
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

/// Four rows with four queries: sixteen sums for twelve loads.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn tile_avx512(queries: [&[[Block; 2]]; 4], rows: [&[Block]; 4]) -> [[i32; 4]; 4] {
    let [a, b, c, d] = queries;
    let mut sums = [[_mm512_setzero_si512(); 4]; 4];
    for (block, (((a, b), c), d)) in a.iter().zip(b).zip(c).zip(d).enumerate() {
        let low = [&a[0], &b[0], &c[0], &d[0]].map(|block| load512(block));
        let high = [&a[1], &b[1], &c[1], &d[1]].map(|block| load512(block));
        for row in 0..4 {
            let part = load512(&rows[row][block]);
            for query in 0..4 {
                sums[row][query] = add512(sums[row][query], part, low[query], high[query]);
            }
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
pub(in super::super) fn four_queries_avx512(
    queries: [&[Block]; 4],
    rows: &[Block],
    out: &mut [[i32; 4]],
) {
    let queries = queries.map(|query| query.as_chunks::<2>().0);
    let width = queries[0].len();
    let row = |index: usize| &rows[index * width..(index + 1) * width];
    let (groups, rest) = out.as_chunks_mut::<4>();
    let grouped = groups.len() * 4;
    for (group, out) in groups.iter_mut().enumerate() {
        let first = group * 4;
        fetch_behind(rows, width, first);
        *out = tile_avx512(
            queries,
            [row(first), row(first + 1), row(first + 2), row(first + 3)],
        );
    }
    for (index, out) in rest.iter_mut().enumerate() {
        *out = tile_avx512(queries, [row(grouped + index); 4])[0];
    }
}

/// Of a word with few wanted values one after the other, of others sixteen at a time: those that are wanted move
/// together in a register, which is stored whole. What is written beyond them is written over by the next.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
pub(in super::super) fn pick_avx512(
    first: u32,
    wanted: &[u64],
    values: &mut [[f32; 64]],
    (numbers, picked): (&mut Vec<u32>, &mut Vec<f32>),
) {
    let most: usize = wanted.iter().map(|word| word.count_ones() as usize).sum();
    numbers.reserve(most + LANES);
    picked.reserve(most + LANES);
    let mut count = 0;
    let (to_numbers, to_picked) = (numbers.spare_capacity_mut(), picked.spare_capacity_mut());
    let from_zero = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    for ((first, &word), values) in (first..).step_by(64).zip(wanted).zip(values) {
        let held = word.count_ones() as usize;
        if held <= FEW {
            let end = count + FEW;
            let few = (&mut to_numbers[count..end], &mut to_picked[count..end]);
            pick_few(first, word, values, few);
            count += held;
            continue;
        }
        for (lane, values) in values.as_chunks_mut::<LANES>().0.iter_mut().enumerate() {
            let mask = (word >> (lane * LANES)) as u16;
            let base = _mm512_set1_epi32((first + (lane * LANES) as u32).cast_signed());
            let some = _mm512_maskz_compress_epi32(mask, _mm512_add_epi32(base, from_zero));
            // SAFETY: sixteen floats; the load needs no alignment.
            let of_some = unsafe { _mm512_loadu_ps(values.as_ptr()) };
            let of_some = _mm512_maskz_compress_ps(mask, of_some);
            let end = count + LANES;
            let (some_to, of_some_to) = (&mut to_numbers[count..end], &mut to_picked[count..end]);
            // SAFETY: each has room for sixteen; the stores need no alignment.
            unsafe {
                _mm512_storeu_si512(some_to.as_mut_ptr().cast(), some);
                _mm512_storeu_ps(of_some_to.as_mut_ptr().cast(), of_some);
            }
            *values = [0.0; LANES];
            count += mask.count_ones() as usize;
        }
    }
    debug_assert_eq!(count, most);
    // SAFETY: `count` entries behind the old ones were written in each.
    unsafe {
        numbers.set_len(numbers.len() + count);
        picked.set_len(picked.len() + count);
    }
}

/// Wanted values of a word that are taken one by one: always as many, because to ask whether there is another one costs
/// more than to take it.
const FEW: usize = 4;

/// Writes the wanted values and their numbers, and leaves 0.
#[inline]
fn pick_few(
    first: u32,
    mut word: u64,
    values: &mut [f32; 64],
    (numbers, picked): (&mut [MaybeUninit<u32>], &mut [MaybeUninit<f32>]),
) {
    for (number, value) in numbers.iter_mut().zip(picked) {
        // Where there is none left it is the last one: 0, or taken before.
        let at = (word | 1 << 63).trailing_zeros();
        number.write(first + at);
        value.write(std::mem::take(&mut values[at as usize]));
        word &= word.wrapping_sub(1);
    }
}

/// Runs `work` with 512-bit vectors.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
pub(in super::super) fn run_avx512<W: Work>(work: W) -> W::Output {
    work.run()
}
