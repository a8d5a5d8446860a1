//! Original vectors in a checkpoint: those that rows have, in the order of the rows.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use rayon::prelude::*;

use super::{NO_SLOT, Originals, SPILL_ROWS, Scratch, Slab};
use crate::checkpoint::refused;
use crate::error::Result;

/// The exponent of an f32, all ones in what is no number.
const EXPONENT: u32 = 0x7f80_0000;

impl Originals {
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
            let offset = match &self.slots.read_recursive().slabs[slab] {
                Slab::Heap(all) => {
                    for value in &all[start..start + values] {
                        out.extend_from_slice(&value.to_le_bytes());
                    }
                    continue;
                }
                Slab::File(offset) => *offset,
            };
            let at = out.len();
            out.resize(at + values * size_of::<f32>(), 0);
            let from = offset + (start * size_of::<f32>()) as u64;
            self.file()?.read(&mut out[at..], from)?;
        }
        Ok(())
    }

    /// The first `count` vectors of a verified file, in as many slots.
    ///
    /// # Errors
    /// When a file cannot be read or written, or a vector is none.
    pub(crate) fn restore(
        dimensions: usize,
        scratch: Option<Arc<Scratch>>,
        count: u32,
        file: &File,
    ) -> Result<Self> {
        let mut originals = Self::new(dimensions, scratch);
        let (per_slab, all) = (originals.per_slab, count as usize);
        let spilled = if all < SPILL_ROWS {
            None
        } else {
            originals.scratch.clone()
        };
        let slab_bytes = originals.slab_bytes();
        let slab = |buffer: &mut Vec<u8>, number: usize| -> Result<Slab> {
            let first = number * per_slab;
            let vectors = per_slab.min(all - first);
            buffer.resize(vectors * dimensions * size_of::<f32>(), 0);
            file.read_exact_at(buffer, (first * dimensions * size_of::<f32>()) as u64)?;
            let values = buffer.as_chunks::<4>().0;
            if !finite(values) {
                return Err(refused("a vector has a value that is no number"));
            }
            let Some(scratch) = &spilled else {
                return Ok(Slab::Heap(
                    values
                        .iter()
                        .map(|&four| f32::from_le_bytes(four))
                        .collect(),
                ));
            };
            let offset = scratch.take(slab_bytes);
            if let Err(error) = scratch.write(buffer, offset) {
                scratch.give_back(offset, slab_bytes);
                return Err(error.into());
            }
            Ok(Slab::File(offset))
        };
        let slabs: Vec<Result<Slab>> = (0..all.div_ceil(per_slab))
            .into_par_iter()
            .map_init(Vec::new, slab)
            .collect();
        // Those that could be made are given back with the originals where another could not.
        let mut failure = None;
        let slots = originals.slots.get_mut();
        for slab in slabs {
            match slab {
                Ok(slab) => slots.slabs.push(slab),
                Err(error) => failure = Some(error),
            }
        }
        slots.end = count;
        failure.map_or(Ok(originals), Err)
    }
}

fn finite(values: &[[u8; 4]]) -> bool {
    let bad = |&four: &[u8; 4]| u32::from_le_bytes(four) & EXPONENT == EXPONENT;
    !values.iter().fold(false, |any, four| any | bad(four))
}
