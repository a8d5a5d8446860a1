//! NEON.

use std::arch::aarch64::{
    int8x16_t, int32x4_t, uint8x16_t, vaddvq_s32, vandq_u8, vdupq_n_s32, vdupq_n_u8, vget_low_s8,
    vld1q_u8, vmlal_high_s8, vmlal_s8, vmull_high_s8, vmull_s8, vpadalq_s16, vreinterpretq_s8_u8,
    vshrq_n_u8,
};

use super::Block;

#[target_feature(enable = "neon")]
pub(super) fn products_neon<'a>(
    query: &[[Block; 2]],
    row_of: impl Fn(usize) -> &'a [Block],
    ahead: impl Fn(usize),
    out: &mut [i32],
) {
    in_groups_of_four!(query, row_of, ahead, out, four_neon, one_neon);
}

#[inline]
#[target_feature(enable = "neon")]
fn load16(block: &Block, at: usize) -> uint8x16_t {
    // SAFETY: `at` is 0, 16, 32 or 48, so sixteen bytes follow it within the block.
    unsafe { vld1q_u8(block.0.as_ptr().add(at)) }
}

/// Adds the products of 32 of a row's nibbles. Two products of 15 and 128 stay within 16 bits.
#[inline]
#[target_feature(enable = "neon")]
fn add_products(sum: int32x4_t, row: uint8x16_t, low: int8x16_t, high: int8x16_t) -> int32x4_t {
    let lower = vreinterpretq_s8_u8(vandq_u8(row, vdupq_n_u8(15)));
    let upper = vreinterpretq_s8_u8(vshrq_n_u8::<4>(row));
    let first = vmull_s8(vget_low_s8(lower), vget_low_s8(low));
    let first = vmlal_s8(first, vget_low_s8(upper), vget_low_s8(high));
    let second = vmlal_high_s8(vmull_high_s8(lower, low), upper, high);
    vpadalq_s16(vpadalq_s16(sum, first), second)
}

#[inline]
#[target_feature(enable = "neon")]
fn one_neon(query: &[[Block; 2]], row: &[Block]) -> i32 {
    four_neon(query, [row; 4])[0]
}

#[inline]
#[target_feature(enable = "neon")]
fn four_neon(query: &[[Block; 2]], rows: [&[Block]; 4]) -> [i32; 4] {
    let [a, b, c, d] = rows;
    let mut sums = [vdupq_n_s32(0); 4];
    for (((([low, high], a), b), c), d) in query.iter().zip(a).zip(b).zip(c).zip(d) {
        for at in [0, 16, 32, 48] {
            let low = vreinterpretq_s8_u8(load16(low, at));
            let high = vreinterpretq_s8_u8(load16(high, at));
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
