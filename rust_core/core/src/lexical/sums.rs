//! Sums of term scores by row, computed for one range of rows at a time.
//!
//! The postings of a term are spread over the whole bank; with one array of sums each posting would wait for memory.
//! The sums of a range stay in the second-level cache while the terms take turns.

use std::ops::Range;

use crate::dense::Kernel;

/// Rows whose sums are made together: 128 KB.
const WINDOW: u32 = 1 << 15;

/// Rows, ascending, each with a sum above 0.
#[derive(Debug, Default)]
pub struct Sums {
    /// The rows.
    pub rows: Vec<u32>,
    /// Their sums, in the same order.
    pub values: Vec<f32>,
    window: RowWindow,
    /// The rows and sums before the last addition, kept for their allocation.
    before: (Vec<u32>, Vec<f32>),
    /// The results of a second thread, kept for their allocation.
    upper: (Vec<u32>, Vec<f32>, RowWindow),
}

impl Sums {
    /// Takes all out.
    pub fn clear(&mut self) {
        self.rows.clear();
        self.values.clear();
    }

    /// Adds to the windows of all rows below `bound`, one after the other, what is filled in from a row on by what
    /// `begin` makes for that row. With `spread` a second thread does the upper half.
    pub fn add<F: FnMut(Range<u32>, &mut RowWindow)>(
        &mut self,
        bound: u32,
        spread: bool,
        begin: impl Fn(u32) -> F + Sync,
    ) {
        let Self {
            rows,
            values,
            window,
            before,
            upper,
        } = self;
        std::mem::swap(rows, &mut before.0);
        std::mem::swap(values, &mut before.1);
        let middle = if spread {
            (bound / 2).next_multiple_of(WINDOW).min(bound)
        } else {
            bound
        };
        let place = before.0.partition_point(|&row| row < middle);
        let (low_rows, high_rows) = before.0.split_at(place);
        let (low_sums, high_sums) = before.1.split_at(place);
        let mut lower = || {
            let known = (low_rows, low_sums);
            fill(
                0..middle,
                known,
                begin(0),
                window,
                (&mut *rows, &mut *values),
            );
        };
        if middle == bound {
            return lower();
        }
        rayon::in_place_scope(|scope| {
            scope.spawn(|_| {
                let (known, (rows, values, window)) = ((high_rows, high_sums), &mut *upper);
                fill(middle..bound, known, begin(middle), window, (rows, values));
            });
            lower();
        });
        rows.extend_from_slice(&upper.0);
        values.extend_from_slice(&upper.1);
    }
}

/// Leaves in `out` the `known` sums of some rows with what `add` adds to them.
fn fill(
    all: Range<u32>,
    (rows, sums): (&[u32], &[f32]),
    mut add: impl FnMut(Range<u32>, &mut RowWindow),
    window: &mut RowWindow,
    out: (&mut Vec<u32>, &mut Vec<f32>),
) {
    out.0.clear();
    out.1.clear();
    window.sums.resize(WINDOW as usize, 0.0);
    window.held.resize(WINDOW as usize / 64, 0);
    let known = rows.iter().zip(sums);
    let mut known = known.map(|(&row, &sum)| (row, sum)).peekable();
    for first in all.clone().step_by(WINDOW as usize) {
        let stretch = first..all.end.min(first.saturating_add(WINDOW));
        window.first = first;
        while let Some((row, sum)) = known.next_if(|&(row, _)| row < stretch.end) {
            window.add(row, sum);
        }
        add(stretch, window);
        window.harvest(out.0, out.1);
    }
}

/// The sums of some neighbouring rows.
#[derive(Debug, Default)]
pub struct RowWindow {
    first: u32,
    /// All 0 but for rows that are held.
    sums: Vec<f32>,
    /// A bit for each row.
    held: Vec<u64>,
}

impl RowWindow {
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
        for (bound, spread) in [
            (WINDOW * 2 + 77, false),
            (WINDOW * 2 + 77, true),
            (WINDOW * 3 / 2, true),
            (WINDOW, true),
            (77, true),
        ] {
            let mut sums = Sums::default();
            let terms = [1.0f32, 2.0, 4.0];
            let holds =
                |row: u32, term: usize| row.wrapping_mul(2_654_435_761) >> 20 & 7 > 4 + term as u32;
            let mut expected = std::collections::BTreeMap::new();
            for (term, &score) in terms.iter().enumerate() {
                sums.add(bound, spread, |_| {
                    |rows: Range<u32>, window: &mut RowWindow| {
                        for row in rows.filter(|&row| holds(row, term)) {
                            window.add(row, score);
                        }
                    }
                });
                for row in (0..bound).filter(|&row| holds(row, term)) {
                    *expected.entry(row).or_insert(0.0) += score;
                }
            }
            assert!(sums.rows.iter().copied().eq(expected.keys().copied()));
            assert!(sums.values.iter().copied().eq(expected.values().copied()));
            assert!(sums.rows.last() > Some(&(bound - 9)));
            sums.clear();
            sums.add(bound, spread, |_| |_, _: &mut RowWindow| {});
            assert!(sums.rows.is_empty() && sums.values.is_empty());
        }
    }

    #[test]
    fn who_fills_the_upper_half_begins_there() {
        let bound = WINDOW * 4;
        let seen = parking_lot::Mutex::new(Vec::new());
        Sums::default().add(bound, true, |first| {
            let seen = &seen;
            move |rows: Range<u32>, _: &mut RowWindow| seen.lock().push((first, rows.start))
        });
        let mut seen = seen.into_inner();
        seen.sort_unstable();
        let middle = WINDOW * 2;
        let expected = [(0, 0), (0, WINDOW), (middle, middle), (middle, WINDOW * 3)];
        assert_eq!(seen, expected);
    }
}
