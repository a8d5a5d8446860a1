//! The best of an array, with ties broken the same way everywhere.

use std::cmp::Ordering;

use crate::types::MemoryId;

/// A version with its score in one arm.
pub(crate) type Scored = (f32, u32);

/// Higher score first; equal scores by ascending memory id, then by ascending version. Scores are not NaN.
pub(crate) fn better_first(left: &Scored, right: &Scored, ids: &[MemoryId]) -> Ordering {
    by_score(left, right, &|a, b| by_id(a, b, ids))
}

/// Order of two versions by memory id, then by number.
pub(crate) fn by_id(left: u32, right: u32, ids: &[MemoryId]) -> Ordering {
    ids[left as usize].cmp(&ids[right as usize]).then_with(|| left.cmp(&right))
}

fn by_score(left: &Scored, right: &Scored, ties: &impl Fn(u32, u32) -> Ordering) -> Ordering {
    right.0.partial_cmp(&left.0).unwrap_or(Ordering::Equal).then_with(|| ties(left.1, right.1))
}

/// Scores that are looked at together: as many as fit an AVX-512 register or four SSE registers.
const LANES: usize = 16;

/// Fills `best` with the `depth` best entries of `scores` above `floor`, best first, equal scores in the order of `ties`.
pub(crate) fn top(
    scores: &[f32],
    floor: f32,
    depth: usize,
    ties: impl Fn(u32, u32) -> Ordering,
    best: &mut Vec<Scored>,
) {
    best.clear();
    if depth == 0 {
        return;
    }
    // Twice the depth before a cut: each cut costs its length and is paid for by as many entries.
    let room = depth.saturating_mul(2).max(64);
    let mut threshold = floor;
    let mut cut_once = false;
    for (step, lanes) in scores.chunks(LANES).enumerate() {
        // After a cut an equal score may still win by its id; before, the floor itself is out.
        let some = if cut_once {
            lanes.iter().fold(false, |any, &score| any | (score >= threshold))
        } else {
            lanes.iter().fold(false, |any, &score| any | (score > threshold))
        };
        if !some {
            continue;
        }
        for (lane, &score) in lanes.iter().enumerate() {
            if score > threshold || (cut_once && score == threshold) {
                best.push((score, (step * LANES + lane) as u32));
            }
        }
        if best.len() >= room {
            best.select_nth_unstable_by(depth - 1, |a, b| by_score(a, b, &ties));
            best.truncate(depth);
            threshold = best[depth - 1].0;
            cut_once = true;
        }
    }
    best.sort_unstable_by(|a, b| by_score(a, b, &ties));
    best.truncate(depth);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_scores_are_cut_by_id_not_by_place() {
        let count = 1000u32;
        let ids: Vec<MemoryId> = (0..count).map(|n| u128::from(count - n).to_be_bytes()).collect();
        let mut best = Vec::new();
        top(&vec![0.5; count as usize], 0.0, 3, |a, b| by_id(a, b, &ids), &mut best);
        assert_eq!(best, [(0.5, 999), (0.5, 998), (0.5, 997)]);
    }

    #[test]
    fn the_floor_itself_is_out() {
        let mut best = Vec::new();
        top(&[0.0, 1.0, -1.0, 0.0], 0.0, 10, |a, b| a.cmp(&b), &mut best);
        assert_eq!(best, [(1.0, 1)]);
    }
}
