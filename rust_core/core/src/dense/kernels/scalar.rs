//! Products of signed bytes without vector instructions.

use super::{BYTES, Block};

/// Product with 128 added to each byte of the left one.
pub(super) fn flipped_scalar(left: &[i8], right: &[i8]) -> i32 {
    let pairs = left.iter().zip(right);
    pairs
        .map(|(&a, &b)| (i32::from(a) + 128) * i32::from(b))
        .sum()
}

pub(super) fn signed_scalar(left: &[[i8; BYTES]], right: &[[i8; BYTES]]) -> i32 {
    let pairs = left.as_flattened().iter().zip(right.as_flattened());
    pairs.map(|(&a, &b)| i32::from(a) * i32::from(b)).sum()
}

pub(super) fn products_scalar<'a>(
    query: &[[Block; 2]],
    row_of: impl Fn(usize) -> &'a [Block],
    out: &mut [i32],
) {
    for (index, product) in out.iter_mut().enumerate() {
        *product = query
            .iter()
            .zip(row_of(index))
            .map(|(q, r)| block_product(q, r))
            .sum();
    }
}

pub(super) fn block_product([low, high]: &[Block; 2], row: &Block) -> i32 {
    let products = low.0.iter().zip(&high.0).zip(&row.0);
    products
        .map(|((low, high), r)| {
            i32::from(low.cast_signed()) * i32::from(r & 15)
                + i32::from(high.cast_signed()) * i32::from(r >> 4)
        })
        .sum()
}
