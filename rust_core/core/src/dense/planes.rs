//! The dense index: rows of one byte a component in two planes of nibbles, and the scans over them.

use std::ops::Range;

use parking_lot::Mutex;

use super::index::{Beside, DenseIndex, NO_SCORE, ReadOrder};
use super::kernels::Kernel;
use super::quantise::{Block, QuantisedQuery, QuantisedRow, width};
use super::scores::{Cosines, Largest, coarse, fine, mask};
use super::sealed_planes::{GROUP, SealedPlanes};
use crate::bitmap::Bitmap;
use crate::dense::exact_vectors::Scratch;
use crate::system::arrays::reserve_tight;
use crate::system::huge_pages::MemoryRanges;

/// Rows in a part, a multiple of the steps: of 384 dimensions 192 KB in each plane.
pub(super) const PART: usize = 1024;
/// Rows per step: their integer products stay on the stack and in the first cache.
pub(super) const STEP: usize = 256;
/// Rows that one of two threads takes at a time, a multiple of the parts: some fifty microseconds.
const SHARE: usize = 8 * PART;
/// Reading rows one by one costs about half as much again as reading all in order: above this share of them (in
/// percent) the low plane is read in order too.
const CROWD_PERCENT: usize = 60;
/// One quantised row per row number, in two planes. A row without a vector has the scale 0.
#[derive(Debug, Default)]
pub(crate) struct FlatIndex {
    pub(super) width: usize,
    /// The first rows, in files, where the bank is in the disk tier.
    pub(super) sealed: Vec<SealedPlanes>,
    /// The rows after these. All but the last hold [`PART`] rows.
    pub(super) parts: Vec<Planes>,
    pub(super) scales: Vec<f32>,
}

/// Some rows' blocks. Planes of all rows would be copied as they grow, and leave holes in memory.
#[derive(Debug, Default)]
pub(crate) struct Planes {
    /// The high nibbles, which every search reads.
    pub(super) high: Vec<Block>,
    /// The low nibbles, which are read of rows that may be among the best.
    pub(super) low: Vec<Block>,
}

impl FlatIndex {
    pub(crate) fn new(dimensions: usize) -> Self {
        Self {
            width: width(dimensions),
            sealed: Vec::new(),
            parts: Vec::new(),
            scales: Vec::new(),
        }
    }

    /// Bytes of one row in the high plane, which every scan and graph search reads.
    pub(crate) fn coarse_row_bytes(&self) -> usize {
        self.width * size_of::<Block>()
    }

    /// Notes where all of it lies.
    pub(crate) fn note_ranges(&self, ranges: &mut MemoryRanges) {
        for part in &self.parts {
            ranges.note(&part.high);
            ranges.note(&part.low);
        }
        ranges.note(&self.scales);
    }

    /// The high plane's blocks of rows of one part.
    #[inline]
    pub(super) fn high(&self, rows: Range<usize>) -> &[Block] {
        let first = self.sealed.len() * GROUP;
        if rows.start < first {
            return self.sealed[rows.start / GROUP].high(rows, self.width);
        }
        let part = (rows.start - first) / PART;
        &self.parts[part].high[self.blocks(rows)]
    }

    /// The low plane's.
    #[inline]
    pub(super) fn low(&self, rows: Range<usize>) -> &[Block] {
        let first = self.sealed.len() * GROUP;
        if rows.start < first {
            return self.sealed[rows.start / GROUP].low(rows, self.width);
        }
        let part = (rows.start - first) / PART;
        &self.parts[part].low[self.blocks(rows)]
    }

    /// The range of the blocks of rows in the planes of their part.
    fn blocks(&self, rows: Range<usize>) -> Range<usize> {
        let first = rows.start / PART * PART;
        (rows.start - first) * self.width..(rows.end - first) * self.width
    }

    /// The number of the part in memory that has the row.
    fn part_of(&self, row: usize) -> usize {
        (row - self.sealed.len() * GROUP) / PART
    }

    /// Room of zeros for the row of this number, the next one.
    fn append(&mut self, row: usize) -> (&mut [Block], &mut [Block]) {
        if row.is_multiple_of(PART) {
            self.parts.push(Planes::default());
        }
        let (blocks, part) = (self.blocks(row..row + 1), self.part_of(row));
        let Planes { high, low } = &mut self.parts[part];
        for plane in [&mut *high, &mut *low] {
            if row < PART {
                reserve_tight(plane, self.width);
            } else if plane.is_empty() {
                plane.reserve_exact(PART * self.width);
            }
            plane.resize(blocks.end, Block::ZERO_ROW);
        }
        (&mut high[blocks.clone()], &mut low[blocks])
    }

