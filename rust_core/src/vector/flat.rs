//! The resident int8 rows of a bank, and the scans over them.

use super::dense::{DenseIndex, NO_SCORE, Plan};
use super::kernels::{Kernel, Work};
use super::quantise::{BLOCK, Block, QuantisedQuery, quantise_row};
use super::reserve_tight;
use crate::rowset::RowSet;

/// Rows per step: their integer products stay on the stack and in the first cache.
const STEP: usize = 256;
/// Rows per step when many queries are compared with them: 96 KB of 384 dimensions, which stay in the second cache.
const NEAR_STEP: usize = 256;
/// Queries that one pass over the rows serves: sixteen sums fit the registers.
const TOGETHER: usize = 4;

/// One quantised row per row number. A row without a vector has the scale 0.
#[derive(Debug, Default)]
pub(crate) struct FlatIndex {
    width: usize,
    blocks: Vec<Block>,
    scales: Vec<f32>,
}

impl FlatIndex {
    pub(crate) fn new(dimensions: usize) -> Self {
        Self {
            width: dimensions.div_ceil(BLOCK),
            blocks: Vec::new(),
            scales: Vec::new(),
        }
    }

    fn rows(&self, rows: std::ops::Range<usize>) -> &[Block] {
        &self.blocks[rows.start * self.width..rows.end * self.width]
    }

    fn scan(&self, query: &QuantisedQuery, out: &mut [f32]) {
        let kernel = Kernel::best();
        let mut products = [0; STEP];
        for (step, scores) in out.chunks_mut(STEP).enumerate() {
            let start = step * STEP;
            let end = start + scores.len();
            let products = &mut products[..scores.len()];
            kernel.scan(&query.blocks, self.rows(start..end), products);
            let scales = &self.scales[start..end];
            kernel.run(Cosines {
                query,
                products,
                scales,
                scores,
            });
        }
    }

    fn gather(&self, query: &QuantisedQuery, allowed: &RowSet, scores: &mut [f32]) {
        let kernel = Kernel::best();
        let (mut which, mut products) = ([0; STEP], [0; STEP]);
        let mut rows = allowed.iter();
        loop {
            let mut count = 0;
            for (slot, row) in which.iter_mut().zip(&mut rows) {
                *slot = row;
                count += 1;
            }
            if count == 0 {
                return;
            }
            let (which, products) = (&which[..count], &mut products[..count]);
            kernel.gather(&query.blocks, &self.blocks, which, products);
            for (&row, &product) in which.iter().zip(&*products) {
                scores[row as usize] = cosine(query, product, self.scales[row as usize]);
            }
        }
    }
}

impl DenseIndex for FlatIndex {
    fn len(&self) -> usize {
        self.scales.len()
    }

    fn push(&mut self, vector: Option<&[f32]>) {
        reserve_tight(&mut self.blocks, self.width);
        reserve_tight(&mut self.scales, 1);
        let start = self.blocks.len();
        self.blocks.resize(start + self.width, Block::ZERO_ROW);
        self.scales.push(vector.map_or(0.0, |vector| {
            quantise_row(vector, &mut self.blocks[start..])
        }));
    }

    fn erase(&mut self, row: u32) {
        let row = row as usize;
        self.scales[row] = 0.0;
        self.blocks[row * self.width..(row + 1) * self.width].fill(Block::ZERO_ROW);
    }

    fn compact(&mut self, new_rows: &[u32]) {
        for (old, &new) in new_rows
            .iter()
            .enumerate()
            .filter(|&(_, &new)| new != u32::MAX)
        {
            let source = old * self.width;
            self.blocks
                .copy_within(source..source + self.width, new as usize * self.width);
            self.scales[new as usize] = self.scales[old];
        }
        let kept = new_rows.iter().filter(|&&new| new != u32::MAX).count();
        self.blocks.truncate(kept * self.width);
        self.scales.truncate(kept);
        self.blocks.shrink_to_fit();
        self.scales.shrink_to_fit();
    }

    fn score(&self, query: &QuantisedQuery, allowed: &RowSet, plan: Plan, scores: &mut Vec<f32>) {
        match plan {
            Plan::Scan => {
                // Every score is written, so that what was there before need not be wiped.
                scores.resize(self.len(), NO_SCORE);
                self.scan(query, scores);
                mask(scores, allowed);
            }
            Plan::Gather => {
                scores.clear();
                scores.resize(self.len(), NO_SCORE);
                self.gather(query, allowed, scores);
            }
        }
    }

    fn near(
        &self,
        queries: &[QuantisedQuery],
        floors: &[f32],
        found: &mut dyn FnMut(usize, u32, f32),
    ) {
        let kernel = Kernel::best();
        let mut products = [[0; TOGETHER]; NEAR_STEP];
        for start in (0..self.len()).step_by(NEAR_STEP) {
            let end = self.len().min(start + NEAR_STEP);
            let (products, rows) = (&mut products[..end - start], self.rows(start..end));
            for (group, queries) in queries.chunks(TOGETHER).enumerate() {
                // A group that is not full repeats its last query, whose results are passed over.
                let blocks = |index: usize| queries[index.min(queries.len() - 1)].blocks.as_slice();
                kernel.scan_four(std::array::from_fn(blocks), rows, products);
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
                        near.all(|row, score| found(number, start as u32 + row, score));
                    }
                }
            }
        }
    }

    fn step(&self, row: u32) -> f32 {
        self.scales[row as usize]
    }

    fn bytes(&self) -> usize {
        self.blocks.capacity() * size_of::<Block>() + self.scales.capacity() * size_of::<f32>()
    }
}

#[inline]
fn cosine(query: &QuantisedQuery, product: i32, scale: f32) -> f32 {
    let exact = (product - query.correction) as f32 * (query.scale * scale);
    if scale == 0.0 { NO_SCORE } else { exact }
}

/// Fills `scores` from one query's products with some rows.
struct Cosines<'a> {
    query: &'a QuantisedQuery,
    products: &'a [i32],
    scales: &'a [f32],
    scores: &'a mut [f32],
}

impl Work for Cosines<'_> {
    type Output = ();

    #[expect(clippy::inline_always, reason = "compiled for each instruction set")]
    #[inline(always)]
    fn run(self) {
        let rows = self.products.iter().zip(self.scales);
        for (score, (&product, &scale)) in self.scores.iter_mut().zip(rows) {
            *score = cosine(self.query, product, scale);
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

/// Whether a row reaches the floor.
impl Work for &Near<'_> {
    type Output = bool;

    #[expect(clippy::inline_always, reason = "compiled for each instruction set")]
    #[inline(always)]
    fn run(self) -> bool {
        let rows = self.products.iter().zip(self.scales);
        rows.fold(false, |near, (products, &scale)| {
            near | (cosine(self.query, products[self.index], scale) >= self.floor)
        })
    }
}

impl Near<'_> {
    /// Calls `found` with the rows that reach the floor.
    fn all(&self, mut found: impl FnMut(u32, f32)) {
        for (row, (products, &scale)) in self.products.iter().zip(self.scales).enumerate() {
            let score = cosine(self.query, products[self.index], scale);
            if score >= self.floor {
                found(row as u32, score);
            }
        }
    }
}

fn mask(scores: &mut [f32], allowed: &RowSet) {
    if allowed.len() as usize == scores.len() {
        return;
    }
    for (part, &word) in scores.chunks_mut(64).zip(allowed.words()) {
        if word != u64::MAX {
            for (bit, score) in part.iter_mut().enumerate() {
                if (word >> bit) & 1 == 0 {
                    *score = NO_SCORE;
                }
            }
        }
    }
}
