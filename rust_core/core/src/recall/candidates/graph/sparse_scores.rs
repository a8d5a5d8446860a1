//! Scores of the few versions that a recall examines, in arrays by version number that are clean between recalls.

use super::both;
use crate::dense::{DenseIndex, NO_SCORE, QuantisedQuery};
use crate::index::Index;
use crate::lexical::{FETCHED, LexicalIndex, QueryTerm, TermFilter};
use crate::recall::arms::ArmScores;
use crate::recall::arms::semantic::of_rows;

/// Versions from which on a second thread is worth waking: to score one takes half a microsecond.
const SPREAD_VERSIONS: usize = 512;

/// An array in which all entries are `absent` but those that a recall sets.
#[derive(Debug)]
pub(crate) struct Sparse {
    pub(crate) values: Vec<f32>,
    absent: f32,
}

impl Sparse {
    pub(crate) const fn new(absent: f32) -> Self {
        Self {
            values: Vec::new(),
            absent,
        }
    }

    pub(crate) fn grow(&mut self, length: usize) {
        if self.values.len() < length {
            self.values.resize(length, self.absent);
        }
    }

    pub(crate) fn wipe(&mut self, entries: impl Iterator<Item = u32>) {
        for entry in entries {
            self.values[entry as usize] = self.absent;
        }
    }
}

/// A set of versions that remembers what was put in.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    words: Vec<u64>,
    pub(crate) list: Vec<u32>,
}

impl Marks {
    pub(crate) fn grow(&mut self, bound: usize) {
        let words = bound.div_ceil(64);
        if self.words.len() < words {
            self.words.resize(words, 0);
        }
    }

    pub(crate) fn insert(&mut self, version: u32) -> bool {
        let word = &mut self.words[(version >> 6) as usize];
        let bit = 1 << (version & 63);
        let fresh = *word & bit == 0;
        if fresh {
            *word |= bit;
            self.list.push(version);
        }
        fresh
    }

    pub(crate) fn clear(&mut self) {
        for version in self.list.drain(..) {
            self.words[(version >> 6) as usize] = 0;
        }
    }
}

/// Cosines.
#[derive(Debug)]
pub(crate) struct Dense {
    pub(crate) rows: Sparse,
    pub(crate) versions: Sparse,
    wanted: Vec<u32>,
    found: Vec<f32>,
}

impl Default for Dense {
    fn default() -> Self {
        Self {
            rows: Sparse::new(NO_SCORE),
            versions: Sparse::new(NO_SCORE),
            wanted: Vec::new(),
            found: Vec::new(),
        }
    }
}

impl Dense {
    fn find(&mut self, index: &Index, query: &QuantisedQuery, versions: &[u32]) {
        self.wanted.clear();
        for &version in versions {
            self.wanted.extend(index.rows_of(version));
        }
        index.vectors.cosines(query, &self.wanted, &mut self.found);
        for (&row, &cosine) in self.wanted.iter().zip(&self.found) {
            self.rows.values[row as usize] = cosine;
        }
        for &version in versions {
            self.combine(index, version);
        }
    }

    /// Sets the version's cosine from those of its rows.
    pub(crate) fn combine(&mut self, index: &Index, version: u32) {
        let rows = index.rows_of(version);
        let own = &self.rows.values[rows.start as usize..rows.end as usize];
        self.versions.values[version as usize] = of_rows(own, NO_SCORE);
    }
}

/// Keyword scores.
#[derive(Debug)]
pub(crate) struct Lexical {
    pub(crate) rows: Sparse,
    pub(crate) versions: Sparse,
    /// By the terms alone that were not looked up in postings.
    pub(crate) common: Sparse,
    wanted: Vec<u32>,
}

impl Default for Lexical {
    fn default() -> Self {
        Self {
            rows: Sparse::new(0.0),
            versions: Sparse::new(0.0),
            common: Sparse::new(0.0),
            wanted: Vec::new(),
        }
    }
}

impl Lexical {
    /// Adds what the words are worth; the `first` ones are the query's own.
    fn find(&mut self, index: &Index, words: &Words, versions: &[u32], first: bool) {
        let Self {
            rows,
            versions: whole,
            wanted,
            ..
        } = self;
        for_each_version(index, &words.terms, versions, wanted, |version, own| {
            whole.values[version as usize] += of_rows(own, 0.0);
            if first {
                let span = index.rows_of(version);
                rows.values[span.start as usize..span.end as usize].copy_from_slice(own);
            }
        });
    }

