//! The rows near to the query's vector, found as the plan says.

use crate::bitmap::Bitmap;
use crate::dense::{DenseIndex, NO_SCORE, QuantisedQuery};
use crate::graph::{GraphKind, Proposed, SearchBuffers, Segment};
use crate::recall::Recall;
use crate::recall::planner::{Plan, Way};
use crate::topk::Scored;

/// Rows beyond those asked for whose cosines are made exact.
pub(crate) const MARGIN_ROWS: usize = 54;

/// Room for rows and their cosines.
#[derive(Debug, Default)]
pub(crate) struct NearestBuffers {
    pub(crate) rows: Vec<u32>,
    pub(crate) cosines: Vec<f32>,
    pub(crate) best: Vec<Scored>,
    search: SearchBuffers,
}

/// The rows near to the query that pass, best first where they are read one by one. Several graphs of usearch are
/// searched by the threads of the pool too where `spread`.
pub(crate) fn propose(
    recall: Recall<'_>,
    plan: &Plan,
    query: &QuantisedQuery,
    spread: bool,
    buffers: &mut NearestBuffers,
) -> Vec<u32> {
    let Recall {
        index,
        request,
        allowed,
        ..
    } = recall;
    let mut proposed = Proposed::default();
    buffers.rows.clear();
    match plan.way {
        Way::Graph {
            candidates,
            most_pass,
        } => {
            let search = |segment: &Segment, room: &mut SearchBuffers, found: &mut Proposed| {
                let (vectors, passing) = ((&index.vectors, query), (allowed.rows, most_pass));
                segment.search(vectors, candidates, passing, room, found);
            };
            let segments = &index.segments.all[..];
            let usearch = |segment: &Segment| segment.graph.kind() == GraphKind::Usearch;
            match segments {
                [first, others @ ..] if spread && segments.iter().all(usearch) => {
                    // Graphs of usearch take no room.
                    let mut found = Vec::new();
                    found.resize_with(others.len(), Proposed::default);
                    rayon::in_place_scope(|scope| {
                        for (segment, found) in others.iter().zip(&mut found) {
                            scope.spawn(move |_| {
                                search(segment, &mut SearchBuffers::default(), found);
                            });
                        }
                        search(first, &mut buffers.search, &mut proposed);
                    });
                    for one in found {
                        proposed.rows.extend(one.rows);
                        proposed.scored.extend(one.scored);
                    }
                }
                _ => {
                    for segment in segments {
                        search(segment, &mut buffers.search, &mut proposed);
                    }
                }
            }
            uncovered(allowed.rows, &index.segments.covered, &mut buffers.rows);
        }
        Way::Scan | Way::Gather => buffers.rows.extend(allowed.rows.iter()),
    }
    index
        .vectors
        .cosines(query, &buffers.rows, &mut buffers.cosines);
    let count = request.depth + MARGIN_ROWS;
    buffers.keep_best(count);
    // To score a row exactly may wait for the disk.
    truncate_to_best(&mut proposed.scored, count);
    let scored = buffers.best.iter().chain(&proposed.scored);
    proposed.rows.extend(scored.map(|&(_, row)| row));
    proposed.rows
}

/// Rows that pass and that no segment covers.
fn uncovered(allowed: &Bitmap, covered: &Bitmap, rows: &mut Vec<u32>) {
    if covered.len() == covered.bound() && allowed.bound() <= covered.bound() {
        return;
    }
    for (index, (&passes, &is_covered)) in allowed.words().iter().zip(covered.words()).enumerate() {
        let mut left = passes & !is_covered;
        while left != 0 {
            rows.push(((index as u32) << 6) | left.trailing_zeros());
            left &= left - 1;
        }
    }
}

impl NearestBuffers {
    /// Keeps the `count` best of the rows that have a cosine.
    pub(crate) fn keep_best(&mut self, count: usize) {
        let Self {
            rows,
            cosines,
            best,
            ..
        } = self;
        let scored = rows.iter().zip(&*cosines);
        best.clear();
        best.extend(
            scored
                .filter(|&(_, &cosine)| cosine != NO_SCORE)
                .map(|(&row, &cosine)| (cosine, row)),
        );
        truncate_to_best(best, count);
    }
}

/// Keeps the `count` best, in any order.
fn truncate_to_best(scored: &mut Vec<Scored>, count: usize) {
    if scored.len() > count && count > 0 {
        scored.select_nth_unstable_by(count - 1, |a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    }
    scored.truncate(count);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_are_kept_and_of_equal_ones_the_first_rows() {
        let kept = |count| {
            let mut scored = vec![(0.1, 4), (0.9, 7), (0.5, 9), (0.5, 2), (0.3, 1)];
            truncate_to_best(&mut scored, count);
            let mut rows: Vec<u32> = scored.into_iter().map(|(_, row)| row).collect();
            rows.sort_unstable();
            rows
        };
        assert!(kept(0).is_empty());
        assert_eq!(kept(2), [2, 7]);
        assert_eq!(kept(4), [1, 2, 7, 9]);
        assert_eq!(kept(9), [1, 2, 4, 7, 9]);
    }
}
