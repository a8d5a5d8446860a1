//! The keyword index against a naive one that recomputes everything from the texts it holds.

use std::collections::{BTreeMap, HashSet};

use astrocyte_core::internals::Bitmap;
use astrocyte_core::internals::{Bm25Index, LexicalIndex, Sums};
use astrocyte_text::analysis::{AnalyzedQuery, Language, analyze_query, analyze_text};
use proptest::prelude::*;

// The constants of `lexical::bm25`, written out again: an oracle that imports them could not see them change.
const K1: f64 = 1.5;
const B: f64 = 0.65;

/// Words whose stem is the word itself, so that the oracle needs no stemmer.
const WORDS: [&str; 12] = [
    "cat", "dog", "fish", "tree", "milk", "york", "paper", "stone", "wind", "moon", "lamp", "door",
];

#[derive(Debug, Clone)]
enum Step {
    Add { words: Vec<usize>, counted: bool },
    Retire(usize),
    Remove(usize),
    Compact,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    // Words from a small set, often repeated: a frequency of fifteen and more leaves the posting.
    let words = prop_oneof![
        prop::collection::vec(0..WORDS.len(), 1..12),
        (0..WORDS.len(), 14..40usize).prop_map(|(word, times)| vec![word; times]),
    ];
    let step = prop_oneof![
        5 => (words, any::<bool>()).prop_map(|(words, counted)| Step::Add { words, counted }),
        1 => any::<prop::sample::Index>().prop_map(|at| Step::Retire(at.index(1_000_000))),
        2 => any::<prop::sample::Index>().prop_map(|at| Step::Remove(at.index(1_000_000))),
        1 => Just(Step::Compact),
    ];
    prop::collection::vec(step, 1..60)
}

/// Rows by number: their words, and whether they count.
#[derive(Default)]
struct Oracle {
    rows: BTreeMap<u32, (Vec<usize>, bool)>,
    next: u32,
}

impl Oracle {
    /// The row that a step means, if any is there.
    fn pick(&self, at: usize) -> Option<u32> {
        self.rows.keys().nth(at % self.rows.len().max(1)).copied()
    }

    fn score(&self, query: &HashSet<usize>, row: u32) -> f64 {
        let counted: Vec<_> = self.rows.values().filter(|(_, counted)| *counted).collect();
        let total: usize = counted.iter().map(|(words, _)| words.len()).sum();
        let average = (total as f64 / counted.len().max(1) as f64).max(1.0);
        let words = &self.rows[&row].0;
        query
            .iter()
            .map(|word| {
                let found_in = counted
                    .iter()
                    .filter(|(words, _)| words.contains(word))
                    .count() as f64;
                let idf = (1.0 + (counted.len() as f64 - found_in + 0.5) / (found_in + 0.5)).ln();
                let frequency = words.iter().filter(|other| *other == word).count() as f64;
                idf * frequency * (K1 + 1.0)
                    / (frequency + K1 * (1.0 - B + B * words.len() as f64 / average))
            })
            .sum()
    }
}

fn text(words: &[usize]) -> String {
    words
        .iter()
        .map(|&word| WORDS[word])
        .collect::<Vec<_>>()
        .join(" ")
}

fn run(steps: Vec<Step>) -> (Bm25Index, Oracle) {
    let (mut index, mut oracle) = (Bm25Index::new(), Oracle::default());
    for step in steps {
        match step {
            Step::Add { words, counted } => {
                index.add(oracle.next, &analyze_text(&text(&words)), counted);
                oracle.rows.insert(oracle.next, (words, counted));
                oracle.next += 1;
            }
            Step::Retire(at) => {
                if let Some(row) = oracle.pick(at) {
                    index.retire(row);
                    oracle
                        .rows
                        .entry(row)
                        .and_modify(|(_, counted)| *counted = false);
                }
            }
            Step::Remove(at) => {
                if let Some(row) = oracle.pick(at) {
                    index.remove(row);
                    oracle.rows.remove(&row);
                }
            }
            Step::Compact => {
                let mut new_rows = vec![u32::MAX; oracle.next as usize];
                for (new, (old, _)) in oracle.rows.iter().enumerate() {
                    new_rows[*old as usize] = new as u32;
                }
                index.compact(&new_rows);
                oracle.rows = std::mem::take(&mut oracle.rows)
                    .into_values()
                    .zip(0..)
                    .map(|(row, at)| (at, row))
                    .collect();
                oracle.next = oracle.rows.len() as u32;
            }
        }
    }
    (index, oracle)
}

fn all_rows(oracle: &Oracle) -> Bitmap {
    let mut allowed = Bitmap::empty(oracle.next);
    for &row in oracle.rows.keys() {
        allowed.insert(row);
    }
    allowed
}