    /// Adds what those of the words are worth that were not looked up in postings.
    fn find_common(&mut self, index: &Index, words: &Words, versions: &[u32]) {
        let common: Vec<QueryTerm> = words.unread().cloned().collect();
        if common.is_empty() {
            return;
        }
        let Self {
            common: scores,
            wanted,
            ..
        } = self;
        for_each_version(index, &common, versions, wanted, |version, own| {
            scores.values[version as usize] += of_rows(own, 0.0);
        });
    }
}

/// Calls `take` with each version and what the terms are worth in its rows.
fn for_each_version(
    index: &Index,
    terms: &[QueryTerm],
    versions: &[u32],
    wanted: &mut Vec<u32>,
    mut take: impl FnMut(u32, &[f32]),
) {
    let filter = TermFilter::new(terms);
    let (mut parts, mut own) = (vec![0.0; terms.len()], Vec::new());
    for versions in versions.chunks(FETCHED) {
        wanted.clear();
        wanted.extend(versions.iter().flat_map(|&version| index.rows_of(version)));
        index.lexical.fetch(wanted);
        for &version in versions {
            own.clear();
            for row in index.rows_of(version) {
                index.lexical.score_row(terms, filter, row, &mut parts);
                own.push(parts.iter().sum());
            }
            take(version, &own);
        }
    }
}

/// The scores of the versions that a recall examines, before context windows.
#[derive(Debug)]
pub(crate) struct SparseScores {
    pub(crate) dense: Dense,
    pub(crate) lexical: Lexical,
    /// The candidates' scores with their neighbours' shares.
    pub(crate) smoothed_semantic: Sparse,
    pub(crate) smoothed_keyword: Sparse,
    /// Versions that have their cosines, the last ones not yet.
    pub(crate) near: Asked,
    /// Versions that have the scores of all words.
    pub(crate) worded: Asked,
    /// Versions that have those of the words whose postings were not read.
    pub(crate) sampled: Asked,
    /// Groups of words that they have them of.
    words: usize,
}

impl Default for SparseScores {
    fn default() -> Self {
        Self {
            dense: Dense::default(),
            lexical: Lexical::default(),
            smoothed_semantic: Sparse::new(NO_SCORE),
            smoothed_keyword: Sparse::new(0.0),
            near: Asked::default(),
            worded: Asked::default(),
            sampled: Asked::default(),
            words: 0,
        }
    }
}

/// Versions whose scores are asked for, those that have them first.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    marks: Marks,
    done: usize,
}

impl Asked {
    pub(crate) fn insert(&mut self, version: u32) {
        self.marks.insert(version);
    }

    /// All, and how many of them had their scores before now.
    fn all(&mut self) -> (&[u32], usize) {
        let list = &self.marks.list;
        (list, std::mem::replace(&mut self.done, list.len()))
    }

    /// Calls `find` with each group of words, the versions that need its scores, and whether it is the first; `known`
    /// groups are those that all but the last versions have.
    fn find(&mut self, words: &[Words], known: usize, mut find: impl FnMut(&Words, &[u32], bool)) {
        let (list, fresh) = self.all();
        for (number, words) in words.iter().enumerate() {
            let from = if number < known { fresh } else { 0 };
            find(words, &list[from..], number == 0);
        }
    }

    fn clear(&mut self) {
        self.marks.clear();
        self.done = 0;
    }
}

/// The query's words as the index holds them; `rare` says of each whether its postings were read.
#[derive(Debug, Default)]
pub(crate) struct Words {
    pub(crate) terms: Vec<QueryTerm>,
    pub(crate) rare: Vec<bool>,
}

impl Words {
    /// Words of terms whose postings are not read yet.
    pub(crate) fn new(terms: Vec<QueryTerm>) -> Self {
        let rare = vec![false; terms.len()];
        Self { terms, rare }
    }

    /// Their places, those of the rarest first.
    pub(crate) fn by_rarity(&self) -> Vec<usize> {
        let mut places: Vec<usize> = (0..self.terms.len()).collect();
        places.sort_by_key(|&at| self.terms[at].rows);
        places
    }

