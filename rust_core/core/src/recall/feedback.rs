//! Pseudo-relevance feedback: a second keyword search with words of the first hits.
//!
//! The arms are fused once to find the first hits. The scores of the added words are smoothed like those of the keyword
//! arm and added to them. Memories that the filter excludes contribute nothing. The first hits keep their places: they
//! decided what the query is about, and their own words would only reorder them. A request with unions gets no words: the
//! stem of a word of a union would find words that do not begin with its prefix.

use std::time::Instant;

use super::Recall;
use super::arms::{Arm, KEYWORD, Scores, micros_since};
use super::buffers::FusionBuffers;
use super::candidates::Candidates;
use super::fusion::{self, Fused};
use super::hits::best_chunk;
use super::score_stats::ScoreStats;
use crate::api::Result;
use crate::lexical::LexicalIndex;

/// Hits that give words. With five instead of three, abstracts gain what conversations lose.
pub(super) const FIRST_HITS: usize = 3;

/// The result of the second search.
#[derive(Debug, Clone, Default)]
pub(super) struct Feedback {
    pub(super) micros: f64,
    pub(super) terms: u32,
    /// The first hits of the first search, if they gave words.
    first: Vec<u32>,
}

impl Feedback {
    /// The result of a search that took `micros` and added `terms` words, after the hits `first`.
    fn new(micros: f64, terms: u32, first: &[Fused]) -> Self {
        let kept = if terms == 0 { &[] } else { first };
        Self {
            micros,
            terms,
            first: kept.iter().map(|hit| hit.version).collect(),
        }
    }

    /// Puts the first hits back to the head, in their order. Their scores rise where they must to stay the best.
    pub(super) fn keep_first(&self, fused: &mut [Fused]) {
        for (place, &version) in self.first.iter().enumerate() {
            if let Some(found) = fused.iter().position(|hit| hit.version == version)
                && found > place
            {
                fused[place..=found].rotate_right(1);
            }
        }
        for place in (0..self.first.len()).rev() {
            if let Some(&Fused { score, .. }) = fused.get(place + 1) {
                fused[place].score = fused[place].score.max(score.next_up());
            }
        }
    }
}

/// Adds words of the first hits to the keyword arm, where the request asks for it and has words.
///
/// # Errors
/// When the scratch file cannot be read.
pub(super) fn search(
    recall: Recall<'_>,
    candidates: &mut impl Candidates,
    arms: &mut [Arm],
    units: &[ScoreStats],
    buffers: &mut FusionBuffers,
) -> Result<Feedback> {
    let Recall {
        index,
        request,
        query,
        ..
    } = recall;
    let wanted = request.feedback > 0.0 && request.unions.is_empty();
    let Some(words) = query.words.as_ref().filter(|_| wanted) else {
        return Ok(Feedback::default());
    };
    let start = Instant::now();
    let before = keyword_arm(arms).map_or(0.0, |arm| arm.micros);
    let FusionBuffers {
        temporal, versions, ..
    } = buffers;
    let mut first = fusion::weigh(recall, arms, units, candidates, &temporal.values, versions);
    let scores = candidates.scores(&temporal.values);
    fusion::keep_first(&mut first, FIRST_HITS, &index.columns.memory_id);
    let rows = best_rows(recall, arms, scores, &first);
    let further = index.lexical.feedback(words, &rows, request.feedback);
    candidates.extend(arms, &further)?;
    let micros = micros_since(start);
    if let Some(arm) = keyword_arm(arms) {
        // Its parts are counted already, but not the first fusion.
        arm.micros = before + micros;
    }
    Ok(Feedback::new(micros, further.terms.len() as u32, &first))
}

fn keyword_arm(arms: &mut [Arm]) -> Option<&mut Arm> {
    arms.iter_mut().find(|arm| arm.name == KEYWORD)
}

/// The best rows of the hits that the keyword arm scores: a hit without any of the query's words, or near ones, says
/// nothing of what the query is about.
fn best_rows(recall: Recall<'_>, arms: &[Arm], scores: Scores<'_>, hits: &[Fused]) -> Vec<u32> {
    hits.iter()
        .filter(|hit| scores.keyword.versions[hit.version as usize] > 0.0)
        .map(|hit| {
            let chunk = best_chunk(recall, arms, scores, hit.version);
            let first_row = recall.index.columns.first_row[hit.version as usize];
            first_row.wrapping_add_signed(chunk + 1)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{Feedback, Fused};

    fn fused(pairs: &[(u32, f64)]) -> Vec<Fused> {
        let make = |&(version, score)| Fused { version, score };
        pairs.iter().map(make).collect()
    }

    #[test]
    fn the_first_hits_go_back_to_the_head_and_scores_still_descend() {
        let feedback = Feedback {
            first: vec![7, 8, 9],
            ..Feedback::default()
        };
        let mut hits = fused(&[(1, 5.0), (9, 4.0), (2, 3.0), (7, 2.0), (8, 1.0)]);
        feedback.keep_first(&mut hits);
        let versions: Vec<u32> = hits.iter().map(|hit| hit.version).collect();
        assert_eq!(versions, [7, 8, 9, 1, 2]);
        assert!(hits.windows(2).all(|pair| pair[0].score > pair[1].score));
        // Scores of the others are their own.
        assert!((hits[3].score - 5.0).abs() < f64::EPSILON);
    }

    #[test]
    fn without_a_second_search_nothing_moves() {
        let mut hits = fused(&[(1, 5.0), (9, 4.0)]);
        Feedback::default().keep_first(&mut hits);
        assert_eq!(hits, fused(&[(1, 5.0), (9, 4.0)]));
    }
}
