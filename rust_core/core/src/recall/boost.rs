//! A bounded boost for memories with certain labels, which orders the best candidates anew.
//!
//! It reads one bit of each candidate. Steps that read texts run on the rows of the database.

use std::cmp::Ordering;
use std::time::Instant;

use roaring::RoaringBitmap;

use crate::api::{Boost, Hit};
use crate::index::labels::Label;

use super::Recall;
use super::arms::micros_since;
use super::feedback::FIRST_HITS;

/// Scores nearer to each other than this, as a share of them beyond 1, were set for the order alone.
const TIED: f64 = 1e-9;

/// Boosts and orders `hits` where the request asks for it, and keeps as many as are wanted. Returns the microseconds.
///
/// `kept` says that feedback kept the first hits, whose scores stand for their places alone. Where the wanted hits do
/// not fit the budget all stay, in their new order, for the caller to choose.
pub(super) fn apply(recall: Recall<'_>, kept: bool, hits: &mut Vec<Hit>) -> f64 {
    let index = recall.index;
    let Some(boost) = &recall.request.label_boost else {
        return 0.0;
    };
    let start = Instant::now();
    if kept {
        let scores: Vec<f64> = hits.iter().map(|hit| hit.score).collect();
        for (hit, score) in hits.iter_mut().zip(standing(&scores, boost.standing)) {
            hit.score = score;
        }
    }
    let labels: Vec<&RoaringBitmap> = boost
        .labels
        .iter()
        .filter_map(|(key, value)| index.labels.versions(Label::Metadata(key, value)))
        .collect();
    for hit in &mut *hits {
        let version = index.columns.find_key(hit.key);
        if version.is_some_and(|version| labels.iter().any(|set| set.contains(version))) {
            hit.score += boost.value;
            hit.boosts.push(Boost {
                name: boost.name.clone(),
                value: boost.value,
            });
        }
    }
    hits.sort_by(|a, b| {
        let scores = b.score.partial_cmp(&a.score).unwrap_or(Ordering::Equal);
        scores.then_with(|| a.memory_id.cmp(&b.memory_id))
    });
    let tokens = |hits: &[Hit]| hits.iter().map(|hit| u64::from(hit.tokens)).sum::<u64>();
    if hits.len() > boost.wanted && tokens(&hits[..boost.wanted]) <= boost.budget {
        hits.truncate(boost.wanted);
    }
    micros_since(start)
}

/// The scores of the first hits where those that were set for the order alone have the distance `standing` to what
/// stands below them. `scores` are of all hits, best first.
pub(super) fn standing(scores: &[f64], standing: f64) -> [f64; FIRST_HITS] {
    let mut changed = [0.0; FIRST_HITS];
    let first = FIRST_HITS.min(scores.len());
    changed[..first].copy_from_slice(&scores[..first]);
    for place in (0..first.min(scores.len().saturating_sub(1))).rev() {
        let (own, below) = (scores[place], scores[place + 1]);
        let lower = changed.get(place + 1).copied().unwrap_or(below);
        if own - below <= TIED * own.abs().max(1.0) || own < lower {
            changed[place] = lower + standing;
        }
    }
    changed
}
