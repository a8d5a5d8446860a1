//! The keyword arm of a recall by graphs: postings of rare words, and an upper bound for what common words add.
//!
//! A word that most memories hold adds little to a score and has long postings. Rows are found by the rarest words.
//! Once the best of them, scored in full, exceed what the common words alone can give any row, no other row is among
//! the best (after Turtle and Flood, Query evaluation: strategies and optimizations, 1995).

use std::borrow::Cow;
use std::ops::Range;

use super::sparse_scores::Words;
use crate::index::Index;
use crate::lexical::{FETCHED, LexicalIndex, QueryTerm, RowWindow, Sums, TermFilter};
use crate::recall::Recall;
use crate::recall::arms::semantic::of_rows;
use crate::recall::filter::Allowed;
use crate::topk::{Scored, above};
use astrocyte_text::analysis::AnalyzedQuery;

/// Postings that are read before it is asked whether they are enough: to score rows in full for that takes as long as a
/// hundred thousand postings. Questions of twenty words took six times as long with 16,384; with 524,288, those whose
/// rare words are enough took half as long again.
const READ_POSTINGS: u64 = 1 << 17;
/// Rows per place that are scored in full for that bound, since the best by rare words alone are not the best. At a
/// million rows four take a sixth off the slow questions; eight no more.
const TRIED: usize = 4;
/// Rows a place whose words are read sooner than the postings of another common word.
const FEW: usize = 16;
/// Sums from which it is guessed how high the best begin.
const GUESSED_FROM: usize = 2048;
/// Rounding of a sum of 64 terms, as a share of it, with room to spare.
const ROUNDING: f32 = 1e-5;

/// The rows that rare words find.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Rows that hold a rare word and pass, each with the sum of its rare words.
    pub(crate) sums: Sums,
    /// The best of them, by place.
    best: Vec<Scored>,
    order: Vec<f32>,
}

/// Appends to `proposed` all rows that may be among the `depth` best; tells which words were looked up for that. With
/// `spread` a second thread may be taken.
pub(crate) fn find(
    recall: Recall<'_>,
    query: &AnalyzedQuery,
    spread: bool,
    found: &mut Found,
    proposed: &mut Vec<u32>,
) -> Words {
    let Recall {
        index,
        request,
        allowed,
        ..
    } = recall;
    let depth = request.depth;
    let mut words = Words::new(index.lexical.query_terms(query));
    // A memory in chunks takes as many places as it has rows.
    let places = if index.is_flat() { depth } else { depth * 4 };
    let by_rarity = words.by_rarity();
    let known = if index.lexical.few(&words.terms, allowed.rows) {
        words.rare.fill(true);
        found.take_rows(index, allowed, &words.terms);
        None
    } else {
        found.read(index, (allowed, spread), &mut words, &by_rarity, places)
    };
    let common = words.common();
    let known = if common == 0.0 {
        found.least(places)
    } else {
        known
    };
    let known = known.unwrap_or(0.0);
    let (mut rows, mut sums) = found.reaching(known - common - rounding(known));
    if places > 0 && rows.len() > places && common > 0.0 {
        let best = (&mut rows, &mut sums);
        found.narrow(index, &words, &by_rarity, (places, known), best);
    }
    proposed.extend(rows);
    words
}

impl Found {
    /// Adds all words of the few rows that pass.
    fn take_rows(&mut self, index: &Index, allowed: Allowed<'_>, terms: &[QueryTerm]) {
        let mut scored = Vec::new();
        let mut take = |row, score| scored.push((row, score));
        index.lexical.score_rows(terms, allowed.rows, &mut take);
        self.sums.add(index.rows(), false, |_| {
            let mut scored = scored.iter().copied().peekable();
            move |rows: Range<u32>, window: &mut RowWindow| {
                while let Some((row, score)) = scored.next_if(|&(row, _)| row < rows.end) {
                    window.add(row, score);
                }
            }
        });
    }

