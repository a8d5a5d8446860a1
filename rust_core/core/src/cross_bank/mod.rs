//! Fuses the responses of several banks: removes repeats, brings scores to one scale, applies weights, and splits the
//! token budget.
//!
//! Scores of different banks cannot be compared as they are: the z-scores of a bank say how much a memory stands out in
//! *that* bank, and every bank has a best memory, whether it holds the answer or not.
//! [`FusionMethod::DistributionBased`] puts the raw scores of each arm on the scale of one bank of all memories: mean
//! and deviation are pooled over the banks from their counts, means and deviations. It adds how well the bank as a
//! whole answers, the mean of its best few hits (collection selection: Callan, Lu and Croft, 1995).
//! [`FusionMethod::ReciprocalRank`] uses ranks only (Cormack, Clarke and Büttcher, 2009). [`FusionMethod::RelativeScore`]
//! lays the relevances of each bank over 0 to 1 by their least and their most.
//!
//! Sums are made in the order of the banks and of their hits, so that a response is identical to the bit every time.

mod share;

use std::borrow::Cow;
use std::cmp::Ordering;

use hashbrown::HashMap;

use crate::api::{ContentHash, FusionMethod, Hit, RecallResponse};
use crate::recall::{KEYWORD, SEMANTIC, TEMPORAL};
pub use share::{Share, split_budget};

/// Hits that say how well a bank answers, and what their mean counts beside a hit's own relevance: on `LoCoMo` with
/// five conversations as banks, R@10 is .691 with 3 and 1, .697 with 5 and 2, .705 with these.
const LEADERS: usize = 10;
const LEADERS_WEIGHT: f64 = 2.0;
/// As in the fusion of one bank: near a date, few memories may stand out by far without saying more.
const TEMPORAL_CAP: f64 = 4.0;

/// An arm of a bank's answer: what it counts, and its scores over all memories of the bank that pass the filter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BankArm<'a> {
    /// The arm's name; arms of one name are on one scale.
    pub name: &'a str,
    /// Its weight.
    pub weight: f64,
    /// Memories that pass.
    pub memories: u32,
    /// Mean of their scores.
    pub mean: f64,
    /// Population standard deviation.
    pub deviation: f64,
}

impl<'a> BankArm<'a> {
    /// The arms of an answer; `weights` are those of the semantic, the keyword and the temporal arm, any other counts
    /// 1.
    pub fn of(answer: &'a RecallResponse, weights: [f64; 3]) -> Vec<Self> {
        let arm = |(name, &(mean, deviation)): (&'a Cow<'_, str>, &(f64, f64))| Self {
            name,
            weight: match &**name {
                SEMANTIC => weights[0],
                KEYWORD => weights[1],
                TEMPORAL => weights[2],
                _ => 1.0,
            },
            memories: answer.allowed,
            mean,
            deviation,
        };
        let stats = answer.arm_stats.iter();
        answer.arm_names.iter().zip(stats).map(arm).collect()
    }
}

/// The response of one bank, and its weight.
#[derive(Debug, Clone, Default)]
pub struct BankList<'a> {
    /// Weight of the bank; at 0 its hits are left out, but not what they say of its arms.
    pub weight: f64,
    /// Best first.
    pub hits: Vec<&'a Hit>,
    /// Its arms, by the indices of [`ArmScore::arm`](crate::ArmScore::arm).
    pub arms: Vec<BankArm<'a>>,
    /// Names the scale of the semantic arm, which banks of the same embedding model share.
    pub space: &'a str,
    /// Amounts that later steps added to each hit, in deviations; empty where none did.
    pub boosts: Vec<f64>,
    /// Place of the list together with which it says how well a bank answers, where it is but a part of that bank's
    /// answer; None for its own.
    pub group: Option<usize>,
}

/// A hit on its way into one list.
#[derive(Debug, Clone, PartialEq)]
pub struct BankHit<'a> {
    /// Place of its bank.
    pub bank: usize,
    /// Rank in its bank, from 1.
    pub rank: u32,
    /// The hit.
    pub hit: &'a Hit,
    /// Its relevance on the scale of all banks together.
    pub relevance: f64,
    /// Its score by the method.
    pub score: f64,
    /// The banks that repeat it, ascending.
    pub others: Vec<usize>,
}

