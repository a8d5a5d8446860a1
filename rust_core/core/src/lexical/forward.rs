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
    /// The number of the entry at the head of the tail: the first one in memory.
    start: usize,
    /// Places at the front of the tail whose entries are in files by now, at most half of it.
    head: usize,
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
            head: 0,
            tail,
        }
    }

    /// Number of entries.
    pub(super) fn len(&self) -> usize {
        self.start + self.tail.len() - self.head
    }

    /// All entries, one run after the other.
    pub(super) fn runs(&self) -> impl Iterator<Item = &[u32]> {
        let sealed = self.sealed.iter().map(|group| &group.entries[..]);
        sealed.chain([&self.tail[self.head..]])
    }

    /// The places of entries in the tail, where they are in memory.
    #[inline]
    fn places(&self, span: Range<usize>) -> Option<Range<usize>> {
        let place = |entry: usize| entry - self.start + self.head;
        (span.start >= self.start).then(|| place(span.start)..place(span.end))
    }

    /// Entries that can be appended to.
    pub(super) fn tail(&mut self) -> &mut Vec<u32> {
        &mut self.tail
    }

    /// The entries of a row, which are those of `span`.
    #[inline]
    pub(super) fn of_row(&self, row: u32, span: Range<usize>) -> &[u32] {
        if let Some(places) = self.places(span.clone()) {
            return &self.tail[places];
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
        let entries = if let Some(places) = self.places(span.clone()) {
            &mut self.tail[places]
        } else {
            let group = &mut self.sealed[(row / GROUP) as usize];
            &mut group.entries[span.start - group.first..span.end - group.first]
        };
        entries.fill(u32::MAX);
    }

    /// Read what brings the entries of a row into the cache: the first one, and the one after the last.
    #[inline]
    pub(super) fn touch(&self, row: u32, span: Range<usize>) -> u32 {
        if let Some(places) = self.places(span.clone()) {
            let entry = |at: usize| self.tail.get(at).copied().unwrap_or(0);
            return entry(places.start) ^ entry(places.end);
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
        let entries = &self.tail[self.head..self.head + end - self.start];
        let entries = MappedArray::write(file, std::iter::once(entries))?;
        entries.advise_random(0);
        Ok(SealedTerms {
            first: self.start,
            entries,
        })
    }

    /// Puts a copy in the place of the entries in memory. None was overwritten since it was made. The memory of the tail
    /// is returned when half of it is of no use: so all groups of a bank together move each entry about once, where
    /// one after the other would move all that follow.
    pub(super) fn seal(&mut self, copy: SealedTerms) -> Vec<u32> {
        let sealed = self.head..self.head + copy.entries.len();
        // An erasure overwrites the file alone.
        self.tail[sealed.clone()].fill(u32::MAX);
        self.start += sealed.len();
        self.head = sealed.end;
        self.sealed.push(copy);
        if self.head < self.tail.len().div_ceil(2) {
            return Vec::new();
        }
        let after = self.tail.split_off(std::mem::take(&mut self.head));
        std::mem::replace(&mut self.tail, after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dense::exact_vectors::Scratch;

    /// Entries of a row.
    const WORDS: usize = 3;
    const GROUPS: u32 = 20;

    fn span(row: u32) -> Range<usize> {
        let first = row as usize * WORDS;
        first..first + WORDS
    }

    fn entries(row: u32) -> Vec<u32> {
        span(row).map(|entry| entry as u32).collect()
    }

    #[test]
    fn every_row_keeps_its_entries_while_groups_go_to_files_and_rows_are_added_and_erased() {
        let files = Scratch::create(&std::env::temp_dir()).expect("a file can be made");
        let mut forward = Forward::of((0..GROUPS * GROUP).flat_map(entries).collect());
        let mut rows = GROUPS * GROUP;
        let mut erased = std::collections::BTreeSet::new();
        for group in 0..GROUPS {
            let file = files.segment_file().expect("a file can be made");
            let end = span(forward.sealed_rows() + GROUP).start;
            forward.seal(forward.sealed_copy(end, &file).expect("there is room"));
            forward.tail().extend(entries(rows));
            rows += 1;
            // One in a file, one in memory.
            for row in [group * GROUP + 7, (rows - 1).min((group + 2) * GROUP)] {
                forward.erase(row, span(row));
                erased.insert(row);
            }
            assert_eq!(forward.len(), rows as usize * WORDS);
            for row in (0..rows).step_by(61).chain(erased.iter().copied()) {
                let expected = if erased.contains(&row) {
                    vec![u32::MAX; WORDS]
                } else {
                    entries(row)
                };
                assert_eq!(forward.of_row(row, span(row)), expected, "{row}");
                let ends = forward.touch(row, span(row));
                assert!(row >= forward.sealed_rows() || ends == expected[0] ^ expected[WORDS - 1]);
            }
            let copy = forward.clone();
            assert!(forward.runs().flatten().eq(copy.runs().flatten()));
        }
        assert_eq!(forward.sealed_rows(), GROUPS * GROUP);
    }

    #[test]
    fn all_groups_together_move_each_entry_about_once() {
        let files = Scratch::create(&std::env::temp_dir()).expect("a file can be made");
        let mut forward = Forward::of((0..GROUPS * GROUP).flat_map(entries).collect());
        let total = forward.len();
        let mut moved = 0;
        for group in 1..=GROUPS {
            let file = files.segment_file().expect("a file can be made");
            let end = span(group * GROUP).start;
            let copy = forward.sealed_copy(end, &file).expect("there is room");
            if !forward.seal(copy).is_empty() {
                moved += forward.tail.len();
            }
            assert!(forward.head <= forward.tail.len() / 2);
        }
        assert!(moved <= total, "{moved} of {total}");
    }
}
