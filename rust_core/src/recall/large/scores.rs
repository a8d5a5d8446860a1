//! Scores of the few versions that a recall looks at, kept by version number in arrays that stay clean between recalls.

use super::both;
use crate::bank::State;
use crate::lexical::{FETCHED, LexicalIndex, QueryTerm, TermFilter};
use crate::recall::buffers::ArmScores;
use crate::recall::dense::of_rows;
use crate::vector::{DenseIndex, NO_SCORE, QuantisedQuery};

/// Versions from which on a second thread is worth waking: to score one takes half a microsecond.
const SPREAD_VERSIONS: usize = 512;

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

/// Cosines.
#[derive(Debug)]
pub(super) struct Dense {
    pub(super) rows: Sparse,
    pub(super) versions: Sparse,
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
    fn find(&mut self, state: &State, query: &QuantisedQuery, versions: &[u32]) {
        self.wanted.clear();
        for &version in versions {
            self.wanted.extend(state.rows_of(version));
        }
        state.vectors.cosines(query, &self.wanted, &mut self.found);
        for (&row, &cosine) in self.wanted.iter().zip(&self.found) {
            self.rows.values[row as usize] = cosine;
        }
        for &version in versions {
            self.combine(state, version);
        }
    }

    /// Sets the version's cosine from those of its rows.
    pub(super) fn combine(&mut self, state: &State, version: u32) {
        let rows = state.rows_of(version);
        let own = &self.rows.values[rows.start as usize..rows.end as usize];
        self.versions.values[version as usize] = of_rows(own, NO_SCORE);
    }
}

/// Keyword scores.
#[derive(Debug)]
pub(super) struct Lexical {
    pub(super) rows: Sparse,
    pub(super) versions: Sparse,
    /// By the terms alone that were not looked up in postings.
    pub(super) common: Sparse,
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
    /// Adds what the words are worth; the `first` ones are the query's own, and what was there before does not count.
    fn find(&mut self, state: &State, words: &Words, versions: &[u32], first: bool) {
        let (mut own, mut others): (Vec<f32>, Vec<f32>) = (Vec::new(), Vec::new());
        let filter = TermFilter::new(&words.terms);
        let mut parts = vec![0.0; words.terms.len()];
        for versions in versions.chunks(FETCHED) {
            self.wanted.clear();
            let rows = versions.iter().flat_map(|&version| state.rows_of(version));
            self.wanted.extend(rows);
            state.lexical.fetch(&self.wanted);
            for &version in versions {
                own.clear();
                others.clear();
                for row in state.rows_of(version) {
                    let lexical = &state.lexical;
                    lexical.score_row(&words.terms, filter, row, &mut parts);
                    own.push(parts.iter().sum());
                    let common = parts.iter().zip(&words.rare).filter(|&(_, &rare)| !rare);
                    others.push(common.map(|(part, _)| part).sum());
                    if first {
                        self.rows.values[row as usize] = parts.iter().sum();
                    }
                }
                let (keyword, common) = (
                    &mut self.versions.values[version as usize],
                    &mut self.common.values[version as usize],
                );
                if first {
                    (*keyword, *common) = (0.0, 0.0);
                }
                *keyword += of_rows(&own, 0.0);
                *common += of_rows(&others, 0.0);
            }
        }
    }
}

/// What a recall knows of the versions that it looks at: their own scores, before windows.
#[derive(Debug)]
pub(super) struct Scores {
    pub(super) dense: Dense,
    pub(super) lexical: Lexical,
    /// The candidates' scores with their neighbours' shares.
    pub(super) smoothed_semantic: Sparse,
    pub(super) smoothed_keyword: Sparse,
    pub(super) known: Marks,
    /// Of `known` as many as have their cosines, as many as have their words' scores, and by how many groups of words.
    with_cosines: usize,
    with_words: usize,
    words: usize,
}

