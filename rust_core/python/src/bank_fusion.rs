//! The fusion of several banks.

use std::collections::HashSet;

use pyo3::prelude::*;

use super::answer::{Answer, Hit};
use super::arguments::Text;
use super::errors::{detached, invalid};
use super::request::fusion_of;
use astrocyte_core::api;
use astrocyte_core::cross_bank::{BankArm, BankHit, BankList, Share, fuse, split_budget as split};

/// The response of a bank, or its hits in another order.
#[derive(FromPyObject)]
pub(super) enum Ranked {
    Answer(Py<Answer>),
    Hits(Vec<Py<Hit>>),
}

/// Name, weight, memories, mean and deviation.
type Arm = (Text, f64, u32, f64, f64);
/// Weight, hits, arms, space, lifts and group, as `astrocyte.core.BankList`.
type List = (f64, Ranked, Option<Vec<Arm>>, Text, Vec<f64>, isize);
/// The place of a list, and a hit's key and ordinal.
type Place = (usize, u64, i32);
/// Bank, rank, hit, relevance, score and the banks that repeat it.
type Chosen = (usize, u32, Hit, f64, f64, Vec<usize>);
/// Places, whether one was left out, whether the first must be cut, each bank's part.
type Shared = (Vec<usize>, bool, bool, Vec<u64>);

/// Candidates, whether any was truncated, the arms, the banks, and the confidence of each.
type Summary = (
    u64,
    bool,
    Vec<(String, u64, f64)>,
    Vec<(usize, u64)>,
    Vec<f64>,
);

/// The hits of a list that are not gone, by their places in it.
struct Left<'a> {
    places: Vec<usize>,
    list: BankList<'a>,
}

impl Ranked {
    /// Its hits, best first.
    fn hits(&self) -> Vec<&api::Hit> {
        match self {
            Self::Answer(answer) => answer.get().ranked().collect(),
            Self::Hits(hits) => hits.iter().map(|hit| hit.get().hit()).collect(),
        }
    }

    /// The hit at a place, for Python.
    fn at(&self, place: usize) -> Hit {
        match self {
            Self::Answer(answer) => answer.get().at(place),
            Self::Hits(hits) => hits[place].get().clone(),
        }
    }
}

/// The arms of a list: those that it names, else those of the answer, with the weights of semantic, keyword and
/// temporal.
fn arms_of<'a>(list: &'a List, weights: [f64; 3]) -> PyResult<Vec<BankArm<'a>>> {
    let (_, ranked, arms, ..) = list;
    if let Some(arms) = arms {
        let arm = |(name, weight, memories, mean, deviation): &'a Arm| BankArm {
            name: &name.0,
            weight: *weight,
            memories: *memories,
            mean: *mean,
            deviation: *deviation,
        };
        return Ok(arms.iter().map(arm).collect());
    }
    let Ranked::Answer(answer) = ranked else {
        return Err(invalid(
            "arms",
            "are missing, and hits alone do not tell them",
        ));
    };
    Ok(BankArm::of(answer.get().response(), weights))
}

fn left<'a>(
    (number, count): (usize, usize),
    list: &'a List,
    weights: [f64; 3],
    gone: &HashSet<Place>,
) -> PyResult<Left<'a>> {
    let (weight, ranked, _, space, lifts, group) = list;
    let (arms, hits) = (arms_of(list, weights)?, ranked.hits());
    if !lifts.is_empty() && lifts.len() != hits.len() {
        return Err(invalid("lifts", "are not as many as the hits"));
    }
    if usize::try_from(*group).is_ok_and(|group| group >= count) {
        return Err(invalid("group", "is the place of no list"));
    }
    let mut words = hits.iter().flat_map(|hit| &hit.arms);
    if words.any(|word| word.arm as usize >= arms.len()) {
        return Err(invalid("arms", "are fewer than a hit names"));
    }
    let stays = |&place: &usize| {
        let hit = hits[place];
        gone.is_empty() || !gone.contains(&(number, hit.key, hit.ordinal))
    };
    let places: Vec<usize> = (0..hits.len()).filter(stays).collect();
    let list = BankList {
        weight: *weight,
        hits: places.iter().map(|&place| hits[place]).collect(),
        arms,
        space: &space.0,
        boosts: places
            .iter()
            .filter_map(|&place| lifts.get(place).copied())
            .collect(),
        group: usize::try_from(*group).ok(),
    };
    Ok(Left { places, list })
}