    /// The terms whose postings were not read.
    pub(crate) fn unread(&self) -> impl Iterator<Item = &QueryTerm> {
        let terms = self.terms.iter().zip(&self.rare);
        terms.filter(|&(_, &rare)| !rare).map(|(term, _)| term)
    }

    /// The most that the terms whose postings were not read can add to a score.
    pub(crate) fn common(&self) -> f32 {
        self.unread().map(|term| term.most).sum()
    }
}

impl SparseScores {
    pub(crate) fn grow(&mut self, index: &Index) {
        let (rows, versions) = (index.rows() as usize, index.columns.len() as usize);
        for array in [&mut self.dense.rows, &mut self.lexical.rows] {
            array.grow(rows);
        }
        for array in self.by_version() {
            array.grow(versions);
        }
        for asked in [&mut self.near, &mut self.worded, &mut self.sampled] {
            asked.marks.grow(versions);
        }
    }

    fn by_version(&mut self) -> [&mut Sparse; 5] {
        [
            &mut self.dense.versions,
            &mut self.lexical.versions,
            &mut self.lexical.common,
            &mut self.smoothed_semantic,
            &mut self.smoothed_keyword,
        ]
    }

    /// Requests the scores of a version; [`evaluate`](Self::evaluate) computes them.
    pub(crate) fn ask(&mut self, version: u32) {
        self.near.insert(version);
        self.worded.insert(version);
    }

    /// Finds the scores of all versions that were asked for since the last time; of the others, what words add that are
    /// new. With `spread` a second thread finds words, where the versions are many.
    pub(crate) fn evaluate(
        &mut self,
        index: &Index,
        query: Option<&QuantisedQuery>,
        words: &[Words],
        spread: bool,
    ) {
        let known = std::mem::replace(&mut self.words, words.len());
        let Self {
            dense,
            lexical,
            near,
            worded,
            sampled,
            ..
        } = self;
        let (all, with_cosines) = near.all();
        let fresh = &all[with_cosines..];
        // Neither touches what the other changes.
        both(
            spread && fresh.len() >= SPREAD_VERSIONS && query.is_some(),
            || query.map(|query| dense.find(index, query, fresh)),
            || {
                worded.find(words, known, |words, versions, first| {
                    lexical.find(index, words, versions, first);
                });
                sampled.find(words, known, |words, versions, _| {
                    lexical.find_common(index, words, versions);
                });
            },
        );
    }

    /// Computes the cosines of the requested versions, and no keyword scores.
    pub(crate) fn find_cosines(&mut self, index: &Index, query: Option<&QuantisedQuery>) {
        let (all, with_cosines) = self.near.all();
        if let Some(query) = query {
            self.dense.find(index, query, &all[with_cosines..]);
        }
    }

    /// The scores of the semantic arm.
    pub(crate) fn semantic(&self) -> ArmScores<'_> {
        ArmScores {
            rows: &self.dense.rows.values,
            versions: &self.smoothed_semantic.values,
        }
    }

    /// The scores of the keyword arm.
    pub(crate) fn keyword(&self) -> ArmScores<'_> {
        ArmScores {
            rows: &self.lexical.rows.values,
            versions: &self.smoothed_keyword.values,
        }
    }

    /// Makes all arrays clean again.
    pub(crate) fn wipe(&mut self, index: &Index) {
        let rows = |asked: &Asked| {
            let versions = asked.marks.list.clone();
            versions
                .into_iter()
                .flat_map(|version| index.rows_of(version))
        };
        self.dense.rows.wipe(rows(&self.near));
        self.lexical.rows.wipe(rows(&self.worded));
        let Self {
            dense,
            lexical,
            near,
            worded,
            sampled,
            ..
        } = self;
        for (array, asked) in [
            (&mut dense.versions, &*near),
            (&mut lexical.versions, worded),
            (&mut lexical.common, sampled),
            (&mut self.smoothed_semantic, worded),
            (&mut self.smoothed_keyword, worded),
        ] {
            array.wipe(asked.marks.list.iter().copied());
        }
        for asked in [near, worded, sampled] {
            asked.clear();
        }
        self.words = 0;
    }
}
