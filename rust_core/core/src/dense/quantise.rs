//! Quantisation: each vector is scaled by its largest component to one byte a component, in two planes of nibbles.
//!
//! The high nibble alone gives a coarse component, in steps of sixteen; the low nibble gives the rest. The planes lie
//! apart, so that a search reads half of the bytes of most rows.

/// Components in a block of a query: one AVX-512 register of bytes, one cache line.
pub(super) const BLOCK: usize = 64;
/// Components in a block of a plane: two to a byte.
pub(super) const PACKED: usize = 2 * BLOCK;
/// The nibble of a component of 0 in either plane: eight, so that rounding is symmetrical.
pub(super) const MIDDLE: i32 = 8;
/// The weight of a high nibble against a low one.
pub(super) const COARSE: i32 = 16;
/// A component is stored as an unsigned byte around this offset: [`MIDDLE`] in both nibbles.
const OFFSET: i32 = MIDDLE * COARSE + MIDDLE;
/// The largest magnitude of a row's component: with the offset it fills a byte.
const ROW_LEVELS: f32 = 119.0;
/// The largest magnitude of a query's component; -128 is not used.
const QUERY_LEVELS: f32 = 127.0;
/// Standard deviation of what a low nibble says, all sixteen being alike likely: the root of (16 x 16 - 1) / 12.
const NIBBLE_DEVIATION: f32 = 4.61;

/// One cache line: 64 components of a query, or 128 of a row's plane. A plane's byte holds in its low nibble the
/// component of the byte's number, in its high one the component 64 later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct Block(pub [u8; BLOCK]);

impl Block {
    /// A plane's block of a row of zeros.
    pub const ZERO_ROW: Self = Self([(MIDDLE * 16 + MIDDLE) as u8; BLOCK]);
}

/// A query in signed bytes, with what turns integer products into cosines.
#[derive(Debug, Clone, PartialEq)]
pub struct QuantisedQuery {
    /// Signed bytes, padded with zeros to two blocks for each block of a plane.
    pub blocks: Vec<Block>,
    /// Size of one step.
    pub scale: f32,
    /// The amount that the rows' `MIDDLE` adds to each product with a plane.
    pub correction: i32,
    /// Components of the vector; the blocks are padded.
    dimensions: usize,
    /// Bound of the distance of a coarse cosine from that of both planes, in steps of the row: one row in a billion is
    /// farther.
    pub reach: f32,
    /// The same bound for all but one row in a thousand.
    pub usual: f32,
}

fn step(vector: &[f32], levels: f32) -> f32 {
    vector
        .iter()
        .fold(0.0f32, |largest, x| largest.max(x.abs()))
        / levels
}

/// Blocks of a plane that a row takes.
pub(super) fn width(dimensions: usize) -> usize {
    dimensions.div_ceil(PACKED)
}

impl QuantisedQuery {
    /// Quantises a finite vector that is not zero.
    pub fn new(vector: &[f32]) -> Self {
        let scale = step(vector, QUERY_LEVELS);
        let mut blocks = vec![Block([0; BLOCK]); 2 * width(vector.len())];
        let (mut sum, mut sizes, mut squares) = (0, 0, 0i64);
        let inverse = 1.0 / scale;
        for (block, part) in blocks.iter_mut().zip(vector.chunks(BLOCK)) {
            for (byte, x) in block.0.iter_mut().zip(part) {
                // Adding 128.5 and truncating rounds to nearest without a call: the sum is never negative.
                let level = i32::from((x * inverse + 128.5) as u8) - 128;
                sum += level;
                sizes += level.abs();
                squares += i64::from(level * level);
                *byte = (level as i8).cast_unsigned();
            }
        }
        // Low nibbles are all alike likely, and their mean is a half below the middle. A vector of few components has a
        // lower bound that none can pass.
        let bound = (MIDDLE * sizes) as f32;
        let within = |deviations: f32| {
            let likely = deviations * NIBBLE_DEVIATION * (squares as f32).sqrt();
            scale * (likely + 0.5 * sum.abs() as f32).min(bound)
        };
        Self {
            blocks,
            scale,
            correction: MIDDLE * sum,
            dimensions: vector.len(),
            reach: within(6.0),
            usual: within(3.0),
        }
    }

    /// The signed bytes without the padding.
    pub(crate) fn levels(&self) -> Vec<i8> {
        let bytes = self.blocks.iter().flat_map(|block| block.0);
        bytes.map(u8::cast_signed).take(self.dimensions).collect()
    }
}

/// A row in both planes.
#[derive(Debug, Clone)]
pub(crate) struct QuantisedRow {
    pub(super) high: Vec<Block>,
    pub(super) low: Vec<Block>,
    /// Size of one step.
    pub(super) scale: f32,
}

impl QuantisedRow {
    /// Quantises a finite vector that is not zero; the padding is left at zero.
    pub(crate) fn new(vector: &[f32]) -> Self {
        let scale = step(vector, ROW_LEVELS);
        let inverse = 1.0 / scale;
        let blocks = width(vector.len());
        let (mut high, mut low) = (vec![Block::ZERO_ROW; blocks], vec![Block::ZERO_ROW; blocks]);
        for ((high, low), part) in high.iter_mut().zip(&mut low).zip(vector.chunks(PACKED)) {
            for (at, x) in part.iter().enumerate() {
                let level = (x * inverse + (OFFSET as f32 + 0.5)) as u8;
                put(high, at, level >> 4);
                put(low, at, level & 15);
            }
        }
        Self { high, low, scale }
    }
}

fn put(block: &mut Block, at: usize, nibble: u8) {
    let byte = &mut block.0[at % BLOCK];
    *byte = if at < BLOCK {
        *byte & 0xf0 | nibble
    } else {
        *byte & 0x0f | nibble << 4
    };
}
