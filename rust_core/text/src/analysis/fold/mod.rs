//! Text to the one spelling that words are compared in, except for case and umlauts.

mod han;
mod scripts;

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use self::scripts::Base;
use super::segment::is_symbol;

/// `text` with compatibility forms composed (NFKC), letters without what may be left out, Han characters in their simplified
/// form, digits of all scripts in ASCII, and typographic punctuation plain.
///
/// Latin umlauts and rings stay, because they are also written out ([`plain_umlauts`], [`written_out`]). Case stays, because
/// it tells words apart further on. ASCII text comes back as it is.
pub(super) fn fold(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let mut folded = String::with_capacity(text.len());
    let mut before = Base::Other;
    let mut last = '\0';
    let mut characters = text.nfkd().peekable();
    while let Some(character) = characters.next() {
        if is_joiner(character) {
            // Joins emoji; elsewhere it is not seen.
            if is_symbol(last) && characters.peek().is_some_and(|&next| is_symbol(next)) {
                folded.push(character);
            }
            continue;
        }
        if is_combining_mark(character) {
            if let Some(kept) = scripts::umlaut(before, character) {
                folded.pop();
                folded.push(kept);
                before = Base::Plain;
            } else if !(scripts::drops(before, character)
                || scripts::is_optional_mark(character)
                || is_ignorable(character))
            {
                folded.push(scripts::plain(character));
            }
        } else if is_hebrew_quote(last, character, characters.peek()) || is_ignorable(character) {
            // Left out, and what is before and after it are neighbours.
            continue;
        } else {
            before = push_plain(character, &mut folded);
        }
        last = character;
    }
    if folded.is_ascii() {
        Cow::Owned(folded)
    } else {
        Cow::Owned(folded.nfc().collect())
    }
}

/// Appends the plain form of `character`; returns the rules for the marks after it.
fn push_plain(character: char, folded: &mut String) -> Base {
    let plain = match character {
        '\u{2018}' | '\u{2019}' | '\u{2BB}' | '\u{2BC}' | '\u{2032}' | '\u{5F3}' | '`'
        | '\u{A78C}' => "'",
        '\u{201C}' | '\u{201D}' | '\u{2033}' => "\"",
        '\u{2010}' | '\u{2011}' | '\u{2013}' | '\u{2212}' => "-",
        '\u{2014}' => " ",
        '\u{2044}' => "/",
        // Latin letters that have no decomposition.
        'ß' => "ss",
        'ẞ' => "SS",
        'æ' => "ae",
        'Æ' => "AE",
        'œ' => "oe",
        'Œ' => "OE",
        'đ' | 'ð' => "d",
        'Đ' | 'Ð' => "D",
        'ł' => "l",
        'Ł' => "L",
        'þ' => "th",
        'Þ' => "Th",
        'ı' => "i",
        'ħ' => "h",
        'Ħ' => "H",
        'ŧ' => "t",
        'Ŧ' => "T",
        'ŋ' => "n",
        'Ŋ' => "N",
        'ə' => "e",
        'Ə' => "E",
        _ if character.is_ascii() => {
            folded.push(character);
            return scripts::base(character);
        }
        _ => {
            let plain = scripts::digit(character)
                .unwrap_or_else(|| han::simplified(scripts::plain(character)));
            folded.push(plain);
            return scripts::base(plain);
        }
    };
    folded.push_str(plain);
    Base::Plain
}

/// A quotation mark between two letters of a Hebrew acronym.
fn is_hebrew_quote(before: char, character: char, after: Option<&char>) -> bool {
    let is_hebrew = |letter: char| matches!(letter, '\u{5D0}'..='\u{5EA}');
    matches!(character, '"' | '\u{201D}' | '\u{5F4}')
        && is_hebrew(before)
        && after.is_some_and(|&next| is_hebrew(next))
}

/// `word` with umlauts, rings and strokes left out.
pub(super) fn plain_umlauts(word: &str) -> String {
    word.chars()
        .map(|letter| match letter {
            'ä' | 'å' => 'a',
            'ö' | 'ø' => 'o',
            'ü' => 'u',
            _ => letter,
        })
        .collect()
}

/// `word` with umlauts, rings and strokes written out: "ue" for "ü", "aa" for "å".
pub(super) fn written_out(word: &str) -> String {
    let mut out = String::with_capacity(word.len());
    for letter in word.chars() {
        match letter {
            'ä' => out.push_str("ae"),
            'ö' | 'ø' => out.push_str("oe"),
            'ü' => out.push_str("ue"),
            'å' => out.push_str("aa"),
            _ => out.push(letter),
        }
    }
    out
}