/// All hits of all banks in one order, best first; equal scores by relevance, then by memory id, then by bank.
///
/// With `dedup`, of equal contents the best alone stays.
pub fn fuse<'a>(
    lists: &[BankList<'a>],
    method: FusionMethod,
    rank_constant: f64,
    dedup: bool,
) -> Vec<BankHit<'a>> {
    let relevances = relevances(lists);
    let mut fused: Vec<BankHit<'a>> = Vec::with_capacity(relevances.iter().map(Vec::len).sum());
    for (bank, (list, values)) in lists.iter().zip(&relevances).enumerate() {
        if list.weight > 0.0 {
            let hits = list.hits.iter().zip(values).zip(1..);
            fused.extend(hits.map(|((&hit, &relevance), rank)| BankHit {
                bank,
                rank,
                hit,
                relevance,
                score: weighted(relevance, list.weight),
                others: Vec::new(),
            }));
        }
    }
    if dedup {
        drop_repeats(&mut fused);
    }
    if method == FusionMethod::ReciprocalRank {
        let mut places = vec![0u32; lists.len()];
        for one in &mut fused {
            places[one.bank] += 1;
            one.score = lists[one.bank].weight / (rank_constant + f64::from(places[one.bank]));
        }
    }
    if method == FusionMethod::RelativeScore {
        for one in &mut fused {
            one.score = lists[one.bank].weight * share_of(one.relevance, &relevances[one.bank]);
        }
    }
    fused.sort_by(better_first);
    fused
}

/// A relevance between the least and the most of its bank, from 0 to 1; 1 where all are equal.
fn share_of(relevance: f64, all: &[f64]) -> f64 {
    let least = all.iter().copied().fold(f64::INFINITY, f64::min);
    let most = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if most > least {
        (relevance - least) / (most - least)
    } else {
        1.0
    }
}

fn better_first(a: &BankHit<'_>, b: &BankHit<'_>) -> Ordering {
    let down = |a: f64, b: f64| b.partial_cmp(&a).unwrap_or(Ordering::Equal);
    down(a.score, b.score)
        .then_with(|| down(a.relevance, b.relevance))
        .then_with(|| a.hit.memory_id.cmp(&b.hit.memory_id))
        .then_with(|| a.bank.cmp(&b.bank))
}

/// Relevance times weight, so that a greater weight never lowers it.
fn weighted(relevance: f64, weight: f64) -> f64 {
    if relevance >= 0.0 {
        relevance * weight
    } else {
        relevance / weight
    }
}

/// Leaves the best of each content, in the order in which they are, with the banks of the others.
///
/// Scores are weighted relevances here.
fn drop_repeats(fused: &mut Vec<BankHit<'_>>) {
    let mut best: HashMap<ContentHash, usize> = HashMap::with_capacity(fused.len());
    let mut repeats = vec![false; fused.len()];
    for at in 0..fused.len() {
        let kept = *best.entry(fused[at].hit.content_hash).or_insert(at);
        if kept == at {
            continue;
        }
        let better = fused[at].score > fused[kept].score;
        let (stays, goes) = if better { (at, kept) } else { (kept, at) };
        best.insert(fused[at].hit.content_hash, stays);
        repeats[goes] = true;
        let mut others = std::mem::take(&mut fused[goes].others);
        others.push(fused[goes].bank);
        fused[stays].others.append(&mut others);
    }
    let mut repeats = repeats.into_iter();
    fused.retain(|_| !repeats.next().unwrap_or(false));
    for one in fused {
        one.others.sort_unstable();
    }
}

