//! The best of an array, with ties broken the same way everywhere.

use std::cmp::Ordering;

use crate::types::MemoryId;

/// A version with its score in one arm.
pub(crate) type Scored = (f32, u32);

/// Higher score first; equal scores by ascending memory id, then by ascending version. Scores are not NaN.
pub(crate) fn better_first(left: &Scored, right: &Scored, ids: &[MemoryId]) -> Ordering {
    right.0.partial_cmp(&left.0).unwrap_or(Ordering::Equal).then_with(|| {
        ids[left.1 as usize].cmp(&ids[right.1 as usize]).then_with(|| left.1.cmp(&right.1))
    })
}

/// Scores that are looked at together: as many as fit an AVX-512 register or four SSE registers.
const LANES: usize = 16;

/// Fills `best` with the `depth` best entries of `scores` above `floor`, best first.
pub(crate) fn top(scores: &[f32], floor: f32, depth: usize, ids: &[MemoryId], best: &mut Vec<Scored>) {
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
            best.select_nth_unstable_by(depth - 1, |a, b| better_first(a, b, ids));
            best.truncate(depth);
            threshold = best[depth - 1].0;
            cut_once = true;
        }
    }
    best.sort_unstable_by(|a, b| better_first(a, b, ids));
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
        top(&vec![0.5; count as usize], 0.0, 3, &ids, &mut best);
        assert_eq!(best, [(0.5, 999), (0.5, 998), (0.5, 997)]);
    }

    #[test]
    fn the_floor_itself_is_out() {
        let ids = vec![[0; 16]; 4];
        let mut best = Vec::new();
        top(&[0.0, 1.0, -1.0, 0.0], 0.0, 10, &ids, &mut best);
        assert_eq!(best, [(1.0, 1)]);
    }
}
