//! The keyword arm of a large bank: postings of the rare words, and a bound for what the common ones can add.
//!
//! A word that most memories hold adds little to a score and has long postings. Rows are found by the rarest words; once
//! the best of them, scored in full, are better than the common words alone can make any row, no other row is among the
//! best (after Turtle and Flood, Query evaluation: strategies and optimizations, 1995).

use super::scores::{Sparse, Words};
use crate::analysis::AnalyzedQuery;
use crate::bank::State;
use crate::filter::Allowed;
use crate::lexical::{FETCHED, LexicalIndex, TermFilter};
use crate::topk::Scored;

/// Postings that are read in any case: below it, reading all costs less than bounding some.
const READ_POSTINGS: u64 = 1 << 14;
/// Rows among which the best are looked for that set a bound: it is no worse for what it leaves out, only lower.
const FIRST_FOUND: usize = 4096;
/// How many rows a place are scored in full for that bound: those that are best by the rare words alone are not the best. At a
/// million rows four take a sixth off the slow questions; eight no more.
const TRIED: usize = 4;
/// Rounding of a sum of 64 terms, as a share of it, with room to spare.
const ROUNDING: f32 = 1e-5;

/// What the rare words say.
#[derive(Debug)]
pub(super) struct Found {
    /// Sums of the rare words by row, clean between recalls.
    pub(super) sums: Sparse,
    /// Rows that hold a rare word and pass.
    pub(super) rows: Vec<u32>,
    order: Vec<f32>,
}

impl Default for Found {
    fn default() -> Self {
        Self {
            sums: Sparse::new(0.0),
            rows: Vec::new(),
            order: Vec::new(),
        }
    }
}

/// Appends to `proposed` all rows that may be among the `depth` best; tells which words were looked up for that.
pub(super) fn find(
    state: &State,
    allowed: Allowed<'_>,
    query: &AnalyzedQuery,
    depth: usize,
    found: &mut Found,
    proposed: &mut Vec<u32>,
) -> Words {
    let terms = state.lexical.query_terms(query);
    let mut by_rarity: Vec<usize> = (0..terms.len()).collect();
    by_rarity.sort_by_key(|&at| terms[at].rows);
    let mut words = Words {
        rare: vec![false; terms.len()],
        terms,
    };
    found.sums.grow(state.rows() as usize);
    if state.lexical.few(&words.terms, allowed.rows) {
        words.rare.fill(true);
        let Found { sums, rows, .. } = found;
        let mut take = |row: u32, score| {
            // Words of the first hits are added to what the query's have given.
            let sum = &mut sums.values[row as usize];
            if *sum == 0.0 {
                rows.push(row);
            }
            *sum += score;
        };
        state
            .lexical
            .score_rows(&words.terms, allowed.rows, &mut take);
        by_rarity.clear();
    }
    let (mut read, mut known) = (0, None);
    // A memory in chunks takes as many places as it has rows.
    let places = if state.is_flat() { depth } else { depth * 4 };
    for &at in &by_rarity {
        let term = words.terms[at];
        if read + u64::from(term.rows) > READ_POSTINGS {
            known = least_total(state, &words, found, places);
            if known.is_some_and(|least| least > words.common()) {
                break;
            }
        }
        read += u64::from(term.rows);
        words.rare[at] = true;
        state
            .lexical
            .add_term(term, allowed.rows, &mut found.sums.values, &mut found.rows);
    }
    let common = words.common();
    if common == 0.0 {
        known = kth_best(found, places);
    }
    let known = known.unwrap_or(0.0);
    let Found { sums, rows, order } = found;
    let sums = &sums.values;
    let may_be = |row: &u32| sums[*row as usize] >= known - common - rounding(known);
    let mut best: Vec<u32> = rows.iter().copied().filter(may_be).collect();
    if places > 0 && best.len() > places && common > 0.0 {
        let sums = (sums.as_slice(), known);
        narrow(state, &words, &by_rarity, places, sums, &mut best, order);
    }
    proposed.extend(best);
    words
}

