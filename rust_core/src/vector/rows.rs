//! The resident int8 rows of a bank, and the scans over them.

use super::kernels::Kernel;
use super::quantise::{BLOCK, Block, QuantisedQuery, quantise_row};
use super::reserve_tight;

/// The score of a row that has no vector.
pub(crate) const NO_SCORE: f32 = f32::NEG_INFINITY;
/// Rows per step: their integer products stay on the stack and in the first cache.
const STEP: usize = 256;

/// One quantised row per row number. A row without a vector has the scale 0.
#[derive(Debug, Default)]
pub(crate) struct RowVectors {
    width: usize,
    blocks: Vec<Block>,
    scales: Vec<f32>,
}

impl RowVectors {
    pub(crate) fn new(dimensions: usize) -> Self {
        Self {
            width: dimensions.div_ceil(BLOCK),
            blocks: Vec::new(),
            scales: Vec::new(),
        }
    }

    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        self.scales.len()
    }

    /// Appends a row; None holds the place of a row without a vector.
    pub(crate) fn push(&mut self, vector: Option<&[f32]>) {
        reserve_tight(&mut self.blocks, self.width);
        reserve_tight(&mut self.scales, 1);
        let start = self.blocks.len();
        self.blocks.resize(start + self.width, Block::ZERO_ROW);
        self.scales.push(vector.map_or(0.0, |vector| {
            quantise_row(vector, &mut self.blocks[start..])
        }));
    }

    /// Size of one step of the row; 0 for a row without a vector.
    pub(crate) fn step(&self, row: u32) -> f32 {
        self.scales[row as usize]
    }

    /// Wipes the row's bytes.
    pub(crate) fn erase(&mut self, row: u32) {
        self.scales[row as usize] = 0.0;
        self.row_mut(row).fill(Block::ZERO_ROW);
    }

    /// Cosines of all rows from `first` on, [`NO_SCORE`] for a row without a vector.
    pub(crate) fn scan(&self, query: &QuantisedQuery, first: usize, out: &mut [f32]) {
        let kernel = Kernel::best();
        let mut products = [0; STEP];
        for (step, scores) in out.chunks_mut(STEP).enumerate() {
            let start = first + step * STEP;
            let products = &mut products[..scores.len()];
            let rows = &self.blocks[start * self.width..(start + scores.len()) * self.width];
            kernel.scan(&query.blocks, rows, products);
            let scales = &self.scales[start..start + scores.len()];
            for ((score, &product), &scale) in scores.iter_mut().zip(&*products).zip(scales) {
                *score = cosine(query, product, scale);
            }
        }
    }

    /// Cosines of the rows `which`, given to `put` with the row.
    pub(crate) fn gather(
        &self,
        query: &QuantisedQuery,
        which: &[u32],
        mut put: impl FnMut(u32, f32),
    ) {
        let kernel = Kernel::best();
        let mut products = [0; STEP];
        for rows in which.chunks(STEP) {
            let products = &mut products[..rows.len()];
            kernel.gather(&query.blocks, &self.blocks, rows, products);
            for (&row, &product) in rows.iter().zip(&*products) {
                put(row, cosine(query, product, self.scales[row as usize]));
            }
        }
    }

    /// Keeps the rows with a new number, in order.
    pub(crate) fn compact(&mut self, new_rows: &[u32]) {
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

    /// Resident bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.blocks.capacity() * size_of::<Block>() + self.scales.capacity() * size_of::<f32>()
    }

    fn row_mut(&mut self, row: u32) -> &mut [Block] {
        let start = row as usize * self.width;
        &mut self.blocks[start..start + self.width]
    }
}

#[inline]
fn cosine(query: &QuantisedQuery, product: i32, scale: f32) -> f32 {
    let exact = (product - query.correction) as f32 * (query.scale * scale);
    if scale == 0.0 { NO_SCORE } else { exact }
}
