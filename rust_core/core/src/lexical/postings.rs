//! The postings of one term: the rows that hold it, four bytes each.

use hashbrown::HashMap;
use smallvec::SmallVec;

use crate::system::huge_pages::MemoryRanges;

// Low bits of a posting that hold the frequency; a frequency that fills them is in the side table. Fifteen is rare: it
// takes a long text that repeats one word.
pub(super) const FREQUENCY_BITS: u32 = 4;
pub(super) const FREQUENCY_MASK: u32 = (1 << FREQUENCY_BITS) - 1;

// Most terms of a bank are in few rows; four fit without an allocation, in the space that a vector's header takes.
const INLINE: usize = 4;

// Postings that are counted together: a few instructions.
const STRETCH: usize = 16;

/// Frequencies that do not fit into a posting, by (term, row).
pub(super) type Overflow = HashMap<(u32, u32), u32>;

/// A term: how many counted rows hold it, and which rows at all, ascending.
#[derive(Debug, Clone)]
pub(super) struct Postings {
    pub(super) fingerprint: u64,
    /// Counted rows that hold the term.
    pub(super) document_frequency: u32,
    /// The largest frequency and the smallest length of a row that holds or held it; the largest number stands for
    /// more.
    most_frequent: u16,
    shortest: u16,
    rows: SmallVec<[u32; INLINE]>,
}

impl Postings {
    pub(super) fn new(fingerprint: u64) -> Self {
        Self {
            fingerprint,
            document_frequency: 0,
            most_frequent: 0,
            shortest: u16::MAX,
            rows: SmallVec::new(),
        }
    }

    /// Appends `row` of `length` words; returns whether `frequency` must go to the side table. Keeps a quarter of room,
    /// not a half.
    pub(super) fn push(&mut self, row: u32, frequency: u32, length: u32) -> bool {
        self.note(frequency, length);
        if self.rows.len() == self.rows.capacity() {
            self.rows.reserve_exact(self.rows.len() / 4 + 2);
        }
        self.rows
            .push(row << FREQUENCY_BITS | frequency.min(FREQUENCY_MASK));
        frequency >= FREQUENCY_MASK
    }

    /// Notes the frequency and the length of a row whose posting is elsewhere.
    pub(super) fn note(&mut self, frequency: u32, length: u32) {
        let short = |number: u32| u16::try_from(number).unwrap_or(u16::MAX);
        self.most_frequent = self.most_frequent.max(short(frequency));
        self.shortest = self.shortest.min(short(length));
    }

    /// Drops the postings of rows below `first`, and returns their number.
    pub(super) fn drop_below(&mut self, first: u32) -> u32 {
        let below = |posting: &u32| posting >> FREQUENCY_BITS < first;
        let count = self.rows.partition_point(below);
        if count > 0 {
            self.rows.drain(..count);
            self.rows.shrink_to_fit();
        }
        count as u32
    }

    /// Makes room for so many rows and no more.
    pub(super) fn reserve(&mut self, rows: usize) {
        self.rows.reserve_exact(rows);
    }

    /// Notes where they lie, if not in the term itself.
    pub(super) fn note_ranges(&self, ranges: &mut MemoryRanges) {
        if self.rows.spilled() {
            ranges.note(&self.rows);
        }
    }

    /// Number of rows, removed ones included until they are dropped.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The largest frequency, if it is known, and the smallest length: no row has more of the one or less of the other.
    pub(super) fn extremes(&self) -> (Option<f32>, f32) {
        let most = (self.most_frequent < u16::MAX).then(|| f32::from(self.most_frequent));
        (most, f32::from(self.shortest))
    }

    /// Calls `found` with the place in `wanted`, ascending, and the frequency of each row that holds the term.
    pub(super) fn for_each_of(
        &self,
        term: u32,
        overflow: &Overflow,
        wanted: &[u32],
        mut found: impl FnMut(usize, f32),
    ) {
        let mut rest = &self.rows[..];
        for (at, &row) in wanted.iter().enumerate() {
            rest = &rest[gallop(rest, row << FREQUENCY_BITS)..];
            let Some(&posting) = rest.first() else {
                return;
            };
            if posting >> FREQUENCY_BITS == row {
                found(at, frequency_of(posting, term, overflow));
            }
        }
    }

