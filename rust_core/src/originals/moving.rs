//! Vectors from the file of a checkpoint to the scratch file, once the bank answers: the system's buffers are full of a
//! checkpoint that has just been written, and who writes as much again waits for the disk.

use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use super::{Originals, Slab};

impl Originals {
    /// Whether vectors are still where the checkpoint has them.
    pub(crate) fn stay(&self) -> bool {
        self.last_saved().is_some()
    }

    /// Moves some of them, about a megabyte; false when none are left. No lock of the bank's is needed.
    ///
    /// # Errors
    /// When the checkpoint's file cannot be read any more.
    pub(crate) fn move_some(&self) -> io::Result<bool> {
        let Some(slab) = self.last_saved() else {
            return Ok(false);
        };
        self.take_over(slab)?;
        Ok(true)
    }

    /// Moves the slab, if it is still where the checkpoint has it: to the scratch file, or into memory where that is full.
    pub(super) fn take_over(&self, slab: usize) -> io::Result<()> {
        let (file, from) = match &self.slots.read().slabs[slab] {
            Slab::Saved(file, offset) => (Arc::clone(file), *offset),
            Slab::Heap(_) | Slab::File(_) => return Ok(()),
        };
        let most = self.per_slab * self.dimensions * size_of::<f32>();
        // The last slab of the file may be a short one.
        let length = file.metadata()?.len().saturating_sub(from);
        let mut bytes = vec![0; most.min(usize::try_from(length).unwrap_or(most))];
        file.read_exact_at(&mut bytes, from)?;
        let scratch = self.file()?;
        let offset = scratch.take(self.slab_bytes());
        let moved = if scratch.write(&bytes, offset).is_ok() {
            Slab::File(offset)
        } else {
            scratch.give_back(offset, self.slab_bytes());
            let values = bytes.as_chunks::<4>().0.iter();
            Slab::Heap(values.map(|&four| f32::from_le_bytes(four)).collect())
        };
        let mut slots = self.slots.write();
        if matches!(slots.slabs[slab], Slab::Saved(..)) {
            slots.slabs[slab] = moved;
        } else if let Slab::File(offset) = moved {
            // Somebody else was sooner.
            drop(slots);
            scratch.give_back(offset, self.slab_bytes());
        }
        Ok(())
    }

    /// The last slab that was not moved. From the end on, so that the slab that grows is the first.
    fn last_saved(&self) -> Option<usize> {
        let slots = self.slots.read();
        slots
            .slabs
            .iter()
            .rposition(|slab| matches!(slab, Slab::Saved(..)))
    }
}