impl Default for Scores {
    fn default() -> Self {
        Self {
            dense: Dense::default(),
            lexical: Lexical::default(),
            smoothed_semantic: Sparse::new(NO_SCORE),
            smoothed_keyword: Sparse::new(0.0),
            known: Marks::default(),
            with_cosines: 0,
            with_words: 0,
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
    /// Of terms none of which has been looked up.
    pub(super) fn new(terms: Vec<QueryTerm>) -> Self {
        let rare = vec![false; terms.len()];
        Self { terms, rare }
    }

    /// Their places, those of the rarest first.
    pub(super) fn by_rarity(&self) -> Vec<usize> {
        let mut places: Vec<usize> = (0..self.terms.len()).collect();
        places.sort_by_key(|&at| self.terms[at].rows);
        places
    }

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
        for array in [&mut self.dense.rows, &mut self.lexical.rows] {
            array.grow(rows);
        }
        for array in self.by_version() {
            array.grow(versions);
        }
        self.known.grow(versions);
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

    /// Asks for a version's scores; [`evaluate`](Self::evaluate) finds them.
    pub(super) fn ask(&mut self, version: u32) {
        self.known.insert(version);
    }

    /// Finds the scores of all versions that were asked for since the last time; of the others, what words add that are
    /// new. With `spread` a second thread finds words, where the versions are many.
    pub(super) fn evaluate(
        &mut self,
        state: &State,
        query: Option<&QuantisedQuery>,
        words: &[Words],
        spread: bool,
    ) {
        let fresh = std::mem::replace(&mut self.with_words, self.known.list.len());
        let known_words = std::mem::replace(&mut self.words, words.len());
        let without_cosines = std::mem::replace(&mut self.with_cosines, self.known.list.len());
        let known = &self.known.list;
        let many = known.len() - fresh >= SPREAD_VERSIONS;
        // Neither touches what the other changes.
        let (dense, lexical) = (&mut self.dense, &mut self.lexical);
        both(
            spread && many && query.is_some(),
            || query.map(|query| dense.find(state, query, &known[without_cosines..])),
            || {
                for (number, words) in words.iter().enumerate() {
                    let from = if number < known_words { fresh } else { 0 };
                    lexical.find(state, words, &known[from..], number == 0);
                }
            },
        );
    }

    /// As [`evaluate`](Self::evaluate), cosines alone.
    pub(super) fn find_cosines(&mut self, state: &State, query: Option<&QuantisedQuery>) {
        let known = &self.known.list;
        let fresh = std::mem::replace(&mut self.with_cosines, known.len());
        if let Some(query) = query {
            self.dense.find(state, query, &known[fresh..]);
        }
    }

    /// The semantic scores in the form that the last steps take; [`put_back`](Self::put_back) must follow.
    pub(super) fn semantic(&mut self) -> ArmScores {
        ArmScores {
            rows: std::mem::take(&mut self.dense.rows.values),
            versions: std::mem::take(&mut self.smoothed_semantic.values),
            whole: true,
        }
    }

    /// As [`semantic`](Self::semantic), of the keyword scores.
    pub(super) fn keyword(&mut self) -> ArmScores {
        ArmScores {
            rows: std::mem::take(&mut self.lexical.rows.values),
            versions: std::mem::take(&mut self.smoothed_keyword.values),
            whole: false,
        }
    }

    /// Takes back what was given.
    pub(super) fn put_back(&mut self, semantic: ArmScores, keyword: ArmScores) {
        (self.dense.rows.values, self.smoothed_semantic.values) =
            (semantic.rows, semantic.versions);
        (self.lexical.rows.values, self.smoothed_keyword.values) = (keyword.rows, keyword.versions);
    }

    /// Makes all arrays clean again.
    pub(super) fn wipe(&mut self, state: &State) {
        let rows = || {
            self.known
                .list
                .iter()
                .flat_map(|&version| state.rows_of(version))
        };
        self.dense.rows.wipe(rows());
        self.lexical.rows.wipe(rows());
        let known = std::mem::take(&mut self.known.list);
        for array in self.by_version() {
            array.wipe(known.iter().copied());
        }
        self.known.list = known;
        self.known.clear();
        (self.with_cosines, self.with_words, self.words) = (0, 0, 0);
    }
}
