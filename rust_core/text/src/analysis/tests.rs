use proptest::prelude::*;

use super::{Language, SURFACE_WEIGHT, analyze_query, analyze_text};

/// The share of the query's weight that the text meets.
fn overlap(query: &str, text: &str) -> f32 {
    let text = analyze_text(text);
    let met = |term: u64| {
        text.terms
            .binary_search_by_key(&term, |&(term, _)| term)
            .is_ok()
    };
    analyze_query(query)
        .terms
        .iter()
        .filter(|&&(term, _)| met(term))
        .map(|&(_, weight)| weight)
        .sum()
}

#[test]
fn length_counts_words_and_not_surface_forms() {
    let analyzed = analyze_text("The dogs were running, and running again");
    assert_eq!(analyzed.length(), 3);
    // Stems dog and run; surface forms dogs and running.
    assert_eq!(analyzed.distinct(), 4);
}

#[test]
fn an_exact_form_is_worth_more_than_its_stem() {
    assert!((overlap("running", "she runs") - 1.0).abs() < 1e-6);
    assert!((overlap("running", "running") - 1.0 - SURFACE_WEIGHT).abs() < 1e-6);
}

#[test]
fn stop_words_are_kept_only_where_there_is_nothing_else() {
    assert!(overlap("Who are you?", "who are you") > 2.0);
    assert!(overlap("the cat", "the dog") == 0.0);
    assert!(overlap("a job in IT", "He works in IT") > 0.9);
    assert!(analyze_query(" ?! ").is_empty());
}

#[test]
fn identifiers_are_found_whole_and_by_part() {
    let text = "Ask ann.lee@example.com about INC-4412, getUserName and 1,000 units";
    for query in [
        "ann.lee@example.com",
        "lee",
        "4412",
        "inc-4412",
        "user names",
        "getUserName",
        "1000",
    ] {
        assert!(overlap(query, text) >= 1.0, "{query}");
    }
    assert!(overlap("INC-4412", "INC-4412") > overlap("INC-4412", "INC 4412"));
}

#[test]
fn every_script_can_be_found() {
    for (query, text) in [
        ("猫", "黒猫が好きです"),
        ("東京タワー", "昨日東京タワーに行った"),
        ("ข้าว", "ฉันกินข้าวแล้ว"),
        ("서울", "서울에서 만나요"),
        ("москва", "Москва слезам не верит"),
        ("cafe", "Le Café"),
        ("हिन्दी", "मैं हिन्दी बोलता हूँ"),
        ("မြန်မာ", "ကျွန်တော်မြန်မာစာဖတ်တယ်"),
        ("ខ្មែរ", "ភាសាខ្មែរ"),
        ("ລາວ", "ພາສາລາວ"),
    ] {
        assert!(overlap(query, text) >= 0.9, "{query}");
    }
}

#[test]
fn every_spelling_of_a_word_finds_the_others() {
    for spellings in [
        &["Müller", "Mueller", "Muller", "MÜLLER"][..],
        &["Håkon", "Haakon", "Hakon"],
        &["Sørensen", "Soerensen", "Sorensen"],
        &["Österreich", "Oesterreich", "Osterreich"],
        &["Straße", "Strasse", "STRASSE"],
        &["أحمد", "احمد", "أَحْمَد", "احـمد"],
        &["مدرسة", "مدرسه", "مَدْرَسَة"],
        &["موسى", "موسي"],
        &["مسؤول", "مسوول"],
        &["کتاب", "كتاب"],
        &["١٢٣٤", "۱۲۳۴", "१२३४", "๑๒๓๔", "１２３４", "1234"],
        &["λόγος", "ΛΟΓΟΣ", "λογος", "λόγοσ"],
        &["Королёв", "Королев"],
        &["שָׁלוֹם", "שלום"],
        &["צה״ל", "צה\"ל", "צהל"],
        &["ज़मीन", "जमीन"],
        &["臺灣", "台湾", "台灣"],
        &["圖書館", "图书馆"],
        &["п’ять", "п'ять", "пять"],
        &["O'Brien", "O’Brien", "OBrien", "o'brien"],
        &["Qur'an", "Quran"],
        &["naïve", "naive", "NAÏVE"],
        &["İzmir", "izmir", "IZMIR"],
    ] {
        for query in spellings {
            for text in spellings {
                assert!(overlap(query, text) > 0.0, "{query} {text}");
            }
        }
    }
}

#[test]
fn symbols_are_terms() {
    for symbol in [
        "🎈",
        "✅",
        "❌",
        "🇧🇷",
        "👍🏽",
        "👩\u{200D}👩\u{200D}👦",
        "❤\u{FE0F}",
        "→",
        "€",
        "☎",
        "★",
    ] {
        assert!(
            overlap(symbol, &format!("We saw {symbol}{symbol} today")) >= 1.0,
            "{symbol}"
        );
        assert!(overlap(symbol, "We saw nothing today") == 0.0, "{symbol}");
    }
    assert!(overlap("1\u{FE0F}\u{20E3}", "Step 1\u{FE0F}\u{20E3}: wait") >= 1.0);
    assert!(overlap("🇧🇷", "🇧🇪🇷🇸") == 0.0);
    assert!(overlap("👍", "👍🏽") >= 1.0);
    assert!(overlap("👍🏽", "👍🏽") > overlap("👍🏽", "👍🏿"));
    assert!(overlap("👦", "👩\u{200D}👩\u{200D}👦") >= 1.0);
}

