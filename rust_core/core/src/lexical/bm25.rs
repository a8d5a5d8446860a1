//! BM25 over the in-memory keyword index: a dictionary, postings, and the terms of each row so that removal is exact.

use std::hint::black_box;

use hashbrown::HashTable;
use smallvec::SmallVec;

use super::disk::DroppedPostings;
use super::forward::Forward;
use super::lengths::Lengths;
use super::postings::{FREQUENCY_BITS, FREQUENCY_MASK, Overflow, Postings};
use super::sealed::SealedWords;
use super::unions::union_with;
use super::{LexicalIndex, MAX_ROWS, QueryStems, QueryTerm, Sums, TermFilter};
use crate::bitmap::Bitmap;
use crate::system::huge_pages::MemoryRanges;
use astrocyte_text::analysis::{AnalyzedQuery, AnalyzedText};

// Saturation of the term frequency; Robertson and Zaragoza give 1.2 to 2.
const K1: f32 = 1.5;
// Share of the length normalisation; 0.75 in the same source. Chunks are even in length, and wholes count half.
const B: f32 = 0.65;
// More distinct words than a question has; bounds the work of a pasted page.
const MAX_QUERY_TERMS: usize = 64;
// Removed postings are worth dropping when they are more than a quarter of all, and enough to be worth a pass.
const DEAD_SHARE: usize = 4;
const DEAD_FLOOR: usize = 8192;

// Postings that are read in the time in which a row's words are found: postings lie one after the other, rows anywhere.
const ROW_POSTINGS: u64 = 32;

// A row's terms lie in the forward list at 40 bits of offset, 24 bits of count.
pub(super) const COUNT_BITS: u32 = 24;
/// Rows without any stem that are counted beside those of a bank, so that a stem of all rows has a weight too.
const PRIOR_ROWS: f64 = 10.0;
// A span that no row can have: the last offset and the largest count.
pub(super) const REMOVED: u64 = u64::MAX;

/// BM25 with per-bank statistics over counted rows. Equal for equal sets of rows, whatever came and went before.
#[derive(Debug, Clone, Default)]
pub struct Bm25Index {
    /// Numbers of terms by fingerprint, which is a hash already.
    pub(super) dictionary: HashTable<u32>,
    pub(super) terms: Vec<Postings>,
    pub(super) overflow: Overflow,
    pub(super) lengths: Lengths,
    /// Offset and count in `forward` per row.
    pub(super) spans: Vec<u64>,
    /// Terms of each row: the number, and the frequency in the low bits as in a posting.
    pub(super) forward: Forward,
    pub(super) counted_rows: u64,
    pub(super) counted_length: u64,
    pub(super) dead_postings: usize,
    pub(super) posting_bytes: usize,
    /// Number of compactions that renumbered terms.
    pub(super) renumberings: u64,
    /// Inverted indexes of tantivy over most rows, where the bank has them.
    pub(super) sealed: SealedWords,
    /// Postings that the inverted indexes have alone, in the disk tier.
    pub(super) dropped: DroppedPostings,
}

impl Bm25Index {
    /// Notes where postings and lengths lie.
    pub(crate) fn note_ranges(&self, ranges: &mut MemoryRanges) {
        for postings in &self.terms {
            postings.note_ranges(ranges);
        }
        self.lengths.note_ranges(ranges);
    }

    /// An empty index.
    pub fn new() -> Self {
        Self::default()
    }

    pub(super) fn term_number(&mut self, fingerprint: u64) -> u32 {
        self.find_term(fingerprint).unwrap_or_else(|| {
            let number = self.terms.len() as u32;
            reserve_exactly(&mut self.terms, 1);
            self.terms.push(Postings::new(fingerprint));
            let terms = &self.terms;
            self.dictionary.insert_unique(fingerprint, number, |&term| {
                terms[term as usize].fingerprint
            });
            number
        })
    }

    /// A dictionary with room for `more` terms, where the present one would have to grow.
    pub(crate) fn larger_dictionary(&self, more: usize) -> Option<HashTable<u32>> {
        crate::system::arrays::larger(&self.dictionary, more, |&term| {
            self.terms[term as usize].fingerprint
        })
    }

    /// Takes a larger dictionary and leaves the one that was there before.
    pub(crate) fn swap_dictionary(&mut self, other: &mut HashTable<u32>) {
        std::mem::swap(&mut self.dictionary, other);
    }

