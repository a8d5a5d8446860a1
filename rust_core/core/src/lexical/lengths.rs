//! The number of words of each row, one byte a row, since scoring reads it at random for every posting.

use hashbrown::HashMap;

use crate::bitmap::Bitmap;
use crate::system::huge_pages::MemoryRanges;

/// Stands for this many words and more, which are in a table of their own.
const LONG: u8 = u8::MAX;
/// In a number for a file, the bit that says that the row is counted.
const COUNTED: u32 = 1 << 31;

/// Lengths in words, and which rows are counted in the statistics.
#[derive(Debug, Clone, Default)]
pub(super) struct Lengths {
    short: Vec<u8>,
    long: HashMap<u32, u32>,
    counted: Bitmap,
}

impl Lengths {
    /// Notes where those of most rows lie.
    pub(super) fn note_ranges(&self, ranges: &mut MemoryRanges) {
        ranges.note(&self.short);
    }

    /// Number of rows.
    pub(super) fn len(&self) -> usize {
        self.short.len()
    }

    /// Makes room for `more` rows, an eighth at a time.
    pub(super) fn reserve(&mut self, more: usize) {
        super::bm25::reserve_exactly(&mut self.short, more);
    }

    /// Appends empty rows up to `rows` in all.
    pub(super) fn grow(&mut self, rows: usize) {
        self.short.resize(rows, 0);
        self.counted.grow(rows as u32);
    }

    /// Sets the length of a row that is not below any before; rows between are empty.
    pub(super) fn push(&mut self, row: u32, length: u32, counted: bool) {
        self.grow(row as usize);
        self.short.push(u8::try_from(length).unwrap_or(LONG));
        if length >= u32::from(LONG) {
            self.long.insert(row, length);
        }
        self.counted.grow(row + 1);
        if counted {
            self.counted.insert(row);
        }
    }

    /// The words of a row; 0 beyond the last.
    #[inline]
    pub(super) fn get(&self, row: u32) -> u32 {
        match self.short.get(row as usize) {
            Some(&LONG) => self.long.get(&row).copied().unwrap_or(0),
            Some(&length) => u32::from(length),
            None => 0,
        }
    }

    /// Returns true if a row is counted.
    pub(super) fn is_counted(&self, row: u32) -> bool {
        row < self.counted.bound() && self.counted.contains(row)
    }

    /// Counts a row no more; whether it was.
    pub(super) fn retire(&mut self, row: u32) -> bool {
        row < self.counted.bound() && self.counted.remove(row)
    }

    /// Takes a row's words.
    pub(super) fn remove(&mut self, row: u32) {
        if let Some(length) = self.short.get_mut(row as usize) {
            *length = 0;
            self.long.remove(&row);
        }
        self.retire(row);
    }

    /// The lengths of all rows, ascending, each with its flag of being counted.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, u32, bool)> + '_ {
        (0..self.len() as u32).map(|row| (row, self.get(row), self.is_counted(row)))
    }

    /// A row's in one number, as a file holds it.
    pub(super) fn packed(&self, row: u32) -> u32 {
        self.get(row) | if self.is_counted(row) { COUNTED } else { 0 }
    }

    /// Appends a row's that was [`packed`](Self::packed).
    pub(super) fn push_packed(&mut self, packed: u32) {
        self.push(self.len() as u32, packed & !COUNTED, packed & COUNTED != 0);
    }

    /// Resident bytes.
    pub(super) fn bytes(&self) -> usize {
        self.short.capacity()
            + self.long.capacity() * (size_of::<(u32, u32)>() + 1)
            + self.counted.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_is_exact_and_counted_or_not() {
        let lengths = [0, 1, 254, 255, 256, 70_000];
        let mut all = Lengths::default();
        for (number, &length) in lengths.iter().enumerate() {
            // Between two there is an empty one.
            all.push(number as u32 * 2, length, number % 2 == 0);
        }
        let packed: Vec<u32> = (0..all.len() as u32).map(|row| all.packed(row)).collect();
        let mut read = Lengths::default();
        for packed in packed {
            read.push_packed(packed);
        }
        for lengths in [&all, &read] {
            let expected = [0, 0, 1, 0, 254, 0, 255, 0, 256, 0, 70_000];
            assert!(
                (0..12)
                    .map(|row| lengths.get(row))
                    .eq(expected.into_iter().chain([0]))
            );
            let counted: Vec<u32> = (0..12).filter(|&row| lengths.is_counted(row)).collect();
            assert_eq!(counted, [0, 4, 8]);
        }
        assert!(all.retire(8) && !all.retire(8) && all.get(8) == 256);
        all.remove(10);
        assert_eq!((all.get(10), all.iter().count()), (0, 11));
        all.grow(20);
        assert_eq!((all.len(), all.packed(19)), (20, 0));
    }
}
