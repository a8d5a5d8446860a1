//! Scores of the few versions that a recall looks at, kept by version number in arrays that stay clean between recalls.

use crate::bank::State;
use crate::lexical::{FETCHED, LexicalIndex, QueryTerm, TermFilter};
use crate::recall::buffers::ArmScores;
use crate::recall::dense::of_rows;
use crate::vector::{DenseIndex, NO_SCORE, QuantisedQuery};

/// An array in which all entries are `absent` but those that a recall sets.
#[derive(Debug)]
pub(super) struct Sparse {
    pub(super) values: Vec<f32>,
    absent: f32,
}

impl Sparse {
    pub(super) const fn new(absent: f32) -> Self {
        Self {
            values: Vec::new(),
            absent,
        }
    }

    pub(super) fn grow(&mut self, length: usize) {
        if self.values.len() < length {
            self.values.resize(length, self.absent);
        }
    }

    pub(super) fn wipe(&mut self, entries: impl Iterator<Item = u32>) {
        for entry in entries {
            self.values[entry as usize] = self.absent;
        }
    }
}

/// A set of versions that remembers what was put in.
#[derive(Debug, Default)]
pub(super) struct Marks {
    words: Vec<u64>,
    pub(super) list: Vec<u32>,
}

impl Marks {
    pub(super) fn grow(&mut self, bound: usize) {
        let words = bound.div_ceil(64);
        if self.words.len() < words {
            self.words.resize(words, 0);
        }
    }

    pub(super) fn insert(&mut self, version: u32) -> bool {
        let word = &mut self.words[(version >> 6) as usize];
        let bit = 1 << (version & 63);
        let fresh = *word & bit == 0;
        if fresh {
            *word |= bit;
            self.list.push(version);
        }
        fresh
    }

    pub(super) fn clear(&mut self) {
        for version in self.list.drain(..) {
            self.words[(version >> 6) as usize] = 0;
        }
    }
}

/// What a recall knows of the versions that it looks at: their own scores, before windows.
#[derive(Debug)]
pub(super) struct Scores {
    pub(super) semantic_rows: Sparse,
    pub(super) keyword_rows: Sparse,
    pub(super) semantic: Sparse,
    pub(super) keyword: Sparse,
    /// The candidates' scores with their neighbours' shares.
    pub(super) smoothed_semantic: Sparse,
    pub(super) smoothed_keyword: Sparse,
    /// The keyword scores by the terms alone that were not looked up in postings.
    pub(super) common: Sparse,
    pub(super) known: Marks,
    rows: Vec<u32>,
    cosines: Vec<f32>,
    /// Of `known`, and of the groups of words, as many as have their scores.
    evaluated: usize,
    words: usize,
}

impl Default for Scores {
    fn default() -> Self {
        Self {
            semantic_rows: Sparse::new(NO_SCORE),
            keyword_rows: Sparse::new(0.0),
            semantic: Sparse::new(NO_SCORE),
            keyword: Sparse::new(0.0),
            smoothed_semantic: Sparse::new(NO_SCORE),
            smoothed_keyword: Sparse::new(0.0),
            common: Sparse::new(0.0),
            known: Marks::default(),
            rows: Vec::new(),
            cosines: Vec::new(),
            evaluated: 0,
            words: 0,
        }
    }
}

/// The query's words as the index holds them; `rare` says of each whether its postings were read.
#[derive(Debug, Default)]
pub(super) struct Words {
    pub(super) terms: Vec<QueryTerm>,
    pub(super) rare: Vec<bool>,
}

impl Words {
    /// What the words whose postings were not read add to a score at most.
    pub(super) fn common(&self) -> f32 {
        let others = self
            .terms
            .iter()
            .zip(&self.rare)
            .filter(|&(_, &rare)| !rare);
        others.map(|(term, _)| term.most).sum()
    }
}

impl Scores {
    pub(super) fn grow(&mut self, state: &State) {
        let (rows, versions) = (state.rows() as usize, state.columns.len() as usize);
        for array in [&mut self.semantic_rows, &mut self.keyword_rows] {
            array.grow(rows);
        }
        for array in self.by_version() {
            array.grow(versions);
        }
        self.known.grow(versions);
    }

    fn by_version(&mut self) -> [&mut Sparse; 5] {
        [
            &mut self.semantic,
            &mut self.keyword,
            &mut self.smoothed_semantic,
            &mut self.smoothed_keyword,
            &mut self.common,
        ]
    }

    /// Asks for a version's scores; [`evaluate`](Self::evaluate) finds them.
    pub(super) fn ask(&mut self, version: u32) {
        self.known.insert(version);
    }

