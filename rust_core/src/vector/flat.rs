//! The resident int8 rows of a bank, and the scans over them.

use super::dense::{DenseIndex, NO_SCORE, Plan, TOGETHER};
use super::kernels::Kernel;
use super::quantise::{BLOCK, Block, QuantisedQuery, quantise_row};
use super::reserve_tight;
use crate::rowset::RowSet;

/// Rows per step: their integer products stay on the stack and in the first cache.
const STEP: usize = 256;
/// Cosines that are compared with a floor at once.
const LANES: usize = 16;

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
            kernel.run(|| {
                for ((score, &product), &scale) in scores.iter_mut().zip(&*products).zip(scales) {
                    *score = cosine(query, product, scale);
                }
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
        queries: [&QuantisedQuery; TOGETHER],
        floors: [f32; TOGETHER],
        found: &mut dyn FnMut(usize, u32, f32),
    ) {
        let kernel = Kernel::best();
        let blocks = queries.map(|query| query.blocks.as_slice());
        let mut products = [[0; TOGETHER]; STEP];
        for start in (0..self.len()).step_by(STEP) {
            let end = self.len().min(start + STEP);
            let products = &mut products[..end - start];
            kernel.scan_four(blocks, self.rows(start..end), products);
            let cosine = |row: usize, query: usize, product| {
                cosine(queries[query], product, self.scales[row])
            };
            for (lanes, products) in products.chunks(LANES).enumerate() {
                let start = start + lanes * LANES;
                // Most steps have nothing near: one comparison a row settles them.
                let near = kernel.run(|| {
                    products
                        .iter()
                        .enumerate()
                        .fold(0, |near, (row, products)| {
                            (0..TOGETHER).fold(near, |near, query| {
                                let score = cosine(start + row, query, products[query]);
                                near | u32::from(score >= floors[query])
                            })
                        })
                });
                if near == 0 {
                    continue;
                }
                for (row, products) in products.iter().enumerate() {
                    for (query, &product) in products.iter().enumerate() {
                        let score = cosine(start + row, query, product);
                        if score >= floors[query] {
                            found(query, (start + row) as u32, score);
                        }
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
