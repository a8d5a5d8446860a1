//! Scores of rows from their products with a query: cosines by the high plane, and what the low plane adds.

use super::index::NO_SCORE;
use super::kernels::Work;
use super::quantise::{COARSE, QuantisedQuery};
use crate::bitmap::Bitmap;

/// Steps that are compared at a time.
const LANES: usize = 16;

/// A row's coarse cosine, from its product with the high plane.
#[inline]
pub(super) fn coarse(query: &QuantisedQuery, product: i32, scale: f32) -> f32 {
    let cosine = ((product - query.correction) * COARSE) as f32 * (query.scale * scale);
    if scale == 0.0 { NO_SCORE } else { cosine }
}

/// The amount that the product with the low plane adds to a coarse cosine.
#[inline]
pub(super) fn fine(query: &QuantisedQuery, product: i32, scale: f32) -> f32 {
    (product - query.correction) as f32 * (query.scale * scale)
}

/// The largest of some steps.
pub(super) struct Largest<'a>(pub(super) &'a [f32]);

impl Work for Largest<'_> {
    type Output = f32;

    #[expect(clippy::inline_always, reason = "compiled for each instruction set")]
    #[inline(always)]
    fn run(self) -> f32 {
        let mut most = [0.0f32; LANES];
        let (blocks, rest) = self.0.as_chunks::<LANES>();
        for block in blocks {
            for (most, &step) in most.iter_mut().zip(block) {
                *most = if step > *most { step } else { *most };
            }
        }
        most.iter().chain(rest).fold(0.0, |a, &b| a.max(b))
    }
}

/// Fills `scores` from one query's products with some rows' high plane; or adds to them, where these are of the low
/// one.
pub(super) struct Cosines<'a, const LOW: bool> {
    pub(super) query: &'a QuantisedQuery,
    pub(super) products: &'a [i32],
    pub(super) scales: &'a [f32],
    pub(super) scores: &'a mut [f32],
}

impl<const LOW: bool> Work for Cosines<'_, LOW> {
    type Output = ();

    #[expect(clippy::inline_always, reason = "compiled for each instruction set")]
    #[inline(always)]
    fn run(self) {
        let rows = self.products.iter().zip(self.scales);
        for (score, (&product, &scale)) in self.scores.iter_mut().zip(rows) {
            if LOW {
                *score += fine(self.query, product, scale);
            } else {
                *score = coarse(self.query, product, scale);
            }
        }
    }
}

/// Takes the score of rows that do not pass.
pub(super) fn mask(scores: &mut [f32], allowed: &Bitmap) {
    if allowed.len() as usize == scores.len() {
        return;
    }
    for (part, &word) in scores.chunks_mut(64).zip(allowed.words()) {
        if word != u64::MAX {
            for (bit, score) in part.iter_mut().enumerate() {
                if (word >> bit) & 1 == 0 {
                    *score = NO_SCORE;
                }
            }
        }
    }
}