proptest! {
    #[test]
    fn scores_equal_the_definition_after_any_history(
        steps in steps(),
        query in prop::collection::hash_set(0..WORDS.len(), 1..6),
        bar in prop::collection::hash_set(0..60u32, 0..10),
    ) {
        let (index, oracle) = run(steps);
        let mut allowed = all_rows(&oracle);
        allowed.retain(|row| !bar.contains(&row));
        let mut scores = vec![0.0; oracle.next as usize];
        let words: Vec<usize> = query.iter().copied().collect();
        index.score(&analyze_query(&text(&words)), &allowed, &mut scores);
        for row in 0..oracle.next {
            let expected = if allowed.contains(row) { oracle.score(&query, row) } else { 0.0 };
            let got = f64::from(scores[row as usize]);
            prop_assert!((got - expected).abs() <= 1e-4 * expected.max(1.0), "row {row}: {got} for {expected}");
        }
    }

    #[test]
    fn history_leaves_no_trace(steps in steps(), query in prop::collection::hash_set(0..WORDS.len(), 1..6)) {
        let (index, oracle) = run(steps);
        let mut fresh = Bm25Index::new();
        for (&row, (words, counted)) in &oracle.rows {
            fresh.add(row, &analyze_text(&text(words)), *counted);
        }
        let words: Vec<usize> = query.iter().copied().collect();
        let query = analyze_query(&text(&words));
        let allowed = all_rows(&oracle);
        let scores = |index: &Bm25Index| {
            let mut scores = vec![0.0f32; oracle.next as usize];
            index.score(&query, &allowed, &mut scores);
            scores
        };
        // Bit for bit: the same rows give the same ranking, whatever came and went before.
        prop_assert_eq!(scores(&index), scores(&fresh));
    }
}

#[test]
fn removed_postings_are_dropped_when_they_are_many() {
    let mut index = Bm25Index::new();
    for row in 0..20_000 {
        index.add(row, &analyze_text(&format!("cat w{row}")), true);
    }
    let full = index.bytes();
    for row in 100..20_000 {
        index.remove(row);
    }
    assert!(index.is_wasteful());
    let left = |row| if row < 100 { row } else { u32::MAX };
    index.compact(&(0..20_000).map(left).collect::<Vec<_>>());
    assert!(!index.is_wasteful());
    assert!(
        index.bytes() < full / 2,
        "{} of {full} bytes are left",
        index.bytes()
    );
    assert!(index.terms() < 10_000, "{} terms are left", index.terms());
    index.add(100, &analyze_text("cat"), true);
    let mut scores = vec![0.0; 101];
    let mut allowed = Bitmap::empty(101);
    (0..101).for_each(|row| {
        allowed.insert(row);
    });
    index.score(&analyze_query("cat"), &allowed, &mut scores);
    assert_eq!(scores.iter().filter(|&&score| score > 0.0).count(), 101);
}

#[test]
fn the_rarest_words_of_a_long_query_count() {
    let mut index = Bm25Index::new();
    let common: Vec<String> = (0..100).map(|number| format!("c{number}")).collect();
    index.add(0, &analyze_text(&common.join(" ")), true);
    index.add(1, &analyze_text(&common.join(" ")), true);
    index.add(2, &analyze_text("rare"), true);
    let mut allowed = Bitmap::empty(3);
    (0..3).for_each(|row| {
        allowed.insert(row);
    });
    let mut scores = vec![0.0; 3];
    index.score(
        &analyze_query(&format!("{} rare", common.join(" "))),
        &allowed,
        &mut scores,
    );
    assert!(scores[2] > 0.0, "{scores:?}");
}

#[test]
fn two_threads_add_up_words_to_the_bit_as_one_does() {
    let mut index = Bm25Index::new();
    let count = 100_000u32;
    for row in 0..count {
        // Some stand in a row more often than a posting can hold.
        let often = if row % 97 == 0 { 20 } else { 1 };
        let text = format!(
            "tea {} {}",
            "rain ".repeat(often),
            ["noon", "jam"][row as usize % 2]
        );
        index.add(row, &analyze_text(&text), row % 5 != 0);
    }
    let terms = index.query_terms(&analyze_query("tea rain jam"));
    assert_eq!(terms.len(), 3);
    let mut all = Bitmap::empty(count);
    let mut some = Bitmap::empty(count);
    for row in 0..count {
        all.insert(row);
        if row % 7 < 3 {
            some.insert(row);
        }
    }
    for allowed in [&all, &some] {
        let [one, two] = [false, true].map(|spread| {
            let mut sums = Sums::default();
            // The second time there are sums already.
            index.add_terms(&terms[..2], allowed, spread, &mut sums);
            index.add_terms(&terms[2..], allowed, spread, &mut sums);
            (
                sums.rows,
                sums.values
                    .iter()
                    .map(|sum| sum.to_bits())
                    .collect::<Vec<_>>(),
            )
        });
        assert_eq!(one.0.len(), allowed.len() as usize);
        assert!(one == two, "the sums differ");
    }
}

