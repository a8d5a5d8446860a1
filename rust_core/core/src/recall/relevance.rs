//! The calibrated relevance of hits, and the confidence that the hits hold what was asked.
//!
//! Both are logistic functions of evidence that does not grow with the bank: cosines, and shares of the query's stems.
//! `benches/quality/calibration.py` fits them; docs/quality.md describes the data and has the figures.

use super::Recall;
use super::arms::{Arm, Scores};
use super::fusion::Fused;
use super::hits::best_chunk;
use crate::api::{Evidence, SubjectEvidence};
use crate::dense::NO_SCORE;
use crate::lexical::{LexicalIndex, QueryStems};
use astrocyte_text::analysis::{analyze_query, analyze_text};

/// Coefficients of a logistic function: the constant, and factors of the cosine, of the share of stems (its distance
/// from 1 squared, so that the first stems count most), and of the decimal logarithm of the number of memories that
/// pass: the best of many memories that have nothing to do with a question is nearer to it than the best of a few.
type Coefficients = [f64; 4];

/// With a vector and words, with words alone, with a vector alone.
const CONFIDENCE: [Coefficients; 3] = [
    [-4.45, 6.65, 5.60, -0.90],
    [-1.73, 0.0, 7.51, -0.99],
    [-5.00, 10.90, 0.0, -0.38],
];
const RELEVANCE: [Coefficients; 3] = [
    [-2.78, 2.77, 2.59, -0.51],
    [-1.65, 0.0, 3.27, -0.50],
    [-3.00, 4.80, 0.0, -0.24],
];
/// The change of the confidence's log odds where the query names one speaker: an amount that is added, and a factor of
/// the distance by which the share of stems in what is said of others leads that in what is said of this speaker, from a
/// margin on. Found on `LoCoMo`, whose adversarial questions are of the wrong person.
const SUBJECT_KNOWN: f64 = 0.4;
const OTHER_LEADS: f64 = 12.0;
const MARGIN: f64 = 0.1;
/// The odds of a hit fall with its rank to this power.
const RANK: f64 = 0.59;

/// Reads the evidence of candidates.
pub(super) struct Gauge<'a> {
    recall: Recall<'a>,
    scores: Scores<'a>,
    stems: Option<QueryStems>,
}

impl<'a> Gauge<'a> {
    pub(super) fn new(recall: Recall<'a>, scores: Scores<'a>) -> Self {
        let words = recall.query.words.as_ref();
        Self {
            recall,
            scores,
            stems: words.and_then(|words| recall.index.lexical.stems(words)),
        }
    }

    /// The share of the query's stems, without those whose bits are `left_out`, in the best of a version's rows; None
    /// where no stem is left.
    pub(super) fn share_without(&self, version: u32, left_out: u64) -> Option<f32> {
        let stems = self.stems.as_ref()?;
        let all = stems.weight(!left_out);
        let index = self.recall.index;
        let held = |row| stems.weight(index.lexical.held(stems, row) & !left_out);
        let best = index.rows_of(version).map(held).fold(0.0, f32::max);
        (all > 0.0).then_some(best / all)
    }

    /// The evidence of a version whose best chunk is `ordinal`.
    pub(super) fn evidence(&self, version: u32, ordinal: i32) -> Evidence {
        let Recall { index, query, .. } = self.recall;
        let meaning = query.vector.as_ref().and_then(|_| {
            let rows = index.rows_of(version);
            let cosines = rows.map(|row| self.scores.semantic.rows[row as usize]);
            let best = cosines.fold(NO_SCORE, f32::max);
            (best != NO_SCORE).then_some(best)
        });
        let covered = self.stems.as_ref().map(|stems| {
            let whole = index.columns.first_row[version as usize];
            let row = whole.wrapping_add_signed(ordinal + 1);
            stems.share(index.lexical.held(stems, row))
        });
        Evidence {
            meaning,
            covered,
            memories: self.recall.allowed.versions.len(),
        }
    }
}

/// The evidence of the first candidate.
pub(super) fn lead(
    recall: Recall<'_>,
    gauge: &Gauge<'_>,
    fused: &[Fused],
    arms: &[Arm],
    scores: Scores<'_>,
) -> Option<Evidence> {
    let first = fused.first()?.version;
    let ordinal = best_chunk(recall, arms, scores, first);
    Some(gauge.evidence(first, ordinal))
}

/// The probability that the first hit is relevant, where it has this evidence. The odds of one further down are lower:
/// see [`at_rank`].
pub(super) fn relevance(evidence: Evidence) -> f64 {
    logistic(&RELEVANCE, evidence)
}

