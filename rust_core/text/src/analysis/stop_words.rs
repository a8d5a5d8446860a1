//! English words that say too little to search by.

/// Function words, with what contractions leave behind. Negations stand here too: nearly every text has one, and a
/// keyword arm cannot tell what they negate.
// Ascending, because membership is a binary search.
pub(super) const STOP_WORDS: &[&str] = &[
    "a",
    "about",
    "after",
    "again",
    "all",
    "also",
    "am",
    "an",
    "and",
    "any",
    "are",
    "as",
    "at",
    "be",
    "because",
    "been",
    "before",
    "being",
    "but",
    "by",
    "can",
    "could",
    "d",
    "did",
    "do",
    "does",
    "doing",
    "don",
    "down",
    "during",
    "each",
    "few",
    "for",
    "from",
    "further",
    "had",
    "has",
    "have",
    "having",
    "he",
    "her",
    "here",
    "hers",
    "herself",
    "him",
    "himself",
    "his",
    "how",
    "i",
    "if",
    "in",
    "into",
    "is",
    "it",
    "its",
    "itself",
    "just",
    "ll",
    "m",
    "me",
    "more",
    "most",
    "my",
    "myself",
    "no",
    "nor",
    "not",
    "of",
    "off",
    "on",
    "once",
    "only",
    "or",
    "other",
    "our",
    "ours",
    "ourselves",
    "out",
    "over",
    "own",
    "re",
    "s",
    "same",
    "she",
    "should",
    "so",
    "some",
    "such",
    "t",
    "than",
    "that",
    "the",
    "their",
    "theirs",
    "them",
    "themselves",
    "then",
    "there",
    "these",
    "they",
    "this",
    "those",
    "through",
    "to",
    "too",
    "under",
    "until",
    "up",
    "us",
    "ve",
    "very",
    "was",
    "we",
    "were",
    "what",
    "when",
    "where",
    "which",
    "while",
    "who",
    "whom",
    "why",
    "will",
    "with",
    "won't",
    "would",
    "you",
    "your",
    "yours",
    "yourself",
    "yourselves",
];

/// Returns true if `word`, in lower case, is a stop word. A contraction counts by its first part: "don't", "it's".
pub(super) fn is_stop_word(word: &str) -> bool {
    let stem = word.split_once('\'').map_or(word, |(head, _)| head);
    STOP_WORDS.binary_search(&word).is_ok() || (stem.len() < word.len() && is_contracted(stem))
}

/// Returns true if `head` is a stop word, also with the n of "n't" at its end: "don", "isn", "wouldn".
fn is_contracted(head: &str) -> bool {
    let without_n = head.strip_suffix('n').unwrap_or(head);
    STOP_WORDS.binary_search(&head).is_ok() || STOP_WORDS.binary_search(&without_n).is_ok()
}

#[cfg(test)]
mod tests {
    use super::{STOP_WORDS, is_stop_word};

    #[test]
    fn the_list_is_ascending() {
        assert!(STOP_WORDS.is_sorted_by(|left, right| left < right));
    }

    #[test]
    fn contractions_count_by_their_first_part() {
        for word in ["the", "don't", "isn't", "we'll", "it's", "wouldn't", "i'm"] {
            assert!(is_stop_word(word), "{word}");
        }
        for word in ["caroline's", "cat", "o'brien", "may"] {
            assert!(!is_stop_word(word), "{word}");
        }
    }
}
