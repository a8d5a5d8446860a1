//! Text to search terms, the same way for what is indexed and what is asked.
//!
//! 1. Fold: NFKC, plain punctuation, Latin letters without diacritics (`fold`).
//! 2. Cut: words by UAX #29, compounds whole and in parts, pairs of characters for scripts without spaces (`segment`).
//! 3. Lower case; English Snowball stem; stop words dropped, on both sides, so that they cost no memory. A text of
//!    nothing but stop words keeps them, so "Who are you?" is found by "who are you"; "IT", "US" and "WHO" in capitals
//!    are names.
//! 4. A second name space holds surface forms: a word as written where its stem differs, and compounds as a whole. It
//!    lifts exact matches, at its own weight.
//!
//! A term is a 64-bit fingerprint of its name space and spelling, so the index holds no text. Two spellings of one bank
//! share a fingerprint with a probability of about n² / 2^64: 5e-8 for a million terms.

mod fold;
mod segment;
mod stems;
mod stop_words;

use segment::Piece;
pub use stems::is_stem;

/// Weight of a match of a surface form beside one of a stem.
// Between .1 and .2 it gains or costs less than .01 of recall on six development sets; it is here for the exact form
// and the whole identifier, which it puts before their look-alikes.
pub const SURFACE_WEIGHT: f32 = 0.15;

// Longer words are cut here: nobody types them, and a base64 blob is one "word".
const MAX_WORD_BYTES: usize = 128;

/// The terms of a text to be indexed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AnalyzedText {
    /// Distinct terms in ascending order, with how often each occurs.
    pub terms: Vec<(u64, u32)>,
    /// Words that count as the length of the text: each stem once per occurrence, no surface forms.
    length: u32,
}

impl AnalyzedText {
    /// Number of distinct terms.
    pub fn distinct(&self) -> usize {
        self.terms.len()
    }

    /// Length in words, stop words left out.
    pub fn length(&self) -> u32 {
        self.length
    }
}

/// The distinct terms of a query with their weights, in ascending order of the terms.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AnalyzedQuery {
    /// Distinct terms in ascending order, with their weights.
    pub terms: Vec<(u64, f32)>,
}

impl AnalyzedQuery {
    /// Whether nothing is left to search for.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }
}

/// The terms of `text` for the index.
pub fn analyze_text(text: &str) -> AnalyzedText {
    let folded = fold::fold(text);
    let mut collector = Collector::new(text.len(), true);
    collector.read(&folded);
    let Collector {
        mut stems,
        surfaces,
        ..
    } = collector;
    let length = stems.len() as u32;
    stems.extend(surfaces);
    stems.sort_unstable();
    let mut terms: Vec<(u64, u32)> = Vec::with_capacity(stems.len());
    for term in stems {
        match terms.last_mut() {
            Some((last, frequency)) if *last == term => *frequency += 1,
            _ => terms.push((term, 1)),
        }
    }
    AnalyzedText { terms, length }
}

/// The terms of `text` for a search.
pub fn analyze_query(text: &str) -> AnalyzedQuery {
    let folded = fold::fold(text);
    let mut collector = Collector::new(text.len(), false);
    collector.read(&folded);
    let stems = collector.stems.into_iter().map(|term| (term, 1.0));
    let surfaces = collector
        .surfaces
        .into_iter()
        .map(|term| (term, SURFACE_WEIGHT));
    let mut terms: Vec<(u64, f32)> = stems.chain(surfaces).collect();
    terms.sort_unstable_by_key(|&(term, _)| term);
    terms.dedup_by_key(|&mut (term, _)| term);
    AnalyzedQuery { terms }
}

struct Collector {
    stems: Vec<u64>,
    surfaces: Vec<u64>,
    lower: String,
    // Adds what only an index needs so that more queries find the text: parts of camelCase, single Han characters.
    for_index: bool,
}

impl Collector {
    fn new(bytes: usize, for_index: bool) -> Self {
        // English has about six bytes a word, and half of the words are stop words.
        let expected = bytes / 8 + 4;
        Self {
            stems: Vec::with_capacity(expected * 2),
            surfaces: Vec::with_capacity(expected),
            lower: String::new(),
            for_index,
        }
    }

    fn read(&mut self, folded: &str) {
        segment::for_each_piece(folded, |piece| self.piece(piece, false));
        if self.stems.is_empty() {
            segment::for_each_piece(folded, |piece| self.piece(piece, true));
        }
    }

    fn piece(&mut self, piece: Piece<'_>, keep_stop_words: bool) {
        match piece {
            Piece::Word(word) => self.word(cut(word), keep_stop_words),
            Piece::Compound(whole) => {
                self.lower.clear();
                fold::lower_into(cut(whole), &mut self.lower);
                self.surfaces.push(stems::surface_term(&self.lower));
            }
            Piece::Pair(pair) => self.stems.push(stems::stem_term(pair)),
            Piece::Character(character) if self.for_index => {
                self.surfaces.push(stems::stem_term(character));
            }
            Piece::Character(_) => {}
        }
    }

