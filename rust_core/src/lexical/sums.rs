//! Rows with what some terms add to their scores, ascending; added to a window of rows at a time.
//!
//! Postings of one term are spread over the whole bank, and so would be an array of sums: each posting would wait for memory.
//! The sums of a window stay in the second cache while the terms take their turns.

use std::ops::Range;

use crate::vector::Kernel;

/// Rows whose sums are made together: 128 KB.
const WINDOW: u32 = 1 << 15;

/// Rows, ascending, each with a sum above 0.
#[derive(Debug, Default)]
pub struct Sums {
    /// The rows.
    pub rows: Vec<u32>,
    /// Their sums, in the same order.
    pub values: Vec<f32>,
    window: Window,
    /// What was there before windows were added to, kept as room.
    before: (Vec<u32>, Vec<f32>),
}

impl Sums {
    /// Takes all out.
    pub fn clear(&mut self) {
        self.rows.clear();
        self.values.clear();
    }

    /// Adds what `fill` adds to the windows of all rows below `bound`, one after the other.
    pub fn add(&mut self, bound: u32, mut fill: impl FnMut(Range<u32>, &mut Window)) {
        let Self {
            rows,
            values,
            window,
            before,
        } = self;
        std::mem::swap(rows, &mut before.0);
        std::mem::swap(values, &mut before.1);
        rows.clear();
        values.clear();
        window.sums.resize(WINDOW as usize, 0.0);
        window.held.resize(WINDOW as usize / 64, 0);
        let before = before.0.iter().zip(&before.1);
        let mut before = before.map(|(&row, &sum)| (row, sum)).peekable();
        for first in (0..bound).step_by(WINDOW as usize) {
            let stretch = first..bound.min(first.saturating_add(WINDOW));
            window.first = first;
            while let Some((row, sum)) = before.next_if(|&(row, _)| row < stretch.end) {
                window.add(row, sum);
            }
            fill(stretch, window);
            window.harvest(rows, values);
        }
    }
}

/// The sums of some neighbouring rows.
#[derive(Debug, Default)]
pub struct Window {
    first: u32,
    /// All 0 but for rows that are held.
    sums: Vec<f32>,
    /// A bit for each row.
    held: Vec<u64>,
}

impl Window {
    /// Adds to the sum of a row of the window.
    #[inline]
    pub fn add(&mut self, row: u32, score: f32) {
        let at = (row - self.first) as usize;
        self.sums[at] += score;
        self.held[at / 64] |= 1 << (at % 64);
    }

    /// Appends what is held, and leaves nothing.
    fn harvest(&mut self, rows: &mut Vec<u32>, values: &mut Vec<f32>) {
        Kernel::best().pick(self.first, &mut self.held, &mut self.sums, (rows, values));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_out_in_order_with_all_that_was_added() {
        let bound = WINDOW * 2 + 77;
        let mut sums = Sums::default();
        let terms = [1.0f32, 2.0, 4.0];
        let holds =
            |row: u32, term: usize| row.wrapping_mul(2_654_435_761) >> 20 & 7 > 4 + term as u32;
        let mut expected = std::collections::BTreeMap::new();
        for (term, &score) in terms.iter().enumerate() {
            sums.add(bound, |rows, window| {
                for row in rows.filter(|&row| holds(row, term)) {
                    window.add(row, score);
                    *expected.entry(row).or_insert(0.0) += score;
                }
            });
        }
        assert!(sums.rows.iter().copied().eq(expected.keys().copied()));
        assert!(sums.values.iter().copied().eq(expected.values().copied()));
        assert!(sums.rows.last() > Some(&(WINDOW * 2)));
        sums.clear();
        sums.add(bound, |_, _| {});
        assert!(sums.rows.is_empty() && sums.values.is_empty());
    }
}
