//! Text to the one spelling that words are compared in, except for case.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// `text` with compatibility forms composed (NFKC), Latin letters without diacritics and typographic punctuation plain.
///
/// Case stays, because it tells words apart further on. ASCII text comes back as it is.
pub(super) fn fold(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let mut folded = String::with_capacity(text.len());
    // A diacritic is dropped after a Latin letter only: in Cyrillic and Greek it makes another letter.
    let mut after_latin = false;
    for character in text.nfkd() {
        if is_combining_mark(character) {
            let dropped = (after_latin && is_diacritic(character)) || is_ignorable(character);
            if !dropped {
                folded.push(character);
            }
        } else if !is_ignorable(character) {
            after_latin = push_plain(character, &mut folded);
        }
    }
    if folded.is_ascii() {
        Cow::Owned(folded)
    } else {
        Cow::Owned(folded.nfc().collect())
    }
}

/// Appends the plain form of `character`; returns whether it is Latin.
fn push_plain(character: char, folded: &mut String) -> bool {
    let plain = match character {
        '\u{2018}' | '\u{2019}' | '\u{02BC}' | '\u{2032}' => "'",
        '\u{201C}' | '\u{201D}' | '\u{2033}' => "\"",
        '\u{2010}' | '\u{2011}' | '\u{2013}' | '\u{2212}' => "-",
        '\u{2014}' => " ",
        // Latin letters that have no decomposition.
        'ß' => "ss",
        'ẞ' => "SS",
        'æ' => "ae",
        'Æ' => "AE",
        'œ' => "oe",
        'Œ' => "OE",
        'ø' => "o",
        'Ø' => "O",
        'đ' | 'ð' => "d",
        'Đ' | 'Ð' => "D",
        'ł' => "l",
        'Ł' => "L",
        'þ' => "th",
        'Þ' => "Th",
        'ı' => "i",
        _ => {
            folded.push(character);
            return character.is_ascii_alphabetic();
        }
    };
    folded.push_str(plain);
    plain.as_bytes()[0].is_ascii_alphabetic()
}

fn is_diacritic(mark: char) -> bool {
    matches!(mark, '\u{0300}'..='\u{036F}')
}

/// Characters that are not seen: soft hyphen, joiners, directions, variation selectors, byte-order mark.
fn is_ignorable(character: char) -> bool {
    matches!(
        character,
        '\u{00AD}'
            | '\u{200B}'..='\u{200F}'
            | '\u{202A}'..='\u{202E}'
            | '\u{2060}'..='\u{2064}'
            | '\u{FE00}'..='\u{FE0F}'
            | '\u{FEFF}'
    )
}

/// Appends `word` in lower case, with the Greek final sigma as any other.
pub(super) fn lower_into(word: &str, lower: &mut String) {
    if word.is_ascii() {
        let start = lower.len();
        lower.push_str(word);
        lower[start..].make_ascii_lowercase();
        return;
    }
    for character in word.chars().flat_map(char::to_lowercase) {
        lower.push(if character == 'ς' { 'σ' } else { character });
    }
}

#[cfg(test)]
mod tests {
    use super::{fold, lower_into};

    #[test]
    fn latin_loses_diacritics_and_other_scripts_keep_theirs() {
        assert_eq!(
            fold("Café Ångström naïve Łódź straße"),
            "Cafe Angstrom naive Lodz strasse"
        );
        assert_eq!(fold("йод ё"), "йод ё");
        assert_eq!(fold("が"), "が");
        assert_eq!(fold("한국"), "한국");
    }

    #[test]
    fn compatibility_forms_and_typography_become_plain() {
        assert_eq!(fold("ﬁne １２ ｶﾞ"), "fine 12 ガ");
        assert_eq!(
            fold("don’t “x” 3–4 a—b co\u{AD}op"),
            "don't \"x\" 3-4 a b coop"
        );
    }

    #[test]
    fn lower_case_covers_final_sigma() {
        let mut lower = String::new();
        lower_into("ΟΔΟΣ οδος ÄB", &mut lower);
        assert_eq!(lower, "οδοσ οδοσ äb");
    }
}