    fn word(&mut self, word: &str, keep_stop_words: bool) {
        self.lower.clear();
        fold::lower_into(word, &mut self.lower);
        if word.as_bytes()[0].is_ascii_digit() {
            // 1,000 and 1000 are one number.
            self.lower.retain(|character| character != ',');
        }
        let terms = stems::word_terms(&self.lower);
        if !terms.is_stop_word() {
            self.stems.push(terms.stem);
            if terms.differs {
                self.surfaces.push(terms.surface);
            }
            if self.for_index {
                self.camel_parts(word);
            }
        } else if keep_stop_words || is_acronym(word) {
            self.stems.push(stems::stem_term(&self.lower));
        }
    }

    /// Adds the parts of `getUserName`, so that "user name" finds it. They do not count for the length.
    fn camel_parts(&mut self, word: &str) {
        let bytes = word.as_bytes();
        let is_hump =
            |at: usize| bytes[at - 1].is_ascii_lowercase() && bytes[at].is_ascii_uppercase();
        let Some(first) = (1..bytes.len()).find(|&at| is_hump(at)) else {
            return;
        };
        let mut start = 0;
        for end in (first..bytes.len())
            .filter(|&at| is_hump(at))
            .chain([bytes.len()])
        {
            let terms = stems::word_terms(&word[start..end].to_ascii_lowercase());
            if !terms.is_stop_word() {
                self.surfaces.push(terms.stem);
            }
            start = end;
        }
    }
}

/// `word` without what is beyond the longest length, at a character border.
fn cut(word: &str) -> &str {
    let mut end = word.len().min(MAX_WORD_BYTES);
    while !word.is_char_boundary(end) {
        end -= 1;
    }
    &word[..end]
}

/// Two or more capitals: a name, even if it is spelled like a stop word.
fn is_acronym(word: &str) -> bool {
    word.len() > 1 && word.bytes().all(|byte| byte.is_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{SURFACE_WEIGHT, analyze_query, analyze_text};

    /// How much of the query's weight the text meets.
    fn overlap(query: &str, text: &str) -> f32 {
        let text = analyze_text(text);
        let met = |term: u64| {
            text.terms
                .binary_search_by_key(&term, |&(term, _)| term)
                .is_ok()
        };
        analyze_query(query)
            .terms
            .iter()
            .filter(|&&(term, _)| met(term))
            .map(|&(_, weight)| weight)
            .sum()
    }

    #[test]
    fn length_counts_words_and_not_surface_forms() {
        let analyzed = analyze_text("The dogs were running, and running again");
        assert_eq!(analyzed.length(), 3);
        // Stems dog and run; surface forms dogs and running.
        assert_eq!(analyzed.distinct(), 4);
    }

    #[test]
    fn an_exact_form_is_worth_more_than_its_stem() {
        assert!((overlap("running", "she runs") - 1.0).abs() < 1e-6);
        assert!((overlap("running", "running") - 1.0 - SURFACE_WEIGHT).abs() < 1e-6);
    }

    #[test]
    fn stop_words_are_kept_only_where_there_is_nothing_else() {
        assert!(overlap("Who are you?", "who are you") > 2.0);
        assert!(overlap("the cat", "the dog") == 0.0);
        assert!(overlap("a job in IT", "He works in IT") > 0.9);
        assert!(analyze_query(" ?! ").is_empty());
    }

    #[test]
    fn identifiers_are_found_whole_and_by_part() {
        let text = "Ask ann.lee@example.com about INC-4412, getUserName and 1,000 units";
        for query in [
            "ann.lee@example.com",
            "lee",
            "4412",
            "inc-4412",
            "user names",
            "getUserName",
            "1000",
        ] {
            assert!(overlap(query, text) >= 1.0, "{query}");
        }
        assert!(overlap("INC-4412", "INC-4412") > overlap("INC-4412", "INC 4412"));
    }

    #[test]
    fn every_script_can_be_found() {
        for (query, text) in [
            ("猫", "黒猫が好きです"),
            ("東京タワー", "昨日東京タワーに行った"),
            ("ข้าว", "ฉันกินข้าวแล้ว"),
            ("서울", "서울에서 만나요"),
            ("москва", "Москва слезам не верит"),
            ("cafe", "Le Café"),
            ("हिन्दी", "मैं हिन्दी बोलता हूँ"),
            ("မြန်မာ", "ကျွန်တော်မြန်မာစာဖတ်တယ်"),
            ("ខ្មែរ", "ភាសាខ្មែរ"),
            ("ລາວ", "ພາສາລາວ"),
        ] {
            assert!(overlap(query, text) >= 0.9, "{query}");
        }
    }

    #[test]
    fn a_blob_is_one_short_term() {
        let blob = "x".repeat(100_000);
        assert_eq!(analyze_text(&blob).distinct(), 1);
        assert!(overlap(&blob[..5_000], &blob) >= 1.0);
    }

    proptest! {
        #[test]
        fn a_text_is_found_by_itself(text in "\\PC{0,80}") {
            let query = analyze_query(&text);
            prop_assert_eq!(query.is_empty(), analyze_text(&text).terms.is_empty());
            let all: f32 = query.terms.iter().map(|&(_, weight)| weight).sum();
            prop_assert!((overlap(&text, &text) - all).abs() < 1e-3);
        }
    }
}
