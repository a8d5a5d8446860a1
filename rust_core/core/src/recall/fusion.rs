//! Fuses the rankings of the arms into one: by z-scores, reciprocal ranks (RRF), or shares of the best score.

use std::cmp::Ordering;
use std::sync::Arc;

use super::Recall;
use super::arms::{Arm, KEYWORD, SEMANTIC, Scores, TEMPORAL};
use super::candidates::Candidates;
use super::context_window::lending;
use super::score_stats::ScoreStats;
use crate::api::{FusionMethod, MemoryId, RecallRequest};
use crate::dense::NO_SCORE;
use crate::topk::by_id;

/// Most standard deviations that the temporal arm counts: in a bank where few memories are near the window their
/// z-score is large without saying more.
const TEMPORAL_CAP: f64 = 4.0;
/// Score of the best hit of an external list, in standard deviations of the other arms: that of a clear hit.
const EXTERNAL_SPAN: f64 = 3.0;

/// A candidate with its fused score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Fused {
    pub(crate) version: u32,
    pub(crate) score: f64,
}

/// All memories that an arm proposes, best first, equal scores by ascending memory id.
pub(crate) fn fuse(
    recall: Recall<'_>,
    arms: &[Arm],
    units: &[ScoreStats],
    candidates: &impl Candidates,
    temporal: &[f32],
    versions: &mut Vec<u32>,
) -> Vec<Fused> {
    let mut fused = weigh(recall, arms, units, candidates, temporal, versions);
    sort(&mut fused, &recall.index.columns.memory_id);
    fused
}

/// Sorts them, best first.
pub(super) fn sort(fused: &mut [Fused], ids: &[MemoryId]) {
    fused.sort_unstable_by(|a, b| better_first(a, b, ids));
}

/// Leaves the first `count` of what [`fuse`] would give, of what [`weigh`] gave.
pub(crate) fn keep_first(fused: &mut Vec<Fused>, count: usize, ids: &[MemoryId]) {
    if count < fused.len() {
        fused.select_nth_unstable_by(count, |a, b| better_first(a, b, ids));
        fused.truncate(count);
    }
    sort(fused, ids);
}

#[inline]
fn better_first(left: &Fused, right: &Fused, ids: &[MemoryId]) -> Ordering {
    let scores = right.score.partial_cmp(&left.score);
    scores
        .unwrap_or(Ordering::Equal)
        .then_with(|| by_id(left.version, right.version, ids))
}

/// All memories that an arm proposes, and lenders of these, with their fused scores.
pub(crate) fn weigh(
    recall: Recall<'_>,
    arms: &[Arm],
    units: &[ScoreStats],
    candidates: &impl Candidates,
    temporal: &[f32],
    versions: &mut Vec<u32>,
) -> Vec<Fused> {
    let request = recall.request;
    let scores = candidates.scores(temporal);
    versions.clear();
    versions.extend(
        arms.iter()
            .flat_map(|arm| arm.ranked.iter().map(|&(_, version)| version)),
    );
    versions.sort_unstable();
    versions.dedup();
    let mut fused: Vec<Fused> = versions
        .iter()
        .map(|&version| Fused {
            version,
            score: 0.0,
        })
        .collect();
    for arm in arms {
        let weight = weight_of(arm, request);
        match (request.fusion, arm.external) {
            (FusionMethod::ReciprocalRank, _) => {
                add_ranks(&mut fused, arm, weight, request.rank_constant);
            }
            (FusionMethod::DistributionBased, None) => {
                add_z_scores(&mut fused, arm, weight, scores.of(arm));
            }
            (FusionMethod::DistributionBased, Some(_)) => {
                add_shares(&mut fused, arm, weight * EXTERNAL_SPAN, 0.0);
            }
            (FusionMethod::RelativeScore, _) => {
                add_shares(&mut fused, arm, weight, f64::INFINITY);
            }
        }
    }
    if candidates.shares() {
        let own = |version| own_score(recall, (arms, units), candidates, scores, version);
        lending::order_lenders(
            &mut fused,
            own,
            |version| candidates.sharing(version),
            |version| gives(candidates, version),
        );
    }
    weigh_layers(recall, &mut fused);
    fused
}

/// The request's weight of an arm.
pub(crate) fn weight_of(arm: &Arm, request: &RecallRequest) -> f64 {
    if let Some(number) = arm.external {
        return request.external[number].weight;
    }
    let index = match &*arm.name {
        SEMANTIC => 0,
        KEYWORD => 1,
        _ => 2,
    };
    request.weights[index]
}

/// Adds weight / (constant + rank), rank from 1, to each memory that the arm ranks.
///
/// Source: Cormack, Clarke and Buettcher, SIGIR 2009.
fn add_ranks(fused: &mut [Fused], arm: &Arm, weight: f64, constant: f64) {
    for (index, &(_, version)) in arm.ranked.iter().enumerate() {
        add(fused, version, weight / (constant + (index + 1) as f64));
    }
}

/// Adds weight x (score - mean) / deviation, over all memories that pass the filter. A memory without a vector gets
/// the mean; equal scores say nothing.
fn add_z_scores(fused: &mut [Fused], arm: &Arm, weight: f64, scores: &[f32]) {
    let (mean, deviation) = (arm.stats.mean, arm.stats.deviation);
    if deviation == 0.0 {
        return;
    }
    let cap = if arm.name == TEMPORAL {
        TEMPORAL_CAP
    } else {
        f64::INFINITY
    };
    for candidate in fused {
        let score = scores[candidate.version as usize];
        if score != NO_SCORE {
            candidate.score += weight * ((f64::from(score) - mean) / deviation).min(cap);
        }
    }
}

