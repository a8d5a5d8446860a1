//! The terms of each row, one after the other: in memory, or for the first rows of a bank in the disk tier in mapped
//! files.

use std::fs::File;
use std::io;
use std::ops::Range;

use crate::dense::FlatIndex;
use crate::system::mapped::MappedArray;

/// Rows whose terms are sealed together: as many as of the vectors.
pub(super) const GROUP: u32 = FlatIndex::GROUP_ROWS;

/// The terms of some rows in a file.
#[derive(Debug)]
pub(crate) struct SealedTerms {
    /// The number of the first entry.
    first: usize,
    entries: MappedArray<u32>,
}

/// Entries of all rows: the term's number, and its frequency in the low bits.
#[derive(Debug, Default)]
pub(super) struct Forward {
    /// Of whole groups of rows, from row 0 on.
    sealed: Vec<SealedTerms>,
    /// The number of the first entry in memory.
    start: usize,
    tail: Vec<u32>,
}

impl Clone for Forward {
    /// A copy in memory.
    fn clone(&self) -> Self {
        Self::of(self.runs().collect::<Vec<_>>().concat())
    }
}

impl Forward {
    /// Entries in memory.
    pub(super) fn of(tail: Vec<u32>) -> Self {
        Self {
            sealed: Vec::new(),
            start: 0,
            tail,
        }
    }

    /// Number of entries.
    pub(super) fn len(&self) -> usize {
        self.start + self.tail.len()
    }

    /// All entries, one run after the other.
    pub(super) fn runs(&self) -> impl Iterator<Item = &[u32]> {
        let sealed = self.sealed.iter().map(|group| &group.entries[..]);
        sealed.chain([&self.tail[..]])
    }

    /// Entries that can be appended to.
    pub(super) fn tail(&mut self) -> &mut Vec<u32> {
        &mut self.tail
    }

    /// The entries of a row, which are those of `span`.
    #[inline]
    pub(super) fn of_row(&self, row: u32, span: Range<usize>) -> &[u32] {
        if span.start >= self.start {
            return &self.tail[span.start - self.start..span.end - self.start];
        }
        match self.sealed.get((row / GROUP) as usize) {
            Some(group) if !span.is_empty() => {
                &group.entries[span.start - group.first..span.end - group.first]
            }
            _ => &[],
        }
    }

    /// Overwrites the entries of a row.
    pub(super) fn erase(&mut self, row: u32, span: Range<usize>) {
        if span.is_empty() {
            return;
        }
        let entries = if span.start >= self.start {
            &mut self.tail[span.start - self.start..span.end - self.start]
        } else {
            let group = &mut self.sealed[(row / GROUP) as usize];
            &mut group.entries[span.start - group.first..span.end - group.first]
        };
        entries.fill(u32::MAX);
    }

    /// Read what brings the entries of a row into the cache: the first one, and the one after the last.
    #[inline]
    pub(super) fn touch(&self, row: u32, span: Range<usize>) -> u32 {
        if span.start >= self.start {
            let entry = |at: usize| self.tail.get(at - self.start).copied().unwrap_or(0);
            return entry(span.start) ^ entry(span.end);
        }
        let entries = self.of_row(row, span);
        entries.first().copied().unwrap_or(0) ^ entries.last().copied().unwrap_or(0)
    }

    /// Rows whose entries are in files.
    pub(super) fn sealed_rows(&self) -> u32 {
        self.sealed.len() as u32 * GROUP
    }

    /// Bytes in memory.
    pub(super) fn bytes(&self) -> usize {
        self.tail.capacity() * size_of::<u32>() + self.sealed.capacity() * size_of::<SealedTerms>()
    }

    /// Bytes in mapped files.
    pub(super) fn mapped_bytes(&self) -> usize {
        self.sealed.iter().map(|group| group.entries.bytes()).sum()
    }

    /// A copy of the entries in memory up to the one of number `end`, in an empty file.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(super) fn sealed_copy(&self, end: usize, file: &File) -> io::Result<SealedTerms> {
        let entries = &self.tail[..end - self.start];
        let entries = MappedArray::write(file, std::iter::once(entries))?;
        entries.advise_random(0);
        Ok(SealedTerms {
            first: self.start,
            entries,
        })
    }

    /// Puts a copy in the place of the entries in memory, which are returned. None was overwritten since it was made.
    pub(super) fn seal(&mut self, copy: SealedTerms) -> Vec<u32> {
        let after = self.tail.split_off(copy.entries.len());
        let before = std::mem::replace(&mut self.tail, after);
        self.start += before.len();
        self.sealed.push(copy);
        before
    }
}
