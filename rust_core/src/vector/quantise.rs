//! Bytes for floats: each vector scaled by its own largest component.

/// Components in a block: one AVX-512 register, one cache line.
pub(super) const BLOCK: usize = 64;
/// Rows are stored as unsigned bytes around this offset, which is what the VNNI instruction wants (unsigned x signed);
/// the sum of the query's bytes takes the offset out again.
pub(super) const OFFSET: i32 = 128;
/// The largest magnitude of a quantised component; -128 is not used, so that signed products stay within 16 bits.
const LEVELS: f32 = 127.0;

/// 64 components on one cache line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct Block(pub [u8; BLOCK]);

impl Block {
    /// A row's block of zeros.
    pub const ZERO_ROW: Self = Self([OFFSET as u8; BLOCK]);
}

/// A query in signed bytes, with what turns integer products into cosines.
#[derive(Debug, Clone, PartialEq)]
pub struct QuantisedQuery {
    /// Signed bytes, padded with zeros to whole blocks.
    pub blocks: Vec<Block>,
    /// Size of one step.
    pub scale: f32,
    /// `OFFSET` times the sum of the bytes: what the offset of the rows adds to each product.
    pub correction: i32,
}

/// The offset byte nearest to a number of steps.
fn level_of(steps: f32) -> u8 {
    // Adding 128.5 and truncating rounds to nearest without a call: the sum is never negative.
    (steps + (OFFSET as f32 + 0.5)) as u8
}

fn step(vector: &[f32]) -> f32 {
    vector
        .iter()
        .fold(0.0f32, |largest, x| largest.max(x.abs()))
        / LEVELS
}

impl QuantisedQuery {
    /// Quantises a finite vector that is not zero.
    pub fn new(vector: &[f32]) -> Self {
        let scale = step(vector);
        let mut blocks = vec![Block([0; BLOCK]); vector.len().div_ceil(BLOCK)];
        let mut sum = 0;
        let inverse = 1.0 / scale;
        for (block, part) in blocks.iter_mut().zip(vector.chunks(BLOCK)) {
            for (byte, x) in block.0.iter_mut().zip(part) {
                let level = (i32::from(level_of(x * inverse)) - OFFSET) as i8;
                sum += i32::from(level);
                *byte = level.cast_unsigned();
            }
        }
        Self {
            blocks,
            scale,
            correction: OFFSET * sum,
        }
    }
}

/// Writes `vector` as offset bytes into `row`, whose padding is left at zero, and returns the size of one step.
pub(super) fn quantise_row(vector: &[f32], row: &mut [Block]) -> f32 {
    let scale = step(vector);
    let inverse = 1.0 / scale;
    for (block, part) in row.iter_mut().zip(vector.chunks(BLOCK)) {
        for (byte, x) in block.0.iter_mut().zip(part) {
            *byte = level_of(x * inverse);
        }
    }
    scale
}
