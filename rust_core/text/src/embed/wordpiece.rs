//! Text to token rows: BERT's uncased basic tokeniser, then greedy `WordPiece`.

use hashbrown::HashMap;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// Words longer than this, in bytes, are noise (keys, base64) to BERT too; it counts 100 characters.
const LONGEST_WORD: usize = 200;
/// The mark of a piece that continues a word.
const CONTINUATION: &str = "##";

/// The vocabulary, by first and by following piece.
pub(super) struct WordPiece {
    first: HashMap<Box<str>, u32>,
    following: HashMap<Box<str>, u32>,
    /// Bytes of the longest piece: no longer prefix need be tried.
    longest_piece: usize,
}

impl WordPiece {
    /// One row number per token, in the order of `tokens`.
    pub(super) fn new<'a>(tokens: impl Iterator<Item = &'a str>) -> Self {
        let mut pieces = Self {
            first: HashMap::new(),
            following: HashMap::new(),
            longest_piece: 0,
        };
        for (row, token) in (0_u32..).zip(tokens) {
            let (map, piece) = match token.strip_prefix(CONTINUATION) {
                Some(rest) if !rest.is_empty() => (&mut pieces.following, rest),
                _ => (&mut pieces.first, token),
            };
            pieces.longest_piece = pieces.longest_piece.max(piece.len());
            map.insert(piece.into(), row);
        }
        pieces
    }

    /// Calls `visit` with the row of each token of `text`, in order. Unknown words are left out.
    pub(super) fn rows(&self, text: &str, mut visit: impl FnMut(u32)) {
        let mut pieces = Vec::new();
        let mut emit = |word: &str| {
            self.split(word, &mut pieces);
            for row in &pieces {
                visit(*row);
            }
        };
        let mut word = String::new();
        if text.is_ascii() {
            let characters = text
                .bytes()
                .map(|byte| char::from(byte.to_ascii_lowercase()));
            words(characters, &mut word, &mut emit);
        } else {
            let lower = text.chars().flat_map(char::to_lowercase);
            words(
                lower.nfd().filter(|c| !is_combining_mark(*c)),
                &mut word,
                &mut emit,
            );
        }
    }

    /// The rows of one word, longest pieces first; none when a part of it is in no piece.
    fn split(&self, word: &str, rows: &mut Vec<u32>) {
        rows.clear();
        if word.len() > LONGEST_WORD {
            return;
        }
        let (mut rest, mut map) = (word, &self.first);
        while !rest.is_empty() {
            let Some((length, row)) = longest_prefix(map, rest, self.longest_piece) else {
                rows.clear();
                return;
            };
            rows.push(row);
            rest = rest.get(length..).unwrap_or_default();
            map = &self.following;
        }
    }
}

/// Length and row of the longest prefix of `text` in `map`.
fn longest_prefix(
    map: &HashMap<Box<str>, u32>,
    text: &str,
    longest: usize,
) -> Option<(usize, u32)> {
    (1..=text.len().min(longest)).rev().find_map(|length| {
        text.get(..length)
            .and_then(|prefix| map.get(prefix))
            .map(|row| (length, *row))
    })
}

/// Calls `emit` with each word of lower-case `characters`; `word` is scratch space.
fn words(characters: impl Iterator<Item = char>, word: &mut String, emit: &mut impl FnMut(&str)) {
    for character in characters {
        match class(character) {
            Class::Letter => word.push(character),
            Class::Ignored => {}
            Class::Space => flush(word, emit),
            Class::Single => {
                flush(word, emit);
                word.push(character);
                flush(word, emit);
            }
        }
    }
    flush(word, emit);
}

fn flush(word: &mut String, emit: &mut impl FnMut(&str)) {
    if !word.is_empty() {
        emit(word);
        word.clear();
    }
}

/// The role of a character in a word.
enum Class {
    /// Belongs to it.
    Letter,
    /// Is dropped from it.
    Ignored,
    /// Ends it.
    Space,
    /// Ends it and is a word itself.
    Single,
}

/// BERT splits at punctuation only; here other symbols ("→", "€") stand alone too, for the vocabulary has them alone.
fn class(character: char) -> Class {
    match character {
        'a'..='z' | '0'..='9' => Class::Letter,
        c if c.is_whitespace() => Class::Space,
        '\0'
        | '\u{AD}'
        | '\u{FFFD}'
        | '\u{FEFF}'
        | '\u{200B}'..='\u{200F}'
        | '\u{202A}'..='\u{202E}' => Class::Ignored,
        c if c.is_control() => Class::Ignored,
        c if is_ideograph(c) => Class::Single,
        c if c.is_alphanumeric() => Class::Letter,
        _ => Class::Single,
    }
}

/// The blocks that BERT writes one character per word.
fn is_ideograph(character: char) -> bool {
    matches!(character, '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}'
        | '\u{20000}'..='\u{2A6DF}' | '\u{2A700}'..='\u{2CEAF}' | '\u{2F800}'..='\u{2FA1F}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Vec<&'static str> {
        const VOCABULARY: [&str; 14] = [
            "un", "##aff", "##able", "##s", "cafe", "run", ",", "'", "中", "→", "a", "##run", "#",
            "##",
        ];
        let mut out = Vec::new();
        WordPiece::new(VOCABULARY.into_iter()).rows(text, |row| out.push(VOCABULARY[row as usize]));
        out
    }

    #[test]
    fn longest_pieces_win() {
        assert_eq!(
            tokens("unaffable RUNS"),
            ["un", "##aff", "##able", "run", "##s"]
        );
    }

    #[test]
    fn a_word_with_an_unknown_part_is_left_out() {
        assert_eq!(tokens("unzip run"), ["run"]);
        assert_eq!(tokens(&"a".repeat(201)), Vec::<&str>::new());
    }

    #[test]
    fn punctuation_symbols_and_ideographs_stand_alone() {
        assert_eq!(
            tokens("run,run's 中中→a"),
            ["run", ",", "run", "'", "中", "中", "→", "a"]
        );
    }

    #[test]
    fn accents_and_invisible_characters_go() {
        assert_eq!(tokens("Café ru\u{200B}n"), ["cafe", "run"]);
        assert_eq!(tokens("Cafe\u{301}"), ["cafe"]);
    }

    #[test]
    fn number_signs_are_no_continuation() {
        assert_eq!(tokens("##"), ["#", "#"]);
    }
}
