//! The original f32 vectors, for exact rescoring: in memory while a bank is small, in the scratch file afterwards.

mod saved;
mod scratch;

use std::io;
use std::sync::Arc;

use scratch::SLAB_BYTES;
pub(crate) use scratch::Scratch;

/// A row without a vector.
pub(crate) const NO_SLOT: u32 = u32::MAX;
/// A bank below this many vectors keeps them in memory: reading them back would cost more than the 3 MB.
const SPILL_ROWS: usize = 2048;

/// A slab of vectors, in memory or at an offset of the scratch file.
#[derive(Debug)]
enum Slab {
    Heap(Vec<f32>),
    File(u64),
}

/// Unit vectors in numbered slots. A freed slot is zeroed and used again.
#[derive(Debug)]
pub(crate) struct Originals {
    dimensions: usize,
    per_slab: usize,
    slabs: Vec<Slab>,
    free: Vec<u32>,
    end: u32,
    scratch: Option<Arc<Scratch>>,
    /// Bytes that wait for one write, and the slot that they begin at.
    pending: Vec<u8>,
    pending_from: u32,
}

impl Originals {
    pub(crate) fn new(dimensions: usize, scratch: Option<Arc<Scratch>>) -> Self {
        Self {
            dimensions,
            per_slab: (SLAB_BYTES / (dimensions * size_of::<f32>())).max(1),
            slabs: Vec::new(),
            free: Vec::new(),
            end: 0,
            scratch,
            pending: Vec::new(),
            pending_from: 0,
        }
    }

    /// Length of the vectors.
    pub(crate) fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// Keeps `vector`; returns its slot. [`flush`](Self::flush) must follow before it is read.
    pub(crate) fn store(&mut self, vector: &[f32]) -> u32 {
        let slot = self.free.pop().unwrap_or(self.end);
        if slot == self.end {
            self.end += 1;
            if (slot as usize).is_multiple_of(self.per_slab) {
                self.add_slab();
            }
            if slot as usize + 1 == SPILL_ROWS {
                self.spill();
            }
        }
        let (slab, start) = self.place(slot);
        match &mut self.slabs[slab] {
            Slab::Heap(values) => {
                if values.len() < start + self.dimensions {
                    crate::vector::reserve_tight(values, self.dimensions);
                    values.resize(start + self.dimensions, 0.0);
                }
                values[start..start + self.dimensions].copy_from_slice(vector);
            }
            Slab::File(_) => self.queue(slot, vector),
        }
        slot
    }

    /// Zeroes the slot's vector and frees the slot.
    pub(crate) fn erase(&mut self, slot: u32) {
        if slot == NO_SLOT {
            return;
        }
        self.flush();
        let (slab, start) = self.place(slot);
        match &mut self.slabs[slab] {
            Slab::Heap(values) => values[start..start + self.dimensions].fill(0.0),
            Slab::File(_) => {
                self.queue(slot, &vec![0.0; self.dimensions]);
                self.flush();
            }
        }
        self.free.push(slot);
    }

    /// Writes what waits. A full disk moves the slab into memory, so that nothing is lost.
    pub(crate) fn flush(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        let bytes = std::mem::take(&mut self.pending);
        let (slab, start) = self.place(self.pending_from);
        if let (Slab::File(offset), Some(scratch)) = (&self.slabs[slab], &self.scratch)
            && scratch
                .write(&bytes, offset + (start * size_of::<f32>()) as u64)
                .is_err()
        {
            self.rescue(slab, start, &bytes);
        }
        self.pending = bytes;
        self.pending.clear();
    }

    /// Reads a slot's vector into `vector`.
    ///
    /// # Errors
    /// When the scratch file cannot be read.
    pub(crate) fn read(
        &self,
        slot: u32,
        bytes: &mut Vec<u8>,
        vector: &mut Vec<f32>,
    ) -> io::Result<()> {
        let (slab, start) = self.place(slot);
        vector.clear();
        match (&self.slabs[slab], &self.scratch) {
            (Slab::Heap(values), _) => {
                vector.extend_from_slice(&values[start..start + self.dimensions]);
            }
            (Slab::File(offset), Some(scratch)) => {
                bytes.resize(self.dimensions * size_of::<f32>(), 0);
                scratch.read(bytes, offset + (start * size_of::<f32>()) as u64)?;
                vector.extend(
                    bytes
                        .as_chunks::<4>()
                        .0
                        .iter()
                        .map(|&four| f32::from_le_bytes(four)),
                );
            }
            (Slab::File(_), None) => {
                return Err(io::Error::other("a slab without its scratch file"));
            }
        }
        Ok(())
    }

    /// Bytes in memory, and bytes of originals wherever they are.
    pub(crate) fn bytes(&self) -> (usize, usize) {
        let mut resident = self.pending.capacity() + self.free.capacity() * size_of::<u32>();
        let mut all = 0;
        for slab in &self.slabs {
            match slab {
                Slab::Heap(values) => {
                    resident += values.capacity() * size_of::<f32>();
                    all += values.capacity() * size_of::<f32>();
                }
                Slab::File(_) => all += self.slab_bytes(),
            }
        }
        (resident, all)
    }