    /// Scores all rows; with something to do `beside`, in shares that two threads take as they come to them.
    fn scan(
        &self,
        query: &QuantisedQuery,
        whole: bool,
        beside: Option<Beside<'_>>,
        out: &mut [f32],
    ) {
        let Some(beside) = beside else {
            return self.scan_from(0, query, whole, out);
        };
        let shares = Mutex::new(out.chunks_mut(SHARE).enumerate());
        let take = || {
            // Not in the loop's head, where the lock would be held for the whole turn.
            let next = || shares.lock().next();
            while let Some((number, scores)) = next() {
                self.scan_from(number * SHARE, query, whole, scores);
            }
        };
        rayon::in_place_scope(|scope| {
            scope.spawn(|_| {
                beside();
                take();
            });
            take();
        });
    }

    /// Scores the rows from `first` on, a multiple of the steps.
    fn scan_from(&self, first: usize, query: &QuantisedQuery, whole: bool, out: &mut [f32]) {
        let kernel = Kernel::best();
        let mut products = [0; STEP];
        for (step, scores) in out.chunks_mut(STEP).enumerate() {
            let start = first + step * STEP;
            let rows = start..start + scores.len();
            let products = &mut products[..scores.len()];
            let scales = &self.scales[rows.clone()];
            kernel.scan(&query.blocks, self.high(rows.clone()), products);
            kernel.run(Cosines::<false> {
                query,
                products,
                scales,
                scores,
            });
            if whole {
                kernel.scan(&query.blocks, self.low(rows), products);
                kernel.run(Cosines::<true> {
                    query,
                    products,
                    scales,
                    scores,
                });
            }
        }
    }

    fn gather(&self, query: &QuantisedQuery, allowed: &Bitmap, scores: &mut [f32]) {
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
            kernel.gather(&query.blocks, |at| self.high(one(which[at])), products);
            for (&row, &product) in which.iter().zip(&*products) {
                scores[row as usize] = coarse(query, product, self.scales[row as usize]);
            }
        }
    }

    /// Adds the low plane's part of some ascending rows' cosines by reading all rows in order.
    fn rescore_in_order(&self, query: &QuantisedQuery, mut rows: &[u32], scores: &mut [f32]) {
        let kernel = Kernel::best();
        let mut products = [0; STEP];
        for start in (0..self.len()).step_by(STEP) {
            let end = self.len().min(start + STEP);
            let here;
            (here, rows) = rows.split_at(rows.partition_point(|&row| (row as usize) < end));
            if here.is_empty() {
                continue;
            }
            let products = &mut products[..end - start];
            kernel.scan(&query.blocks, self.low(start..end), products);
            for &row in here {
                let row = row as usize;
                scores[row] += fine(query, products[row - start], self.scales[row]);
            }
        }
    }
}

impl DenseIndex for FlatIndex {
    fn len(&self) -> usize {
        self.scales.len()
    }

    fn push(&mut self, row: Option<&QuantisedRow>) {
        let (high, low) = self.append(self.len());
        if let Some(row) = row {
            high.copy_from_slice(&row.high);
            low.copy_from_slice(&row.low);
        }
        reserve_tight(&mut self.scales, 1);
        self.scales.push(row.map_or(0.0, |row| row.scale));
    }

    fn erase(&mut self, row: u32) {
        let row = row as usize;
        self.scales[row] = 0.0;
        if let Some(group) = self.sealed.get_mut(row / GROUP) {
            return group.erase(row, self.width);
        }
        let (blocks, part) = (self.blocks(row..row + 1), self.part_of(row));
        self.parts[part].high[blocks.clone()].fill(Block::ZERO_ROW);
        self.parts[part].low[blocks].fill(Block::ZERO_ROW);
    }

    fn compacted(&self, new_rows: &[u32], files: Option<&Scratch>) -> Self {
        let mut left = Self {
            width: self.width,
            sealed: Vec::new(),
            parts: Vec::new(),
            scales: crate::system::arrays::kept(&self.scales, new_rows),
        };
        let mut files = files.filter(|_| !self.sealed.is_empty());
        for (row, &new) in (0..).zip(new_rows).filter(|&(_, &new)| new != u32::MAX) {
            let (high, low) = left.append(new as usize);
            high.copy_from_slice(self.high(one(row)));
            low.copy_from_slice(self.low(one(row)));
            if (new as usize + 1).is_multiple_of(GROUP) {
                // Where a file cannot be written, the rest stays in memory.
                files = files.filter(|files| left.seal_next(files).is_ok());
            }
        }
        left
    }

