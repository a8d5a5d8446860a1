//! Candidates of phrases beside a look at every text.

mod common;

use std::collections::BTreeSet;

use astrocyte_core::{Bank, Core, CoreError, CoreOptions, MemoryId, RecallRequest, Row};
use common::{Random, id, row};

const DIMENSIONS: usize = 8;
const ROWS: u64 = 600;
const WORDS: [&str; 8] = [
    "kiln", "blue", "door", "glaze", "clay", "wheel", "shelf", "fire",
];

fn filled(random: &mut Random) -> (Bank, Vec<Row>) {
    let text = |random: &mut Random| {
        let words = (0..4).map(|_| WORDS[random.below(8) as usize]);
        words.collect::<Vec<_>>().join(" ")
    };
    let rows: Vec<_> = (1..=ROWS).map(|key| row(key, text(random))).collect();
    let core = Core::with_options(None, CoreOptions::default()).expect("these are the defaults");
    let bank = core.bank(DIMENSIONS).expect("the dimensions are in range");
    bank.apply(1, &rows, &[], &[]).expect("the rows are right");
    (bank, rows)
}

/// The memories whose texts have all these words.
fn holding(rows: &[Row], words: &[&str]) -> BTreeSet<MemoryId> {
    let holds = |row: &&Row| {
        let own: BTreeSet<_> = row.text.split(' ').collect();
        words.iter().all(|word| own.contains(word))
    };
    rows.iter().filter(holds).map(|row| row.memory_id).collect()
}

fn phrases(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

#[test]
fn candidates_are_the_memories_with_all_words_of_all_phrases() {
    let (bank, rows) = filled(&mut Random(17));
    let request = RecallRequest::default();
    for (asked, words) in [
        (vec!["blue kiln"], vec!["blue", "kiln"]),
        (vec!["the kiln of the door"], vec!["kiln", "door"]),
        (vec!["blue kiln", "clay"], vec!["blue", "kiln", "clay"]),
        (vec!["blue", "nowhere"], vec!["nowhere"]),
    ] {
        let expected = holding(&rows, &words);
        let found = bank
            .phrase_candidates(&request, &phrases(&asked), ROWS as usize)
            .expect("each phrase has a word");
        let memories: BTreeSet<_> = found.found.iter().map(|&(_, memory)| memory).collect();
        assert_eq!(memories, expected, "{asked:?}");
        assert_eq!(found.total, expected.len());
        assert!(found.found.iter().all(|&(key, memory)| memory == id(key)));
    }
}

#[test]
fn the_best_by_keywords_come_first_and_the_rest_is_counted() {
    let (bank, _) = filled(&mut Random(18));
    let request = RecallRequest::default();
    let asked = phrases(&["blue kiln"]);
    let all = bank
        .phrase_candidates(&request, &asked, ROWS as usize)
        .expect("the phrase has words");
    assert!(all.total > 20);
    let few = bank
        .phrase_candidates(&request, &asked, 20)
        .expect("the phrase has words");
    assert_eq!(few.total, all.total);
    assert_eq!(few.found, all.found[..20]);
    let by_keywords = RecallRequest {
        text: Some("blue kiln".to_owned()),
        k: 20,
        memory_ids: Some(all.found.iter().map(|&(_, memory)| memory).collect()),
        ..RecallRequest::default()
    };
    let hits = bank
        .recall(&by_keywords)
        .expect("the request is right")
        .hits;
    let ranked: Vec<_> = hits.iter().map(|hit| hit.key).collect();
    let found: Vec<_> = few.found.iter().map(|&(key, _)| key).collect();
    assert_eq!(found, ranked);
}

#[test]
fn a_phrase_of_stop_words_alone_is_refused() {
    let (bank, _) = filled(&mut Random(19));
    let asked = phrases(&["blue kiln", "to be or not to be"]);
    let refused = bank.phrase_candidates(&RecallRequest::default(), &asked, 10);
    assert!(matches!(
        refused,
        Err(CoreError::Invalid { field: "query", .. })
    ));
}
