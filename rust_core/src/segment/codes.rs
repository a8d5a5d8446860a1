//! Vectors as the library that makes a graph stores them: signed bytes scaled by their own largest component, then the step's size.
//!
//! The graph library would scale by the norm, which uses a sixth of the levels; recall at 10 is .03 to .05 lower.

use crate::vector::{BYTES, Kernel};

/// Bytes of the step at the end.
const STEP_BYTES: usize = size_of::<f32>();
const LEVELS: f32 = 127.0;

/// Bytes of a code of vectors of `dimensions`.
pub(super) fn code_bytes(dimensions: usize) -> usize {
    dimensions.next_multiple_of(BYTES) + STEP_BYTES
}

/// A vector in signed bytes.
#[derive(Debug, Clone)]
pub(crate) struct Code(pub(super) Vec<i8>);

impl Code {
    /// The code of a finite vector that is not zero.
    pub(crate) fn new(vector: &[f32]) -> Self {
        let largest = vector.iter().fold(0.0f32, |most, x| most.max(x.abs()));
        let (step, inverse) = (largest / LEVELS, LEVELS / largest);
        let mut bytes = Vec::with_capacity(code_bytes(vector.len()));
        bytes.extend(vector.iter().map(|x| (x * inverse).round() as i8));
        bytes.resize(vector.len().next_multiple_of(BYTES), 0);
        bytes.extend(step.to_le_bytes().map(u8::cast_signed));
        Self(bytes)
    }
}

/// 1 - cosine of two codes of unit vectors.
pub(super) fn distance(left: &[i8], right: &[i8]) -> f32 {
    let middle = left.len() - STEP_BYTES;
    let product = product_of(&left[..middle], &right[..middle]);
    1.0 - product as f32 * (step_of(&left[middle..]) * step_of(&right[middle..]))
}

fn step_of(bytes: &[i8]) -> f32 {
    let mut four = [0; STEP_BYTES];
    for (to, &from) in four.iter_mut().zip(bytes) {
        *to = from.cast_unsigned();
    }
    f32::from_le_bytes(four)
}

/// Dot product of signed bytes, with the widest instructions of this machine.
fn product_of(left: &[i8], right: &[i8]) -> i32 {
    Kernel::best().signed(left, right)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_gives_the_same_product() {
        let row = |seed: i32| -> Vec<i8> {
            (0..384)
                .map(|n| ((n * 37 + seed) % 255 - 127) as i8)
                .collect()
        };
        let (left, right) = (row(1), row(90));
        let pairs = left.iter().zip(&right);
        let expected: i32 = pairs.map(|(&a, &b)| i32::from(a) * i32::from(b)).sum();
        for kernel in Kernel::available() {
            assert_eq!(kernel.signed(&left, &right), expected, "{}", kernel.name());
            assert_eq!(kernel.signed(&[-127; 64], &[127; 64]), -127 * 127 * 64);
        }
    }

    #[test]
    fn a_code_gives_the_cosine_of_its_vector() {
        let vector = |seed: u32| -> Vec<f32> {
            let raw: Vec<f32> = (0..100u32)
                .map(|n| ((n + seed).wrapping_mul(2_654_435_761) >> 8) as f32 / 8_388_608.0 - 1.0)
                .collect();
            crate::vector::normalise(0, &raw, 100).expect("finite")
        };
        let (one, other) = (vector(1), vector(2));
        let exact = crate::vector::dot(&one, &other);
        let coded = 1.0 - distance(&Code::new(&one).0, &Code::new(&other).0);
        assert!((exact - coded).abs() < 0.01, "{exact} {coded}");
        assert!(distance(&Code::new(&one).0, &Code::new(&one).0).abs() < 0.01);
    }
}
