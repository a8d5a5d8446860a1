//! Compaction of the keyword index: rows get new numbers, and those of removed rows and unused terms go.

use hashbrown::HashTable;

use super::bm25::{Bm25Index, COUNT_BITS};
use super::forward::Forward;
use super::lengths::Lengths;
use super::postings::{FREQUENCY_BITS, FREQUENCY_MASK, Postings};
use super::sealed::SealedWords;

impl Bm25Index {
    pub(super) fn rebuild(&mut self, new_rows: &[u32]) {
        self.renumberings += 1;
        self.sealed = SealedWords::default();
        let mut new_terms = vec![u32::MAX; self.terms.len()];
        let mut kept = Vec::with_capacity(self.terms.len());
        for (number, mut postings) in std::mem::take(&mut self.terms).into_iter().enumerate() {
            postings.renumber(new_rows);
            if postings.len() > 0 {
                new_terms[number] = kept.len() as u32;
                kept.push(postings);
            }
        }
        kept.shrink_to_fit();
        self.terms = kept;
        let terms = &self.terms;
        let hash = |&term: &u32| terms[term as usize].fingerprint;
        self.dictionary = HashTable::with_capacity(terms.len());
        for (postings, number) in terms.iter().zip(0..) {
            self.dictionary
                .insert_unique(postings.fingerprint, number, hash);
        }
        self.overflow = std::mem::take(&mut self.overflow)
            .into_iter()
            .filter(|&((_, row), _)| new_rows[row as usize] != u32::MAX)
            .map(|((term, row), frequency)| {
                (
                    (new_terms[term as usize], new_rows[row as usize]),
                    frequency,
                )
            })
            .collect();
        self.rebuild_rows(new_rows, &new_terms);
        self.posting_bytes = self.terms.iter().map(Postings::heap_bytes).sum();
        self.dead_postings = 0;
    }

    fn rebuild_rows(&mut self, new_rows: &[u32], new_terms: &[u32]) {
        let bound = new_rows
            .iter()
            .filter(|&&row| row != u32::MAX)
            .max()
            .map_or(0, |&row| row as usize + 1);
        let mut forward = Vec::with_capacity(self.forward.len() - self.dead_postings);
        let mut lengths = Lengths::default();
        let mut spans = vec![0; bound];
        for ((row, length, counted), &new_row) in self.lengths.iter().zip(new_rows) {
            if new_row != u32::MAX {
                let start = forward.len();
                forward.extend(self.entries(row).iter().map(|&entry| {
                    let term = new_terms[(entry >> FREQUENCY_BITS) as usize];
                    term << FREQUENCY_BITS | entry & FREQUENCY_MASK
                }));
                spans[new_row as usize] = (start << COUNT_BITS | (forward.len() - start)) as u64;
                lengths.push(new_row, length, counted);
            }
        }
        // Of the last rows there may be no words.
        lengths.grow(bound);
        (self.forward, self.lengths, self.spans) = (Forward::of(forward), lengths, spans);
    }
}