/// The probability that hits hold what was asked, where this is the evidence of the first candidate and that about the
/// speaker whom the query names.
pub(super) fn confidence(evidence: Evidence, subject: Option<SubjectEvidence>) -> f64 {
    let about = subject.map_or(0.0, |SubjectEvidence { own, other }| {
        let lead = f64::from(other) - f64::from(own) + MARGIN;
        SUBJECT_KNOWN - OTHER_LEADS * lead.max(0.0)
    });
    probability(odds(&CONFIDENCE, evidence) + about)
}

fn logistic(coefficients: &[Coefficients; 3], evidence: Evidence) -> f64 {
    probability(odds(coefficients, evidence))
}

fn probability(log_odds: f64) -> f64 {
    1.0 / (1.0 + (-log_odds).exp())
}

/// The logarithm of the odds.
fn odds(coefficients: &[Coefficients; 3], evidence: Evidence) -> f64 {
    let [constant, meaning, share, memories] = match (evidence.meaning, evidence.covered) {
        (Some(_), Some(_)) => coefficients[0],
        (None, _) => coefficients[1],
        (Some(_), None) => coefficients[2],
    };
    let missing = 1.0 - f64::from(evidence.covered.unwrap_or(0.0));
    constant
        + meaning * f64::from(evidence.meaning.unwrap_or(0.0))
        + share * (1.0 - missing * missing)
        + memories * f64::from(evidence.memories.max(1)).log10()
}

/// The probability that the hit of a rank, from 1, is relevant, from that of its evidence at the first rank.
pub fn at_rank(relevance: f64, rank: u32) -> f64 {
    let lower = f64::from(rank).powf(RANK);
    relevance / (relevance + (1.0 - relevance) * lower)
}

/// The probability that a text that no bank holds answers a query, by the share of the query's stems in it.
pub fn text_relevance(query: &str, text: &str) -> f64 {
    let stems = analyze_query(query).terms;
    let stems = stems.iter().filter(|term| term.1 >= 1.0);
    let held = analyze_text(text).terms;
    let (mut all, mut found) = (0u32, 0u32);
    for (stem, _) in stems {
        all += 1;
        found += u32::from(held.binary_search_by_key(stem, |term| term.0).is_ok());
    }
    relevance(Evidence {
        covered: (all > 0).then(|| found as f32 / all as f32),
        ..Evidence::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence(meaning: Option<f32>, covered: Option<f32>, memories: u32) -> Evidence {
        Evidence {
            meaning,
            covered,
            memories,
        }
    }

    #[test]
    fn more_evidence_is_never_less_sure() {
        let steps = || (0..=20).map(|step| step as f32 / 20.0);
        for of in [relevance as fn(Evidence) -> f64, |evidence| {
            confidence(evidence, None)
        }] {
            for memories in [1, 100, 100_000] {
                let by_words: Vec<f64> = steps()
                    .map(|share| of(evidence(Some(0.4), Some(share), memories)))
                    .collect();
                let by_meaning: Vec<f64> = steps()
                    .map(|cosine| of(evidence(Some(cosine), Some(0.5), memories)))
                    .collect();
                let alone: Vec<f64> = steps()
                    .map(|share| of(evidence(None, Some(share), memories)))
                    .collect();
                for values in [by_words, by_meaning, alone] {
                    assert!(values.is_sorted(), "{values:?}");
                    assert!(values.iter().all(|value| (0.0..=1.0).contains(value)));
                }
            }
        }
    }

    #[test]
    fn evidence_about_another_one_is_against_an_answer() {
        let of = |own: f32, other: f32| {
            let subject = SubjectEvidence { own, other };
            confidence(evidence(Some(0.5), Some(0.8), 500), Some(subject))
        };
        let plain = confidence(evidence(Some(0.5), Some(0.8), 500), None);
        assert!(of(0.9, 0.2) > plain);
        assert!(of(0.3, 0.8) < 0.05, "{}", of(0.3, 0.8));
        let falling: Vec<f64> = (0..=10).map(|step| of(0.5, step as f32 / 10.0)).collect();
        assert!(falling.iter().rev().is_sorted());
    }

    #[test]
    fn lower_ranks_are_less_likely() {
        let values: Vec<f64> = (1..=50).map(|rank| at_rank(0.7, rank)).collect();
        assert!((values[0] - 0.7).abs() < 1e-12);
        assert!(values.iter().rev().is_sorted());
        assert!(at_rank(1.0, 9) <= 1.0 && at_rank(0.0, 9) >= 0.0);
    }

    #[test]
    fn a_text_with_the_words_of_the_query_is_relevant() {
        let query = "what is Mara allergic to?";
        let right = text_relevance(query, "Mara is allergic to walnuts.");
        let wrong = text_relevance(query, "The kiln was cold.");
        assert!(right > 0.7 && wrong < 0.2, "{right} {wrong}");
        assert!(text_relevance("", "anything") < 0.5);
    }
}