    /// Calls `found` with each row and frequency, ascending; `term` is this term's number.
    #[inline]
    pub(super) fn for_each(&self, term: u32, overflow: &Overflow, mut found: impl FnMut(u32, f32)) {
        for &posting in &self.rows {
            let frequency = frequency_of(posting, term, overflow);
            found(posting >> FREQUENCY_BITS, frequency);
        }
    }

    /// Reads them one stretch of rows after the other, from the row `first` on; `term` is this term's number.
    pub(super) fn cursor(&self, term: u32, first: u32) -> Cursor<'_> {
        let below = |posting: &u32| posting >> FREQUENCY_BITS < first;
        let rest = &self.rows[self.rows.partition_point(below)..];
        Cursor { term, rest }
    }

    /// Gives rows the numbers of `new_rows` and drops those of `u32::MAX`.
    pub(super) fn renumber(&mut self, new_rows: &[u32]) {
        self.rows.retain(|posting| {
            let row = new_rows[(*posting >> FREQUENCY_BITS) as usize];
            *posting = row << FREQUENCY_BITS | *posting & FREQUENCY_MASK;
            row != u32::MAX
        });
        if self.rows.spilled() {
            self.rows.shrink_to_fit();
        }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        if self.rows.spilled() {
            self.rows.capacity() * size_of::<u32>()
        } else {
            0
        }
    }
}

/// A term's postings that are still to be read.
pub(super) struct Cursor<'a> {
    term: u32,
    rest: &'a [u32],
}

impl Cursor<'_> {
    /// Calls `found` with each row below `end` and its frequency, ascending.
    #[inline]
    pub(super) fn read(&mut self, end: u32, overflow: &Overflow, mut found: impl FnMut(u32, f32)) {
        while let Some((&posting, rest)) = self.rest.split_first()
            && posting >> FREQUENCY_BITS < end
        {
            found(
                posting >> FREQUENCY_BITS,
                frequency_of(posting, self.term, overflow),
            );
            self.rest = rest;
        }
    }
}

#[inline]
fn frequency_of(posting: u32, term: u32, overflow: &Overflow) -> f32 {
    let (row, low) = (posting >> FREQUENCY_BITS, posting & FREQUENCY_MASK);
    let frequency = if low == FREQUENCY_MASK {
        overflow.get(&(term, row)).copied().unwrap_or(low)
    } else {
        low
    };
    frequency as f32
}

/// The number of first postings below `target`: fast where they are few (Bentley and Yao, An almost optimal algorithm
/// for unbounded searching, 1976). The last stretch is counted whole, which costs less than guesses that fail.
#[inline]
fn gallop(postings: &[u32], target: u32) -> usize {
    let below = |at: usize| postings.get(at).is_some_and(|&posting| posting < target);
    let (mut low, mut step) = (0, STRETCH);
    while below(low + step - 1) {
        low += step;
        step *= 2;
    }
    while step > STRETCH {
        step /= 2;
        if below(low + step - 1) {
            low += step;
        }
    }
    let rest = &postings[low..];
    let count = |sum, &posting: &u32| sum + usize::from(posting < target);
    low + match rest.first_chunk::<STRETCH>() {
        Some(stretch) => stretch.iter().fold(0, count),
        None => rest.iter().fold(0, count),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn galloping_counts_what_is_below() {
        let postings: Vec<u32> = (0..100).map(|number| number * 3).collect();
        for length in [0, 1, 2, 15, 16, 17, 64, 100] {
            for target in 0..310 {
                let part = &postings[..length];
                let below = part.iter().filter(|&&posting| posting < target).count();
                assert_eq!(gallop(part, target), below, "{length} {target}");
            }
        }
    }
}
