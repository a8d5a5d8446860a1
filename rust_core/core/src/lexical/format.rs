//! The checkpoint format of the keyword index: the terms of each row, from which the postings are rebuilt.

use std::ops::Range;

use hashbrown::HashTable;
use rayon::prelude::*;

use super::bm25::{Bm25Index, COUNT_BITS, REMOVED};
use super::postings::{FREQUENCY_BITS, FREQUENCY_MASK, Postings};
use crate::api::Result;
use crate::system::checked_file::{FileReader, put_array, refused};

/// Number of terms of a row that was removed.
const GONE: u32 = u32::MAX;

impl Bm25Index {
    /// Rows, removed ones included.
    pub(crate) fn row_count(&self) -> u32 {
        self.lengths.len() as u32
    }

    /// Number of compactions that renumbered terms.
    pub(crate) fn renumberings(&self) -> u64 {
        self.renumberings
    }

    /// Appends the terms of some rows, and notes in `used` which they are.
    pub(crate) fn save(&self, rows: Range<u32>, used: &mut Vec<bool>, out: &mut Vec<u8>) {
        used.resize(used.len().max(self.terms.len()), false);
        let lengths = rows.clone().map(|row| self.lengths.packed(row));
        out.extend(lengths.flat_map(u32::to_le_bytes));
        for row in rows.clone() {
            let gone = self.spans[row as usize] == REMOVED;
            let count = if gone {
                GONE
            } else {
                self.span(row).len() as u32
            };
            out.extend_from_slice(&count.to_le_bytes());
        }
        let mut exact = Vec::new();
        for row in rows.clone() {
            let entries = self.entries(row);
            put_array(entries, u32::to_le_bytes, out);
            for &entry in entries {
                let term = entry >> FREQUENCY_BITS;
                used[term as usize] = true;
                if entry & FREQUENCY_MASK == FREQUENCY_MASK
                    && let Some(&frequency) = self.overflow.get(&(term, row))
                {
                    exact.extend([term, row - rows.start, frequency]);
                }
            }
        }
        out.extend_from_slice(&(exact.len() as u32 / 3).to_le_bytes());
        put_array(&exact, u32::to_le_bytes, out);
    }

    /// Appends the fingerprints of some terms: 0 for one that no saved row has.
    pub(crate) fn save_terms(&self, terms: Range<usize>, used: &[bool], out: &mut Vec<u8>) {
        for (postings, &used) in self.terms[terms.clone()].iter().zip(&used[terms]) {
            let fingerprint = if used { postings.fingerprint } else { 0 };
            out.extend_from_slice(&fingerprint.to_le_bytes());
        }
    }

    /// An index of these terms, to which rows are then [`read`](Self::read).
    pub(crate) fn of_terms(fingerprints: &[u64]) -> Self {
        Self {
            terms: fingerprints.iter().map(|&one| Postings::new(one)).collect(),
            ..Self::default()
        }
    }

    /// Appends `count` rows that were saved; [`settle`](Self::settle) must follow.
    pub(crate) fn read(&mut self, count: usize, reader: &mut FileReader) -> Result<()> {
        let first = self.lengths.len() as u32;
        let (mut lengths, mut counts) = (Vec::new(), Vec::new());
        reader.take_array(count, u32::from_le_bytes, &mut lengths)?;
        for &length in &lengths {
            self.lengths.push_packed(length);
        }
        reader.take_array(count, u32::from_le_bytes, &mut counts)?;
        let mut start = self.forward.len() as u64;
        for &count in &counts {
            let terms = if count == GONE { 0 } else { u64::from(count) };
            if terms >> COUNT_BITS > 0 {
                return Err(refused("a row has too many terms"));
            }
            let span = start << COUNT_BITS | terms;
            self.spans.push(if count == GONE { REMOVED } else { span });
            start += terms;
        }
        let more = start as usize - self.forward.len();
        reader.take_array(more, u32::from_le_bytes, self.forward.tail())?;
        for _ in 0..reader.take_u32()? {
            let (term, row) = (reader.take_u32()?, reader.take_u32()?);
            let frequency = reader.take_u32()?;
            if term as usize >= self.terms.len() || row as usize >= count {
                return Err(refused("a frequency belongs to no row"));
            }
            self.overflow.insert((term, first + row), frequency);
        }
        Ok(())
    }

    /// Makes postings, statistics and dictionary from the rows' terms. Of rows whose postings inverted indexes have
    /// alone it makes statistics only.
    pub(crate) fn settle(&mut self) -> Result<()> {
        let mut sizes = vec![0u32; self.terms.len()];
        for &entry in self.forward.runs().flatten() {
            match sizes.get_mut((entry >> FREQUENCY_BITS) as usize) {
                Some(size) => *size += 1,
                None => return Err(refused("a row has an unknown term")),
            }
        }
        let first = self.dropped.rows();
        if first > 0 {
            self.count_dropped(first);
            for (size, &dropped) in sizes.iter_mut().zip(self.dropped.counts()) {
                *size -= dropped;
            }
        }
        let mut terms = std::mem::take(&mut self.terms);
        for (postings, &size) in terms.iter_mut().zip(&sizes) {
            postings.reserve(size as usize);
        }
        let share = terms.len().div_ceil(rayon::current_num_threads()).max(1);
        let index = &*self;
        terms
            .par_chunks_mut(share)
            .enumerate()
            .for_each(|(number, part)| index.fill(number * share, part));
        self.terms = terms;
        for (_, length, _) in self.lengths.iter().filter(|&(_, _, counted)| counted) {
            self.counted_rows += 1;
            self.counted_length += u64::from(length);
        }
        self.posting_bytes = self.terms.iter().map(Postings::heap_bytes).sum();
        let terms = &self.terms;
        self.dictionary = HashTable::with_capacity(terms.len());
        for (postings, number) in terms.iter().zip(0u32..) {
            if self.posting_count(number) > 0 {
                self.dictionary
                    .insert_unique(postings.fingerprint, number, |&term| {
                        terms[term as usize].fingerprint
                    });
            }
        }
        Ok(())
    }

    /// Appends to the terms from number `first` on the rows that have them.
    fn fill(&self, first: usize, terms: &mut [Postings]) {
        let own = self.dropped.rows();
        for (row, length, counted) in self.lengths.iter() {
            for &entry in self.entries(row) {
                let at = ((entry >> FREQUENCY_BITS) as usize).wrapping_sub(first);
                if let Some(postings) = terms.get_mut(at) {
                    let frequency = self.frequency_of(entry, row) as u32;
                    if row < own {
                        postings.note(frequency, length);
                    } else {
                        postings.push(row, frequency, length);
                    }
                    postings.document_frequency += u32::from(counted);
                }
            }
        }
    }
}