    pub(super) fn find_term(&self, fingerprint: u64) -> Option<u32> {
        let is_it = |&term: &u32| self.terms[term as usize].fingerprint == fingerprint;
        self.dictionary.find(fingerprint, is_it).copied()
    }

    pub(super) fn span(&self, row: u32) -> std::ops::Range<usize> {
        let span = self
            .spans
            .get(row as usize)
            .copied()
            .filter(|&span| span != REMOVED)
            .unwrap_or(0);
        let start = (span >> COUNT_BITS) as usize;
        start..start + (span & ((1 << COUNT_BITS) - 1)) as usize
    }

    /// The terms of a row; of a removed row none.
    #[inline]
    pub(super) fn entries(&self, row: u32) -> &[u32] {
        self.forward.of_row(row, self.span(row))
    }

    /// The frequency in its row of the term of an entry of the forward list.
    pub(super) fn frequency_of(&self, entry: u32, row: u32) -> f32 {
        let low = entry & FREQUENCY_MASK;
        let exact = (low == FREQUENCY_MASK)
            .then(|| self.overflow.get(&(entry >> FREQUENCY_BITS, row)))
            .flatten();
        exact.copied().unwrap_or(low) as f32
    }

    /// Returns true if there is neither a filter nor a removed row: then every posting counts without a look-up of its row.
    pub(super) fn all_pass(&self, allowed: &Bitmap) -> bool {
        allowed.len() as usize == self.spans.len()
    }

    /// The share of a term, or of a union of terms, of this frequency in the score of a row.
    #[inline]
    pub(super) fn part(&self, term: &QueryTerm, row: u32, frequency: f32) -> f32 {
        let (base, slope) = self.length_share();
        let length = self.lengths.get(row) as f32;
        term.factor * frequency / (frequency + base + slope * length)
    }

    /// The part of a row's length in the saturation: a constant, and a part for each word.
    pub(super) fn length_share(&self) -> (f32, f32) {
        let average = (self.counted_length as f32 / self.counted_rows.max(1) as f32).max(1.0);
        (K1 * (1.0 - B), K1 * B / average)
    }

    /// Inverse document frequency, above 0 for every term: ln(1 + (N - n + 0.5) / (n + 0.5)).
    pub(super) fn inverse_document_frequency(&self, term: u32) -> f32 {
        self.rarity(f64::from(self.terms[term as usize].document_frequency))
    }

    /// The inverse document frequency of what so many counted rows hold.
    pub(super) fn rarity(&self, found_in: f64) -> f32 {
        (1.0 + (self.counted_rows as f64 - found_in + 0.5) / (found_in + 0.5)).ln() as f32
    }

    /// The known terms of `query` with idf times weight, the rarest first if there are too many.
    fn weighted_terms(&self, query: &AnalyzedQuery) -> Vec<(u32, f32)> {
        let mut weighted: Vec<(u32, f32)> = query
            .terms
            .iter()
            .filter_map(|(fingerprint, weight)| {
                let term = self.find_term(*fingerprint)?;
                Some((term, weight * self.inverse_document_frequency(term)))
            })
            .collect();
        if weighted.len() > MAX_QUERY_TERMS {
            // Stable, so equal weights stay in the order of the fingerprints, which does not depend on history.
            weighted.sort_by(|left, right| right.1.total_cmp(&left.1));
            weighted.truncate(MAX_QUERY_TERMS);
        }
        weighted
    }
}

impl LexicalIndex for Bm25Index {
    fn add(&mut self, row: u32, text: &AnalyzedText, counted: bool) {
        assert!(
            row < MAX_ROWS && row as usize >= self.spans.len(),
            "row {row} is not above {}",
            self.spans.len()
        );
        let more_rows = row as usize + 1 - self.spans.len();
        reserve_exactly(self.forward.tail(), text.terms.len());
        self.lengths.reserve(more_rows);
        reserve_exactly(&mut self.spans, more_rows);
        let start = self.forward.len();
        for &(fingerprint, frequency) in &text.terms {
            let term = self.term_number(fingerprint);
            let postings = &mut self.terms[term as usize];
            let before = postings.heap_bytes();
            if postings.push(row, frequency, text.length()) {
                self.overflow.insert((term, row), frequency);
            }
            postings.document_frequency += u32::from(counted);
            self.posting_bytes += postings.heap_bytes() - before;
            let entry = term << FREQUENCY_BITS | frequency.min(FREQUENCY_MASK);
            self.forward.tail().push(entry);
        }
        self.lengths.push(row, text.length(), counted);
        self.spans.resize(row as usize, 0);
        self.spans
            .push((start << COUNT_BITS | text.terms.len()) as u64);
        self.counted_rows += u64::from(counted);
        self.counted_length += if counted { u64::from(text.length()) } else { 0 };
    }