/// A score that as many rows as there are places reach, all words counted: some that are best by the rare words are scored in
/// full, of the rows that were found first, which hold the rarest.
fn least_total(state: &State, words: &Words, found: &Found, places: usize) -> Option<f32> {
    let sums = &found.sums.values;
    let first = found.rows.iter().take(places.max(FIRST_FOUND));
    let mut best: Vec<Scored> = first.map(|&row| (sums[row as usize], row)).collect();
    if places == 0 || best.len() < places {
        return None;
    }
    let tried = best.len().min(places.saturating_mul(TRIED));
    best.select_nth_unstable_by(tried - 1, |a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let rows: Vec<u32> = best[..tried].iter().map(|&(_, row)| row).collect();
    let filter = TermFilter::new(&words.terms);
    let mut parts = vec![0.0; words.terms.len()];
    let mut totals = Vec::with_capacity(tried);
    for rows in rows.chunks(FETCHED) {
        state.lexical.fetch(rows);
        totals.extend(rows.iter().map(|&row| {
            let lexical = &state.lexical;
            lexical.score_row(&words.terms, filter, row, &mut parts);
            let others = parts.iter().zip(&words.rare).filter(|&(_, &rare)| !rare);
            sums[row as usize] + others.map(|(part, _)| part).sum::<f32>()
        }));
    }
    let (_, least, _) = totals.select_nth_unstable_by(places - 1, |a, b| b.total_cmp(a));
    Some(*least)
}

/// Keeps those of `best` that may be among the `places` best once the common words are added.
///
/// One word at a time, the rarest first: each raises the least of the best, and leaves less for the rest to add. In postings
/// that are read in the order of the rows a long list costs little more than the rows that are left. `known` is reached by
/// as many rows as there are places.
#[expect(
    clippy::stable_sort_primitive,
    reason = "the stable sort merges ascending runs, one for each rare word"
)]
fn narrow(
    state: &State,
    words: &Words,
    by_rarity: &[usize],
    places: usize,
    (sums, known): (&[f32], f32),
    best: &mut Vec<u32>,
    order: &mut Vec<f32>,
) {
    best.sort();
    let mut totals: Vec<f32> = best.iter().map(|&row| sums[row as usize]).collect();
    let mut left = words.common();
    for &at in by_rarity.iter().filter(|&&at| !words.rare[at]) {
        let term = words.terms[at];
        state.lexical.add_term_to(term, best, &mut totals);
        left -= term.most;
        order.clone_from(&totals);
        let (_, least, _) = order.select_nth_unstable_by(places - 1, |a, b| b.total_cmp(a));
        let least = least.max(known);
        let floor = least - left.max(0.0) - rounding(least);
        let mut kept = totals.iter();
        best.retain(|_| kept.next().is_some_and(|&total| total >= floor));
        totals.retain(|&total| total >= floor);
    }
}

/// How far sums of the same parts in another order may be apart.
fn rounding(sum: f32) -> f32 {
    sum.abs() * ROUNDING
}

/// The `k`-th best sum, if there are as many.
fn kth_best(found: &mut Found, k: usize) -> Option<f32> {
    let Found { sums, rows, order } = found;
    if k == 0 || rows.len() < k {
        return None;
    }
    order.clear();
    order.extend(rows.iter().map(|&row| sums.values[row as usize]));
    let (_, least, _) = order.select_nth_unstable_by(k - 1, |a, b| b.total_cmp(a));
    Some(*least)
}

/// Sums of the rare words by version, where versions have several rows; clean between recalls.
#[derive(Debug)]
pub(super) struct ByVersion(Sparse);

impl Default for ByVersion {
    fn default() -> Self {
        Self(Sparse::new(0.0))
    }
}

impl ByVersion {
    /// Makes the array clean again.
    pub(super) fn wipe(&mut self, holders: &[(u32, f32)]) {
        if !self.0.values.is_empty() {
            let bound = self.0.values.len() as u32;
            let versions = holders.iter().map(|&(version, _)| version);
            self.0.wipe(versions.filter(|&version| version < bound));
        }
    }
}

impl Found {
    /// The versions that hold a rare word, each with the sum of its best row.
    pub(super) fn holders(&self, state: &State, by_version: &mut ByVersion) -> Vec<(u32, f32)> {
        let sums = &self.sums.values;
        if state.is_flat() {
            return self
                .rows
                .iter()
                .map(|&row| (row, sums[row as usize]))
                .collect();
        }
        let ByVersion(best) = by_version;
        best.grow(state.columns.len() as usize);
        let mut versions = Vec::new();
        for &row in &self.rows {
            let version = state.version_of(row);
            let own = &mut best.values[version as usize];
            if *own == 0.0 {
                versions.push(version);
            }
            *own = own.max(sums[row as usize]);
        }
        let with_sum = |version: u32| (version, best.values[version as usize]);
        versions.into_iter().map(with_sum).collect()
    }

    /// The sums by version.
    pub(super) fn by_version<'a>(&'a self, state: &State, by_version: &'a ByVersion) -> &'a Sparse {
        if state.is_flat() {
            &self.sums
        } else {
            &by_version.0
        }
    }

    /// Makes the array clean again.
    pub(super) fn wipe(&mut self) {
        self.sums.wipe(self.rows.iter().copied());
        self.rows.clear();
    }
}
