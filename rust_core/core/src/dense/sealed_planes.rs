//! Quantised rows in mapped files, some thousand together: the first rows of a bank in the disk tier.
//!
//! A group is copied to a file beside readers, while commits wait, and then takes the place of the parts in memory. A
//! removed row is overwritten in the file.

use std::fs::File;
use std::io;
use std::ops::Range;

use super::index::DenseIndex;
use super::planes::{FlatIndex, PART, Planes};
use super::quantise::Block;
use crate::dense::exact_vectors::Scratch;
use crate::system::mapped::{MappedArray, Plain};

/// Rows in a group, a multiple of the parts: a map for each part would use up the maps of a process with some ten
/// million rows.
pub(super) const GROUP: usize = 4 * PART;

// SAFETY: a block is bytes.
#[expect(unsafe_code, reason = "a promise about the layout of blocks")]
unsafe impl Plain for Block {}

/// The planes of one group: the high one of all rows, then the low one.
#[derive(Debug)]
pub(crate) struct SealedPlanes(MappedArray<Block>);

impl SealedPlanes {
    /// The high plane's blocks of rows of the group.
    #[inline]
    pub(super) fn high(&self, rows: Range<usize>, width: usize) -> &[Block] {
        &self.0[places(&rows, width)]
    }

    /// The low plane's.
    #[inline]
    pub(super) fn low(&self, rows: Range<usize>, width: usize) -> &[Block] {
        let places = places(&rows, width);
        let first = GROUP * width;
        &self.0[first + places.start..first + places.end]
    }

    /// Overwrites a row.
    pub(super) fn erase(&mut self, row: usize, width: usize) {
        let places = places(&(row..row + 1), width);
        for first in [0, GROUP * width] {
            self.0[first + places.start..first + places.end].fill(Block::ZERO_ROW);
        }
    }
}

/// The places of rows in a plane of their group.
#[inline]
fn places(rows: &Range<usize>, width: usize) -> Range<usize> {
    let first = rows.start / GROUP * GROUP;
    (rows.start - first) * width..(rows.end - first) * width
}

impl FlatIndex {
    /// Rows that are sealed together.
    pub(crate) const GROUP_ROWS: u32 = GROUP as u32;

    /// Rows in files.
    pub(crate) fn sealed_rows(&self) -> u32 {
        (self.sealed.len() * GROUP) as u32
    }

    /// Bytes in mapped files.
    pub(crate) fn mapped_bytes(&self) -> usize {
        self.sealed.iter().map(|group| group.0.bytes()).sum()
    }

    /// Bytes of a row in both planes.
    pub(crate) fn row_bytes(&self) -> usize {
        2 * self.coarse_row_bytes()
    }

    /// Returns true if a group's rows are all in memory.
    pub(crate) fn can_seal(&self) -> bool {
        self.len() - self.sealed.len() * GROUP >= GROUP
    }

    /// A copy of the next group in an empty file.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn sealed_copy(&self, file: &File) -> io::Result<SealedPlanes> {
        let parts = &self.parts[..GROUP / PART];
        let high = parts.iter().map(|part| &part.high[..]);
        let low = parts.iter().map(|part| &part.low[..]);
        let planes = MappedArray::write(file, high.chain(low))?;
        // A scan reads the high plane in order. Of the low one a few rows are read.
        planes.advise_random(GROUP * self.width);
        Ok(SealedPlanes(planes))
    }

    /// Puts a copy of the next group in the place of its parts in memory, which are returned. No row was removed since
    /// the copy was made.
    pub(crate) fn seal(&mut self, copy: SealedPlanes) -> Vec<Planes> {
        self.sealed.push(copy);
        self.parts.drain(..GROUP / PART).collect()
    }

    /// Moves the next group to a file.
    ///
    /// # Errors
    /// When the file cannot be made or written.
    pub(crate) fn seal_next(&mut self, files: &Scratch) -> io::Result<()> {
        let copy = self.sealed_copy(&files.segment_file()?)?;
        self.seal(copy);
        Ok(())
    }

    /// A copy of the last group in memory.
    pub(crate) fn unsealed_copy(&self) -> Vec<Planes> {
        let end = self.sealed.len() * GROUP;
        let parts = (end.saturating_sub(GROUP)..end).step_by(PART);
        let part = |first| Planes {
            high: self.high(first..first + PART).to_vec(),
            low: self.low(first..first + PART).to_vec(),
        };
        parts.map(part).collect()
    }

    /// Puts a copy of the last group in the place of its file, which is returned.
    pub(crate) fn unseal(&mut self, copy: Vec<Planes>) -> Option<SealedPlanes> {
        let group = self.sealed.pop()?;
        self.parts.splice(..0, copy);
        Some(group)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bitmap::Bitmap;
    use crate::dense::{QuantisedQuery, QuantisedRow, ReadOrder};

    const DIMENSIONS: usize = 20;
    const ROWS: usize = 2 * GROUP + 100;

    fn index() -> FlatIndex {
        let mut index = FlatIndex::new(DIMENSIONS);
        for row in 0..ROWS as u32 {
            let component = |n: u32| (row * 31 + n).wrapping_mul(2_654_435_761) as f32 / 4e9 - 0.5;
            let vector: Vec<f32> = (0..DIMENSIONS as u32).map(component).collect();
            index.push((row % 7 != 0).then(|| QuantisedRow::new(&vector)).as_ref());
        }
        index
    }

    fn files() -> Scratch {
        Scratch::create(&std::env::temp_dir()).expect("a file can be made")
    }

    /// The scores of all rows, coarse and whole.
    fn scores(index: &FlatIndex) -> [Vec<f32>; 2] {
        let query = QuantisedQuery::new(&[0.3; DIMENSIONS]);
        let mut allowed = Bitmap::empty(index.len() as u32);
        (0..index.len() as u32).for_each(|row| _ = allowed.insert(row));
        [false, true].map(|whole| {
            let mut scores = Vec::new();
            let how = (ReadOrder::Scan, whole);
            index.coarse_scan(&query, &allowed, how, None, &mut scores);
            scores
        })
    }

    #[test]
    fn rows_in_files_score_as_rows_in_memory_and_come_back() {
        let (mut index, files) = (index(), files());
        let before = scores(&index);
        while index.can_seal() {
            index.seal_next(&files).expect("there is room");
        }
        assert_eq!(index.sealed_rows() as usize, 2 * GROUP);
        assert_eq!(index.mapped_bytes(), 2 * GROUP * index.row_bytes());
        assert_eq!(scores(&index), before);
        let identity: Vec<u32> = (0..ROWS as u32).collect();
        let copy = index.compacted(&identity, Some(&files));
        assert_eq!(
            (copy.sealed_rows(), scores(&copy)),
            (2 * GROUP as u32, before.clone())
        );
        while index.sealed_rows() > 0 {
            let copy = index.unsealed_copy();
            index.unseal(copy);
            assert_eq!(scores(&index), before);
        }
        assert_eq!(index.mapped_bytes(), 0);
    }

    #[test]
    fn a_removed_row_is_overwritten_in_the_file() {
        let (mut index, files) = (index(), files());
        index.seal_next(&files).expect("there is room");
        let zeros = vec![Block::ZERO_ROW; index.width];
        // The last row of the file has no vector.
        for row in [1, 2, GROUP - 2] {
            assert_ne!(index.low(row..row + 1), zeros);
            index.erase(row as u32);
            assert_eq!(index.high(row..row + 1), zeros);
            assert_eq!(index.low(row..row + 1), zeros);
        }
        assert_ne!(index.low(3..4), zeros);
    }
}