/// The hits that leave, and the share of the tokens. See `_core.pyi`.
#[pyfunction]
#[pyo3(signature = (lists, *, weights, fusion, rank_constant, dedup, most, budget=None, gone=vec![]))]
#[pyo3(
    text_signature = "(lists, *, weights, fusion, rank_constant, dedup, most, budget=None, gone=())"
)]
#[expect(
    clippy::too_many_arguments,
    reason = "one keyword argument per part of the call"
)]
pub(super) fn fuse_banks(
    py: Python<'_>,
    lists: Vec<List>,
    weights: [f64; 3],
    fusion: Text,
    rank_constant: f64,
    dedup: bool,
    most: usize,
    budget: Option<u64>,
    gone: Vec<Place>,
) -> PyResult<(Vec<Chosen>, bool, bool, Vec<u64>)> {
    let method = fusion_of(&fusion.0)?;
    let gone: HashSet<Place> = gone.into_iter().collect();
    let left = lists
        .iter()
        .enumerate()
        .map(|(number, list)| left((number, lists.len()), list, weights, &gone))
        .collect::<PyResult<Vec<_>>>()?;
    let (places, banks): (Vec<_>, Vec<_>) =
        left.into_iter().map(|one| (one.places, one.list)).unzip();
    let (chosen, share) = detached(py, || {
        let fused = fuse(&banks, method, rank_constant, dedup);
        Ok(chosen(&banks, fused, most, budget))
    })?;
    let to_python = |one: BankHit<'_>| {
        let at = places[one.bank][one.rank as usize - 1];
        let hit = lists[one.bank].1.at(at);
        (
            one.bank,
            one.rank,
            hit,
            one.relevance,
            one.score,
            one.others,
        )
    };
    let chosen = chosen.into_iter().map(to_python).collect();
    Ok((chosen, share.truncated, share.cut, share.parts))
}

/// The first `most` hits or, of all, those that the budget lets through.
fn chosen<'a>(
    banks: &[BankList<'_>],
    mut fused: Vec<BankHit<'a>>,
    most: usize,
    budget: Option<u64>,
) -> (Vec<BankHit<'a>>, Share) {
    let Some(budget) = budget else {
        fused.truncate(most);
        return (fused, Share::default());
    };
    let group = |bank: usize| banks[bank].group.unwrap_or(bank);
    let size = |one: &BankHit<'_>| (group(one.bank), u64::from(one.hit.tokens));
    let sizes: Vec<_> = fused.iter().map(size).collect();
    let weights: Vec<_> = banks.iter().map(|bank| bank.weight).collect();
    let share = split(&sizes, &weights, budget, most);
    let mut places = 0..;
    fused.retain(|_| {
        let place = places.next();
        place.is_some_and(|place| share.places.binary_search(&place).is_ok())
    });
    (fused, share)
}

/// See `_core.pyi`.
#[pyfunction]
pub(super) fn split_budget(
    py: Python<'_>,
    sizes: Vec<(usize, u64)>,
    weights: Vec<f64>,
    budget: u64,
    most: usize,
) -> PyResult<Shared> {
    if sizes.iter().any(|&(bank, _)| bank >= weights.len()) {
        return Err(invalid("sizes", "name a bank that has no weight"));
    }
    let share = detached(py, || Ok(split(&sizes, &weights, budget, most)))?;
    Ok((share.places, share.truncated, share.cut, share.parts))
}

/// Summarises the responses. See `_core.pyi`.
#[pyfunction]
pub(super) fn summarise(answers: Vec<Py<Answer>>) -> Summary {
    let mut all = Summary::default();
    let (candidates, truncated, arms, banks, best) = &mut all;
    for answer in &answers {
        let answer = answer.get().response();
        *candidates += u64::from(answer.candidates);
        *truncated |= answer.truncated;
        let counted = answer.arm_candidates.iter().zip(&answer.arm_micros);
        for (name, (&count, &micros)) in answer.arm_names.iter().zip(counted) {
            if let Some(arm) = arms.iter_mut().find(|arm| arm.0 == *name) {
                arm.1 += u64::from(count);
                arm.2 += micros;
            } else {
                arms.push((name.to_string(), u64::from(count), micros));
            }
        }
        banks.push((answer.hits.len(), answer.position));
        best.extend(answer.confidence);
    }
    all
}
