//! The time that reads of vectors take on this machine, in order and at random.

use std::hint::black_box;
use std::sync::OnceLock;
use std::time::Instant;

use crate::dense::{Block, Kernel};

/// Nanoseconds to read and score one row of the coarse planes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ReadCosts {
    pub(super) in_order: f64,
    pub(super) random: f64,
}

/// Rows of the measurement, of [`MEASURED_BLOCKS`] cache lines each: 12 MB, more than the second-level cache holds.
const MEASURED_ROWS: usize = 1 << 16;
/// Half of a row of 384 dimensions, which a scan and a search read.
const MEASURED_BLOCKS: usize = 3;
/// Measurements of each kind, of which the least counts.
const MEASURED_TIMES: usize = 4;
/// Rows that are scored together, as those around one vector are.
const MEASURED_TOGETHER: usize = 32;
/// Odd, so that all rows are met once in an order that nothing foresees.
const STRIDE: usize = 20_011;

impl ReadCosts {
    /// The costs of this machine, measured once, in about 10 ms. The least of several times is not raised by other load.
    pub(super) fn measured() -> Self {
        static COSTS: OnceLock<ReadCosts> = OnceLock::new();
        *COSTS.get_or_init(|| {
            let rows = vec![Block::ZERO_ROW; MEASURED_ROWS * MEASURED_BLOCKS];
            let query = [Block::ZERO_ROW; 2 * MEASURED_BLOCKS];
            let time = |stride: usize| {
                let start = Instant::now();
                let mut products = [0; MEASURED_TOGETHER];
                for first in (0..MEASURED_ROWS).step_by(MEASURED_TOGETHER) {
                    let row = |at| {
                        let row = (first + at) * stride % MEASURED_ROWS;
                        &rows[row * MEASURED_BLOCKS..][..MEASURED_BLOCKS]
                    };
                    Kernel::best().gather(&query, row, &mut products);
                    black_box(products);
                }
                start.elapsed().as_nanos() as f64 / MEASURED_ROWS as f64
            };
            let least = |stride| {
                (0..MEASURED_TIMES)
                    .map(|_| time(stride))
                    .fold(f64::MAX, f64::min)
            };
            let in_order = least(1);
            let random = least(STRIDE).max(in_order);
            Self { in_order, random }
        })
    }

    /// The costs of rows of so many bytes. A scan takes time in proportion to its bytes. A random read waits for the
    /// row's first cache line; the others take as long as in a scan.
    pub(super) fn of_row(self, bytes: usize) -> Self {
        let measured = (MEASURED_BLOCKS * size_of::<Block>()) as f64;
        let in_order = self.in_order * bytes as f64 / measured;
        Self {
            in_order,
            random: self.random - self.in_order + in_order,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scan_costs_as_many_bytes_as_it_reads() {
        let measured = ReadCosts {
            in_order: 6.0,
            random: 30.0,
        };
        assert_eq!(measured.of_row(MEASURED_BLOCKS * 64), measured);
        let small = measured.of_row(2 * 64);
        assert_eq!((small.in_order, small.random), (4.0, 28.0));
        let large = measured.of_row(12 * 64);
        assert_eq!((large.in_order, large.random), (24.0, 48.0));
    }
}