#[test]
fn words_beside_apostrophes_are_found() {
    for (query, text) in [
        ("horloge", "devant l'horloge"),
        ("encre", "manque d’encre noire"),
        ("école", "jusqu'à l'école"),
        ("armadio", "nell'armadio"),
        ("amica", "un'amica dell'università"),
        ("Bursa", "Bursa'da olacak"),
        ("Ankara", "Ankara’nın"),
        ("Brien", "Mr O'Brien"),
        ("Angelo", "D'Angelo"),
        ("rock", "rock'n'roll"),
        ("roll", "rock 'n' roll"),
        ("l'horloge", "une horloge"),
        ("caroline", "Caroline's"),
    ] {
        assert!(overlap(query, text) >= 1.0, "{query}");
    }
    assert!(overlap("don't", "the tide") == 0.0);
}

#[test]
fn parts_of_identifiers_are_found() {
    for (query, text) in [
        ("html", "parseHTMLTable"),
        ("parse table", "parseHTMLTable()"),
        ("http server", "HTTP2Server"),
        ("http2", "HTTP2Server"),
        ("covid", "covid19"),
        ("snake case", "snake_case"),
        ("utf 8", "utf8_decode"),
        ("xml request", "XMLHttpRequest"),
        ("iphone 15", "iPhone15"),
        ("case", "kebab-case"),
    ] {
        assert!(overlap(query, text) >= 1.0, "{query}");
    }
    assert!(overlap("parseHTMLTable", "parse an html table") > 0.0);
}

#[test]
fn a_letter_after_a_noun_is_a_name() {
    for (query, text) in [
        ("what is device A?", "Device A is old."),
        ("tell me about plan A", "Plan A failed"),
        ("is it in box a?", "Box A is full."),
        ("what does vitamin D do", "Vitamin D is low"),
        ("Gate S", "Gate S is shut"),
        ("hepatitis A", "Hepatitis A and B"),
        ("World War I", "It was in World War I."),
        ("team T", "Team T won"),
        ("group M", "Group M, group S"),
        ("apartment A.", "Apartment A, second floor"),
    ] {
        let other = text
            .replace(" A", " X")
            .replace(" D", " X")
            .replace(" S", " X")
            .replace(" I", " X")
            .replace(" T", " X")
            .replace(" M", " X");
        assert!(
            overlap(query, text) > overlap(query, &other) + 0.9,
            "{query}"
        );
    }
    assert!(overlap("I have a cat", "I have a dog") == 0.0);
    assert!(overlap("She is a friend", "This is a dog. A cat.") == 0.0);
}

#[test]
fn words_are_stemmed_as_the_language_or_the_script_says() {
    let meets = |language: Language, query: &str, text: &str| {
        let text = language.analyze_text(text);
        language
            .analyze_query(query)
            .terms
            .iter()
            .any(|&(term, _)| {
                text.terms
                    .binary_search_by_key(&term, |&(one, _)| one)
                    .is_ok()
            })
    };
    for (language, query, text) in [
        (Language::English, "running", "runs"),
        (Language::English, "книга", "книги"),
        (Language::English, "δρόμοι", "δρόμος"),
        (Language::English, "كتاب", "كتابين"),
        (Language::German, "Häuser", "Hauses"),
        (Language::French, "chantait", "chanter"),
        (Language::Spanish, "gatos", "gato"),
        (Language::Italian, "libri", "libro"),
        (Language::Portuguese, "gatos", "gato"),
        (Language::Dutch, "honden", "hond"),
        (Language::Swedish, "hundar", "hunden"),
        (Language::Finnish, "talossa", "talo"),
        (Language::Turkish, "evler", "ev"),
    ] {
        assert!(meets(language, query, text), "{language:?} {query}");
    }
    assert!(!meets(Language::Unstemmed, "running", "runs"));
    assert!(!meets(Language::English, "chantait", "chanter"));
}

#[test]
fn words_come_with_their_stems() {
    let words = Language::English.words("The dogs' IT plan A, l'École 🎈");
    let words: Vec<(&str, Option<&str>)> = words
        .iter()
        .map(|(word, stem)| (word.as_str(), stem.as_deref()))
        .collect();
    assert_eq!(
        words,
        [
            ("the", None),
            ("dogs", Some("dog")),
            ("it", Some("it")),
            ("plan", Some("plan")),
            ("a", Some("a")),
            ("ecole", Some("ecol")),
            ("🎈", Some("🎈"))
        ]
    );
}

#[test]
fn languages_have_fingerprints_of_their_own() {
    let all: std::collections::HashSet<u64> =
        Language::ALL.iter().map(|one| one.fingerprint()).collect();
    assert_eq!(all.len(), Language::ALL.len());
}

#[test]
fn a_blob_is_one_short_term() {
    let blob = "x".repeat(100_000);
    assert_eq!(analyze_text(&blob).distinct(), 1);
    assert!(overlap(&blob[..5_000], &blob) >= 1.0);
}

proptest! {
    #[test]
    fn a_text_is_found_by_itself(text in "\\PC{0,80}") {
        let query = analyze_query(&text);
        prop_assert_eq!(query.is_empty(), analyze_text(&text).terms.is_empty());
        let all: f32 = query.terms.iter().map(|&(_, weight)| weight).sum();
        prop_assert!((overlap(&text, &text) - all).abs() < 1e-3);
    }
}
