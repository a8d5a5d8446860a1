//! Builds hits from fused candidates: removes duplicates, keeps the token budget, adds the scores of the arms.

use std::sync::Arc;

use hashbrown::HashSet;

use crate::api::Result;
use crate::api::{ArmScore, Evidence, Hit};
use crate::dense::exact_vectors::NO_SLOT;
use crate::dense::{NO_SCORE, dot};
use crate::index::Index;
use crate::recall::fusion::{Fused, weight_of};

use super::Recall;
use super::arms::{Arm, KEYWORD, SEMANTIC, Scores};
use super::relevance::{Gauge, relevance};
use super::turns::Added;

/// Candidates whose vectors are compared with those of better hits: more would cost more than the whole recall.
pub(super) const COMPARED: usize = 200;

/// The hits of an answer.
pub(super) struct Built {
    pub(super) hits: Vec<Hit>,
    /// True if the budget excluded a hit, or the first one must be cut.
    pub(super) truncated: bool,
}

/// Builds hits of the best `k` candidates that are no duplicates and fit the budget.
///
/// # Errors
/// When the scratch file cannot be read.
pub(super) fn build(
    recall: Recall<'_>,
    gauge: &Gauge<'_>,
    fused: &[Fused],
    added: &Added,
    arms: &[Arm],
    scores: Scores<'_>,
) -> Result<Built> {
    let Recall { index, request, .. } = recall;
    let mut hits = Vec::with_capacity(request.k.min(fused.len()));
    let mut seen = Seen::of(hits.capacity());
    let mut left = request.budget.unwrap_or(u64::MAX);
    let mut truncated = false;
    for (place, candidate) in fused.iter().enumerate() {
        if hits.len() == request.k {
            break;
        }
        let threshold = request.dedup_threshold.filter(|_| place < COMPARED);
        if seen.holds(index, candidate.version, threshold)? {
            continue;
        }
        let best = best_chunk(recall, arms, scores, candidate.version);
        let tokens = tokens_of(recall, candidate.version, best);
        if u64::from(tokens) > left {
            truncated = true;
            // The first hit is kept for the caller to cut, with all of the budget as its share.
            if !hits.is_empty() {
                continue;
            }
        }
        left = left.saturating_sub(u64::from(tokens));
        seen.add(index, candidate.version, threshold)?;
        let evidence = gauge.evidence(candidate.version, best);
        hits.push(Hit {
            relevance: relevance(evidence),
            evidence,
            turn_lift: added.lift(candidate.version),
            boosts: added.of(candidate.version),
            ..hit(index, candidate, arms, best, tokens)
        });
    }
    Ok(Built { hits, truncated })
}

fn hit(index: &Index, candidate: &Fused, arms: &[Arm], ordinal: i32, tokens: u32) -> Hit {
    let at = candidate.version as usize;
    let word = |(number, arm): (usize, &Arm)| {
        let place = arm
            .ranked
            .iter()
            .position(|&(_, version)| version == candidate.version)?;
        let score = f64::from(arm.ranked[place].0);
        Some(ArmScore {
            arm: number as u32,
            rank: place as u32 + 1,
            score,
        })
    };
    Hit {
        key: index.columns.key[at],
        memory_id: index.columns.memory_id[at],
        content_hash: index.columns.content_hash[at],
        ordinal,
        score: candidate.score,
        relevance: 0.0,
        evidence: Evidence::default(),
        tokens,
        layer: Arc::clone(&index.layers[usize::from(index.columns.layer[at])]),
        arms: arms.iter().enumerate().filter_map(word).collect(),
        boosts: Vec::new(),
        turn_lift: 0.0,
    }
}

/// The chunk that the arms score best, by the same weights as the fusion; -1 when the whole is the only chunk.
pub(super) fn best_chunk(
    recall: Recall<'_>,
    arms: &[Arm],
    scores: Scores<'_>,
    version: u32,
) -> i32 {
    let rows = recall.index.rows_of(version);
    if rows.len() == 1 {
        return -1;
    }
    let score_of = |row: u32| -> f64 {
        let score = |arm: &Arm| {
            let own = match (arm.external, &*arm.name) {
                (None, SEMANTIC) => scores.semantic.rows,
                (None, KEYWORD) => scores.keyword.rows,
                _ => return 0.0,
            };
            let score = own[row as usize];
            let score = if score == NO_SCORE {
                0.0
            } else {
                f64::from(score)
            };
            // The mean is the same for all chunks; a bank of one memory has no deviation, and its chunks still differ.
            let unit = if arm.stats.deviation == 0.0 {
                1.0
            } else {
                arm.stats.deviation
            };
            weight_of(arm, recall.request) * score / unit
        };
        arms.iter().map(score).sum()
    };
    let chunks = rows.start + 1..rows.end;
    let mut best = (f64::NEG_INFINITY, 0);
    for (ordinal, row) in chunks.enumerate() {
        let score = score_of(row);
        if score > best.0 {
            best = (score, ordinal as i32);
        }
    }
    best.1
}

/// The tokens that a version counts against the budget, where `ordinal` is its best chunk.
pub(super) fn tokens_of(recall: Recall<'_>, version: u32, ordinal: i32) -> u32 {
    let whole = recall.index.columns.first_row[version as usize];
    let row = if recall.request.budget_whole || ordinal < 0 {
        whole
    } else {
        whole + 1 + ordinal as u32
    };
    recall.index.tokens[row as usize]
}

/// The hits so far: their memories, contents, and vectors where there is a cosine threshold.
#[derive(Default)]
pub(super) struct Seen {
    ids: HashSet<[u8; 16]>,
    contents: HashSet<[u8; 16]>,
    vectors: Vec<Vec<f32>>,
    bytes: Vec<u8>,
    original: Vec<f32>,
}

impl Seen {
    /// An empty set with room for `count` hits.
    fn of(count: usize) -> Self {
        Self {
            ids: HashSet::with_capacity(count),
            contents: HashSet::with_capacity(count),
            ..Self::default()
        }
    }

    pub(super) fn holds(
        &mut self,
        index: &Index,
        version: u32,
        threshold: Option<f32>,
    ) -> Result<bool> {
        let at = version as usize;
        if self.ids.contains(&index.columns.memory_id[at])
            || self.contents.contains(&index.columns.content_hash[at])
        {
            return Ok(true);
        }
        let Some(threshold) = threshold else {
            return Ok(false);
        };
        if !self.load(index, version)? {
            return Ok(false);
        }
        Ok(self
            .vectors
            .iter()
            .any(|vector| dot(vector, &self.original) >= threshold))
    }

    pub(super) fn add(
        &mut self,
        index: &Index,
        version: u32,
        threshold: Option<f32>,
    ) -> Result<()> {
        self.ids.insert(index.columns.memory_id[version as usize]);
        self.contents
            .insert(index.columns.content_hash[version as usize]);
        if threshold.is_some() && self.load(index, version)? {
            self.vectors.push(self.original.clone());
        }
        Ok(())
    }

    /// The whole's original vector, if it has one.
    pub(super) fn vector(index: &Index, version: u32) -> Result<Option<Vec<f32>>> {
        let mut room = Self::default();
        Ok(room.load(index, version)?.then_some(room.original))
    }

    /// Reads the whole's original vector; false when it has none.
    fn load(&mut self, index: &Index, version: u32) -> Result<bool> {
        let slot = index.slots[index.columns.first_row[version as usize] as usize];
        if slot == NO_SLOT {
            return Ok(false);
        }
        index
            .exact_vectors
            .read(slot, &mut self.bytes, &mut self.original)?;
        Ok(true)
    }
}
