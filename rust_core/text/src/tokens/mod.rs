//! Counts tokens as the `cl100k_base` vocabulary makes them: what a language model's context is measured in.
//!
//! Own code over a bundled table (from tiktoken, MIT licence; packed by `scripts/pack_token_table.py`), because
//! the ready-made crates carry every vocabulary or a prepared automaton of 15 MB, and we only count.
//!
//! Source: the split pattern of `cl100k_base` in tiktoken; byte-pair encoding by Sennrich, Haddow and Birch, ACL 2016.

mod merge;
mod split;

use std::sync::LazyLock;

use hashbrown::HashTable;
use xxhash_rust::xxh3::xxh3_64;

/// Name of the bundled vocabulary.
pub const TABLE_NAME: &str = "cl100k_base";

static PACKED: &[u8] = include_bytes!("cl100k_base.bin");
static VOCABULARY: LazyLock<Vocabulary> = LazyLock::new(|| Vocabulary::unpack(PACKED));

/// Tokens of `text`. Text that spells a special token, such as `<|endoftext|>`, counts as ordinary text.
pub fn count_tokens(text: &str) -> usize {
    let vocabulary = &*VOCABULARY;
    let mut count = 0;
    let mut rest = text;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(split::piece_length(rest));
        count += match vocabulary.rank(piece.as_bytes()) {
            Some(_) => 1,
            None => merge::count(piece.as_bytes(), vocabulary),
        };
        rest = after;
    }
    count
}

/// Ranks of tokens, looked up by their bytes.
struct Vocabulary {
    packed: &'static [u8],
    /// Where each token's length byte is, by rank.
    offsets: Vec<u32>,
    ranks: HashTable<u32>,
}

impl Vocabulary {
    fn unpack(packed: &'static [u8]) -> Self {
        let mut offsets = Vec::new();
        let mut at = 0;
        while at < packed.len() {
            offsets.push(at as u32);
            at += 1 + usize::from(packed[at]);
        }
        let mut vocabulary = Self {
            packed,
            ranks: HashTable::with_capacity(offsets.len()),
            offsets,
        };
        for rank in 0..vocabulary.offsets.len() as u32 {
            let hash = xxh3_64(token(packed, &vocabulary.offsets, rank));
            vocabulary.ranks.insert_unique(hash, rank, |&rank| {
                xxh3_64(token(packed, &vocabulary.offsets, rank))
            });
        }
        vocabulary
    }

    /// Rank of the token `bytes`, None when there is no such token.
    fn rank(&self, bytes: &[u8]) -> Option<u32> {
        self.ranks
            .find(xxh3_64(bytes), |&rank| {
                token(self.packed, &self.offsets, rank) == bytes
            })
            .copied()
    }
}

fn token<'a>(packed: &'a [u8], offsets: &[u32], rank: u32) -> &'a [u8] {
    let at = offsets[rank as usize] as usize;
    &packed[at + 1..at + 1 + usize::from(packed[at])]
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use proptest::prelude::*;

    use super::{VOCABULARY, count_tokens};

    static ORACLE: LazyLock<tiktoken_rs::CoreBPE> =
        LazyLock::new(|| tiktoken_rs::cl100k_base().expect("bundled"));

    #[test]
    fn known_answers() {
        for (text, tokens) in [
            ("", 0),
            ("hello world", 2),
            ("tiktoken is great!", 6),
            ("Привет, мир! 猫が好きです", 14),
            ("  \n\n  tabs\t\there ", 7),
            ("<|endoftext|>", 7),
            ("I'LL it's DON'T 12345678 ½", 13),
            ("🙂👍🏽", 8),
        ] {
            assert_eq!(count_tokens(text), tokens, "{text:?}");
        }
    }

    #[test]
    fn the_table_is_whole() {
        assert_eq!(VOCABULARY.offsets.len(), 100_256);
        assert_eq!(VOCABULARY.rank(b" the"), Some(279));
    }

    #[test]
    fn one_long_word_takes_no_quadratic_time() {
        assert_eq!(count_tokens(&"a".repeat(100_000)), 12_500);
    }

    proptest! {
        #[test]
        fn counts_as_the_reference_does(text in "(\\PC|[ \\t\\r\\n'a-zA-Z0-9]|'(s|LL|ve|ſ)| {1,3}\\n?){0,60}") {
            prop_assert_eq!(count_tokens(&text), ORACLE.encode_ordinary(&text).len());
        }
    }
}
