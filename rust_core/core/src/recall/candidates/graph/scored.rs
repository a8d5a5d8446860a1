//! The versions that a recall by graphs examines, with their neighbours and scores.

use super::nearest::MARGIN_ROWS;
use super::sparse_scores::{Sparse, SparseScores};
use crate::api::Result;
use crate::dense::exact_vectors::NO_SLOT;
use crate::dense::{DenseIndex, NO_SCORE, QuantisedQuery, dot, error_margin};
use crate::index::Index;
use crate::index::neighbours::lookup::{NOBODY, Neighbours, is_short};
use crate::recall::context_window::{LONE_FACTOR, SHARES};
use crate::recall::filter::Allowed;
use crate::topk::Scored;

/// The index and the scores of those versions that are looked at.
pub(crate) struct ScoredVersions<'a> {
    pub(crate) index: &'a Index,
    pub(crate) allowed: Allowed<'a>,
    pub(crate) scores: &'a mut SparseScores,
    /// True if a version is scored with its neighbours.
    pub(crate) windows: bool,
    /// True if any scored version has a neighbour: without, nothing is smoothed.
    pub(crate) linked: bool,
}

impl ScoredVersions<'_> {
    pub(crate) fn neighbours(&mut self, version: u32) -> Neighbours {
        if !self.windows {
            return Neighbours {
                before: [NOBODY; 2],
                after: [NOBODY; 2],
            };
        }
        let found = Neighbours::of(self.index, self.allowed.versions, version);
        self.linked |= found.linked();
        found
    }

    /// Finds the neighbours of all versions, and has `ask` ask for the scores of all.
    pub(crate) fn with_neighbours(
        &mut self,
        versions: impl Iterator<Item = u32>,
        ask: impl Fn(&mut SparseScores, u32),
    ) -> WithNeighbours {
        let mut found = Vec::new();
        for version in versions {
            let neighbours = self.neighbours(version);
            for one in neighbours.with(version) {
                ask(self.scores, one);
            }
            found.push((version, neighbours));
        }
        found
    }

    /// Gives all candidates their neighbours' shares, and returns the semantic and the keyword score of each.
    pub(crate) fn smooth(&mut self, chosen: &WithNeighbours) -> Vec<[f32; 2]> {
        let smoothed: Vec<[f32; 2]> = chosen
            .iter()
            .map(|&(version, neighbours)| {
                [
                    self.smoothed(&self.scores.dense.versions, version, neighbours),
                    self.smoothed(&self.scores.lexical.versions, version, neighbours),
                ]
            })
            .collect();
        for (&(version, _), &[semantic, keyword]) in chosen.iter().zip(&smoothed) {
            self.scores.smoothed_semantic.values[version as usize] = semantic;
            self.scores.smoothed_keyword.values[version as usize] = keyword;
        }
        smoothed
    }

    /// The version's score with its neighbours' shares.
    pub(crate) fn smoothed(&self, scores: &Sparse, version: u32, neighbours: Neighbours) -> f32 {
        self.shared(|one| scores.values[one as usize], version, neighbours)
    }

    /// The smoothed score of a version, from scores that `score` returns.
    pub(crate) fn shared(
        &self,
        score: impl Fn(u32) -> f32,
        version: u32,
        neighbours: Neighbours,
    ) -> f32 {
        let own = score(version);
        if !self.linked {
            return own;
        }
        if !neighbours.linked() {
            return own * LONE_FACTOR;
        }
        let short = f32::from(u8::from(is_short(self.index, version)));
        // The share of a neighbour, and 1 where it gives one.
        let give = |neighbour: u32| {
            if neighbour == NOBODY || !is_short(self.index, neighbour) {
                return (0.0, 0.0);
            }
            match score(neighbour) {
                NO_SCORE => (0.0, 0.0),
                given => (given, 1.0),
            }
        };
        let pair = |step: usize| {
            let (before, is_before) = give(neighbours.before[step]);
            let (after, is_after) = give(neighbours.after[step]);
            (before + after) * (2.0 - is_before * is_after)
        };
        own + short * (SHARES[0] * pair(0) + SHARES[1] * pair(1))
    }
}

/// Candidates, each with its neighbours.
pub(crate) type WithNeighbours = Vec<(u32, Neighbours)>;

/// Replaces by exact ones the cosines of the candidates' best rows: of all that may be among the `k` best, and where
/// neighbours share their scores of some more.
pub(crate) fn make_exact(
    scored: &mut ScoredVersions<'_>,
    (unit, query): (&[f32], &QuantisedQuery),
    k: usize,
    candidates: &WithNeighbours,
) -> Result<()> {
    let index = scored.index;
    let rows = |version: u32| index.rows_of(version);
    let cosines = &mut scored.scores.dense.rows.values;
    let mut best: Vec<Scored> = candidates
        .iter()
        .flat_map(|&(version, _)| rows(version))
        .map(|row| (cosines[row as usize], row))
        .filter(|&(score, _)| score != NO_SCORE)
        .collect();
    let better = |a: &Scored, b: &Scored| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
    let count = k.saturating_add(MARGIN_ROWS).min(best.len());
    if count < best.len() {
        best.select_nth_unstable_by(count, better);
        best.truncate(count);
    }
    best.sort_unstable_by(better);
    let (mut bytes, mut original) = (Vec::new(), Vec::new());
    // The least of the `k` first, once these are exact.
    let mut least = f32::INFINITY;
    for (place, &(cosine, row)) in best.iter().enumerate() {
        let margin = error_margin(query.scale, index.vectors.step(row));
        if place >= k && !scored.linked && cosine < least - margin {
            continue;
        }
        let slot = index.slots[row as usize];
        if slot != NO_SLOT {
            index.exact_vectors.read(slot, &mut bytes, &mut original)?;
            let exact = dot(unit, &original);
            cosines[row as usize] = exact;
            least = if place < k { least.min(exact) } else { least };
        }
    }
    for &(version, _) in candidates {
        scored.scores.dense.combine(index, version);
    }
    Ok(())
}
