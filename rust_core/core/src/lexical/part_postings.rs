//! The postings of one term in one inverted index: as tantivy reads them, or, where it fails and nobody else has them,
//! as the rows' own terms tell.

use std::ops::Range;

use astrocyte_segments::WordPostings;

/// Postings that are still to be read; rows are counted from the first of the index.
#[derive(Debug)]
pub(super) enum PartPostings {
    Sealed(Box<WordPostings>),
    /// Rows and frequencies, and the number of those that were read.
    Listed(Vec<(u32, u32)>, usize),
}

impl PartPostings {
    /// The next row and its frequency, without taking it; None at the end.
    pub(super) fn peek(&self) -> Option<(u32, u32)> {
        match self {
            Self::Sealed(postings) => postings.peek(),
            Self::Listed(all, at) => all.get(*at).copied(),
        }
    }

    /// Passes over the rows below `row`.
    pub(super) fn seek(&mut self, row: u32) {
        match self {
            Self::Sealed(postings) => postings.seek(row),
            Self::Listed(all, at) => *at += all[*at..].partition_point(|&(one, _)| one < row),
        }
    }

    /// Calls `found` with each row of the range and its frequency, ascending. Rows below the range that were not read
    /// are passed over.
    pub(super) fn read(&mut self, rows: Range<u32>, mut found: impl FnMut(u32, u32)) {
        match self {
            Self::Sealed(postings) => postings.read(rows, found),
            Self::Listed(..) => {
                self.seek(rows.start);
                let Self::Listed(all, at) = self else { return };
                while let Some(&(row, frequency)) = all.get(*at).filter(|one| one.0 < rows.end) {
                    found(row, frequency);
                    *at += 1;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listed_rows_are_read_in_stretches_and_sought() {
        let all = vec![(0, 1), (3, 2), (4, 1), (900, 5)];
        let mut listed = PartPostings::Listed(all.clone(), 0);
        let mut read = Vec::new();
        for first in [0, 3, 10, 500] {
            listed.read(first..first + 400, |row, frequency| {
                read.push((row, frequency));
            });
        }
        listed.read(900..901, |row, frequency| read.push((row, frequency)));
        assert_eq!((read, listed.peek()), (all.clone(), None));
        let mut listed = PartPostings::Listed(all, 0);
        listed.seek(4);
        assert_eq!(listed.peek(), Some((4, 1)));
    }
}
