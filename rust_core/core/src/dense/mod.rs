//! Vectors: checks, quantisation to int8, and the kernels that scan them.

pub(crate) mod exact_vectors;
mod format;
mod index;
mod kernels;
mod multi_query;
mod planes;
mod quantise;
mod scores;
mod sealed_planes;

pub(crate) use format::quantised_bytes;
pub(crate) use index::{Beside, DenseIndex, NO_SCORE, ReadOrder};
pub(crate) use kernels::BYTES;
pub use kernels::Kernel;
pub(crate) use kernels::Work;
pub(crate) use multi_query::TOGETHER;
pub(crate) use planes::FlatIndex;
pub(crate) use quantise::QuantisedRow;
pub use quantise::{Block, QuantisedQuery};

use crate::api::{CoreError, Result};

/// Most dimensions: far above any model, and low enough that a dot product of bytes cannot leave 32 bits
/// (32,768 x 8 x 127, sixteen times over, is about 5.3e8).
pub const MAX_DIMENSIONS: usize = 32_768;

/// Name of the kernel chosen at run time: "avx512-vnni", "avx2", "neon" or "scalar".
pub fn simd_path() -> &'static str {
    Kernel::best().name()
}

/// The unit vector in the direction of `vector`.
///
/// # Errors
/// [`CoreError::Dimensions`] for another length; [`CoreError::Vector`] for a NaN, an infinite or an all-zero vector.
pub fn normalise(row: usize, vector: &[f32], dimensions: usize) -> Result<Vec<f32>> {
    if vector.len() != dimensions {
        return Err(CoreError::Dimensions {
            row,
            expected: dimensions,
            got: vector.len(),
        });
    }
    let norm = squared_length(vector).sqrt();
    if !norm.is_finite() {
        let at = vector.iter().position(|x| !x.is_finite()).unwrap_or(0);
        let what = if vector[at].is_nan() {
            "a NaN"
        } else {
            "an infinite value"
        };
        return Err(CoreError::Vector {
            row,
            problem: format!("has {what} at index {at}"),
        });
    }
    if norm == 0.0 {
        return Err(CoreError::Vector {
            row,
            problem: "is all zero, so it has no direction".to_owned(),
        });
    }
    let inverse = 1.0 / norm;
    Ok(vector
        .iter()
        .map(|&x| (f64::from(x) * inverse) as f32)
        .collect())
}

/// Sum of squares, in f64 because squares of f32 overflow f32, and in lanes that do not wait for each other.
fn squared_length(vector: &[f32]) -> f64 {
    const LANES: usize = 8;
    let mut lanes = [0.0f64; LANES];
    let (blocks, rest) = vector.as_chunks::<LANES>();
    for block in blocks {
        for (sum, &x) in lanes.iter_mut().zip(block) {
            *sum += f64::from(x) * f64::from(x);
        }
    }
    let rest: f64 = rest.iter().map(|&x| f64::from(x) * f64::from(x)).sum();
    lanes.iter().sum::<f64>() + rest
}

/// Dot product in sixteen fixed lanes, so that every machine adds in the same order.
pub fn dot(left: &[f32], right: &[f32]) -> f32 {
    const LANES: usize = 16;
    let mut lanes = [0.0f32; LANES];
    let (left_blocks, left_rest) = left.as_chunks::<LANES>();
    let (right_blocks, right_rest) = right.as_chunks::<LANES>();
    for (a, b) in left_blocks.iter().zip(right_blocks) {
        for lane in 0..LANES {
            lanes[lane] += a[lane] * b[lane];
        }
    }
    let rest: f32 = left_rest.iter().zip(right_rest).map(|(a, b)| a * b).sum();
    lanes.iter().sum::<f32>() + rest
}

/// Bound of the distance of a cosine of whole bytes from the exact one, from the steps of the query and of the row.
///
/// Rounding errors are uniform within a step, so a product of unit vectors has the variance (q^2 + r^2) / 12, and six
/// standard deviations leave out one row in a billion. A bound that no vector can pass (by Cauchy and Schwarz) is five
/// times as wide at 384 dimensions and would have most of a subject's memories read again.
pub(crate) fn error_margin(query_step: f32, row_step: f32) -> f32 {
    6.0 * ((query_step * query_step + row_step * row_step) / 12.0).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_without_direction_is_refused_with_its_row() {
        let zero = normalise(3, &[0.0; 4], 4)
            .expect_err("it is refused")
            .to_string();
        assert!(
            zero.contains("row 3") && zero.contains("all zero"),
            "{zero}"
        );
        let nan = normalise(7, &[1.0, f32::NAN, 0.0, 0.0], 4)
            .expect_err("it is refused")
            .to_string();
        assert!(
            nan.contains("row 7") && nan.contains("NaN at index 1"),
            "{nan}"
        );
        let infinite = normalise(0, &[f32::NEG_INFINITY, 0.0, 0.0, 0.0], 4)
            .expect_err("it is refused")
            .to_string();
        assert!(infinite.contains("infinite value at index 0"), "{infinite}");
        assert!(
            normalise(1, &[1.0; 3], 4)
                .expect_err("it is refused")
                .to_string()
                .contains("has 3 dimensions")
        );
    }

    #[test]
    fn huge_and_tiny_vectors_become_unit_vectors() {
        for scale in [f32::MAX, f32::MIN_POSITIVE] {
            let unit = normalise(0, &[scale, 0.0, -scale, 0.0], 4).expect("finite");
            assert!((dot(&unit, &unit) - 1.0).abs() < 1e-6);
        }
    }
}