    fn place(&self, slot: u32) -> (usize, usize) {
        let slot = slot as usize;
        (slot / self.per_slab, slot % self.per_slab * self.dimensions)
    }

    fn slab_bytes(&self) -> usize {
        SLAB_BYTES.max(self.dimensions * size_of::<f32>())
    }

    fn add_slab(&mut self) {
        let slab = match &self.scratch {
            Some(scratch) if self.end as usize > SPILL_ROWS => {
                Slab::File(scratch.take(self.slab_bytes()))
            }
            _ => Slab::Heap(Vec::new()),
        };
        self.slabs.push(slab);
    }

    /// Moves the slabs in memory to the scratch file, as far as it takes them.
    fn spill(&mut self) {
        let Some(scratch) = self.scratch.clone() else {
            return;
        };
        for index in 0..self.slabs.len() {
            let Slab::Heap(values) = &self.slabs[index] else {
                continue;
            };
            let bytes: Vec<u8> = values
                .iter()
                .flat_map(|value| value.to_le_bytes())
                .collect();
            let offset = scratch.take(self.slab_bytes());
            if scratch.write(&bytes, offset).is_err() {
                scratch.give_back(offset, self.slab_bytes());
                return;
            }
            self.slabs[index] = Slab::File(offset);
        }
    }

    fn queue(&mut self, slot: u32, vector: &[f32]) {
        let queued = self.pending.len() / (self.dimensions * size_of::<f32>());
        let follows = slot as usize == self.pending_from as usize + queued;
        // A write stays within one slab.
        if !self.pending.is_empty() && (!follows || (slot as usize).is_multiple_of(self.per_slab)) {
            self.flush();
        }
        if self.pending.is_empty() {
            self.pending_from = slot;
        }
        self.pending
            .extend(vector.iter().flat_map(|value| value.to_le_bytes()));
    }

    fn rescue(&mut self, slab: usize, start: usize, pending: &[u8]) {
        let (Slab::File(offset), Some(scratch)) = (&self.slabs[slab], &self.scratch) else {
            return;
        };
        let mut bytes = vec![0; self.slab_bytes()];
        // What was never written reads as the end of the file, and stays zero.
        for (index, chunk) in bytes
            .chunks_mut(self.dimensions * size_of::<f32>())
            .enumerate()
        {
            let at = offset + (index * self.dimensions * size_of::<f32>()) as u64;
            if scratch.read(chunk, at).is_err() {
                break;
            }
        }
        let from = start * size_of::<f32>();
        bytes[from..from + pending.len()].copy_from_slice(pending);
        scratch.give_back(*offset, self.slab_bytes());
        let values = bytes
            .as_chunks::<4>()
            .0
            .iter()
            .map(|&four| f32::from_le_bytes(four))
            .collect();
        self.slabs[slab] = Slab::Heap(values);
    }
}

impl Drop for Originals {
    fn drop(&mut self) {
        if let Some(scratch) = &self.scratch {
            for slab in &self.slabs {
                if let Slab::File(offset) = slab {
                    scratch.give_back(*offset, self.slab_bytes());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vector(seed: usize) -> Vec<f32> {
        (0..8).map(|index| (seed * 8 + index) as f32).collect()
    }

    fn check(originals: &Originals, slot: u32, seed: usize) {
        let (mut bytes, mut read) = (Vec::new(), Vec::new());
        originals
            .read(slot, &mut bytes, &mut read)
            .expect("the scratch file works");
        assert_eq!(read, vector(seed));
    }

    #[test]
    fn vectors_come_back_before_and_after_the_spill() {
        let scratch =
            Arc::new(Scratch::create(&std::env::temp_dir()).expect("the scratch file works"));
        let mut originals = Originals::new(8, Some(scratch));
        let slots: Vec<u32> = (0..SPILL_ROWS * 20)
            .map(|seed| originals.store(&vector(seed)))
            .collect();
        originals.flush();
        for seed in [
            0,
            1,
            SPILL_ROWS - 2,
            SPILL_ROWS - 1,
            SPILL_ROWS,
            SPILL_ROWS * 20 - 1,
        ] {
            check(&originals, slots[seed], seed);
        }
        assert!(
            originals.bytes().0 < originals.bytes().1,
            "the vectors should be on disk"
        );
    }

    #[test]
    fn an_erased_slot_is_zero_and_used_again() {
        let mut originals = Originals::new(8, None);
        let slot = originals.store(&vector(1));
        originals.erase(slot);
        let (mut bytes, mut read) = (Vec::new(), Vec::new());
        originals
            .read(slot, &mut bytes, &mut read)
            .expect("the scratch file works");
        assert_eq!(read, vec![0.0; 8]);
        assert_eq!(originals.store(&vector(2)), slot);
        check(&originals, slot, 2);
    }
}
