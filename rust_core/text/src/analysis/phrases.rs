//! Phrases: words that stand one after the other in a text.
//!
//! Words are compared as written, folded and in lower case, without stems, so that a phrase finds no other wording.
//! Stop words count, and punctuation between words does not. This is the same in every language. An index has stems alone:
//! [`Language::phrase_terms`] are those that it has of any text that holds the phrase.

use super::segment::{self, Piece};
use super::{Language, cut, fold, lower_word, stems};

/// The words of a text in order, each as a fingerprint.
pub fn phrase_words(text: &str) -> Vec<u64> {
    let folded = fold::fold(text);
    let mut words = Vec::with_capacity(folded.len() / 5 + 1);
    segment::for_each_piece(&folded, |piece| match piece {
        Piece::Word(word) => words.push(stems::surface_term(&lower_word(cut(word)))),
        Piece::Pair(part) => words.push(stems::surface_term(part)),
        Piece::Symbol(symbol) => words.push(stems::surface_term(&plain(symbol))),
        Piece::Compound(_) | Piece::Character(_) => {}
    });
    words
}

/// Returns true if `words` has the words of `phrase` one after the other.
pub fn holds_phrase(words: &[u64], phrase: &[u64]) -> bool {
    phrase.is_empty() || words.windows(phrase.len()).any(|part| part == phrase)
}

impl Language {
    /// The distinct terms that the index of every text that holds the phrase has; none where it has stop words alone.
    pub fn phrase_terms(self, phrase: &str) -> Vec<u64> {
        let folded = fold::fold(phrase);
        let mut terms = Vec::new();
        segment::for_each_piece(&folded, |piece| match piece {
            Piece::Word(word) => {
                let word = stems::word_terms(&lower_word(cut(word)), self);
                if !word.is_stop_word() {
                    terms.push(word.stem);
                }
            }
            Piece::Pair(part) => terms.push(stems::stem_term(part)),
            Piece::Symbol(symbol) => terms.push(stems::stem_term(&plain(symbol))),
            Piece::Compound(_) | Piece::Character(_) => {}
        });
        terms.sort_unstable();
        terms.dedup();
        terms
    }
}

/// A symbol without its skin tones, as the index has it.
fn plain(symbol: &str) -> String {
    let characters = symbol.chars();
    characters
        .filter(|&character| !segment::is_skin_tone(character))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn holds(text: &str, phrase: &str) -> bool {
        holds_phrase(&phrase_words(text), &phrase_words(phrase))
    }

    #[test]
    fn a_phrase_is_its_words_in_order_with_nothing_between() {
        let text = "The Blue-Kiln, it is said, was fired; IT staff came. Müller's 1,000 pots: 東京タワー 👍🏽";
        for held in [
            "blue kiln",
            "BLUE KILN it is",
            "said was fired",
            "it staff",
            "1000 pots",
            "東京",
            "👍",
        ] {
            assert!(holds(text, held), "{held}");
        }
        for other in [
            "kiln blue",
            "blue it",
            "blue kilns",
            "was firing",
            "staff it",
            "京東",
        ] {
            assert!(!holds(text, other), "{other}");
        }
    }

    #[test]
    fn stop_words_alone_give_no_terms() {
        assert!(
            Language::English
                .phrase_terms("to be or not to be")
                .is_empty()
        );
        assert!(Language::English.phrase_terms("... !").is_empty());
        assert_eq!(
            Language::English
                .phrase_terms("the kiln of the kilns")
                .len(),
            1
        );
    }

    proptest! {
        /// Otherwise a search of the index would miss texts that hold the phrase.
        #[test]
        fn the_index_of_a_text_has_the_terms_of_each_phrase_in_it(
            words in prop::collection::vec("(the|of|IT|US|A|it|plan|Kilns|fired|1,000|x|Ärzte|東京都|👍🏽|getUserName|O'Brien|a-b|C\\+\\+|[a-zäé]{1,6})", 1..12),
            part in (0_usize..12, 1_usize..5),
            language in prop::sample::select(Language::ALL),
        ) {
            let text = words.join(" ");
            let first = part.0.min(words.len() - 1);
            let phrase = words[first..words.len().min(first + part.1)].join(" ");
            prop_assert!(holds(&text, &phrase), "{text:?} {phrase:?}");
            let indexed = language.analyze_text(&text);
            for term in language.phrase_terms(&phrase) {
                prop_assert!(indexed.terms.binary_search_by_key(&term, |&(one, _)| one).is_ok(), "{text:?} {phrase:?}");
            }
        }
    }
}
