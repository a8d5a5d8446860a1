//! The semantic arm: int8 scan, exact rescoring of the head, memories scored by their best row.

use super::buffers::{ArmScores, Work};
use crate::bank::State;
use crate::error::Result;
use crate::filter::Allowed;
use crate::rowset::RowSet;
use crate::vector::{DenseIndex, NO_SCORE, Plan, QuantisedQuery, dot, error_margin};

/// Most rows that are rescored: a head with more rows within the quantisation error is a crowd of near copies, whose
/// order does not matter.
const MAX_RESCORED: usize = 512;

/// Rows beyond the `k` best that are looked at first.
const MARGIN_ROWS: usize = 54;

/// Fills `scores` with cosines of the allowed rows, [`NO_SCORE`] elsewhere; the `k` best ones are exact.
#[expect(
    clippy::too_many_arguments,
    reason = "the parts of one step of one pipeline"
)]
pub(super) fn score(
    state: &State,
    allowed: Allowed<'_>,
    plan: Plan,
    unit: &[f32],
    query: &QuantisedQuery,
    (k, depth): (usize, usize),
    scores: &mut ArmScores,
    work: &mut Work,
) -> Result<()> {
    let flat = state.is_flat();
    let rows = if flat {
        &mut scores.versions
    } else {
        &mut scores.rows
    };
    state.vectors.score(query, allowed.rows, plan, rows);
    scores.likely_floor = rescore(state, unit, query, (k, depth), rows, work)?;
    if !flat {
        best_rows(
            state,
            allowed.versions,
            NO_SCORE,
            &scores.rows,
            &mut scores.versions,
        );
    }
    Ok(())
}

/// Fills `versions` with the mean of the whole's score and the best chunk's for each allowed version, `absent` elsewhere.
///
/// A whole or chunks without a score (`absent`) leave the word to the other. The mean beats the best row by .01 to .02 of
/// recall on long chats, where a piece of an answer easily looks better than the short question that it answers.
pub(super) fn best_rows(
    state: &State,
    allowed: &RowSet,
    absent: f32,
    rows: &[f32],
    versions: &mut Vec<f32>,
) {
    versions.clear();
    versions.resize(state.columns.len() as usize, absent);
    for version in allowed.iter() {
        let range = state.columns.rows_of(version, state.rows());
        let own = &rows[range.start as usize..range.end as usize];
        let chunk = own[1..].iter().fold(absent, |best, &score| best.max(score));
        versions[version as usize] = match (own[0] == absent, chunk == absent) {
            (_, true) => own[0],
            (true, false) => chunk,
            (false, false) => 0.5 * (own[0] + chunk),
        };
    }
}

/// Replaces by exact cosines all scores that may be among the `k` best. Returns what the `depth`-th best reaches.
fn rescore(
    state: &State,
    unit: &[f32],
    query: &QuantisedQuery,
    (k, depth): (usize, usize),
    scores: &mut [f32],
    work: &mut Work,
) -> Result<Option<f32>> {
    let Work {
        bytes,
        original,
        best,
        cosines,
        sorted,
        selection,
    } = work;
    // Usually all rows that matter are among the first few more than asked for, which saves a second pass.
    let first_look = k.saturating_add(MARGIN_ROWS).max(depth);
    selection.with_ties(scores, NO_SCORE, first_look, best);
    if k == 0 || best.is_empty() {
        return Ok(None);
    }
    let step = best
        .iter()
        .fold(0.0f32, |step, &(_, row)| step.max(state.vectors.step(row)));
    let margin = error_margin(query.scale, step);
    let likely_floor = depth
        .checked_sub(1)
        .and_then(|at| best.get(at))
        .map(|&(score, _)| score - margin);
    let mut exact = |row: u32| -> Result<f32> {
        state
            .originals
            .read(state.slots[row as usize], bytes, original)?;
        Ok(dot(unit, original))
    };
    // The exact cosines of what looks best tell how far down a better one may hide. Of rows with equal scores all or
    // none are read, so that their places in memory do not matter.
    let looked = best.len();
    let last = best[k.min(looked) - 1].0;
    let first = best.partition_point(|&(score, _)| score >= last);
    if first > MAX_RESCORED.max(k) {
        return Ok(likely_floor);
    }
    cosines.clear();
    for &(_, row) in &best[..first] {
        cosines.push(exact(row)?);
    }
    sorted.clone_from(cosines);
    sorted.sort_unstable_by(|a, b| b.total_cmp(a));
    let floor = sorted[k.min(looked) - 1] - margin;
    if looked >= first_look && best[looked - 1].0 > floor {
        let most = MAX_RESCORED.max(k);
        // The same ones come first again.
        selection.with_ties(scores, floor.min(last.next_down()), most + 1, best);
        if let Some(&(crowd, _)) = best.get(most) {
            best.retain(|&(score, _)| score > crowd);
        }
    }
    for (&(_, row), &cosine) in best.iter().zip(&*cosines) {
        scores[row as usize] = cosine;
    }
    for &(score, row) in &best[first..] {
        if score > floor {
            scores[row as usize] = exact(row)?;
        }
    }
    Ok(likely_floor)
}
