//! The rows that hold one term, four bytes each.

use hashbrown::HashMap;
use smallvec::SmallVec;

// Low bits of a posting that hold the frequency; a frequency that fills them is in the side table. Fifteen is rare: it
// takes a long text that repeats one word.
pub(super) const FREQUENCY_BITS: u32 = 4;
pub(super) const FREQUENCY_MASK: u32 = (1 << FREQUENCY_BITS) - 1;

// Most terms of a bank are in few rows; four fit without an allocation, in the space that a vector's header takes.
const INLINE: usize = 4;

/// Frequencies that do not fit into a posting, by (term, row).
pub(super) type Overflow = HashMap<(u32, u32), u32>;

/// A term: how many counted rows hold it, and which rows at all, ascending.
#[derive(Debug, Clone)]
pub(super) struct Postings {
    pub(super) fingerprint: u64,
    /// Counted rows that hold the term.
    pub(super) document_frequency: u32,
    rows: SmallVec<[u32; INLINE]>,
}

impl Postings {
    pub(super) fn new(fingerprint: u64) -> Self {
        Self {
            fingerprint,
            document_frequency: 0,
            rows: SmallVec::new(),
        }
    }

    /// Appends `row`; returns whether `frequency` must go to the side table. Keeps a quarter of room, not a half.
    pub(super) fn push(&mut self, row: u32, frequency: u32) -> bool {
        if self.rows.len() == self.rows.capacity() {
            self.rows.reserve_exact(self.rows.len() / 4 + 2);
        }
        self.rows
            .push(row << FREQUENCY_BITS | frequency.min(FREQUENCY_MASK));
        frequency >= FREQUENCY_MASK
    }

    /// Makes room for so many rows and no more.
    pub(super) fn reserve(&mut self, rows: usize) {
        self.rows.reserve_exact(rows);
    }

    /// Number of rows, removed ones included until they are dropped.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Calls `found` with each row and frequency, ascending; `term` is this term's number.
    #[inline]
    pub(super) fn for_each(&self, term: u32, overflow: &Overflow, mut found: impl FnMut(u32, f32)) {
        for &posting in &self.rows {
            let (row, low) = (posting >> FREQUENCY_BITS, posting & FREQUENCY_MASK);
            let frequency = if low == FREQUENCY_MASK {
                overflow.get(&(term, row)).copied().unwrap_or(low)
            } else {
                low
            };
            found(row, frequency as f32);
        }
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
