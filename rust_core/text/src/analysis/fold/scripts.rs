//! Spellings of one word within a script: marks that may be left out, and letters that are typed for each other.

/// Scripts that lose marks by rules of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Base {
    /// Latin or Greek: diacritics make no other word.
    #[default]
    Plain,
    /// A Latin letter that is also written out when it has two dots or a ring.
    Umlaut(char),
    /// A Cyrillic vowel: accents mark the stress, and the dots of ё are left out.
    CyrillicVowel,
    CyrillicE,
    /// Any other character: marks make another letter.
    Other,
}

/// The rules for the marks after `character`.
pub(super) fn base(character: char) -> Base {
    match character {
        'a' | 'A' | 'o' | 'O' | 'u' | 'U' => Base::Umlaut(character),
        'a'..='z' | 'A'..='Z' | '\u{370}'..='\u{3FF}' | '\u{1F00}'..='\u{1FFF}' => Base::Plain,
        'е' | 'Е' => Base::CyrillicE,
        'а' | 'и' | 'о' | 'у' | 'ы' | 'э' | 'ю' | 'я' | 'і' | 'є' | 'А' | 'И' | 'О' | 'У' | 'Ы'
        | 'Э' | 'Ю' | 'Я' | 'І' | 'Є' => Base::CyrillicVowel,
        _ => Base::Other,
    }
}

/// Returns true if `mark` after a base does not distinguish words.
pub(super) fn drops(base: Base, mark: char) -> bool {
    match base {
        Base::Plain | Base::Umlaut(_) => matches!(mark, '\u{300}'..='\u{36F}'),
        Base::CyrillicE => matches!(mark, '\u{300}' | '\u{301}' | '\u{308}'),
        Base::CyrillicVowel => matches!(mark, '\u{300}' | '\u{301}'),
        Base::Other => false,
    }
}

/// The letter that keeps in mind that `base` with `mark` is also written out: "ü" for "ue".
pub(super) fn umlaut(base: Base, mark: char) -> Option<char> {
    Some(match (base, mark) {
        (Base::Umlaut('a'), '\u{308}') => 'ä',
        (Base::Umlaut('A'), '\u{308}') => 'Ä',
        (Base::Umlaut('a'), '\u{30A}') => 'å',
        (Base::Umlaut('A'), '\u{30A}') => 'Å',
        (Base::Umlaut('o'), '\u{308}') => 'ö',
        (Base::Umlaut('O'), '\u{308}') => 'Ö',
        (Base::Umlaut('u'), '\u{308}') => 'ü',
        (Base::Umlaut('U'), '\u{308}') => 'Ü',
        _ => return None,
    })
}

/// Marks of any letter that may be left out: vowel signs of Arabic and Hebrew, nukta.
pub(super) fn is_optional_mark(mark: char) -> bool {
    matches!(
        mark,
        '\u{591}'..='\u{5BD}' | '\u{5BF}' | '\u{5C1}' | '\u{5C2}' | '\u{5C4}' | '\u{5C5}' | '\u{5C7}'
            | '\u{610}'..='\u{61A}' | '\u{64B}'..='\u{65F}' | '\u{670}' | '\u{6D6}'..='\u{6DC}' | '\u{6DF}'..='\u{6E4}'
            | '\u{6E7}' | '\u{6E8}' | '\u{6EA}'..='\u{6ED}' | '\u{8D3}'..='\u{8FF}'
            // Nukta of the scripts of India.
            | '\u{93C}' | '\u{9BC}' | '\u{A3C}' | '\u{ABC}' | '\u{B3C}' | '\u{C3C}' | '\u{CBC}'
    )
}

/// The letter, mark or sign that stands for others of its script.
pub(super) fn plain(character: char) -> char {
    match character {
        // Alef, yeh, kaf and heh of Arabic, Persian and Urdu.
        '\u{671}' | '\u{672}' | '\u{673}' | '\u{675}' => '\u{627}',
        '\u{649}' | '\u{6CC}' | '\u{6D0}' => '\u{64A}',
        '\u{6A9}' | '\u{6AA}' => '\u{643}',
        '\u{629}' | '\u{6BE}' | '\u{6C1}' | '\u{6C3}' | '\u{6D5}' => '\u{647}',
        '\u{66B}' => '.',
        '\u{66C}' => ',',
        // Chandrabindu for anusvara.
        '\u{901}' => '\u{902}',
        '\u{981}' => '\u{982}',
        _ => character,
    }
}

/// Signs that only lengthen or decorate: tatweel, gershayim.
pub(super) fn is_dropped(character: char) -> bool {
    matches!(character, '\u{640}' | '\u{5F4}')
}

/// Digits zero of the scripts whose ten digits follow each other.
const ZEROS: &[u32] = &[
    0x660, 0x6F0, 0x7C0, 0x966, 0x9E6, 0xA66, 0xAE6, 0xB66, 0xBE6, 0xC66, 0xCE6, 0xD66, 0xDE6,
    0xE50, 0xED0, 0xF20, 0x1040, 0x1090, 0x17E0, 0x1810, 0x1946, 0x19D0, 0x1A80, 0x1A90, 0x1B50,
    0x1BB0, 0x1C40, 0x1C50, 0xA620, 0xA8D0, 0xA900, 0xA9D0, 0xA9F0, 0xAA50, 0xABF0, 0x104A0,
    0x11066, 0x110F0, 0x11136, 0x111D0, 0x112F0, 0x11450, 0x114D0, 0x11650, 0x116C0, 0x11730,
    0x118E0, 0x11950, 0x11C50, 0x11D50, 0x11DA0, 0x16A60, 0x16AC0, 0x16B50, 0x1E140, 0x1E2F0,
    0x1E950,
];
const DIGITS: u32 = 10;

/// The ASCII digit of a digit of any script.
pub(super) fn digit(character: char) -> Option<char> {
    let code = u32::from(character);
    let at = ZEROS.partition_point(|&zero| zero <= code).checked_sub(1)?;
    char::from_digit(code - ZEROS[at], DIGITS)
}

#[cfg(test)]
mod tests {
    use super::{ZEROS, digit};

    #[test]
    fn digits_of_all_scripts_are_ascii_digits() {
        assert!(ZEROS.is_sorted());
        for &zero in ZEROS {
            for value in 0..10 {
                let character = char::from_u32(zero + value).expect("a digit");
                assert!(character.is_numeric(), "{zero:x}");
                assert_eq!(digit(character), char::from_digit(value, 10));
            }
        }
        assert_eq!(digit('x'), None);
        assert_eq!(digit('猫'), None);
        assert_eq!(digit('²'), None);
    }
}
