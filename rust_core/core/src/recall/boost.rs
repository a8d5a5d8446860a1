//! A bounded boost for memories of certain labels: the best candidates are lifted, and ordered anew.
//!
//! It is here because it needs no more than a bit of each candidate; stages that look at texts run on the database's rows.

use std::cmp::Ordering;
use std::time::Instant;

use roaring::RoaringBitmap;

use crate::api::{Boost, Hit, RecallRequest};
use crate::index::Index;
use crate::index::labels::Label;

use super::arms::micros_since;
use super::feedback::FIRST_HITS;

/// Scores nearer to each other than this, as a share of them beyond 1, were set for the order alone.
const TIED: f64 = 1e-9;

/// Lifts and orders `hits` where the request asks for it, and leaves as many as are wanted; returns the microseconds.
///
/// `kept` says that feedback kept the first hits, whose scores stand for their places alone. Where the wanted hits do not
/// fit the budget all stay, in their new order, for whoever cuts texts to choose.
pub(super) fn apply(
    state: &Index,
    request: &RecallRequest,
    kept: bool,
    hits: &mut Vec<Hit>,
) -> f64 {
    let Some(lift) = &request.lift else {
        return 0.0;
    };
    let start = Instant::now();
    if kept {
        stand(hits, lift.standing);
    }
    let labels: Vec<&RoaringBitmap> = lift
        .labels
        .iter()
        .filter_map(|(key, value)| state.labels.versions(Label::Metadata(key, value)))
        .collect();
    for hit in &mut *hits {
        let version = state.columns.find_key(hit.key);
        if version.is_some_and(|version| labels.iter().any(|set| set.contains(version))) {
            hit.score += lift.value;
            hit.boosts.push(Boost {
                name: lift.name.clone(),
                value: lift.value,
            });
        }
    }
    hits.sort_by(|a, b| {
        let scores = b.score.partial_cmp(&a.score).unwrap_or(Ordering::Equal);
        scores.then_with(|| a.memory_id.cmp(&b.memory_id))
    });
    let tokens = |hits: &[Hit]| hits.iter().map(|hit| u64::from(hit.tokens)).sum::<u64>();
    if hits.len() > lift.wanted && tokens(&hits[..lift.wanted]) <= lift.budget {
        hits.truncate(lift.wanted);
    }
    micros_since(start)
}

/// Gives hits whose scores were set for the order alone the distance `standing` to what stands below them.
fn stand(hits: &mut [Hit], standing: f64) {
    let first = FIRST_HITS.min(hits.len().saturating_sub(1));
    // What the next one below had before it was given a distance itself.
    let mut below = hits.get(first).map_or(0.0, |hit| hit.score);
    for place in (0..first).rev() {
        let lower = hits[place + 1].score;
        let hit = &mut hits[place];
        let own = hit.score;
        if own - below <= TIED * own.abs().max(1.0) || own < lower {
            hit.score = lower + standing;
        }
        below = own;
    }
}
