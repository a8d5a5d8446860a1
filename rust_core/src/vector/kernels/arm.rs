//! NEON.

use std::arch::aarch64::{
    int16x8_t, int32x4_t, uint8x16_t, vaddvq_s32, vdupq_n_s32, vget_low_s8, vget_low_s16,
    vget_low_u8, vld1q_u8, vmlal_high_s16, vmlal_s16, vmovl_high_s8, vmovl_high_u8, vmovl_s8,
    vmovl_u8, vreinterpretq_s8_u8, vreinterpretq_s16_u16,
};

use super::{AHEAD, Block};

/// Asks for a row's cache lines: the portable way is to do nothing, the processor reads ahead by itself.
#[inline]
fn prefetch(_row: &[Block]) {}

#[target_feature(enable = "neon")]
pub(super) fn products_neon(
    query: &[Block],
    rows: &[Block],
    out: &mut [i32],
    row_of: impl Fn(usize) -> usize,
) {
    in_groups_of_four!(query, rows, out, row_of, four_neon, one_neon);
}

#[inline]
#[target_feature(enable = "neon")]
fn load16(block: &Block, at: usize) -> uint8x16_t {
    // SAFETY: `at` is 0, 16, 32 or 48, so sixteen bytes follow it within the block.
    unsafe { vld1q_u8(block.0.as_ptr().add(at)) }
}

#[inline]
#[target_feature(enable = "neon")]
fn add_products(sum: int32x4_t, row: uint8x16_t, low: int16x8_t, high: int16x8_t) -> int32x4_t {
    let row_low = vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(row)));
    let row_high = vreinterpretq_s16_u16(vmovl_high_u8(row));
    let sum = vmlal_s16(sum, vget_low_s16(row_low), vget_low_s16(low));
    let sum = vmlal_high_s16(sum, row_low, low);
    let sum = vmlal_s16(sum, vget_low_s16(row_high), vget_low_s16(high));
    vmlal_high_s16(sum, row_high, high)
}

#[inline]
#[target_feature(enable = "neon")]
fn one_neon(query: &[Block], row: &[Block]) -> i32 {
    four_neon(query, [row; 4])[0]
}

#[inline]
#[target_feature(enable = "neon")]
fn four_neon(query: &[Block], rows: [&[Block]; 4]) -> [i32; 4] {
    let [a, b, c, d] = rows;
    let mut sums = [vdupq_n_s32(0); 4];
    for ((((part, a), b), c), d) in query.iter().zip(a).zip(b).zip(c).zip(d) {
        for at in [0, 16, 32, 48] {
            let q = vreinterpretq_s8_u8(load16(part, at));
            let (low, high) = (vmovl_s8(vget_low_s8(q)), vmovl_high_s8(q));
            sums[0] = add_products(sums[0], load16(a, at), low, high);
            sums[1] = add_products(sums[1], load16(b, at), low, high);
            sums[2] = add_products(sums[2], load16(c, at), low, high);
            sums[3] = add_products(sums[3], load16(d, at), low, high);
        }
    }
    [
        vaddvq_s32(sums[0]),
        vaddvq_s32(sums[1]),
        vaddvq_s32(sums[2]),
        vaddvq_s32(sums[3]),
    ]
}