    /// Adds the postings of the rarest words, until the others cannot make any row better than `places` that are known.
    /// Returns a score that as many rows reach, if one is known.
    fn read(
        &mut self,
        index: &Index,
        (allowed, spread): (Allowed<'_>, bool),
        words: &mut Words,
        by_rarity: &[usize],
        places: usize,
    ) -> Option<f32> {
        let rows = |at: usize| u64::from(words.terms[by_rarity[at]].rows);
        let (mut read, mut known, mut next) = (0, None, 0);
        while next < by_rarity.len() {
            // It is asked before a word that has more postings than all before it together.
            let (first, most) = (next, READ_POSTINGS.max(read * 2));
            while next < by_rarity.len() && read + rows(next) <= most {
                read += rows(next);
                next += 1;
            }
            if next == first {
                known = self.least_total(index, words, places);
                if known.is_some_and(|least| least > words.common()) {
                    break;
                }
                read += rows(next);
                next += 1;
            }
            let some = &by_rarity[first..next];
            let terms: Vec<QueryTerm> = some.iter().map(|&at| words.terms[at].clone()).collect();
            index
                .lexical
                .add_terms(&terms, allowed.rows, spread, &mut self.sums);
            for &at in some {
                words.rare[at] = true;
            }
        }
        known
    }

    /// A score that as many rows as there are places reach, all words counted: some that are best by the rare words are
    /// scored in full.
    fn least_total(&mut self, index: &Index, words: &Words, places: usize) -> Option<f32> {
        let tried = places.saturating_mul(TRIED);
        if places == 0 || self.sums.rows.len() < places {
            return None;
        }
        self.find_best(tried);
        let place = |&(_, place): &Scored| place as usize;
        let rows: Vec<u32> = self
            .best
            .iter()
            .map(|one| self.sums.rows[place(one)])
            .collect();
        let mut totals: Vec<f32> = self.best.iter().map(|&(sum, _)| sum).collect();
        add_others(index, (words, &words.rare), &rows, &mut totals);
        let (_, least, _) = totals.select_nth_unstable_by(places - 1, |a, b| b.total_cmp(a));
        Some(*least)
    }

    /// The sum that as many rows reach as there are places, if there are as many.
    fn least(&mut self, places: usize) -> Option<f32> {
        if places == 0 || self.sums.rows.len() < places {
            return None;
        }
        self.find_best(places);
        self.best.iter().map(|&(sum, _)| sum).reduce(f32::min)
    }

    /// Finds the `count` best sums.
    fn find_best(&mut self, count: usize) {
        let Self { sums, best, order } = self;
        let values = &sums.values;
        let step = values.len().div_ceil(GUESSED_FROM).max(1);
        order.clear();
        order.extend(values.iter().step_by(step));
        // Half as many again as in the sample would be enough, if that is like all.
        let place = count * 3 / (step * 2) + 8;
        let guess = if step > 1 && place < order.len() {
            *order.select_nth_unstable_by(place, |a, b| b.total_cmp(a)).1
        } else {
            0.0
        };
        above(values, guess, best);
        if best.len() < count {
            above(values, 0.0, best);
        }
        if count < best.len() {
            best.select_nth_unstable_by(count, |a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            best.truncate(count);
        }
    }

    /// The rows whose sums reach `floor`, ascending, and these sums.
    fn reaching(&mut self, floor: f32) -> (Vec<u32>, Vec<f32>) {
        above(&self.sums.values, floor, &mut self.best);
        let row = |&(sum, place): &Scored| (self.sums.rows[place as usize], sum);
        self.best.iter().map(row).unzip()
    }

    /// Keeps those of `rows` that may be among the `places` best once the common words are added to their `totals`.
    ///
    /// One word at a time, the rarest first: each raises the least of the best, and leaves less for the rest to add. In
    /// postings that are read in the order of the rows a long list costs little more than the rows that are left; when
    /// these are few, their own words are read. `known` is reached by as many rows as there are places.
    fn narrow(
        &mut self,
        index: &Index,
        words: &Words,
        by_rarity: &[usize],
        (places, known): (usize, f32),
        (rows, totals): (&mut Vec<u32>, &mut Vec<f32>),
    ) {
        let best = &mut self.best;
        let (mut added, mut left) = (words.rare.clone(), words.common());
        for &at in by_rarity.iter().filter(|&&at| !words.rare[at]) {
            let few = rows.len() <= FEW * places;
            if few {
                add_others(index, (words, &added), rows, totals);
                left = 0.0;
            } else {
                index.lexical.add_term_to(&words.terms[at], rows, totals);
                added[at] = true;
                left -= words.terms[at].most;
            }
            above(totals, known, best);
            if best.len() >= places {
                best.select_nth_unstable_by(places - 1, |a, b| b.0.total_cmp(&a.0));
            }
            let least = best.get(places - 1).map_or(known, |&(total, _)| total);
            let floor = least - left.max(0.0) - rounding(least);
            let mut kept = totals.iter();
            rows.retain(|_| kept.next().is_some_and(|&total| total >= floor));
            totals.retain(|&total| total >= floor);
            if few {
                break;
            }
        }
    }

    /// The versions that hold a rare word, ascending, each with what its rows' sums make together.
    pub(crate) fn holders(&self, index: &Index) -> Holders<'_> {
        let (rows, sums) = (&self.sums.rows, &self.sums.values);
        if index.is_flat() {
            return Holders {
                versions: Cow::Borrowed(rows),
                sums: Cow::Borrowed(sums),
            };
        }
        let (mut versions, mut combined) = (Vec::new(), Vec::new());
        let mut left = rows.iter().zip(sums).peekable();
        while let Some(&(&row, _)) = left.peek() {
            let version = index.version_of(row);
            let span = index.rows_of(version);
            // Of the whole, and of the best chunk.
            let mut own = [0.0_f32; 2];
            while let Some((&row, &sum)) = left.next_if(|&(&row, _)| row < span.end) {
                let part = &mut own[usize::from(row != span.start)];
                *part = part.max(sum);
            }
            versions.push(version);
            combined.push(of_rows(&own, 0.0));
        }
        Holders {
            versions: Cow::Owned(versions),
            sums: Cow::Owned(combined),
        }
    }
}

/// Versions that hold a rare word, ascending, and the sums of their rare words.
pub(crate) struct Holders<'a> {
    pub(crate) versions: Cow<'a, [u32]>,
    pub(crate) sums: Cow<'a, [f32]>,
}

impl Holders<'_> {
    /// The sum of a version, if it is one of them.
    pub(crate) fn sum_of(&self, version: u32) -> Option<f32> {
        let place = self.versions.binary_search(&version).ok()?;
        Some(self.sums[place])
    }
}

/// Adds to `totals` what the words that are not in them yet add to the scores of `rows`.
fn add_others(index: &Index, (words, added): (&Words, &[bool]), rows: &[u32], totals: &mut [f32]) {
    let filter = TermFilter::new(&words.terms);
    let mut parts = vec![0.0; words.terms.len()];
    for (rows, totals) in rows.chunks(FETCHED).zip(totals.chunks_mut(FETCHED)) {
        index.lexical.fetch(rows);
        for (&row, total) in rows.iter().zip(totals) {
            index
                .lexical
                .score_row(&words.terms, filter, row, &mut parts);
            let others = parts.iter().zip(added).filter(|&(_, &added)| !added);
            *total += others.map(|(part, _)| part).sum::<f32>();
        }
    }
}

/// The largest difference between sums of the same parts in different orders.
fn rounding(sum: f32) -> f32 {
    sum.abs() * ROUNDING
}