    /// Finds the scores of all versions that were asked for since the last time; of the others, what words add that are
    /// new.
    pub(super) fn evaluate(
        &mut self,
        state: &State,
        query: Option<&QuantisedQuery>,
        words: &[Words],
    ) {
        let fresh = std::mem::replace(&mut self.evaluated, self.known.list.len());
        if let Some(query) = query {
            self.find_cosines(state, query, fresh);
        }
        let known_words = std::mem::replace(&mut self.words, words.len());
        let mut own: Vec<f32> = Vec::new();
        let mut others: Vec<f32> = Vec::new();
        for (number, words) in words.iter().enumerate() {
            let from = if number < known_words { fresh } else { 0 };
            let filter = TermFilter::new(&words.terms);
            let mut parts = vec![0.0; words.terms.len()];
            for (at, &version) in self.known.list[from..].iter().enumerate() {
                if at.is_multiple_of(FETCHED) {
                    let next = self.known.list[from + at..].iter().take(FETCHED);
                    self.rows.clear();
                    self.rows
                        .extend(next.flat_map(|&version| state.rows_of(version)));
                    state.lexical.fetch(&self.rows);
                }
                own.clear();
                others.clear();
                for row in state.rows_of(version) {
                    let lexical = &state.lexical;
                    lexical.score_row(&words.terms, filter, row, &mut parts);
                    own.push(parts.iter().sum());
                    let common = parts.iter().zip(&words.rare).filter(|&(_, &rare)| !rare);
                    others.push(common.map(|(part, _)| part).sum());
                    if number == 0 {
                        self.keyword_rows.values[row as usize] = parts.iter().sum();
                    }
                }
                let (keyword, common) = (
                    &mut self.keyword.values[version as usize],
                    &mut self.common.values[version as usize],
                );
                if number == 0 {
                    (*keyword, *common) = (0.0, 0.0);
                }
                *keyword += of_rows(&own, 0.0);
                *common += of_rows(&others, 0.0);
            }
        }
    }

    fn find_cosines(&mut self, state: &State, query: &QuantisedQuery, fresh: usize) {
        self.rows.clear();
        for &version in &self.known.list[fresh..] {
            self.rows.extend(state.rows_of(version));
        }
        state.vectors.cosines(query, &self.rows, &mut self.cosines);
        for (&row, &cosine) in self.rows.iter().zip(&self.cosines) {
            self.semantic_rows.values[row as usize] = cosine;
        }
        for number in fresh..self.known.list.len() {
            self.combine_cosines(state, self.known.list[number]);
        }
    }

    /// Sets the version's cosine from those of its rows.
    pub(super) fn combine_cosines(&mut self, state: &State, version: u32) {
        let rows = state.rows_of(version);
        let own = &self.semantic_rows.values[rows.start as usize..rows.end as usize];
        self.semantic.values[version as usize] = of_rows(own, NO_SCORE);
    }

    /// The semantic scores in the form that the last steps take; [`put_back`](Self::put_back) must follow.
    pub(super) fn semantic(&mut self) -> ArmScores {
        ArmScores {
            rows: std::mem::take(&mut self.semantic_rows.values),
            versions: std::mem::take(&mut self.smoothed_semantic.values),
            whole: true,
        }
    }

    /// As [`semantic`](Self::semantic), of the keyword scores.
    pub(super) fn keyword(&mut self) -> ArmScores {
        ArmScores {
            rows: std::mem::take(&mut self.keyword_rows.values),
            versions: std::mem::take(&mut self.smoothed_keyword.values),
            whole: false,
        }
    }

    /// Takes back what was given.
    pub(super) fn put_back(&mut self, semantic: ArmScores, keyword: ArmScores) {
        (self.semantic_rows.values, self.smoothed_semantic.values) =
            (semantic.rows, semantic.versions);
        (self.keyword_rows.values, self.smoothed_keyword.values) = (keyword.rows, keyword.versions);
    }

    /// Makes all arrays clean again.
    pub(super) fn wipe(&mut self, state: &State) {
        let rows = || {
            self.known
                .list
                .iter()
                .flat_map(|&version| state.rows_of(version))
        };
        self.semantic_rows.wipe(rows());
        self.keyword_rows.wipe(rows());
        let known = std::mem::take(&mut self.known.list);
        for array in self.by_version() {
            array.wipe(known.iter().copied());
        }
        self.known.list = known;
        self.known.clear();
        (self.evaluated, self.words) = (0, 0);
    }
}