    fn coarse_scan(
        &self,
        query: &QuantisedQuery,
        allowed: &Bitmap,
        (plan, whole): (ReadOrder, bool),
        beside: Option<Beside<'_>>,
        scores: &mut Vec<f32>,
    ) {
        match plan {
            ReadOrder::Scan => {
                // Every score is written, so that what was there before need not be wiped.
                scores.resize(self.len(), NO_SCORE);
                self.scan(query, whole, beside, scores);
                mask(scores, allowed);
            }
            ReadOrder::Gather => {
                let mut gather = || {
                    scores.clear();
                    scores.resize(self.len(), NO_SCORE);
                    self.gather(query, allowed, scores);
                    if whole {
                        let rows: Vec<u32> = allowed.iter().collect();
                        self.rescore(query, &rows, scores);
                    }
                };
                let Some(beside) = beside else {
                    return gather();
                };
                rayon::in_place_scope(|scope| {
                    scope.spawn(|_| beside());
                    gather();
                });
            }
        }
    }

    fn rescore(&self, query: &QuantisedQuery, rows: &[u32], scores: &mut [f32]) {
        if rows.len() * 100 > self.len() * CROWD_PERCENT {
            if rows.is_sorted() {
                return self.rescore_in_order(query, rows, scores);
            }
            let mut rows = rows.to_vec();
            rows.sort_unstable();
            return self.rescore_in_order(query, &rows, scores);
        }
        let kernel = Kernel::best();
        let mut products = [0; STEP];
        for rows in rows.chunks(STEP) {
            let products = &mut products[..rows.len()];
            kernel.gather(&query.blocks, |at| self.low(one(rows[at])), products);
            for (&row, &product) in rows.iter().zip(&*products) {
                scores[row as usize] += fine(query, product, self.scales[row as usize]);
            }
        }
    }

    fn cosines(&self, query: &QuantisedQuery, rows: &[u32], cosines: &mut Vec<f32>) {
        let kernel = Kernel::best();
        let (mut high, mut low) = ([0; STEP], [0; STEP]);
        cosines.clear();
        for rows in rows.chunks(STEP) {
            let (high, low) = (&mut high[..rows.len()], &mut low[..rows.len()]);
            kernel.gather(&query.blocks, |at| self.high(one(rows[at])), high);
            kernel.gather(&query.blocks, |at| self.low(one(rows[at])), low);
            let products = high.iter().zip(&*low);
            cosines.extend(rows.iter().zip(products).map(|(&row, (&high, &low))| {
                let scale = self.scales[row as usize];
                coarse(query, high, scale) + fine(query, low, scale)
            }));
        }
    }

    fn coarse_cosines(&self, query: &QuantisedQuery, rows: &[u32], cosines: &mut Vec<f32>) {
        let kernel = Kernel::best();
        let mut products = [0; STEP];
        let last = self.len().saturating_sub(1) as u32;
        cosines.clear();
        for rows in rows.chunks(STEP) {
            let products = &mut products[..rows.len()];
            kernel.gather(
                &query.blocks,
                |at| self.high(one(rows[at].min(last))),
                products,
            );
            cosines.extend(rows.iter().zip(&*products).map(|(&row, &product)| {
                let scale = self.scales.get(row as usize);
                scale.map_or(NO_SCORE, |&scale| coarse(query, product, scale))
            }));
        }
    }

    fn coarse_scan_many(
        &self,
        queries: &[&QuantisedQuery],
        allowed: &Bitmap,
        scores: &mut [Vec<f32>],
    ) {
        self.scan_together(queries, scores);
        for scores in scores {
            mask(scores, allowed);
        }
    }

    fn near(
        &self,
        queries: &[QuantisedQuery],
        floors: &[f32],
        found: &mut dyn FnMut(usize, u32, f32),
    ) {
        self.find_near(queries, floors, found);
    }

    fn step(&self, row: u32) -> f32 {
        self.scales[row as usize]
    }

    fn steps(&self) -> &[f32] {
        &self.scales
    }

    fn largest_step(&self) -> f32 {
        Kernel::best().run(Largest(&self.scales))
    }

    fn bytes(&self) -> usize {
        let blocks = |part: &Planes| part.high.capacity() + part.low.capacity();
        self.parts.iter().map(blocks).sum::<usize>() * size_of::<Block>()
            + self.parts.capacity() * size_of::<Planes>()
            + self.scales.capacity() * size_of::<f32>()
    }
}

/// A row by itself.
#[inline]
pub(super) fn one(row: u32) -> Range<usize> {
    row as usize..row as usize + 1
}

#[cfg(test)]
mod tests;
