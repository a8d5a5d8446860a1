//! A second look of the keyword arm, with words that the first hits add to the query.
//!
//! The arms are fused once to see the first hits; the further words' scores are smoothed along the conversations as the arm's
//! own, and added to them. What the filter does not let pass neither gives words nor gains by them. The first hits keep
//! their places: they said what the query is about, and their own words would only shuffle them. (Without that, the
//! first right answer came later on every development set: mean reciprocal rank -.002 to -.029.)

use std::time::Instant;

use crate::api::RecallRequest;
use crate::index::Index;
use crate::lexical::LexicalIndex;
use crate::recall::filter::Allowed;
use crate::recall::fusion::{self, Fused};
use crate::topk::Selection;
use astrocyte_text::analysis::AnalyzedQuery;

use super::arms::{self, Arm, KEYWORD, Scores, micros_since};
use super::buffers::ArmScores;
use super::context_window;
use super::hits::best_chunk;
use crate::index::neighbours::NeighbourTable;

/// Hits that give words. With five instead of three, abstracts gain what conversations lose.
pub(super) const FIRST_HITS: usize = 3;

/// What the second look did.
#[derive(Debug, Clone, Default)]
pub(super) struct Feedback {
    pub(super) micros: f64,
    pub(super) terms: u32,
    /// The first hits of the first look, if it gave words.
    first: Vec<u32>,
}

impl Feedback {
    /// Of a look that took so long and found so many words, after `first`.
    pub(super) fn new(micros: f64, terms: u32, first: &[Fused]) -> Self {
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

/// The arms' scores, and room to work.
pub(super) struct Room<'a> {
    pub(super) dense: &'a ArmScores,
    pub(super) keyword: &'a mut ArmScores,
    pub(super) temporal: &'a [f32],
    pub(super) further: &'a mut ArmScores,
    /// The conversations, where context windows apply.
    pub(super) layout: Option<&'a NeighbourTable>,
    pub(super) candidates: &'a mut Vec<u32>,
    pub(super) selection: &'a mut Selection,
}

/// Adds the further words' scores to the keyword arm's and ranks it again.
pub(super) fn search(
    state: &Index,
    allowed: Allowed<'_>,
    request: &RecallRequest,
    words: &AnalyzedQuery,
    arms: &mut [Arm],
    mut room: Room<'_>,
) -> Feedback {
    let start = Instant::now();
    let first = first_look(state, request, arms, &mut room);
    let scores = (room.dense, &*room.keyword);
    let rows = best_rows(state, request, arms, scores, &first);
    let further = state.lexical.feedback(words, &rows, request.feedback);
    let Some(arm) = arms.iter_mut().find(|arm| arm.name == KEYWORD) else {
        return Feedback::default();
    };
    let before = arm.micros;
    if !further.is_empty() {
        arms::keyword(state, allowed, &further, room.further);
        if let Some(layout) = room.layout {
            context_window::smooth_arm(allowed, layout, room.further);
        }
        for (score, more) in room.keyword.versions.iter_mut().zip(&room.further.versions) {
            *score += more;
        }
        let scores = Scores {
            semantic: room.dense.by_version(),
            keyword: &room.keyword.versions,
            temporal: room.temporal,
        };
        arm.rank(state, allowed, request.depth, scores, room.selection);
    }
    let micros = micros_since(start);
    // The parts were counted in it one by one; the first fusion was not.
    arm.micros = before + micros;
    Feedback::new(micros, further.terms.len() as u32, &first)
}

/// The first hits, by what the arms say so far.
fn first_look(
    state: &Index,
    request: &RecallRequest,
    arms: &[Arm],
    room: &mut Room<'_>,
) -> Vec<Fused> {
    let scores = Scores {
        semantic: room.dense.by_version(),
        keyword: &room.keyword.versions,
        temporal: room.temporal,
    };
    let mut fused = fusion::weigh(state, request, arms, scores, room.candidates);
    fusion::keep_first(&mut fused, FIRST_HITS, &state.columns.memory_id);
    fused
}

/// The best rows of the hits that the keyword arm knows: a hit without any of the query's words, or near ones, says
/// nothing of what the query is about.
pub(super) fn best_rows(
    state: &Index,
    request: &RecallRequest,
    arms: &[Arm],
    (dense, keyword): (&ArmScores, &ArmScores),
    hits: &[Fused],
) -> Vec<u32> {
    hits.iter()
        .filter(|hit| keyword.versions[hit.version as usize] > 0.0)
        .map(|hit| {
            let chunk = best_chunk(state, request, arms, hit.version, dense, keyword);
            state.columns.first_row[hit.version as usize].wrapping_add_signed(chunk + 1)
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
    fn without_a_second_look_nothing_moves() {
        let mut hits = fused(&[(1, 5.0), (9, 4.0)]);
        Feedback::default().keep_first(&mut hits);
        assert_eq!(hits, fused(&[(1, 5.0), (9, 4.0)]));
    }
}
