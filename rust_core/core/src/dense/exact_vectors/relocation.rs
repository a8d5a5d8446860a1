//! Moves vectors from the file of a checkpoint to the scratch file, in the background: right after a checkpoint was
//! written the page cache is dirty, and further writes wait for the disk.

use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use super::{ExactVectors, Slab};

impl ExactVectors {
    /// Returns true if vectors are still where the checkpoint has them.
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

    /// Moves the slab, if it is still where the checkpoint has it: to the scratch file, or into memory where that is
    /// full.
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

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::super::{SPILL_ROWS, Scratch};
    use super::*;
    use crate::system::temp_file;

    const DIMENSIONS: usize = 64;
    /// The last slab is a short one.
    const COUNT: usize = SPILL_ROWS * 5 + 77;

    fn vector(seed: usize) -> Vec<f32> {
        (0..DIMENSIONS)
            .map(|at| (seed * DIMENSIONS + at) as f32)
            .collect()
    }

    /// Vectors as a checkpoint brings them, and their file.
    fn restored(scratch: Scratch) -> (ExactVectors, Arc<File>) {
        let file = temp_file::create(&std::env::temp_dir()).expect("a file can be made");
        let bytes: Vec<u8> = (0..COUNT)
            .flat_map(vector)
            .flat_map(f32::to_le_bytes)
            .collect();
        file.write_all_at(&bytes, 0).expect("room for some vectors");
        let exact_vectors =
            ExactVectors::restore(DIMENSIONS, Some(Arc::new(scratch)), COUNT as u32, file)
                .expect("the file is whole");
        let file = match &exact_vectors.slots.read().slabs[0] {
            Slab::Saved(file, _) => Arc::clone(file),
            other => panic!("{other:?} was moved before the bank answers"),
        };
        (exact_vectors, file)
    }

    fn scratch() -> Scratch {
        Scratch::create(&std::env::temp_dir()).expect("a file can be made")
    }

    fn check(exact_vectors: &ExactVectors, slot: u32, expected: &[f32]) {
        let (mut bytes, mut read) = (Vec::new(), Vec::new());
        exact_vectors
            .read(slot, &mut bytes, &mut read)
            .expect("the files work");
        assert_eq!(read, expected, "slot {slot}");
    }

    #[test]
    fn vectors_are_the_same_before_and_after_they_are_moved() {
        let (exact_vectors, file) = restored(scratch());
        loop {
            for slot in [0, 1, SPILL_ROWS, COUNT - 1] {
                check(&exact_vectors, slot as u32, &vector(slot));
            }
            let mut saved = Vec::new();
            let all: Vec<u32> = (0..COUNT as u32).collect();
            exact_vectors
                .save(&all, &mut saved)
                .expect("the files work");
            let values = saved.as_chunks::<4>().0.iter();
            let values = values.map(|&four| f32::from_le_bytes(four));
            assert!((0..COUNT).flat_map(vector).eq(values));
            if !exact_vectors.move_some().expect("the files work") {
                break;
            }
        }
        assert!(!exact_vectors.stay());
        assert_eq!(Arc::strong_count(&file), 1, "the checkpoint is still open");
        assert_eq!(exact_vectors.bytes().0, 0, "vectors are in memory");
    }

    #[test]
    fn what_comes_is_kept_beside_them() {
        let (exact_vectors, _) = restored(scratch());
        let new: Vec<Vec<f32>> = (0..500).map(|number| vector(COUNT + number)).collect();
        let slots = exact_vectors.store(new.iter().map(Vec::as_slice));
        let seen = |exact_vectors: &ExactVectors| {
            check(exact_vectors, 0, &vector(0));
            check(exact_vectors, COUNT as u32 - 1, &vector(COUNT - 1));
            for (&slot, expected) in slots.iter().zip(&new) {
                check(exact_vectors, slot, expected);
            }
        };
        seen(&exact_vectors);
        while exact_vectors.move_some().expect("the files work") {}
        seen(&exact_vectors);
    }

    #[test]
    fn what_is_erased_is_in_no_file() {
        let (exact_vectors, file) = restored(scratch());
        exact_vectors.erase(&[3]);
        assert_eq!(Arc::strong_count(&file), 1, "the checkpoint is still open");
        check(&exact_vectors, 3, &[0.0; DIMENSIONS]);
        check(&exact_vectors, 4, &vector(4));
    }

    #[test]
    fn a_full_disk_moves_them_into_memory() {
        let (exact_vectors, _) = restored(Scratch::full());
        while exact_vectors
            .move_some()
            .expect("the checkpoint can be read")
        {}
        assert!(exact_vectors.bytes().0 >= COUNT * DIMENSIONS * size_of::<f32>());
        for slot in [0, SPILL_ROWS, COUNT - 1] {
            check(&exact_vectors, slot as u32, &vector(slot));
        }
    }
}
