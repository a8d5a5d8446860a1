use proptest::prelude::*;
use unicode_segmentation::UnicodeSegmentation;

use super::{Piece, for_each_piece};

fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut all = Vec::new();
    for_each_piece(text, |piece| all.push(piece));
    all
}

fn words(text: &str) -> Vec<&str> {
    pieces(text)
        .into_iter()
        .filter_map(|piece| {
            if let Piece::Word(word) = piece {
                Some(word)
            } else {
                None
            }
        })
        .collect()
}

fn compounds(text: &str) -> Vec<&str> {
    let compound = |piece| {
        if let Piece::Compound(whole) = piece {
            Some(whole)
        } else {
            None
        }
    };
    pieces(text).into_iter().filter_map(compound).collect()
}

#[test]
fn words_and_numbers_keep_what_belongs_inside() {
    assert_eq!(
        words("Don't pay 1,000.50 (or 2,5)!"),
        ["Don't", "pay", "1,000.50", "or", "2", "5"]
    );
    assert_eq!(words("v1.2.3 at 10.0.0.1."), ["v1.2.3", "at", "10.0.0.1"]);
}

#[test]
fn an_identifier_is_its_parts_and_the_whole() {
    assert_eq!(
        words("ann.lee@example.com"),
        ["ann", "lee", "example", "com"]
    );
    assert_eq!(compounds("ann.lee@example.com"), ["ann.lee@example.com"]);
    assert_eq!(
        compounds("snake_case INC-4412 2023-05-08 AT&T C++ C#"),
        ["snake_case", "INC-4412", "2023-05-08", "AT&T", "C++", "C#"]
    );
    assert_eq!(compounds("the end. Next -- a_"), [""; 0]);
}

#[test]
fn apostrophes_divide_but_before_english_endings() {
    assert_eq!(
        words("l'horloge d'encre nell'armadio"),
        ["horloge", "encre", "nell", "armadio"]
    );
    assert_eq!(
        words("Bursa'da O'Brien rock'n'roll"),
        ["Bursa", "da", "Brien", "rock", "roll"]
    );
    assert_eq!(
        words("don't she's we'll they've I'd"),
        ["don't", "she's", "we'll", "they've", "I'd"]
    );
    assert_eq!(words("п'ять об'єкт"), ["п'ять", "об'єкт"]);
    assert_eq!(compounds("O'Brien's"), ["O'Brien's"]);
}

#[test]
fn symbols_are_pieces_of_their_own() {
    let symbols = |text| -> Vec<String> {
        pieces(text)
            .into_iter()
            .filter_map(|piece| {
                if let Piece::Symbol(one) = piece {
                    Some(one.to_owned())
                } else {
                    None
                }
            })
            .collect()
    };
    assert_eq!(symbols("a ✅🎈🎈 → €5"), ["✅", "🎈", "🎈", "→", "€"]);
    assert_eq!(symbols("🇳🇴🇧🇷🇧"), ["🇳🇴", "🇧🇷", "🇧"]);
    assert_eq!(
        symbols("👍🏽👩\u{200D}👦 🏴\u{E0067}\u{E0062}\u{E007F}!"),
        ["👍🏽", "👩\u{200D}👦", "🏴\u{E0067}\u{E0062}\u{E007F}"]
    );
    assert_eq!(symbols("$5 + 3 = x^2 ~ `y`"), [""; 0]);
}

#[test]
fn scripts_without_spaces_become_overlapping_pairs() {
    assert_eq!(
        pieces("猫だ"),
        [Piece::Character("猫"), Piece::Pair("猫だ")]
    );
    assert_eq!(pieces("カ x"), [Piece::Pair("カ"), Piece::Word("x")]);
    assert_eq!(pieces("서울에"), [Piece::Pair("서울"), Piece::Pair("울에")]);
    // A vowel sign stays with its consonant.
    assert_eq!(pieces("กินข้าว").len(), 4);
}

proptest! {
    #[test]
    fn spaced_scripts_match_the_standard(text in "[a-zA-Zа-яёäéא-ת0-9 !?()\"]{0,40}") {
        prop_assume!(!text.contains('"') || !text.chars().any(|c| ('א'..='ת').contains(&c)));
        prop_assert_eq!(words(&text), text.unicode_words().collect::<Vec<_>>());
    }

    #[test]
    fn any_text_is_cut_at_character_borders(text in "\\PC{0,60}") {
        for piece in pieces(&text) {
            let (Piece::Word(part) | Piece::Compound(part) | Piece::Pair(part) | Piece::Character(part) | Piece::Symbol(part)) =
                piece;
            prop_assert!(!part.is_empty());
        }
    }
}
