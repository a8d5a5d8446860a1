//! Where `cl100k_base` cuts a text before it merges bytes.

use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory};

/// Kinds of characters that the pattern tells apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Letter,
    Number,
    Newline,
    Space,
    Other,
}

/// Bytes of the first piece of `text`, which is not empty.
///
/// The pattern, whose first alternative that matches counts:
/// `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|
/// ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
pub(super) fn piece_length(text: &str) -> usize {
    let mut characters = text.chars();
    let Some(first) = characters.next() else {
        return 0;
    };
    let kind = kind_of(first);
    if first == '\''
        && let Some(length) = contraction(text)
    {
        return length;
    }
    let width = first.len_utf8();
    let next = characters.next().map(kind_of);
    match (kind, next) {
        (Kind::Letter, _) => run(text, width, |kind| kind == Kind::Letter),
        (Kind::Space | Kind::Other, Some(Kind::Letter)) => {
            run(text, width, |kind| kind == Kind::Letter)
        }
        (Kind::Number, _) => numbers(text),
        (Kind::Other, _) => signs(text, width),
        (Kind::Space, Some(Kind::Other)) if first == ' ' => signs(text, width),
        _ => white_space(text),
    }
}

/// Bytes of 's, 't, 're, 've, 'm, 'll or 'd in either case.
fn contraction(text: &str) -> Option<usize> {
    let after = &text[1..];
    // The long s is an s to a pattern that ignores case.
    if after.starts_with('ſ') {
        return Some(1 + 'ſ'.len_utf8());
    }
    let bytes = after.as_bytes();
    let lower = |at: usize| bytes.get(at).map(u8::to_ascii_lowercase);
    match (lower(0)?, lower(1)) {
        (b's' | b't' | b'm' | b'd', _) => Some(2),
        (b'r' | b'v', Some(b'e')) | (b'l', Some(b'l')) => Some(3),
        _ => None,
    }
}

/// End of the run of characters from `start` on whose kind `belongs`.
fn run(text: &str, start: usize, belongs: impl Fn(Kind) -> bool) -> usize {
    let end = text[start..]
        .char_indices()
        .find(|&(_, character)| !belongs(kind_of(character)));
    end.map_or(text.len(), |(at, _)| start + at)
}

fn numbers(text: &str) -> usize {
    text.chars()
        .take(3)
        .take_while(|&character| kind_of(character) == Kind::Number)
        .map(char::len_utf8)
        .sum()
}

fn signs(text: &str, start: usize) -> usize {
    let end = run(text, start, |kind| kind == Kind::Other);
    run(text, end, |kind| kind == Kind::Newline)
}

/// White space: up to its last line break; else all but the last character, which goes to the next piece; else all.
fn white_space(text: &str) -> usize {
    let end = run(text, 0, |kind| matches!(kind, Kind::Space | Kind::Newline));
    let space = &text[..end];
    if let Some(at) = space.rfind(['\r', '\n']) {
        return at + 1;
    }
    match space.char_indices().next_back() {
        Some((last, _)) if end < text.len() && last > 0 => last,
        _ => end,
    }
}

fn kind_of(character: char) -> Kind {
    match character {
        'a'..='z' | 'A'..='Z' => Kind::Letter,
        '0'..='9' => Kind::Number,
        '\r' | '\n' => Kind::Newline,
        _ if character.is_whitespace() => Kind::Space,
        _ if character.is_ascii() => Kind::Other,
        _ => match character.general_category_group() {
            GeneralCategoryGroup::Letter => Kind::Letter,
            GeneralCategoryGroup::Number => Kind::Number,
            _ => Kind::Other,
        },
    }
}
