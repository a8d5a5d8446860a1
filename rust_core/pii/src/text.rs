//! The scanned text: compatibility forms folded, invisible characters removed, with places in the original.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization;

/// Text in a plain form, with the place of each of its bytes in the original.
pub(super) struct Plain<'a> {
    pub(super) text: Cow<'a, str>,
    /// Per byte of `text` the original's range of the character that it came from; empty where nothing changed.
    places: Vec<(u32, u32)>,
}

impl<'a> Plain<'a> {
    /// Folds `original`: NFKC of each character, decimal digits of other scripts as ASCII, dashes as `-`, and without
    /// soft hyphens and zero-width characters. ASCII stays as it is, at the cost of one look.
    pub(super) fn new(original: &'a str) -> Self {
        if original.is_ascii() {
            return Self {
                text: Cow::Borrowed(original),
                places: Vec::new(),
            };
        }
        let mut text = String::with_capacity(original.len());
        let mut places = Vec::with_capacity(original.len());
        let mut enclosed_before = false;
        for (start, character) in original.char_indices() {
            let before = text.len();
            let enclosed = is_enclosed(character);
            // NFKC would make digits or a full stop of a mark beside a number.
            let beside = enclosed_before || text.ends_with(|one: char| one.is_ascii_digit());
            if enclosed != enclosed_before && beside {
                text.push('#');
            }
            if character.is_ascii() {
                text.push(character);
            } else {
                fold(character, &mut text);
            }
            enclosed_before = enclosed;
            let place = (start as u32, (start + character.len_utf8()) as u32);
            places.resize(places.len() + text.len() - before, place);
        }
        Self {
            text: Cow::Owned(text),
            places,
        }
    }

    /// The original's bytes that `start..end`, not empty, came from.
    pub(super) fn original(&self, start: usize, end: usize) -> (usize, usize) {
        match (self.places.get(start), self.places.get(end - 1)) {
            (Some(first), Some(last)) => (first.0 as usize, last.1 as usize),
            _ => (start, end),
        }
    }
}

/// Returns true if a character marks an item or a note by its number: `①`, `⒈`, `²`, `₂`.
fn is_enclosed(character: char) -> bool {
    matches!(character, '\u{b2}' | '\u{b3}' | '\u{b9}' | '\u{2070}'..='\u{2089}' | '\u{2460}'..='\u{249b}' | '\u{24ea}')
}

/// Appends the plain form of one character of another script, width or form.
fn fold(character: char, text: &mut String) {
    match character {
        '\u{ad}'
        | '\u{34f}'
        | '\u{61c}'
        | '\u{180e}'
        | '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{2064}'
        | '\u{2066}'..='\u{206f}'
        | '\u{feff}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{e0000}'..='\u{e007f}' => {}
        '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{fe58}' | '\u{fe63}' | '\u{ff0d}' => {
            text.push('-');
        }
        '\u{2018}' | '\u{2019}' => text.push('\''),
        '\u{201c}' | '\u{201d}' => text.push('"'),
        // Signs that NFKC makes letters of, which would be part of a number behind them: № ℠ ℡ ™.
        '\u{2116}' | '\u{2120}'..='\u{2122}' => text.push('#'),
        // Middle dots separate groups of digits as full stops do.
        '\u{b7}' | '\u{2219}' | '\u{22c5}' => text.push('.'),
        // Spaces beyond ASCII that NFKC leaves as they are.
        '\u{1680}' | '\u{2028}' | '\u{2029}' => text.push(' '),
        _ => match digit(character) {
            Some(digit) => text.push(digit),
            None => text.extend(std::iter::once(character).nfkc()),
        },
    }
}

/// The ASCII form of a decimal digit of another script.
fn digit(character: char) -> Option<char> {
    /// The zeros of the scripts whose digits people type; nine more follow each.
    const ZEROS: [u32; 20] = [
        0x660, 0x6f0, 0x7c0, 0x966, 0x9e6, 0xa66, 0xae6, 0xb66, 0xbe6, 0xc66, 0xce6, 0xd66, 0xe50,
        0xed0, 0xf20, 0x1040, 0x17e0, 0x1810, 0x1946, 0xff10,
    ];
    let code = character as u32;
    let zero = ZEROS.iter().rev().find(|&&zero| zero <= code)?;
    char::from_digit(code.checked_sub(*zero).filter(|value| *value < 10)?, 10)
}

#[cfg(test)]
mod tests {
    use super::Plain;

    #[test]
    fn folded_text_leads_back_to_the_original() {
        let original = "a\u{200b}４１\u{ad}é–٣\u{fb01}";
        let plain = Plain::new(original);
        assert_eq!(plain.text, "a41é-3fi");
        let at = |found: &str| {
            let start = plain.text.find(found).expect("it is there");
            let (start, end) = plain.original(start, start + found.len());
            &original[start..end]
        };
        assert_eq!(at("41"), "４１");
        assert_eq!(at("1é"), "１\u{ad}é");
        assert_eq!(at("3"), "٣");
        assert_eq!(at("f"), "\u{fb01}");
    }

    #[test]
    fn ascii_is_not_copied() {
        let plain = Plain::new("plain");
        assert!(matches!(plain.text, std::borrow::Cow::Borrowed(_)));
        assert_eq!(plain.original(1, 3), (1, 3));
    }
}