/// Adds weight x (score - least) / (most - least) to each memory that the arm ranks: `weight` to the best. The least is
/// at most `floor`. Equal scores count as the best.
fn add_shares(fused: &mut [Fused], arm: &Arm, weight: f64, floor: f64) {
    let bounds = Bounds::of(arm, floor);
    for &(score, version) in &arm.ranked {
        add(fused, version, weight * bounds.share(score));
    }
}

/// The least and the most of a ranking's scores.
struct Bounds {
    least: f64,
    most: f64,
}

impl Bounds {
    fn of(arm: &Arm, floor: f64) -> Self {
        let scores = || arm.ranked.iter().map(|&(score, _)| f64::from(score));
        let least = scores().fold(floor, f64::min);
        let most = scores().fold(least, f64::max);
        Self { least, most }
    }

    fn share(&self, score: f32) -> f64 {
        if self.most > self.least {
            (f64::from(score) - self.least) / (self.most - self.least)
        } else {
            1.0
        }
    }
}

/// Returns true if a version has a score of an arm to share with its neighbours.
pub(crate) fn gives(candidates: &impl Candidates, version: u32) -> bool {
    let [semantic, keyword] = candidates.own(version);
    (semantic != NO_SCORE && semantic != 0.0) || keyword != 0.0
}

/// The fused score of a version by its own scores, in deviations of the arms before feedback: without its neighbours'
/// shares, and whatever the method, for it only tells the lender of two neighbours.
pub(crate) fn own_score(
    recall: Recall<'_>,
    (arms, units): (&[Arm], &[ScoreStats]),
    candidates: &impl Candidates,
    scores: Scores<'_>,
    version: u32,
) -> f64 {
    let [semantic, keyword] = candidates.own(version);
    let of = |arm: &Arm, unit: ScoreStats| {
        let score = match (arm.external, &*arm.name) {
            (Some(_), _) => {
                let found = arm.ranked.iter().find(|hit| hit.1 == version);
                return EXTERNAL_SPAN * found.map_or(0.0, |hit| Bounds::of(arm, 0.0).share(hit.0));
            }
            (None, SEMANTIC) => semantic,
            (None, KEYWORD) => keyword,
            (None, _) => scores.temporal[version as usize],
        };
        if score == NO_SCORE || unit.deviation == 0.0 {
            return 0.0;
        }
        let far = (f64::from(score) - unit.mean) / unit.deviation;
        far.min(if arm.name == TEMPORAL {
            TEMPORAL_CAP
        } else {
            f64::INFINITY
        })
    };
    arms.iter()
        .zip(units)
        .map(|(arm, &unit)| weight_of(arm, recall.request) * of(arm, unit))
        .sum()
}

/// Applies layer factors to how far a memory is above the weakest candidate, so that a factor has the same direction
/// for scores above and below 0.
fn weigh_layers(recall: Recall<'_>, fused: &mut [Fused]) {
    let Recall { index, request, .. } = recall;
    if request.layer_weights.is_empty() {
        return;
    }
    let floor = match request.fusion {
        FusionMethod::ReciprocalRank | FusionMethod::RelativeScore => 0.0,
        FusionMethod::DistributionBased => fused
            .iter()
            .map(|candidate| candidate.score)
            .fold(f64::INFINITY, f64::min),
    };
    let factor = |layer: &Arc<str>| {
        request
            .layer_weights
            .iter()
            .find(|(name, _)| **name == **layer)
            .map_or(1.0, |&(_, weight)| weight)
    };
    let factors: Vec<f64> = index.layers.iter().map(factor).collect();
    for candidate in fused {
        let layer = index.columns.layer[candidate.version as usize];
        candidate.score = floor + (candidate.score - floor) * factors[usize::from(layer)];
    }
}

/// `fused` is in ascending order of versions.
fn add(fused: &mut [Fused], version: u32, value: f64) {
    if let Ok(index) = fused.binary_search_by_key(&version, |candidate| candidate.version) {
        fused[index].score += value;
    }
}

#[cfg(test)]
mod tests {
    use super::{Fused, keep_first, sort};
    use crate::api::MemoryId;

    #[test]
    fn the_first_are_those_of_a_sort() {
        let count = 100u32;
        let ids: Vec<MemoryId> = (0..count)
            .map(|n| u128::from(count - n).to_be_bytes())
            .collect();
        // Three of each score, so that ids decide.
        let score = |version: u32| f64::from(version * 7 % count / 3);
        let all = (0..count).map(|version| Fused {
            version,
            score: score(version),
        });
        let all: Vec<Fused> = all.collect();
        let mut sorted = all.clone();
        sort(&mut sorted, &ids);
        let pairs = sorted.windows(2);
        assert!(pairs.clone().all(|pair| pair[0].score >= pair[1].score));
        for wanted in [0, 1, 2, 3, 50, 99, 100, 101] {
            let mut first = all.clone();
            keep_first(&mut first, wanted, &ids);
            assert_eq!(first, sorted[..wanted.min(100)]);
        }
    }
}
