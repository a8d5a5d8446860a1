//! The checkpoint format of exact vectors: those of rows that have one, in the order of the rows.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use rayon::prelude::*;

use super::{ExactVectors, Location, NO_SLOT, SPILL_ROWS, Scratch, Slab};
use crate::api::Result;

/// The exponent of an f32, all ones in what is no number.
const EXPONENT: u32 = 0x7f80_0000;

impl ExactVectors {
    /// Appends the vectors of these slots; what is [`NO_SLOT`] is passed over.
    ///
    /// # Errors
    /// When the scratch file cannot be read.
    pub(crate) fn save(&self, slots: &[u32], out: &mut Vec<u8>) -> io::Result<()> {
        let follows = |&a: &u32, &b: &u32| {
            a != NO_SLOT && b == a + 1 && !(b as usize).is_multiple_of(self.per_slab)
        };
        // Slots that follow each other are read at once.
        for run in slots.chunk_by(follows) {
            if run[0] == NO_SLOT {
                continue;
            }
            let (slab, start) = self.place(run[0]);
            let values = run.len() * self.dimensions;
            let from = (start * size_of::<f32>()) as u64;
            let place = match &self.slots.read_recursive().slabs[slab] {
                Slab::Heap(all) => {
                    for value in &all[start..start + values] {
                        out.extend_from_slice(&value.to_le_bytes());
                    }
                    continue;
                }
                Slab::File(offset) => Location::Scratch(*offset + from),
                Slab::Saved(file, offset) => Location::Saved(Arc::clone(file), *offset + from),
            };
            let at = out.len();
            out.resize(at + values * size_of::<f32>(), 0);
            self.fetch(&place, &mut out[at..])?;
        }
        Ok(())
    }

    /// The first `count` vectors of a file of which every byte was verified and every value is [`finite`], in as many
    /// slots. Many stay where they are until they are [moved](Self::move_some).
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(crate) fn restore(
        dimensions: usize,
        scratch: Option<Arc<Scratch>>,
        count: u32,
        file: File,
    ) -> Result<Self> {
        let mut exact_vectors = Self::new(dimensions, scratch);
        let (per_slab, all) = (exact_vectors.per_slab, count as usize);
        let stays = all >= SPILL_ROWS && exact_vectors.scratch.is_some();
        let vector_bytes = dimensions * size_of::<f32>();
        let file = Arc::new(file);
        let slab = |buffer: &mut Vec<u8>, number: usize| -> Result<Slab> {
            let first = number * per_slab;
            let offset = (first * vector_bytes) as u64;
            if stays {
                return Ok(Slab::Saved(Arc::clone(&file), offset));
            }
            buffer.resize(per_slab.min(all - first) * vector_bytes, 0);
            file.read_exact_at(buffer, offset)?;
            let values = buffer.as_chunks::<4>().0.iter();
            Ok(Slab::Heap(
                values.map(|&four| f32::from_le_bytes(four)).collect(),
            ))
        };
        let slots = exact_vectors.slots.get_mut();
        slots.slabs = (0..all.div_ceil(per_slab))
            .into_par_iter()
            .map_init(Vec::new, slab)
            .collect::<Result<_>>()?;
        slots.end = count;
        Ok(exact_vectors)
    }
}

/// Returns true if all values in the bytes are finite.
pub(crate) fn finite(bytes: &[u8]) -> bool {
    let bad = |&four: &[u8; 4]| u32::from_le_bytes(four) & EXPONENT == EXPONENT;
    !bytes
        .as_chunks::<4>()
        .0
        .iter()
        .fold(false, |any, four| any | bad(four))
}