/// Per bank and hit, the relevance on the scale of all banks together.
fn relevances(lists: &[BankList<'_>]) -> Vec<Vec<f64>> {
    let pooled = pooled(lists);
    let mut relevances: Vec<Vec<f64>> = lists
        .iter()
        .map(|list| {
            let scales: Vec<Scale> = list
                .arms
                .iter()
                .map(|arm| Scale::new(arm, pooled[&scale_name(list, arm)]))
                .collect();
            // A hit that an arm did not propose has what the bank's memories have on the average.
            let base = scales.iter().fold(0.0, |sum, scale| sum + scale.absent);
            let mut values: Vec<f64> = list
                .hits
                .iter()
                .map(|hit| {
                    let add = |value, word: &crate::ArmScore| {
                        let scale = &scales[word.arm as usize];
                        value + (scale.of(word.score) - scale.absent)
                    };
                    hit.arms.iter().fold(base, add) + hit.turn_lift
                })
                .collect();
            for (value, boost) in values.iter_mut().zip(&list.boosts) {
                *value += boost;
            }
            values
        })
        .collect();
    lift_by_bank(lists, &mut relevances);
    relevances
}

/// The scale of an arm's scores.
struct Scale {
    mean: f64,
    unit: f64,
    factor: f64,
    top: f64,
    /// The score of a hit that the arm did not propose.
    absent: f64,
}

impl Scale {
    fn new(arm: &BankArm<'_>, (mean, deviation): (f64, f64)) -> Self {
        let spread = deviation != 0.0;
        let mut scale = Self {
            mean,
            unit: if spread { deviation } else { 1.0 },
            factor: if spread { arm.weight } else { 0.0 },
            top: if arm.name == TEMPORAL {
                TEMPORAL_CAP
            } else {
                f64::INFINITY
            },
            absent: 0.0,
        };
        scale.absent = scale.of(arm.mean);
        scale
    }

    fn of(&self, score: f64) -> f64 {
        self.factor * ((score - self.mean) / self.unit).min(self.top)
    }
}

/// Adds to each relevance how well its bank answers: the mean of the best of its group.
fn lift_by_bank(lists: &[BankList<'_>], relevances: &mut [Vec<f64>]) {
    let mut together: HashMap<usize, Vec<f64>> = HashMap::with_capacity(lists.len());
    let group = |place: usize| lists[place].group.unwrap_or(place);
    for (place, values) in relevances.iter().enumerate() {
        together.entry(group(place)).or_default().extend(values);
    }
    let lift = |mut values: Vec<f64>| {
        values.sort_unstable_by(|a, b| b.total_cmp(a));
        values.truncate(LEADERS);
        if values.is_empty() {
            return 0.0;
        }
        LEADERS_WEIGHT * values.iter().fold(0.0, |sum, value| sum + value) / values.len() as f64
    };
    let by_group: HashMap<usize, f64> = together
        .into_iter()
        .map(|(group, values)| (group, lift(values)))
        .collect();
    for (place, values) in relevances.iter_mut().enumerate() {
        let lift = by_group[&group(place)];
        for value in values {
            *value += lift;
        }
    }
}

/// The key of an arm's scale: its own name and, for the semantic one, the embedding space.
fn scale_name<'a>(list: &BankList<'a>, arm: &BankArm<'a>) -> (&'a str, &'a str) {
    let space = if arm.name == SEMANTIC { list.space } else { "" };
    (arm.name, space)
}

/// Mean and deviation of each scale over the memories of all banks.
fn pooled<'a>(lists: &[BankList<'a>]) -> HashMap<(&'a str, &'a str), (f64, f64)> {
    let mut sums: HashMap<(&str, &str), (u64, f64, f64)> = HashMap::new();
    for list in lists {
        for arm in &list.arms {
            let memories = f64::from(arm.memories);
            let square = arm.deviation * arm.deviation + arm.mean * arm.mean;
            let (count, total, squares) = sums.entry(scale_name(list, arm)).or_default();
            *count += u64::from(arm.memories);
            *total += memories * arm.mean;
            *squares += memories * square;
        }
    }
    let spread = |(count, total, squares): (u64, f64, f64)| {
        if count == 0 {
            return (0.0, 0.0);
        }
        let mean = total / count as f64;
        let variance = squares / count as f64 - mean * mean;
        (mean, if variance > 0.0 { variance.sqrt() } else { 0.0 })
    };
    sums.into_iter()
        .map(|(name, sums)| (name, spread(sums)))
        .collect()
}
