//! The hash by which two contents count as the same.

use unicode_normalization::UnicodeNormalization;

/// Sixteen bytes that are equal for equal normalised contents.
pub type ContentHash = [u8; 16];

/// Sixteen bytes of BLAKE3 over `text` with white space collapsed, canonically composed (NFC).
///
/// Case and compatibility forms count: a hash match drops a memory without a further look, and "the password is
/// Hunter2" is another statement than "hunter2", 10² another number than 102. Spelling variants that mean the same are
/// left to the near-duplicate check, which compares and guards.
pub fn content_hash(text: &str) -> ContentHash {
    let mut hasher = blake3::Hasher::new();
    // ASCII is composed already.
    if text.is_ascii() {
        hash_words(text, &mut hasher);
    } else {
        hash_words(&text.nfc().collect::<String>(), &mut hasher);
    }
    let mut hash = ContentHash::default();
    hasher.finalize_xof().fill(&mut hash);
    hash
}

fn hash_words(text: &str, hasher: &mut blake3::Hasher) {
    for (index, word) in text.split_whitespace().enumerate() {
        if index > 0 {
            hasher.update(b" ");
        }
        hasher.update(word.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::content_hash;

    #[test]
    fn composition_and_white_space_do_not_count() {
        assert_eq!(
            content_hash("caf\u{e9}  au\tlait\n"),
            content_hash(" cafe\u{301} au lait")
        );
        assert_eq!(content_hash(""), content_hash(" \n\u{3000}"));
    }

    #[test]
    fn case_words_and_compatibility_forms_count() {
        for (left, right) in [("Will", "will"), ("a b", "ab"), ("10²", "102"), ("not", "")] {
            assert_ne!(content_hash(left), content_hash(right), "{left} {right}");
        }
    }

    #[test]
    fn the_value_is_fixed() {
        // The first 16 bytes of BLAKE3 of "hello world", as b3sum prints them.
        let value = u128::from_be_bytes(content_hash("hello   world"));
        assert_eq!(value, 0xd749_81ef_a70a_0c88_0b8d_8c19_85d0_75db);
    }
}
