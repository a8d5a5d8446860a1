//! Vectors in the form that a build compares: signed bytes scaled by the largest component of each.
//!
//! Scaled by the norm they would use a sixth of the levels.

use crate::api::{CoreError, Result};
use crate::dense::{BYTES, Kernel, Work};

/// The largest magnitude of a component; -128 is not used.
const LEVELS: f32 = 127.0;
/// Offset that the kernel adds to each byte of one side, where its instruction takes unsigned bytes.
const OFFSET: i32 = 128;
/// Vectors that are compared with many at once.
pub(super) const FOUR: usize = 4;

/// Numbered vectors.
#[derive(Debug)]
pub(super) struct Codes {
    /// Bytes of one.
    width: usize,
    bytes: Vec<i8>,
    /// Sizes of one step.
    steps: Vec<f32>,
    /// Sums of the bytes, by which the offset is taken out.
    sums: Vec<i32>,
}

/// Working memory for the comparison of four vectors with many.
#[derive(Debug, Default)]
pub(super) struct Products(Vec<[i32; FOUR]>);

impl Codes {
    /// No vectors yet, with room for `capacity` of `dimensions`.
    ///
    /// # Errors
    /// [`CoreError::Graph`] when there is no memory for them.
    pub(super) fn new(dimensions: usize, capacity: usize) -> Result<Self> {
        let mut codes = Self::empty(dimensions.next_multiple_of(BYTES));
        let bytes = codes.bytes.try_reserve_exact(capacity * codes.width);
        let steps = bytes.and_then(|()| codes.steps.try_reserve_exact(capacity));
        let sums = steps.and_then(|()| codes.sums.try_reserve_exact(capacity));
        sums.map_err(|error| CoreError::Graph(error.to_string()))?;
        Ok(codes)
    }

    fn empty(width: usize) -> Self {
        Self {
            width,
            bytes: Vec::new(),
            steps: Vec::new(),
            sums: Vec::new(),
        }
    }

    /// Resident bytes of a vector of `dimensions`.
    pub(super) fn row_bytes(dimensions: usize) -> usize {
        dimensions.next_multiple_of(BYTES) + size_of::<f32>() + size_of::<i32>()
    }

    pub(super) fn len(&self) -> usize {
        self.steps.len()
    }

    /// Appends a finite vector that is not zero.
    pub(super) fn push(&mut self, vector: &[f32]) {
        let largest = vector.iter().fold(0.0f32, |most, x| most.max(x.abs()));
        let (start, inverse) = (self.bytes.len(), LEVELS / largest);
        let levels = vector.iter().map(|x| (x * inverse).round() as i8);
        self.bytes.extend(levels);
        self.bytes.resize(start + self.width, 0);
        self.steps.push(largest / LEVELS);
        let bytes = &self.bytes[start..];
        self.sums
            .push(bytes.iter().map(|&byte| i32::from(byte)).sum());
    }

    /// Removes all.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.steps.clear();
        self.sums.clear();
    }

    /// Some of them, with numbers of their own.
    pub(super) fn of(&self, members: &[u32]) -> Self {
        let mut some = Self::empty(self.width);
        self.gather(members, &mut some);
        some
    }

    /// Copies the codes of `members` over those in `some`.
    pub(super) fn gather(&self, members: &[u32], some: &mut Self) {
        some.width = self.width;
        some.clear();
        some.bytes.reserve_exact(members.len() * self.width);
        for &number in members {
            some.bytes.extend_from_slice(self.bytes(number));
            some.steps.push(self.steps[number as usize]);
            some.sums.push(self.sums[number as usize]);
        }
    }

    /// The components of a vector, and zeros up to whole words.
    pub(super) fn bytes(&self, number: u32) -> &[i8] {
        let start = number as usize * self.width;
        &self.bytes[start..start + self.width]
    }

    /// The cosine of two unit vectors, the same in either order.
    pub(super) fn cosine(&self, one: u32, other: u32) -> f32 {
        let product = Kernel::best().signed(self.bytes(one), self.bytes(other));
        product as f32 * (self.steps[one as usize] * self.steps[other as usize])
    }

    /// Sets `cosines` to those of each of up to [`FOUR`] vectors with all of the `others` from the `first` on.
    pub(super) fn cosines(
        &self,
        numbers: &[u32],
        (others, first): (&Self, usize),
        Products(products): &mut Products,
        cosines: &mut [Vec<f32>; FOUR],
    ) {
        let kernel = Kernel::best();
        let count = others.len() - first;
        products.resize(count, [0; FOUR]);
        // Where there are fewer, the last one again.
        let four: [u32; FOUR] = std::array::from_fn(|index| numbers[index.min(numbers.len() - 1)]);
        let lefts = four.map(|number| self.bytes(number));
        kernel.signed_four(lefts, &others.bytes[first * others.width..], products);
        for (index, cosines) in cosines.iter_mut().enumerate() {
            // Every one is written.
            cosines.resize(count, 0.0);
            kernel.run(Cosines {
                index,
                products,
                step: self.steps[four[index] as usize],
                steps: &others.steps[first..],
                sums: &others.sums[first..],
                out: cosines,
            });
        }
    }
}

impl Default for Codes {
    fn default() -> Self {
        Self::empty(BYTES)
    }
}

/// The cosines of one of four vectors.
struct Cosines<'a> {
    index: usize,
    products: &'a [[i32; FOUR]],
    step: f32,
    /// The codes of the others.
    steps: &'a [f32],
    sums: &'a [i32],
    out: &'a mut [f32],
}

impl Work for Cosines<'_> {
    type Output = ();

    #[expect(clippy::inline_always, reason = "compiled for each instruction set")]
    #[inline(always)]
    fn run(self) {
        let others = self.products.iter().zip(self.steps).zip(self.sums);
        for (cosine, ((products, &step), &sum)) in self.out.iter_mut().zip(others) {
            let product = products[self.index] - OFFSET * sum;
            *cosine = product as f32 * (self.step * step);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIMENSIONS: usize = 100;

    fn vector(seed: u32) -> Vec<f32> {
        let raw: Vec<f32> = (0..DIMENSIONS as u32)
            .map(|n| ((n + seed * 977).wrapping_mul(2_654_435_761) >> 8) as f32 / 8_388_608.0 - 1.0)
            .collect();
        crate::dense::normalise(0, &raw, DIMENSIONS).expect("finite")
    }

    #[test]
    fn codes_give_the_cosines_of_their_vectors() {
        let mut codes = Codes::new(DIMENSIONS, 7).expect("there is memory");
        (0..7).for_each(|seed| codes.push(&vector(seed)));
        let members = [6, 0, 3, 5, 1, 2];
        let others = (&codes.of(&members), 1);
        let (mut products, mut cosines) = (Products::default(), Default::default());
        codes.cosines(&[2, 4, 6], others, &mut products, &mut cosines);
        for (&one, cosines) in [2, 4, 6].iter().zip(&cosines) {
            assert_eq!(cosines.len(), 5);
            for (&other, &cosine) in members[1..].iter().zip(cosines) {
                let exact = crate::dense::dot(&vector(one), &vector(other));
                assert!((exact - cosine).abs() < 0.01, "{exact} {cosine}");
                // The same to the bit, whichever way it is come by.
                let both = [codes.cosine(one, other), codes.cosine(other, one)];
                assert_eq!(both.map(f32::to_bits), [cosine.to_bits(); 2]);
            }
        }
    }
}