#[test]
fn few_rows_are_scored_by_their_words_to_the_bit_as_by_postings() {
    let mut index = Bm25Index::new();
    let count = 3000u32;
    for row in 0..count {
        // Up to twenty words, and now and then one so often that its posting cannot hold it.
        let length = if row % 97 == 0 { 40 } else { row % 20 + 1 };
        let word = |at: u32| {
            if length == 40 {
                3
            } else {
                (row + at * at) % 12
            }
        };
        let words: Vec<usize> = (0..length).map(|at| word(at) as usize).collect();
        index.add(row, &analyze_text(&text(&words)), row % 5 != 0);
    }
    let query = analyze_query("cat fish tree stone");
    let rows = |every: usize| {
        let mut rows = Bitmap::empty(count);
        (0..count)
            .step_by(every)
            .for_each(|row| _ = rows.insert(row));
        rows
    };
    let score = |allowed: &Bitmap| {
        let mut scores = vec![0.0f32; count as usize];
        index.score(&query, allowed, &mut scores);
        scores
    };
    let (all, some) = (rows(1), rows(97));
    let terms = index.query_terms(&query);
    assert!(index.few(&terms, &some) && !index.few(&terms, &all));
    let by_postings = score(&all);
    for (row, score) in score(&some).into_iter().enumerate() {
        let expected = if row % 97 == 0 { by_postings[row] } else { 0.0 };
        assert_eq!(score.to_bits(), expected.to_bits(), "row {row}");
    }
    assert!(by_postings.iter().filter(|&&score| score > 0.0).count() > 1000);
}

/// Otherwise the paths of a search would differ, and a prefix of many words would outweigh every other word.
#[test]
fn a_union_scores_as_one_word_would_by_every_path() {
    let kinds = ["kiln", "kilo", "kilt", "kilim"];
    let (mut apart, mut joined) = (Bm25Index::new(), Bm25Index::new());
    let count = 3_000u32;
    for row in 0..count {
        // No row holds two kinds, so that the joined word is as rare as all kinds together.
        let often = if row % 97 == 0 { 20 } else { row % 3 };
        let rest = format!("tea {}", "noon ".repeat(row as usize % 7));
        let text = |word: &str| format!("{rest} {}", format!("{word} ").repeat(often as usize));
        let counted = row % 5 != 0;
        apart.add(row, &analyze_text(&text(kinds[row as usize % 4])), counted);
        joined.add(row, &analyze_text(&text("kilx")), counted);
    }
    let mut union = analyze_query("tea");
    Language::English.add_union(&mut union, &kinds.map(str::to_owned));
    let one = analyze_query("tea kilx");
    let rows = |every: usize| {
        let mut rows = Bitmap::empty(count);
        (0..count)
            .step_by(every)
            .for_each(|row| _ = rows.insert(row));
        rows
    };
    for allowed in [rows(1), rows(2), rows(97)] {
        let score = |index: &Bm25Index, query: &AnalyzedQuery| {
            let mut scores = vec![0.0f32; count as usize];
            index.score(query, &allowed, &mut scores);
            scores
        };
        let expected = score(&joined, &one);
        let got = score(&apart, &union);
        let terms = apart.query_terms(&union);
        assert_eq!(terms.len(), 2);
        let mut sums = Sums::default();
        apart.add_terms(&terms, &allowed, false, &mut sums);
        let numbers: Vec<u32> = allowed.iter().collect();
        let mut of_rows = vec![0.0; numbers.len()];
        for term in &terms {
            apart.add_term_to(term, &numbers, &mut of_rows);
        }
        let mut by_row = vec![0.0f32; count as usize];
        apart.score_rows(&terms, &allowed, &mut |row, score| {
            by_row[row as usize] = score;
        });
        for (&row, of_row) in numbers.iter().zip(of_rows) {
            let at = row as usize;
            assert!((got[at] - expected[at]).abs() <= 1e-5, "row {row}");
            assert_eq!(got[at].to_bits(), of_row.to_bits(), "row {row}");
            assert_eq!(got[at].to_bits(), by_row[at].to_bits(), "row {row}");
            let sum = sums.rows.binary_search(&row).map(|at| sums.values[at]);
            assert_eq!(got[at].to_bits(), sum.unwrap_or(0.0).to_bits(), "row {row}");
        }
    }
}
