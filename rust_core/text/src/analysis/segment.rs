//! Folded text to words, compounds and pieces of scripts without spaces.
//!
//! Words follow UAX #29 (default word boundaries) with these tailorings: a period, colon or underscore between letters
//! divides, because the compound keeps them together, and so does an apostrophe between Latin letters that begins no English
//! ending; a comma joins digits only in groups of three; scripts without
//! spaces, and Hangul, whose particles hang on the word, come as overlapping pairs of characters.

use unicode_normalization::char::is_combining_mark;
use unicode_properties::{GeneralCategory, UnicodeGeneralCategory};

/// A piece that [`for_each_piece`] finds, in the order of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// A word in its own case; commas of large numbers are still in it.
    Word(&'a str),
    /// Words joined by single signs, such as an e-mail address, a path, a date, `snake_case` or `well-known`.
    Compound(&'a str),
    /// Two neighbouring characters of a script without spaces, or one that stands alone.
    Pair(&'a str),
    /// A single Han character that also is in a pair: it is a word often enough.
    Character(&'a str),
    /// A symbol: an emoji with what belongs to it, a flag, an arrow.
    Symbol(&'a str),
}

/// Kinds of characters; the number of an unspaced script divides runs of different scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Letter,
    Digit,
    Mark,
    Unspaced(u8),
    Symbol,
    Other,
}

/// Calls `found` with each piece of `text`, which is folded.
pub(super) fn for_each_piece<'a>(text: &'a str, mut found: impl FnMut(Piece<'a>)) {
    let mut at = 0;
    while at < text.len() {
        let (kind, width) = kind_at(text, at);
        match kind {
            Kind::Letter | Kind::Digit => at = compound(text, at, &mut found),
            Kind::Unspaced(script) => at = pairs(text, at, script, &mut found),
            Kind::Symbol => {
                let end = symbol_end(text, at);
                found(Piece::Symbol(&text[at..end]));
                at = end;
            }
            Kind::Mark | Kind::Other => at += width,
        }
    }
}

/// End of the symbol at `start`, with the modifiers, joined symbols and tags that make one emoji of it.
fn symbol_end(text: &str, start: usize) -> usize {
    let mut end = start;
    let mut joins = false;
    for character in text[start..].chars() {
        let belongs = end == start
            || joins
            || character == JOINER
            || is_modifier(character)
            || is_combining_mark(character)
            || (end == start + REGIONAL_BYTES
                && is_regional(character)
                && text[start..].starts_with(is_regional));
        if !belongs {
            break;
        }
        joins = character == JOINER;
        end += character.len_utf8();
    }
    end
}

/// Joins emoji to one.
pub(super) const JOINER: char = '\u{200D}';
const REGIONAL_BYTES: usize = '\u{1F1E6}'.len_utf8();

/// Returns true if the character is a symbol beyond ASCII.
pub(super) fn is_symbol(character: char) -> bool {
    !character.is_ascii()
        && (matches!(
            character.general_category(),
            GeneralCategory::OtherSymbol
                | GeneralCategory::MathSymbol
                | GeneralCategory::CurrencySymbol
        ) || is_modifier(character))
}

/// Returns true if the character sets the skin tone of the emoji before it.
pub(super) fn is_skin_tone(character: char) -> bool {
    matches!(character, '\u{1F3FB}'..='\u{1F3FF}')
}

/// Skin tones, and the letters of the tags that make a flag of a region.
fn is_modifier(character: char) -> bool {
    matches!(character, '\u{1F3FB}'..='\u{1F3FF}' | '\u{E0020}'..='\u{E007F}')
}

fn is_regional(character: char) -> bool {
    matches!(character, '\u{1F1E6}'..='\u{1F1FF}')
}

/// Emits the words that begin at `start` and are joined by signs, then the whole; returns where they end.
///
/// A single letter beside an apostrophe is no word: the article of "l'horloge", the beginning of "O'Brien".
fn compound<'a>(text: &'a str, start: usize, found: &mut impl FnMut(Piece<'a>)) -> usize {
    let (mut from, mut end) = (start, word_end(text, start));
    let mut after_apostrophe = false;
    loop {
        let next = joined_word(text, end);
        let before_apostrophe = next.is_some() && text.as_bytes()[end] == b'\'';
        let is_elided =
            (before_apostrophe || after_apostrophe) && text[from..end].chars().nth(1).is_none();
        if !is_elided {
            found(Piece::Word(&text[from..end]));
        }
        let Some(next) = next else { break };
        after_apostrophe = before_apostrophe;
        (from, end) = (next, word_end(text, next));
    }
    let suffix = language_suffix(text, start, end);
    if from > start || suffix > 0 {
        found(Piece::Compound(&text[start..end + suffix]));
    }
    end + suffix
}

/// Where the next word starts when a single joining sign stands at `end`.
fn joined_word(text: &str, end: usize) -> Option<usize> {
    let sign = *text.as_bytes().get(end)?;
    if !matches!(
        sign,
        b'_' | b'-' | b'.' | b'@' | b'/' | b':' | b'+' | b'#' | b'&' | b'=' | b'\''
    ) {
        return None;
    }
    let next = end + 1;
    (next < text.len() && matches!(kind_at(text, next).0, Kind::Letter | Kind::Digit))
        .then_some(next)
}

/// Bytes of the sign that belongs to a one-letter name: C++, C#, F#.
fn language_suffix(text: &str, start: usize, end: usize) -> usize {
    if end - start != 1 {
        0
    } else if text[end..].starts_with("++") {
        2
    } else {
        usize::from(text[end..].starts_with('#'))
    }
}

/// End of the word at `start`: letters, digits and marks, and the signs that UAX #29 allows inside.
fn word_end(text: &str, start: usize) -> usize {
    let (mut last, width) = kind_at(text, start);
    let mut at = start + width;
    while at < text.len() {
        let (kind, width) = kind_at(text, at);
        match kind {
            Kind::Letter | Kind::Digit => last = kind,
            Kind::Unspaced(_) | Kind::Symbol => break,
            Kind::Other if !joins_inside(text, at, last) => break,
            Kind::Mark | Kind::Other => {}
        }
        at += width;
    }
    at
}

/// Returns true if the sign at `at`, after a character of kind `last`, is part of the word around it.
fn joins_inside(text: &str, at: usize, last: Kind) -> bool {
    let bytes = text.as_bytes();
    if at + 1 >= bytes.len() {
        return false;
    }
    match (bytes[at], last) {
        (b'\'', Kind::Letter) => {
            kind_at(text, at + 1).0 == Kind::Letter
                && (is_ending(&text[at + 1..]) || !is_latin_before(text, at))
        }
        (b'.', Kind::Digit) => kind_at(text, at + 1).0 == Kind::Digit,
        (b',', Kind::Digit) => {
            let group = bytes[at + 1..]
                .iter()
                .take_while(|byte| byte.is_ascii_digit())
                .count();
            group == 3
        }
        _ => false,
    }
}

/// Returns true if the letters at the beginning of `rest` are an ending of an English word: "don't", "she's".
fn is_ending(rest: &str) -> bool {
    const ENDINGS: [&str; 7] = ["s", "t", "d", "m", "ll", "re", "ve"];
    let end = rest
        .find(|letter: char| !letter.is_alphanumeric())
        .unwrap_or(rest.len());
    ENDINGS
        .iter()
        .any(|ending| rest[..end].eq_ignore_ascii_case(ending))
}

/// Returns true if a Latin letter stands before `at`. In other scripts an apostrophe is a letter.
fn is_latin_before(text: &str, at: usize) -> bool {
    text[..at]
        .chars()
        .next_back()
        .is_some_and(|letter| letter < '\u{250}')
}

/// Emits the overlapping pairs of the run at `start`; returns where it ends.
fn pairs<'a>(text: &'a str, start: usize, script: u8, found: &mut impl FnMut(Piece<'a>)) -> usize {
    let mut before: Option<usize> = None;
    let mut at = start;
    loop {
        let end = character_end(text, at);
        if script == HAN_AND_KANA && is_han(text, at) {
            found(Piece::Character(&text[at..end]));
        }
        if let Some(first) = before {
            found(Piece::Pair(&text[first..end]));
        }
        let goes_on = end < text.len() && kind_at(text, end).0 == Kind::Unspaced(script);
        if !goes_on {
            if before.is_none() {
                found(Piece::Pair(&text[at..end]));
            }
            return end;
        }
        before = Some(at);
        at = end;
    }
}

/// End of the character at `at` with the marks on it.
fn character_end(text: &str, at: usize) -> usize {
    let mut end = at + kind_at(text, at).1;
    while end < text.len() {
        let (kind, width) = kind_at(text, end);
        if kind != Kind::Mark {
            break;
        }
        end += width;
    }
    end
}

fn is_han(text: &str, at: usize) -> bool {
    text[at..].chars().next().is_some_and(
        |character| !matches!(character, '\u{3041}'..='\u{30FF}' | '\u{31F0}'..='\u{31FF}'),
    )
}

/// Kind and width in bytes of the character at `at`.
#[inline]
fn kind_at(text: &str, at: usize) -> (Kind, usize) {
    let byte = text.as_bytes()[at];
    if byte.is_ascii_alphabetic() {
        return (Kind::Letter, 1);
    }
    if byte.is_ascii_digit() {
        return (Kind::Digit, 1);
    }
    if byte.is_ascii() {
        return (Kind::Other, 1);
    }
    match text[at..].chars().next() {
        Some(character) => (kind_beyond_ascii(character), character.len_utf8()),
        None => (Kind::Other, 1),
    }
}

// Scripts that may stand in one run have one number: Japanese mixes Han and kana within a word.
const HAN_AND_KANA: u8 = 0;

fn kind_beyond_ascii(character: char) -> Kind {
    if is_combining_mark(character) {
        return Kind::Mark;
    }
    match character {
        '\u{3005}'
        | '\u{3007}'
        | '\u{3041}'..='\u{309F}'
        | '\u{30A1}'..='\u{30FA}'
        | '\u{30FC}'..='\u{30FF}'
        | '\u{31F0}'..='\u{31FF}'
        | '\u{3400}'..='\u{4DBF}'
        | '\u{4E00}'..='\u{9FFF}'
        | '\u{F900}'..='\u{FAFF}'
        | '\u{20000}'..='\u{323AF}' => Kind::Unspaced(HAN_AND_KANA),
        '\u{0E01}'..='\u{0E4E}' => Kind::Unspaced(1),
        '\u{0E81}'..='\u{0ECE}' | '\u{0EDC}'..='\u{0EDF}' => Kind::Unspaced(2),
        '\u{1780}'..='\u{17D3}' | '\u{17D7}' | '\u{17DC}' => Kind::Unspaced(3),
        '\u{1000}'..='\u{103F}' | '\u{1050}'..='\u{1089}' | '\u{AA60}'..='\u{AA7F}' => {
            Kind::Unspaced(4)
        }
        '\u{1100}'..='\u{11FF}' | '\u{AC00}'..='\u{D7A3}' => Kind::Unspaced(5),
        _ if character.is_numeric() => Kind::Digit,
        _ if character.is_alphabetic() => Kind::Letter,
        _ if is_symbol(character) => Kind::Symbol,
        _ => Kind::Other,
    }
}

#[cfg(test)]
mod tests;
