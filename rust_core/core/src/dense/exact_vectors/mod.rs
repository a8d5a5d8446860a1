//! The exact f32 vectors, for rescoring: in memory while a bank is small, in the scratch file afterwards.

mod format;
mod relocation;
mod scratch;

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

pub(crate) use format::finite;
use parking_lot::RwLock;
use scratch::SLAB_BYTES;
pub(crate) use scratch::Scratch;

/// A row without a vector.
pub(crate) const NO_SLOT: u32 = u32::MAX;
/// A bank below this many vectors keeps them in memory: reading them back would cost more than the 3 MB.
const SPILL_ROWS: usize = 2048;

/// A slab of vectors.
#[derive(Debug)]
enum Slab {
    Heap(Vec<f32>),
    /// At an offset of the scratch file.
    File(u64),
    /// At an offset of the checkpoint that it came from, until it is moved.
    Saved(Arc<File>, u64),
}

/// Unit vectors in numbered slots. A freed slot is zeroed and used again.
///
/// One caller at a time stores and erases, before rows know of a slot and after none does any more, so that files are
/// written while others read.
#[derive(Debug)]
pub(crate) struct ExactVectors {
    dimensions: usize,
    per_slab: usize,
    scratch: Option<Arc<Scratch>>,
    /// Locked for a vector at a time.
    slots: RwLock<Slots>,
}

#[derive(Debug, Default)]
struct Slots {
    slabs: Vec<Slab>,
    free: Vec<u32>,
    end: u32,
    /// Places in the file that failed and were given up, where somebody may still read.
    lost: Vec<u64>,
}

/// The place of a slab's bytes outside of memory.
enum Location {
    Scratch(u64),
    Saved(Arc<File>, u64),
}

/// Bytes that wait for one write, and the slot that they begin at.
#[derive(Debug, Default)]
struct Pending {
    bytes: Vec<u8>,
    from: u32,
}

impl ExactVectors {
    pub(crate) fn new(dimensions: usize, scratch: Option<Arc<Scratch>>) -> Self {
        Self {
            dimensions,
            per_slab: (SLAB_BYTES / (dimensions * size_of::<f32>())).max(1),
            scratch,
            slots: RwLock::default(),
        }
    }

    /// Length of the vectors.
    pub(crate) fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// The place of files without names, if there is one.
    pub(crate) fn scratch(&self) -> Option<&Arc<Scratch>> {
        self.scratch.as_ref()
    }

