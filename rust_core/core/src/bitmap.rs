//! A dense set of row numbers: one bit a row, in words of 64.

/// A set of rows below a fixed bound, with its size known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bitmap {
    words: Vec<u64>,
    bound: u32,
    count: u32,
}

impl Bitmap {
    /// No rows, with room for rows below `bound`.
    pub fn empty(bound: u32) -> Self {
        Self {
            words: vec![0; (bound as usize).div_ceil(64)],
            bound,
            count: 0,
        }
    }

    /// The set of these [words](Self::words); None where they are too few or too many, or hold a row that is not below
    /// `bound`.
    pub(crate) fn of_words(words: Vec<u64>, bound: u32) -> Option<Self> {
        let spare = bound.next_multiple_of(u64::BITS) - bound;
        let last = words.last().copied().unwrap_or(0);
        if words.len() != bound.div_ceil(u64::BITS) as usize || last.leading_zeros() < spare {
            return None;
        }
        let count = words.iter().map(|word| word.count_ones()).sum();
        Some(Self {
            words,
            bound,
            count,
        })
    }

    /// Makes this the empty set below `bound`, keeping the allocation.
    pub fn reset(&mut self, bound: u32) {
        self.words.clear();
        self.words.resize((bound as usize).div_ceil(64), 0);
        self.bound = bound;
        self.count = 0;
    }

    /// Makes this a copy of `other`, keeping the allocation.
    pub fn copy_from(&mut self, other: &Self) {
        self.words.clear();
        self.words.extend_from_slice(&other.words);
        self.bound = other.bound;
        self.count = other.count;
    }

    /// Raises the bound; rows in between are out.
    pub fn grow(&mut self, bound: u32) {
        self.words.resize((bound as usize).div_ceil(64), 0);
        self.bound = bound;
    }

    /// Number of rows in the set.
    pub fn len(&self) -> u32 {
        self.count
    }

    /// Returns true if no row is in the set.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// One above the largest row that may be in the set.
    pub fn bound(&self) -> u32 {
        self.bound
    }

    /// Returns true if `row` is in the set. `row` is below the bound.
    #[inline]
    pub fn contains(&self, row: u32) -> bool {
        (self.words[(row >> 6) as usize] >> (row & 63)) & 1 == 1
    }

    /// Puts `row` in; returns whether it was out.
    #[inline]
    pub fn insert(&mut self, row: u32) -> bool {
        let word = &mut self.words[(row >> 6) as usize];
        let bit = 1u64 << (row & 63);
        let fresh = *word & bit == 0;
        *word |= bit;
        self.count += u32::from(fresh);
        fresh
    }

    /// Takes `row` out; returns whether it was in.
    #[inline]
    pub fn remove(&mut self, row: u32) -> bool {
        let word = &mut self.words[(row >> 6) as usize];
        let bit = 1u64 << (row & 63);
        let held = *word & bit != 0;
        *word &= !bit;
        self.count -= u32::from(held);
        held
    }

    /// Keeps the rows that `other` holds too. Both have the same bound.
    pub fn intersect(&mut self, other: &Self) {
        for (word, mask) in self.words.iter_mut().zip(&other.words) {
            *word &= mask;
        }
        self.recount();
    }

    /// Takes out the rows that `other` holds. Both have the same bound.
    pub fn subtract(&mut self, other: &Self) {
        for (word, mask) in self.words.iter_mut().zip(&other.words) {
            *word &= !mask;
        }
        self.recount();
    }

    /// Keeps the rows for which `keep` holds.
    pub fn retain(&mut self, mut keep: impl FnMut(u32) -> bool) {
        for (index, word) in self.words.iter_mut().enumerate() {
            let mut left = *word;
            while left != 0 {
                let bit = left & left.wrapping_neg();
                if !keep(((index as u32) << 6) | bit.trailing_zeros()) {
                    *word &= !bit;
                }
                left ^= bit;
            }
        }
        self.recount();
    }

    /// Rows in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.words.iter().enumerate().flat_map(|(index, &word)| {
            let mut left = word;
            std::iter::from_fn(move || {
                (left != 0).then(|| {
                    let row = ((index as u32) << 6) | left.trailing_zeros();
                    left &= left - 1;
                    row
                })
            })
        })
    }

    /// The first row, and from there every `step`-th that is in the set; what lies between is only counted.
    pub fn every(&self, step: u32) -> Vec<u32> {
        let step = step.max(1);
        if self.count == self.bound {
            return (0..self.bound).step_by(step as usize).collect();
        }
        let mut rows = Vec::with_capacity((self.count / step) as usize + 1);
        let mut skip = 0;
        for (index, &word) in self.words.iter().enumerate() {
            let mut left = word;
            while skip < left.count_ones() {
                for _ in 0..skip {
                    left &= left - 1;
                }
                rows.push(((index as u32) << 6) | left.trailing_zeros());
                left &= left - 1;
                skip = step - 1;
            }
            skip -= left.count_ones();
        }
        rows
    }

    /// The bits, row 0 in the lowest bit of the first word.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Bytes on the heap.
    pub fn bytes(&self) -> usize {
        self.words.capacity() * size_of::<u64>()
    }

    fn recount(&mut self) {
        self.count = self.words.iter().map(|word| word.count_ones()).sum();
    }
}