/// `word` with what may be a written-out umlaut or ring drawn together: "muller" for "mueller". None where there is none.
///
/// One stands between two consonants, or at the beginning: "ue" is none in "blue", "queen" and "bauer".
pub(super) fn drawn_together(word: &str) -> Option<String> {
    let bytes = word.as_bytes();
    let is_consonant = |at: usize| bytes[at].is_ascii_lowercase() && !is_vowel(bytes[at]);
    let is_written_out = |at: usize| {
        matches!(
            bytes[at..],
            [b'a' | b'o' | b'u', b'e', _, ..] | [b'a', b'a', _, ..]
        ) && is_consonant(at + 2)
            && (at == 0 || (is_consonant(at - 1) && bytes[at - 1] != b'q'))
    };
    let mut drawn: Option<String> = None;
    let mut kept = 0;
    for at in 0..bytes.len() {
        if is_written_out(at) {
            let drawn = drawn.get_or_insert_default();
            drawn.push_str(&word[kept..=at]);
            kept = at + 2;
        }
    }
    if let Some(drawn) = &mut drawn {
        drawn.push_str(&word[kept..]);
    }
    drawn
}

fn is_vowel(letter: u8) -> bool {
    matches!(letter, b'a' | b'e' | b'i' | b'o' | b'u')
}

fn is_joiner(character: char) -> bool {
    character == '\u{200D}'
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
    ) || scripts::is_dropped(character)
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
    use super::{drawn_together, fold, lower_into, plain_umlauts, written_out};

    #[test]
    fn letters_lose_what_may_be_left_out() {
        for (text, folded) in [
            ("Café naïve Łódź straße ẞ", "Cafe naive Lodz strasse SS"),
            ("İzmir ılık", "Izmir ilik"),
            ("Ωμέγα ΐ ὀδός", "Ωμεγα ι οδος"),
            ("йод ёлка за́мок ї ў", "йод елка замок ї ў"),
            ("שָׁלוֹם צה״ל צה\"ל", "שלום צהל צהל"),
            ("أُسَامَة إيمان آدم", "اسامه ايمان ادم"),
            ("مســـتشفى شؤون مسائل", "مستشفي شوون مسايل"),
            ("کتاب ہوا ٱلله", "كتاب هوا الله"),
            ("ज़िंदगी ज़िंदगी चाँद", "जिंदगी जिंदगी चांद"),
            ("٣٫٥ ۱۲ १२ ๑๒ ໑ １２", "3.5 12 12 12 1 12"),
            ("臺灣 台湾 圖書館", "台湾 台湾 图书馆"),
            ("が 한국", "が 한국"),
        ] {
            assert_eq!(fold(text), folded);
        }
    }

    #[test]
    fn compatibility_forms_and_typography_become_plain() {
        assert_eq!(fold("ﬁne １２ ｶﾞ ½"), "fine 12 ガ 1/2");
        assert_eq!(
            fold("don’t “x” 3–4 a—b co\u{AD}op"),
            "don't \"x\" 3-4 a b coop"
        );
        assert_eq!(
            fold("❤\u{FE0F} 👩\u{200D}👦 a\u{200D}b"),
            "❤ 👩\u{200D}👦 ab"
        );
    }

    #[test]
    fn umlauts_stay_and_have_two_spellings() {
        assert_eq!(
            fold("Mu\u{308}ller Ångström Sørensen"),
            "Müller Ångström Sørensen"
        );
        assert_eq!(plain_umlauts("ångström"), "angstrom");
        assert_eq!(written_out("grüße håkon bjørn"), "grueße haakon bjoern");
        for (word, drawn) in [
            ("mueller", Some("muller")),
            ("oesterreich", Some("osterreich")),
            ("baeckerstuebchen", Some("backerstubchen")),
            ("haakon", Some("hakon")),
            ("blue", None),
            ("queen", None),
            ("bauer", None),
            ("neuer", None),
            ("aus", None),
            ("é", None),
        ] {
            assert_eq!(drawn_together(word).as_deref(), drawn, "{word}");
        }
    }

    #[test]
    fn lower_case_covers_final_sigma() {
        let mut lower = String::new();
        lower_into("ΟΔΟΣ οδος ÄB", &mut lower);
        assert_eq!(lower, "οδοσ οδοσ äb");
    }
}
