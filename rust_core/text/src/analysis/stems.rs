//! A word's search terms, remembered per thread, because stemming costs more than everything else in analysis.

use std::borrow::Cow;
use std::cell::RefCell;

use rust_stemmers::Stemmer;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::language::Language;
use super::stop_words::is_stop_word;

// Seeds that keep equal spellings of the two name spaces apart.
const STEM_SEED: u64 = 1;
const SURFACE_SEED: u64 = 2;
// The top bit of a fingerprint names its space, so that an index that holds fingerprints alone can tell stems.
const SURFACE_BIT: u64 = 1 << 63;

// Slots of the table of known words, a power of two: conversations use a few thousand words, and 4,096 slots of 24
// bytes stay in a core's second-level cache.
const SLOTS: usize = 4096;

/// The fingerprints of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct WordTerms {
    /// The stem; 0 for a stop word.
    pub(super) stem: u64,
    /// The word as written, in lower case.
    pub(super) surface: u64,
    /// True if the stem is another word than the surface form.
    pub(super) differs: bool,
}

impl WordTerms {
    pub(super) fn is_stop_word(self) -> bool {
        self.stem == 0
    }
}

thread_local! {
    static KNOWN: RefCell<[Vec<WordTerms>; Language::COUNT]> = const { RefCell::new([const { Vec::new() }; Language::COUNT]) };
}

/// Fingerprint of a form that is searched as it is written: a compound.
pub(super) fn surface_term(lower: &str) -> u64 {
    xxh3_64_with_seed(lower.as_bytes(), SURFACE_SEED) | SURFACE_BIT
}

/// Fingerprint of a term that has no stem: a pair of characters, a number, a stop word that must be kept.
pub(super) fn stem_term(lower: &str) -> u64 {
    (xxh3_64_with_seed(lower.as_bytes(), STEM_SEED) & !SURFACE_BIT).max(1)
}

/// Returns true if the fingerprint is one of a stem, not of a surface form.
pub fn is_stem(term: u64) -> bool {
    term & SURFACE_BIT == 0
}

/// The terms of the word `lower`, in lower case, of a text of `language`.
pub(super) fn word_terms(lower: &str, language: Language) -> WordTerms {
    let surface = surface_term(lower);
    KNOWN.with_borrow_mut(|known| {
        let known = &mut known[language as usize];
        if known.is_empty() {
            known.resize(SLOTS, WordTerms::default());
        }
        let slot = &mut known[surface as usize & (SLOTS - 1)];
        if slot.surface != surface {
            *slot = compute(lower, surface, language);
        }
        *slot
    })
}

/// The stem of `lower`; none for a stop word.
pub(super) fn stem_of(lower: &str, language: Language) -> Option<Cow<'_, str>> {
    if is_stop_word(lower) {
        return None;
    }
    Some(match language.algorithm_for(lower) {
        Some(algorithm) => Stemmer::create(algorithm).stem(lower),
        None => Cow::Borrowed(lower),
    })
}

fn compute(lower: &str, surface: u64, language: Language) -> WordTerms {
    let stem = stem_of(lower, language);
    WordTerms {
        stem: stem.as_deref().map_or(0, stem_term),
        surface,
        differs: stem.is_some_and(|stem| stem != lower),
    }
}

#[cfg(test)]
mod tests {
    use super::super::language::Language;
    use super::{stem_term, word_terms};

    #[test]
    fn forms_of_a_word_share_the_stem() {
        assert_eq!(
            word_terms("running", Language::English).stem,
            stem_term("run")
        );
        assert_eq!(
            word_terms("caroline's", Language::English).stem,
            word_terms("caroline", Language::English).stem
        );
        assert!(word_terms("running", Language::English).differs);
        assert!(!word_terms("run", Language::English).differs);
    }

    #[test]
    fn a_known_word_answers_as_a_new_one() {
        let fresh = word_terms("conversations", Language::English);
        for number in 0..20_000 {
            word_terms(&format!("w{number}"), Language::English);
        }
        assert_eq!(word_terms("conversations", Language::English), fresh);
    }
}
