//! Where a text may be cut: after sentences, between words, and never inside a grapheme cluster.
//!
//! The algorithms are those of UAX #29. [`sentences`] tailors them as the annex proposes: abbreviations, initials and list
//! numbers do not end a sentence.
//!
//! Pieces joined give the text again. White space belongs to the piece that follows it, as it belongs to the token that
//! follows it, so that token counts of pieces add up.

mod abbreviations;
mod sentences;

pub use sentences::sentences;
use unicode_segmentation::UnicodeSegmentation;

/// Words with the white space before them.
///
/// A run without white space of more than `most` characters is cut at the last word boundary within them, else at the last
/// grapheme boundary. A single grapheme cluster is never cut, whatever its length.
pub fn words(text: &str, most: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut bounds = text
        .split_word_bound_indices()
        .map(|(at, _)| at)
        .chain([text.len()])
        .peekable();
    let mut piece = Piece::default();
    for (at, cluster) in text.grapheme_indices(true) {
        while bounds.next_if(|&bound| bound < at).is_some() {}
        let is_space = cluster.chars().all(char::is_whitespace);
        let chars = if is_space { 0 } else { cluster.chars().count() };
        if piece.chars > 0 {
            if bounds.peek() == Some(&at) {
                piece.word_end = Some((at, piece.chars));
            }
            if is_space {
                pieces.push(&text[piece.start..at]);
                piece = Piece::at(at);
            } else if piece.chars + chars > most {
                let (end, before) = piece.word_end.unwrap_or((at, piece.chars));
                pieces.push(&text[piece.start..end]);
                piece = Piece {
                    chars: piece.chars - before,
                    ..Piece::at(end)
                };
            }
        }
        piece.chars += chars;
    }
    // White space at the end has no word that follows.
    match pieces.last_mut() {
        Some(last) if piece.chars == 0 => {
            let start = piece.start - last.len();
            *last = &text[start..];
        }
        _ if piece.start < text.len() => pieces.push(&text[piece.start..]),
        _ => {}
    }
    pieces
}

/// The piece that [`words`] is reading.
#[derive(Default)]
struct Piece {
    start: usize,
    /// Characters other than white space so far.
    chars: usize,
    /// The last word boundary in the piece, and the characters before it.
    word_end: Option<(usize, usize)>,
}

impl Piece {
    fn at(start: usize) -> Self {
        Self {
            start,
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use unicode_segmentation::UnicodeSegmentation;

    use super::{sentences, words};

    #[test]
    fn words_take_the_white_space_before_them() {
        assert_eq!(
            words("one  two\n three ", 32),
            ["one", "  two", "\n three "]
        );
        assert_eq!(words("  ", 32), ["  "]);
        assert!(words("", 32).is_empty());
    }

    #[test]
    fn a_long_run_is_cut_at_word_boundaries() {
        assert_eq!(words("alpha/beta/gamma", 7), ["alpha/", "beta/", "gamma"]);
        assert_eq!(words(&"x".repeat(10), 4), ["xxxx", "xxxx", "xx"]);
    }

    #[test]
    fn no_grapheme_cluster_is_cut() {
        for cluster in [
            "👩\u{200D}👩\u{200D}👦",
            "🇳🇴",
            "👍🏽",
            "🏴\u{E0067}\u{E0062}\u{E0065}\u{E006E}\u{E0067}\u{E007F}",
            "e\u{301}\u{323}",
            "\u{1112}\u{1161}\u{11AB}",
            "กำ",
            "நி",
            "क्षि",
            "1\u{FE0F}\u{20E3}",
        ] {
            for piece in words(&cluster.repeat(40), 7) {
                assert_eq!(piece.replace(cluster, ""), "", "{cluster}");
            }
        }
        assert_eq!(words("a\r\nb", 1), ["a", "\r\nb"]);
    }

    proptest! {
        #[test]
        fn pieces_joined_are_the_text_and_end_at_grapheme_borders(
            text in "(\\PC|[ \\r\\n.!?。…]|[\u{300}-\u{310}\u{200D}\u{1F1E6}-\u{1F1FF}\u{0E31}]){0,60}",
            most in 1_usize..9,
            every_stop: bool,
        ) {
            let borders: Vec<usize> = text.grapheme_indices(true).map(|(at, _)| at).chain([text.len()]).collect();
            for pieces in [words(&text, most), sentences(&text, every_stop)] {
                prop_assert_eq!(pieces.concat(), text.as_str());
                let mut at = 0;
                for piece in pieces {
                    at += piece.len();
                    prop_assert!(!piece.is_empty());
                    prop_assert!(borders.binary_search(&at).is_ok());
                }
            }
        }
    }
}