    /// Keeps `vectors`; returns their slots.
    pub(crate) fn store<'a>(&self, vectors: impl Iterator<Item = &'a [f32]>) -> Vec<u32> {
        let mut pending = Pending::default();
        let keep = |vector| {
            let slot = self.take();
            self.put(slot, vector, &mut pending);
            slot
        };
        let slots = vectors.map(keep).collect();
        self.flush(&mut pending);
        slots
    }

    /// Zeroes the vectors of slots that no row has any more, and frees them.
    pub(crate) fn erase(&self, slots: &[u32]) {
        if !slots.is_empty() {
            // What is erased shall be in no file, not even in one of a checkpoint that was removed.
            while self.move_some().unwrap_or(false) {}
        }
        let (zeros, mut pending) = (vec![0.0; self.dimensions], Pending::default());
        for &slot in slots {
            self.put(slot, &zeros, &mut pending);
        }
        self.flush(&mut pending);
        self.slots.write().free.extend(slots);
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
        bytes.resize(self.dimensions * size_of::<f32>(), 0);
        let from = (start * size_of::<f32>()) as u64;
        let place = match &self.slots.read_recursive().slabs[slab] {
            Slab::Heap(values) => {
                vector.extend_from_slice(&values[start..start + self.dimensions]);
                return Ok(());
            }
            Slab::File(offset) => Location::Scratch(*offset + from),
            Slab::Saved(file, offset) => Location::Saved(Arc::clone(file), *offset + from),
        };
        self.fetch(&place, bytes)?;
        let (values, _) = bytes.as_chunks::<4>();
        vector.extend(values.iter().map(|&four| f32::from_le_bytes(four)));
        Ok(())
    }

    /// Bytes in memory, and bytes of exact vectors wherever they are.
    pub(crate) fn bytes(&self) -> (usize, usize) {
        let slots = self.slots.read();
        let mut resident = slots.free.capacity() * size_of::<u32>();
        let mut all = 0;
        for slab in &slots.slabs {
            match slab {
                Slab::Heap(values) => {
                    resident += values.capacity() * size_of::<f32>();
                    all += values.capacity() * size_of::<f32>();
                }
                Slab::File(_) | Slab::Saved(..) => all += self.slab_bytes(),
            }
        }
        (resident, all)
    }

    /// Fills `bytes` with what is there.
    fn fetch(&self, place: &Location, bytes: &mut [u8]) -> io::Result<()> {
        match place {
            Location::Scratch(offset) => self.file()?.read(bytes, *offset),
            Location::Saved(file, offset) => file.read_exact_at(bytes, *offset),
        }
    }

    fn file(&self) -> io::Result<&Scratch> {
        let file = self.scratch.as_deref();
        file.ok_or_else(|| io::Error::other("a slab without its scratch file"))
    }

    fn place(&self, slot: u32) -> (usize, usize) {
        let slot = slot as usize;
        (slot / self.per_slab, slot % self.per_slab * self.dimensions)
    }

    fn slab_bytes(&self) -> usize {
        SLAB_BYTES.max(self.dimensions * size_of::<f32>())
    }

    /// A slot that nobody uses.
    fn take(&self) -> u32 {
        let mut slots = self.slots.write();
        if let Some(slot) = slots.free.pop() {
            return slot;
        }
        let slot = slots.end;
        slots.end += 1;
        if (slot as usize).is_multiple_of(self.per_slab) {
            let slab = match &self.scratch {
                Some(scratch) if slots.end as usize > SPILL_ROWS => {
                    Slab::File(scratch.take(self.slab_bytes()))
                }
                _ => Slab::Heap(Vec::new()),
            };
            slots.slabs.push(slab);
        }
        drop(slots);
        if slot as usize + 1 == SPILL_ROWS {
            self.spill();
        }
        slot
    }

    /// Writes the slot's vector, or queues it.
    fn put(&self, slot: u32, vector: &[f32], pending: &mut Pending) {
        let (slab, start) = self.place(slot);
        if self.take_over(slab).is_err() {
            // What cannot be read any more is lost anyway; what comes now is not.
            let values = self.per_slab * self.dimensions;
            self.slots.write().slabs[slab] = Slab::Heap(vec![0.0; values]);
        }
        let mut slots = self.slots.write();
        if let Slab::Heap(values) = &mut slots.slabs[slab] {
            if values.len() < start + self.dimensions {
                crate::system::arrays::reserve_tight(values, self.dimensions);
                values.resize(start + self.dimensions, 0.0);
            }
            values[start..start + self.dimensions].copy_from_slice(vector);
            return;
        }
        drop(slots);
        let queued = pending.bytes.len() / (self.dimensions * size_of::<f32>());
        let follows = slot as usize == pending.from as usize + queued;
        // A write stays within one slab.
        if !pending.bytes.is_empty() && (!follows || (slot as usize).is_multiple_of(self.per_slab))
        {
            self.flush(pending);
        }
        if pending.bytes.is_empty() {
            pending.from = slot;
        }
        let bytes = &mut pending.bytes;
        bytes.extend(vector.iter().flat_map(|value| value.to_le_bytes()));
    }

    /// Writes what waits. A full disk moves the slab into memory, so that nothing is lost.
    fn flush(&self, pending: &mut Pending) {
        if pending.bytes.is_empty() {
            return;
        }
        let (slab, start) = self.place(pending.from);
        let offset = match &self.slots.read().slabs[slab] {
            Slab::File(offset) => Some(*offset),
            Slab::Heap(_) | Slab::Saved(..) => None,
        };
        if let (Some(offset), Ok(file)) = (offset, self.file())
            && file
                .write(&pending.bytes, offset + (start * size_of::<f32>()) as u64)
                .is_err()
        {
            self.rescue(file, slab, offset, (start, &pending.bytes));
        }
        pending.bytes.clear();
    }

    /// Moves the slabs in memory to the scratch file, as far as it takes them.
    fn spill(&self) {
        let Some(scratch) = &self.scratch else {
            return;
        };
        let count = self.slots.read().slabs.len();
        for slab in 0..count {
            let bytes: Vec<u8> = match &self.slots.read().slabs[slab] {
                Slab::Heap(values) => values
                    .iter()
                    .flat_map(|value| value.to_le_bytes())
                    .collect(),
                Slab::File(_) | Slab::Saved(..) => continue,
            };
            let offset = scratch.take(self.slab_bytes());
            if scratch.write(&bytes, offset).is_err() {
                scratch.give_back(offset, self.slab_bytes());
                return;
            }
            self.slots.write().slabs[slab] = Slab::File(offset);
        }
    }

    fn rescue(&self, file: &Scratch, slab: usize, offset: u64, written: (usize, &[u8])) {
        let mut bytes = vec![0; self.slab_bytes()];
        // What was never written reads as the end of the file, and stays zero.
        for (index, chunk) in bytes
            .chunks_mut(self.dimensions * size_of::<f32>())
            .enumerate()
        {
            let at = offset + (index * self.dimensions * size_of::<f32>()) as u64;
            if file.read(chunk, at).is_err() {
                break;
            }
        }
        let (start, pending) = written;
        let from = start * size_of::<f32>();
        bytes[from..from + pending.len()].copy_from_slice(pending);
        let (values, _) = bytes.as_chunks::<4>();
        let values = values.iter().map(|&four| f32::from_le_bytes(four));
        let mut slots = self.slots.write();
        slots.slabs[slab] = Slab::Heap(values.collect());
        slots.lost.push(offset);
    }
}

