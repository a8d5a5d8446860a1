//! Words of a text as they are spelled, each with the term by which an index finds that very word.

use super::segment::{self, Piece};
use super::{AnalyzedQuery, Language, cut, fold, lower_word, stems};

impl Language {
    /// Calls `found` with each word of `text`, folded and in lower case, and its [term](Self::spelling_term). Compounds are
    /// left out, as their words are there; so are symbols and pairs of characters.
    pub fn for_each_spelling(self, text: &str, mut found: impl FnMut(String, u64)) {
        let folded = fold::fold(text);
        segment::for_each_piece(&folded, |piece| {
            if let Piece::Word(word) = piece {
                let lower = lower_word(cut(word));
                let term = self.spelling_term(&lower);
                found(lower, term);
            }
        });
    }

    /// The term that the index has of each text that holds this word, folded and in lower case, unless it is a stop word
    /// there: the form as written, or the stem where that is the same word.
    pub fn spelling_term(self, lower: &str) -> u64 {
        let terms = stems::word_terms(lower, self);
        if terms.is_stop_word() {
            stems::stem_term(lower)
        } else if terms.differs {
            terms.surface
        } else {
            terms.stem
        }
    }

    /// Adds a union of these words, folded and in lower case, to a query. A word of the query, or of a union before, counts
    /// there alone.
    pub fn add_union(self, query: &mut AnalyzedQuery, words: &[String]) {
        let mut terms: Vec<u64> = words.iter().map(|word| self.spelling_term(word)).collect();
        terms.sort_unstable();
        terms.dedup();
        terms.retain(|term| {
            let is_word = query.terms.binary_search_by_key(term, |&(one, _)| one);
            is_word.is_err() && !query.unions.iter().any(|union| union.contains(term))
        });
        query.unions.push(terms);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn spelled(text: &str) -> Vec<String> {
        let mut words = Vec::new();
        Language::English.for_each_spelling(text, |word, _| words.push(word));
        words
    }

    #[test]
    fn words_are_in_one_spelling() {
        let text = "The Blue-Kilns of Müller, O'Brien's HTTP2Server; 東京 👍";
        let words = [
            "the",
            "blue",
            "kilns",
            "of",
            "muller",
            "brien's",
            "http2server",
        ];
        assert_eq!(spelled(text), words);
    }

    #[test]
    fn a_word_of_the_query_is_in_no_union() {
        let mut query = Language::English.analyze_query("the kiln");
        let words = ["kiln", "kilns", "kilo"].map(str::to_owned);
        Language::English.add_union(&mut query, &words);
        Language::English.add_union(&mut query, &words);
        assert_eq!(query.unions[0].len(), 2);
        assert!(query.unions[1].is_empty());
        assert!(!query.is_empty());
    }

    proptest! {
        /// Otherwise a search for the word would miss the text.
        #[test]
        fn the_index_of_a_text_has_the_term_of_each_word(
            words in prop::collection::vec("(IT|plan|Kilns|fired|1,000|Ärzte|getUserName|O'Brien|a-b|running|[a-zäé]{1,6})", 1..12),
            language in prop::sample::select(Language::ALL),
        ) {
            let text = words.join(" ");
            let indexed = language.analyze_text(&text);
            language.for_each_spelling(&text, |word, term| {
                let holds = indexed.terms.binary_search_by_key(&term, |&(one, _)| one).is_ok();
                assert!(holds || stems::word_terms(&word, language).is_stop_word(), "{text:?} {word:?}");
            });
        }
    }
}