    fn retire(&mut self, row: u32) {
        if !self.lengths.retire(row) {
            return;
        }
        self.counted_rows -= 1;
        self.counted_length -= u64::from(self.lengths.get(row));
        for entry in self.forward.of_row(row, self.span(row)) {
            self.terms[(entry >> FREQUENCY_BITS) as usize].document_frequency -= 1;
        }
    }

    fn remove(&mut self, row: u32) {
        self.retire(row);
        let span = self.span(row);
        self.dead_postings += span.len();
        self.forward.erase(row, span);
        if let Some(span) = self.spans.get_mut(row as usize) {
            *span = REMOVED;
        }
        self.lengths.remove(row);
        self.sealed.note_removed(row);
    }

    fn is_wasteful(&self) -> bool {
        self.dead_postings > DEAD_FLOOR && self.dead_postings > self.forward.len() / DEAD_SHARE
    }

    fn compact(&mut self, new_rows: &[u32]) {
        debug_assert!(new_rows.len() >= self.spans.len(), "one new number per row");
        debug_assert!(!self.is_on_disk(), "on disk it is rebuilt");
        self.rebuild(new_rows);
    }

    fn score(&self, query: &AnalyzedQuery, allowed: &Bitmap, scores: &mut [f32]) {
        let terms = self.query_terms(query);
        if self.few(&terms, allowed) {
            self.score_rows(&terms, allowed, &mut |row, score| {
                scores[row as usize] = score;
            });
            return;
        }
        let all = self.all_pass(allowed);
        let (base, slope) = self.length_share();
        for term in &terms {
            let mut add = |row: u32, frequency: f32| {
                if all || allowed.contains(row) {
                    let length = self.lengths.get(row) as f32;
                    scores[row as usize] +=
                        term.factor * frequency / (frequency + base + slope * length);
                }
            };
            if !term.others.is_empty() {
                for (row, frequency) in self.union_postings(term) {
                    add(row, frequency);
                }
            } else if self.sealed.is_empty() {
                let postings = &self.terms[term.number as usize];
                postings.for_each(term.number, &self.overflow, add);
            } else {
                let mut cursor = self.sealed_cursor(term.number, 0);
                cursor.read(u32::MAX, &self.overflow, &mut add);
            }
        }
    }

    fn feedback(&self, query: &AnalyzedQuery, rows: &[u32], weight: f32) -> AnalyzedQuery {
        self.related(query, rows, weight)
    }

    fn query_terms(&self, query: &AnalyzedQuery) -> Vec<QueryTerm> {
        let (base, slope) = self.length_share();
        let weighted = self.weighted_terms(query).into_iter();
        let term = |(number, weight): (u32, f32)| {
            let postings = &self.terms[number as usize];
            let factor = weight * (K1 + 1.0);
            let share = match postings.extremes() {
                (Some(frequency), length) => frequency / (frequency + base + slope * length),
                (None, _) => 1.0,
            };
            QueryTerm {
                number,
                others: Vec::new(),
                factor,
                most: factor * share,
                rows: self.posting_count(number),
            }
        };
        let unions = query.unions.iter();
        let unions = unions.filter_map(|union| self.union_term(union, K1 + 1.0));
        weighted.map(term).chain(unions).collect()
    }

    fn add_terms(&self, terms: &[QueryTerm], allowed: &Bitmap, spread: bool, sums: &mut Sums) {
        if self.sealed.is_empty() {
            let cursor = |number: u32, first| {
                let postings = &self.terms[number as usize];
                postings.cursor(number, first)
            };
            self.add_postings(terms, allowed, spread, sums, cursor);
        } else {
            let cursor = |number: u32, first| self.sealed_cursor(number, first);
            self.add_postings(terms, allowed, spread, sums, cursor);
        }
    }

    fn add_term_to(&self, term: &QueryTerm, rows: &[u32], sums: &mut [f32]) {
        if !term.others.is_empty() {
            let frequencies = self.union_frequencies(term, rows);
            let held = frequencies.into_iter().enumerate();
            for (at, frequency) in held.filter(|&(_, frequency)| frequency > 0.0) {
                sums[at] += self.part(term, rows[at], frequency);
            }
            return;
        }
        let (base, slope) = self.length_share();
        self.frequencies_of(term.number, rows, |at, frequency| {
            let length = self.lengths.get(rows[at]) as f32;
            sums[at] += term.factor * frequency / (frequency + base + slope * length);
        });
    }