impl Drop for ExactVectors {
    fn drop(&mut self) {
        if let Some(scratch) = &self.scratch {
            let slots = self.slots.get_mut();
            let used = slots.slabs.iter().filter_map(|slab| match slab {
                Slab::File(offset) => Some(*offset),
                Slab::Heap(_) | Slab::Saved(..) => None,
            });
            for offset in used.chain(slots.lost.iter().copied()) {
                scratch.give_back(offset, SLAB_BYTES.max(self.dimensions * size_of::<f32>()));
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

    fn store(exact_vectors: &ExactVectors, seeds: std::ops::Range<usize>) -> Vec<u32> {
        let vectors: Vec<_> = seeds.map(vector).collect();
        exact_vectors.store(vectors.iter().map(Vec::as_slice))
    }

    fn check(exact_vectors: &ExactVectors, slot: u32, expected: &[f32]) {
        let (mut bytes, mut read) = (Vec::new(), Vec::new());
        exact_vectors
            .read(slot, &mut bytes, &mut read)
            .expect("the scratch file works");
        assert_eq!(read, expected);
    }

    #[test]
    fn vectors_come_back_before_and_after_the_spill() {
        let scratch =
            Arc::new(Scratch::create(&std::env::temp_dir()).expect("the scratch file works"));
        let exact_vectors = ExactVectors::new(8, Some(scratch));
        let slots = store(&exact_vectors, 0..SPILL_ROWS * 20);
        for seed in [
            0,
            1,
            SPILL_ROWS - 2,
            SPILL_ROWS - 1,
            SPILL_ROWS,
            SPILL_ROWS * 20 - 1,
        ] {
            check(&exact_vectors, slots[seed], &vector(seed));
        }
        assert!(
            exact_vectors.bytes().0 < exact_vectors.bytes().1,
            "the vectors should be on disk"
        );
        exact_vectors.erase(&slots[5000..5003]);
        check(&exact_vectors, slots[5001], &[0.0; 8]);
        check(&exact_vectors, slots[5003], &vector(5003));
    }

    #[test]
    fn an_erased_slot_is_zero_and_used_again() {
        let exact_vectors = ExactVectors::new(8, None);
        let slots = store(&exact_vectors, 1..2);
        exact_vectors.erase(&slots);
        check(&exact_vectors, slots[0], &[0.0; 8]);
        assert_eq!(store(&exact_vectors, 2..3), slots);
        check(&exact_vectors, slots[0], &vector(2));
    }
}
