//! Scans for several queries at once: each row is read once for four of them.

use std::borrow::Borrow;

use super::index::DenseIndex;
use super::kernels::{Kernel, Work};
use super::planes::{FlatIndex, STEP, one};
use super::quantise::{Block, QuantisedQuery};
use super::scores::{coarse, fine};

/// Queries that one pass over the rows serves: sixteen sums fit the registers.
pub(crate) const TOGETHER: usize = 4;

impl FlatIndex {
    /// Fills one array of scores a query, of [`TOGETHER`] at most, with the coarse cosines of all rows.
    pub(super) fn scan_together(&self, queries: &[&QuantisedQuery], scores: &mut [Vec<f32>]) {
        let kernel = Kernel::best();
        for scores in &mut *scores {
            // Every score is written, so that what was there before need not be wiped.
            scores.resize(self.len(), 0.0);
        }
        let mut products = [[0; TOGETHER]; STEP];
        for start in (0..self.len()).step_by(STEP) {
            let end = self.len().min(start + STEP);
            let products = &mut products[..end - start];
            kernel.scan_four(four(queries), self.high(start..end), products);
            for (index, (query, scores)) in queries.iter().zip(&mut *scores).enumerate() {
                kernel.run(Cosines {
                    query,
                    index,
                    products,
                    scales: &self.scales[start..end],
                    scores: &mut scores[start..end],
                });
            }
        }
    }

    /// As [`DenseIndex::near`].
    pub(super) fn find_near(
        &self,
        queries: &[QuantisedQuery],
        floors: &[f32],
        found: &mut dyn FnMut(usize, u32, f32),
    ) {
        let kernel = Kernel::best();
        let mut products = [[0; TOGETHER]; STEP];
        for start in (0..self.len()).step_by(STEP) {
            let end = self.len().min(start + STEP);
            let products = &mut products[..end - start];
            let rows = self.high(start..end);
            for (group, queries) in queries.chunks(TOGETHER).enumerate() {
                kernel.scan_four(four(queries), rows, products);
                for (index, query) in queries.iter().enumerate() {
                    let number = group * TOGETHER + index;
                    let near = Near {
                        query,
                        index,
                        products: &*products,
                        scales: &self.scales[start..end],
                        floor: floors[number],
                    };
                    // Most steps have nothing near: one comparison a row settles them.
                    if kernel.run(&near) {
                        near.all(|row, score| {
                            let row = start as u32 + row;
                            let mut product = [0];
                            kernel.gather(&query.blocks, |_| self.low(one(row)), &mut product);
                            let score = score + fine(query, product[0], self.scales[row as usize]);
                            if score >= floors[number] {
                                found(number, row, score);
                            }
                        });
                    }
                }
            }
        }
    }
}

/// The blocks of some queries. A group that is not full repeats its last one, whose results are passed over.
fn four<Q: Borrow<QuantisedQuery>>(queries: &[Q]) -> [&[Block]; TOGETHER] {
    std::array::from_fn(|index| {
        let query = queries[index.min(queries.len() - 1)].borrow();
        query.blocks.as_slice()
    })
}

/// Fills `scores` from one query's products with some rows' high plane.
struct Cosines<'a> {
    query: &'a QuantisedQuery,
    /// Place of the query's products.
    index: usize,
    products: &'a [[i32; TOGETHER]],
    scales: &'a [f32],
    scores: &'a mut [f32],
}

impl Work for Cosines<'_> {
    type Output = ();

    #[expect(clippy::inline_always, reason = "compiled for each instruction set")]
    #[inline(always)]
    fn run(self) {
        let rows = self.products.iter().zip(self.scales);
        for (score, (products, &scale)) in self.scores.iter_mut().zip(rows) {
            *score = coarse(self.query, products[self.index], scale);
        }
    }
}

/// One query's products with some rows, to be compared with a floor.
struct Near<'a> {
    query: &'a QuantisedQuery,
    /// Place of the query's products.
    index: usize,
    products: &'a [[i32; TOGETHER]],
    scales: &'a [f32],
    floor: f32,
}

/// Tests each row for a score that may reach the floor.
impl Work for &Near<'_> {
    type Output = bool;

    #[expect(clippy::inline_always, reason = "compiled for each instruction set")]
    #[inline(always)]
    fn run(self) -> bool {
        let rows = self.products.iter().zip(self.scales);
        rows.fold(false, |near, (products, &scale)| {
            near | (self.highest(products, scale) >= self.floor)
        })
    }
}

impl Near<'_> {
    /// The upper bound of a row's cosine.
    #[expect(clippy::inline_always, reason = "compiled for each instruction set")]
    #[inline(always)]
    fn highest(&self, products: &[i32; TOGETHER], scale: f32) -> f32 {
        coarse(self.query, products[self.index], scale) + self.query.reach * scale
    }

    /// Calls `found` with the rows that may reach the floor, and their coarse cosines.
    fn all(&self, mut found: impl FnMut(u32, f32)) {
        for (row, (products, &scale)) in self.products.iter().zip(self.scales).enumerate() {
            if self.highest(products, scale) >= self.floor {
                found(row as u32, coarse(self.query, products[self.index], scale));
            }
        }
    }
}