    fn few(&self, terms: &[QueryTerm], allowed: &Bitmap) -> bool {
        let postings: u64 = terms.iter().map(|term| u64::from(term.rows)).sum();
        let words = self.forward.len() as u64 / self.spans.len().max(1) as u64;
        u64::from(allowed.len()) * (ROW_POSTINGS + words) < postings
    }

    fn fetch(&self, rows: &[u32]) {
        // No entry waits for another, so that the processor asks memory for many of them at a time.
        let touched = rows.iter().fold(0, |sum: u32, &row| {
            let length = self.lengths.get(row);
            sum ^ length ^ self.forward.touch(row, self.span(row))
        });
        black_box(touched);
    }

    fn score_row(&self, terms: &[QueryTerm], filter: TermFilter, row: u32, parts: &mut [f32]) {
        parts.fill(0.0);
        let (base, slope) = self.length_share();
        let length = self.lengths.get(row) as f32;
        let mut unions = false;
        for &entry in self.entries(row) {
            let number = entry >> FREQUENCY_BITS;
            if !filter.may_hold(number) {
                continue;
            }
            let at = terms.iter().position(|term| term.number == number);
            if let Some(at) = at.or_else(|| union_with(terms, number)) {
                let frequency = self.frequency_of(entry, row);
                if terms[at].others.is_empty() {
                    parts[at] = terms[at].factor * frequency / (frequency + base + slope * length);
                } else {
                    parts[at] += frequency;
                    unions = true;
                }
            }
        }
        if unions {
            let held = terms.iter().zip(parts).filter(|(_, part)| **part > 0.0);
            for (term, part) in held.filter(|(term, _)| !term.others.is_empty()) {
                *part = self.part(term, row, *part);
            }
        }
    }

    fn stems(&self, query: &AnalyzedQuery) -> Option<QueryStems> {
        // Surface forms repeat their stems at a lower weight.
        let stems = query.terms.iter().filter(|&&(_, weight)| weight >= 1.0);
        let (mut known, mut weights) = (SmallVec::new(), SmallVec::new());
        for (&(fingerprint, _), bit) in stems.zip(0..64) {
            let found = self.find_term(fingerprint);
            let rows = found.map_or(0, |term| self.terms[term as usize].document_frequency);
            let all = self.counted_rows as f64 + PRIOR_ROWS + 1.0;
            weights.push((1.0 - (f64::from(rows) + 1.0).ln() / all.ln()) as f32);
            known.extend(found.map(|term| (term, bit)));
        }
        for (union, bit) in query.unions.iter().zip(weights.len() as u32..64) {
            let found = union.iter().filter_map(|&one| self.find_term(one));
            known.extend(found.map(|term| (term, bit)));
            let all = self.counted_rows as f64 + PRIOR_ROWS + 1.0;
            let rows = self.union_rows(union);
            weights.push((1.0 - ((rows as f64) + 1.0).ln() / all.ln()) as f32);
        }
        let filter = TermFilter::of(known.iter().map(|&(term, _)| term));
        (!weights.is_empty()).then_some(QueryStems {
            known,
            weights,
            filter,
        })
    }

    fn held(&self, stems: &QueryStems, row: u32) -> u64 {
        let numbers = self
            .entries(row)
            .iter()
            .map(|entry| entry >> FREQUENCY_BITS)
            .filter(|&number| stems.filter.may_hold(number));
        numbers.fold(0, |held, number| {
            let found = stems.known.iter().find(|&&(known, _)| known == number);
            held | found.map_or(0, |&(_, bit)| 1 << bit)
        })
    }

    fn terms(&self) -> usize {
        self.terms.len()
    }

    fn bytes(&self) -> usize {
        self.dictionary.allocation_size()
            + self.terms.capacity() * size_of::<Postings>()
            + self.posting_bytes
            + self.overflow.capacity() * (size_of::<((u32, u32), u32)>() + 1)
            + self.lengths.bytes()
            + self.spans.capacity() * size_of::<u64>()
            + self.forward.bytes()
            + self.sealed.bytes()
            + self.dropped.bytes()
    }
}

/// Makes room for `more` values, an eighth at a time: these vectors are most of the index.
pub(super) fn reserve_exactly<T>(values: &mut Vec<T>, more: usize) {
    if values.len() + more > values.capacity() {
        values.reserve_exact(more.max(values.len() / 8 + 16));
    }
}
