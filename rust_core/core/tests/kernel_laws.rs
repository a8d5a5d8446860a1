//! Every kernel gives the same integers, and quantised cosines stay near the exact ones.

mod common;

use astrocyte_core::internals::{Block, Kernel, QuantisedQuery, dot, normalise};
use proptest::prelude::*;

fn naive(query: &[Block], row: &[Block]) -> i32 {
    let (pairs, _) = query.as_chunks::<2>();
    let component = |q: u8, nibble: u8| i32::from(q.cast_signed()) * i32::from(nibble);
    let blocks = pairs.iter().zip(row).flat_map(|([low, high], row)| {
        (0..64).map(move |at| {
            component(low.0[at], row.0[at] & 15) + component(high.0[at], row.0[at] >> 4)
        })
    });
    blocks.sum()
}

/// Another query: the same bytes backwards.
fn reversed(query: &[Block]) -> Vec<Block> {
    let mut other: Vec<Block> = query.iter().rev().copied().collect();
    for block in &mut other {
        block.0.reverse();
    }
    other
}

fn blocks(count: usize) -> impl Strategy<Value = Vec<Block>> {
    // Extreme bytes are as likely as all others together: they are where sums saturate.
    let byte = prop_oneof![Just(0u8), Just(127), Just(128), Just(255), any::<u8>()];
    prop::collection::vec(prop::collection::vec(byte, 64), count).prop_map(|blocks| {
        blocks
            .into_iter()
            .map(|bytes| Block(bytes.try_into().expect("64 bytes")))
            .collect()
    })
}

proptest! {
    #[test]
    fn kernels_agree_to_the_bit((width, count, query, rows) in (1usize..5, 0usize..11).prop_flat_map(
        |(width, count)| (Just(width), Just(count), blocks(2 * width), blocks(width * count))
    ), picks in prop::collection::vec(any::<prop::sample::Index>(), 0..9)) {
        let expected: Vec<i32> = rows.chunks(width).map(|row| naive(&query, row)).collect();
        let picks: Vec<u32> = if count == 0 { Vec::new() } else { picks.iter().map(|pick| pick.index(count) as u32).collect() };
        for kernel in Kernel::available() {
            let mut scanned = vec![0; count];
            kernel.scan(&query, &rows, &mut scanned);
            prop_assert_eq!(&scanned, &expected, "{} scan", kernel.name());
            let two = reversed(&query);
            let mut four = vec![[0; 4]; count];
            kernel.scan_four([&query, &two, &query, &two], &rows, &mut four);
            for (row, products) in rows.chunks(width).zip(&four) {
                let (one, other) = (naive(&query, row), naive(&two, row));
                prop_assert_eq!(products, &[one, other, one, other], "{} four queries", kernel.name());
            }
            let mut gathered = vec![0; picks.len()];
            let row = |at: usize| &rows[picks[at] as usize * width..(picks[at] as usize + 1) * width];
            kernel.gather(&query, row, &mut gathered);
            let picked: Vec<i32> = picks.iter().map(|&pick| expected[pick as usize]).collect();
            prop_assert_eq!(gathered, picked, "{} gather", kernel.name());
        }
    }

    #[test]
    fn a_unit_vector_has_length_one_and_keeps_its_direction(vector in prop::collection::vec(-1e3f32..1e3, 1..200)) {
        prop_assume!(vector.iter().any(|x| x.abs() > 1e-3));
        let unit = normalise(0, &vector, vector.len()).expect("finite and not zero");
        prop_assert!((dot(&unit, &unit) - 1.0).abs() < 1e-5);
        prop_assert!(unit.iter().zip(&vector).all(|(u, x)| u * x >= 0.0));
    }

    #[test]
    fn the_correction_takes_the_offset_out(vector in prop::collection::vec(-1f32..1.0, 1..200)) {
        prop_assume!(vector.iter().any(|x| x.abs() > 1e-3));
        let query = QuantisedQuery::new(&vector);
        // A row of zeros is the middle everywhere: its cosine is 0 only if the correction is right.
        let zeros = vec![Block::ZERO_ROW; query.blocks.len() / 2];
        let mut product = [0];
        Kernel::best().scan(&query.blocks, &zeros, &mut product);
        prop_assert_eq!(product[0], query.correction);
    }
}
