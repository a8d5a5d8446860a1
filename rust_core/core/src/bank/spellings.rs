//! The words of a bank as they are spelled, for searches by prefix.
//!
//! An index has fingerprints of words alone. The words themselves are in memory and in no file, so that no file has to be
//! searched for those of an erased memory. They are read from the texts when the first search needs them, follow the
//! commits, and are dropped whole by [`Bank::scrub`]. A word stays when the memories that held it are forgotten; a search
//! asks the index which words rows still hold.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::RwLock;

use super::Bank;
use crate::api::Expansion;
use astrocyte_text::analysis::Language;

/// Words of a bank, at most: some 80 MB. Text of people has fewer; what has more are identifiers and numbers.
const MOST_WORDS: usize = 1 << 20;
/// Characters of a word at least: no search has a shorter prefix.
const FEWEST_CHARS: usize = 3;
// Of a word beside its characters: its place in a node of the tree, two thirds full, and what the allocator rounds up to.
const BYTES_PER_WORD: usize = 48;

// Words that are looked up under one hold of the index: a commit waits for fewer than a hundred microseconds.
const LOOKED_UP: usize = 1_024;

/// The words of one bank, behind their own lock.
#[derive(Debug, Default)]
pub(crate) struct Spellings {
    state: RwLock<State>,
    /// True if all texts of the bank were read: whoever asks that waits for no lock.
    whole: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    /// Grows whenever the words are dropped or begun anew, so that who still adds texts from before adds nothing.
    generation: u64,
    words: Option<Words>,
}

#[derive(Debug, Default)]
struct Words {
    /// The term of each word.
    terms: BTreeMap<Box<str>, u64>,
    bytes: usize,
    /// True if words were left out, since there are too many.
    cut: bool,
}

impl Words {
    fn add(&mut self, spelled: Vec<(String, u64)>) {
        for (word, term) in spelled {
            if self.terms.contains_key(word.as_str()) {
                continue;
            }
            if self.terms.len() >= MOST_WORDS {
                self.cut = true;
                return;
            }
            self.bytes += word.len() + BYTES_PER_WORD;
            self.terms.insert(word.into_boxed_str(), term);
        }
    }

    /// The words that begin with the prefix, with their terms, in ascending order.
    fn beginning(&self, prefix: &str) -> impl Iterator<Item = (&str, u64)> {
        let from = (Bound::Included(prefix), Bound::Unbounded);
        let words = self.terms.range::<str, _>(from);
        let words = words.map(|(word, &term)| (&**word, term));
        words.take_while(move |(word, _)| word.starts_with(prefix))
    }
}

impl Spellings {
    /// Adds the words of texts, where they are kept at all.
    pub(super) fn follow<'a>(&self, language: Language, texts: impl Iterator<Item = &'a str>) {
        let generation = {
            let state = self.state.read();
            if state.words.is_none() {
                return;
            }
            state.generation
        };
        self.add(generation, spelled(language, texts));
    }

    /// Adds words, unless they are of another generation.
    fn add(&self, generation: u64, words: Vec<(String, u64)>) -> bool {
        let mut state = self.state.write();
        if state.generation != generation {
            return false;
        }
        if let Some(kept) = &mut state.words {
            kept.add(words);
        }
        true
    }

    /// Drops all words; `words` are kept from now on, if any.
    fn replace(&self, words: Option<Words>) -> u64 {
        let mut state = self.state.write();
        self.whole.store(false, Ordering::Release);
        state.generation += 1;
        state.words = words;
        state.generation
    }

    /// Drops all words.
    pub(super) fn drop_all(&self) {
        self.replace(None);
    }

    /// Resident bytes.
    pub(super) fn bytes(&self) -> u64 {
        let state = self.state.read();
        state.words.as_ref().map_or(0, |words| words.bytes as u64)
    }
}

/// The distinct words of texts that a prefix can find, and their terms.
fn spelled<'a>(language: Language, texts: impl Iterator<Item = &'a str>) -> Vec<(String, u64)> {
    let mut words = Vec::new();
    for text in texts {
        language.for_each_spelling(text, |word, term| {
            if word.chars().nth(FEWEST_CHARS - 1).is_some() {
                words.push((word, term));
            }
        });
    }
    words.sort_unstable();
    words.dedup();
    words
}

impl Bank {
    /// Begins to keep the words of the bank: those of later commits at once, those of other texts by
    /// [`add_spellings`](Self::add_spellings). Returns the generation of the words.
    pub fn begin_spellings(&self) -> u64 {
        self.spellings.replace(Some(Words::default()))
    }

    /// Adds the words of texts. False if the words of this generation were dropped.
    pub fn add_spellings(&self, generation: u64, texts: &[String]) -> bool {
        let texts = texts.iter().map(String::as_str);
        let words = spelled(self.options.language, texts);
        self.spellings.add(generation, words)
    }

    /// Says that the words of all texts of the bank were added. False if the words of this generation were dropped.
    pub fn finish_spellings(&self, generation: u64) -> bool {
        let state = self.spellings.state.write();
        let kept = state.generation == generation && state.words.is_some();
        if kept {
            self.spellings.whole.store(true, Ordering::Release);
        }
        kept
    }

    /// True if the words of all texts of the bank are kept.
    pub fn has_spellings(&self) -> bool {
        self.spellings.whole.load(Ordering::Acquire)
    }

    /// Up to `most` words of the bank that begin with the prefix, folded and in lower case: those that most current
    /// memories hold first, equal ones in ascending order. With `past`, those of memories that are not current, too.
    ///
    /// None where the words of the bank are not kept, or not all of them yet.
    pub fn expand(&self, prefix: &str, most: usize, past: bool) -> Option<Expansion> {
        let state = self.spellings.state.read();
        let words = state.words.as_ref().filter(|_| self.has_spellings())?;
        let mut beginning = words.beginning(prefix).peekable();
        let mut held: Vec<(u32, &str)> = Vec::new();
        while beginning.peek().is_some() {
            let index = self.index.read();
            let rows = |(word, term)| (index.lexical.rows_with(term, past), word);
            let some = beginning.by_ref().take(LOOKED_UP).map(rows);
            held.extend(some.filter(|&(rows, _)| rows > 0));
        }
        let total = held.len();
        held.sort_unstable_by(|one, other| other.0.cmp(&one.0).then(one.1.cmp(other.1)));
        held.truncate(most);
        Some(Expansion {
            words: held.into_iter().map(|(_, word)| word.to_owned()).collect(),
            total,
            cut: words.cut,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_beyond_the_most_are_left_out_and_told_of() {
        let mut words = Words::default();
        let spelled = |from: usize, to: usize| (from..to).map(|word| (format!("w{word}"), 1));
        words.add(spelled(0, MOST_WORDS).collect());
        assert!(!words.cut);
        words.add(spelled(5, 9).collect());
        assert!(!words.cut);
        words.add(spelled(MOST_WORDS, MOST_WORDS + 1).collect());
        assert!(words.cut);
        assert_eq!(words.terms.len(), MOST_WORDS);
    }
}
