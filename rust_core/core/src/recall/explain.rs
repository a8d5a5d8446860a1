//! Reports what became of certain memories in one recall.
//!
//! The recall is a plain scan. [`Probe::examine`] evaluates the intermediate results once the response is built.
//! Without a probe none of this runs.

use crate::api::Result;
use crate::api::{Fate, MemoryId, Share, Standing, Step};
use crate::dense::{NO_SCORE, dot};
use crate::recall::fusion::Fused;
use crate::topk::better_first;

use super::Recall;
use super::arms::{Arm, KEYWORD, SEMANTIC, Scores};
use super::candidates::Candidates;
use super::context_window::lending;
use super::fusion;
use super::hits::{COMPARED, Seen, best_chunk, tokens_of};
use super::score_stats::ScoreStats;
use super::turns::Added;

/// The intermediate results from which an answer was built.
pub(super) struct Evidence<'a, C> {
    pub(super) recall: Recall<'a>,
    pub(super) arms: &'a [Arm],
    /// Mean and deviation of the arms before feedback.
    pub(super) units: &'a [ScoreStats],
    pub(super) candidates: &'a C,
    pub(super) scores: Scores<'a>,
    pub(super) fused: &'a [Fused],
    pub(super) added: &'a Added,
}

/// The memories that are asked about, and what is found.
pub(super) struct Probe<'a> {
    ids: &'a [MemoryId],
    pub(super) fates: Vec<Fate>,
    pub(super) cuts: Vec<Option<f64>>,
}

impl<'a> Probe<'a> {
    pub(super) fn new(ids: &'a [MemoryId]) -> Self {
        Self {
            ids,
            fates: Vec::new(),
            cuts: Vec::new(),
        }
    }

    /// Finds what became of each memory.
    pub(super) fn examine(&mut self, evidence: &Evidence<'_, impl Candidates>) -> Result<()> {
        let depth = evidence.recall.request.depth;
        let last = |arm: &Arm| {
            arm.ranked
                .get(depth.wrapping_sub(1))
                .map(|hit| hit.0.into())
        };
        self.cuts = evidence.arms.iter().map(last).collect();
        let versions: Vec<Option<u32>> =
            self.ids.iter().map(|id| evidence.version_of(id)).collect();
        self.fates = self
            .ids
            .iter()
            .zip(&versions)
            .map(|(&id, &version)| evidence.fate(id, version))
            .collect();
        self.walk(evidence, &versions)
    }

    /// Goes down the candidates as the answer did, and on to the end, as if more hits were wanted.
    fn walk(
        &mut self,
        evidence: &Evidence<'_, impl Candidates>,
        versions: &[Option<u32>],
    ) -> Result<()> {
        let Recall { index, request, .. } = evidence.recall;
        let mut kept: Vec<u32> = Vec::new();
        let mut seen = Seen::default();
        let mut left = request.budget.unwrap_or(u64::MAX);
        let mut shortage = u64::MAX;
        for (place, &Fused { version, .. }) in evidence.fused.iter().enumerate() {
            let threshold = request.dedup_threshold.filter(|_| place < COMPARED);
            let asked = versions.iter().position(|&asked| asked == Some(version));
            let full = kept.len() >= request.k;
            if seen.holds(index, version, threshold)? {
                if let Some(asked) = asked {
                    let fate = &mut self.fates[asked];
                    fate.step = if full { Step::Results } else { Step::Duplicate };
                    fate.twin = evidence.twin(version, &kept)?;
                }
                continue;
            }
            let best = best_chunk(evidence.recall, evidence.arms, evidence.scores, version);
            let tokens = u64::from(tokens_of(evidence.recall, version, best));
            let fits = tokens <= left;
            if !fits {
                shortage = shortage.min(tokens - left);
            }
            // As in the answer, the first hit is there however long it is.
            let stays = fits || kept.is_empty();
            if let Some(asked) = asked {
                let fate = &mut self.fates[asked];
                fate.step = match (full, stays) {
                    (true, _) => Step::Results,
                    (false, false) => Step::Budget,
                    (false, true) => Step::Hit,
                };
                fate.place = kept.len() as u32 + 1;
                fate.tokens = tokens as u32;
                fate.left = left;
                fate.shortage = if shortage == u64::MAX { 0 } else { shortage };
            }
            if stays {
                left = left.saturating_sub(tokens);
                seen.add(index, version, threshold)?;
                kept.push(version);
            }
        }
        Ok(())
    }
}

impl<C: Candidates> Evidence<'_, C> {
    /// The memory's version that passes the filter; failing that the current one, or any.
    fn version_of(&self, id: &MemoryId) -> Option<u32> {
        let columns = &self.recall.index.columns;
        let passing = |version: &u32| self.recall.allowed.versions.contains(*version);
        let versions = || columns.versions_of(id);
        let current = |version: &u32| columns.current.contains(*version);
        (versions().filter(passing).max())
            .or_else(|| versions().filter(current).max())
            .or_else(|| versions().max())
    }

    /// The fate of a memory as far as the arms decide it: unknown, filtered, or scored.
    fn fate(&self, id: MemoryId, version: Option<u32>) -> Fate {
        let fate = Fate::new(id);
        let Some(version) = version else {
            return fate;
        };
        if !self.recall.allowed.versions.contains(version) {
            return Fate {
                step: Step::Filter,
                ..fate
            };
        }
        let place = self.fused.iter().position(|hit| hit.version == version);
        Fate {
            step: Step::Arms,
            arms: self
                .arms
                .iter()
                .map(|arm| self.standing(arm, version))
                .collect(),
            shares: self.shares(version),
            fused_rank: place.map_or(0, |place| place as u32 + 1),
            fused_score: place.map(|place| self.fused[place].score),
            boosts: self.added.of(version),
            ..fate
        }
    }

    /// The shares of neighbours in the scores of a version.
    fn shares(&self, version: u32) -> Vec<Share> {
        if !self.candidates.shares() {
            return Vec::new();
        }
        let own = |version| {
            let arms = (self.arms, self.units);
            fusion::own_score(self.recall, arms, self.candidates, self.scores, version)
        };
        let mut shares = Vec::new();
        for (number, arm) in (0..).zip(self.arms) {
            let score = |version: u32| {
                let [semantic, keyword] = self.candidates.own(version);
                match (arm.external, &*arm.name) {
                    (None, SEMANTIC) => Some(semantic),
                    (None, KEYWORD) => Some(keyword + self.candidates.own_feedback(version)),
                    _ => None,
                }
            };
            for (neighbour, amount) in lending::amounts(self.recall, version, score) {
                shares.push(Share {
                    arm: number,
                    memory_id: self.recall.index.columns.memory_id[neighbour as usize],
                    amount,
                    lender: own(neighbour) > own(version)
                        && fusion::gives(self.candidates, neighbour),
                });
            }
        }
        shares
    }

    /// The standing of a version that passes in an arm. Beyond the arm's cut, ranks are by the coarse scores.
    fn standing(&self, arm: &Arm, version: u32) -> Standing {
        if let Some(place) = arm.ranked.iter().position(|hit| hit.1 == version) {
            return Standing {
                rank: place as u32 + 1,
                score: Some(arm.ranked[place].0.into()),
                proposed: true,
            };
        }
        let scores = self.scores.of(arm);
        let none = Standing {
            rank: 0,
            score: None,
            proposed: false,
        };
        let Some(&score) = scores.get(version as usize).filter(|&&s| s != NO_SCORE) else {
            return none;
        };
        let standing = Standing {
            score: Some(score.into()),
            ..none
        };
        // Of words and dates 0 says that there is none; of cosines it is one among others.
        if arm.name != SEMANTIC && score <= 0.0 {
            return standing;
        }
        let ids = &self.recall.index.columns.memory_id;
        let better = |&other: &u32| {
            let rival = (scores[other as usize], other);
            other != version && better_first(rival, (score, version), ids).is_lt()
        };
        let better = self.recall.allowed.versions.iter().filter(better).count();
        Standing {
            rank: better.max(arm.ranked.len()) as u32 + 1,
            ..standing
        }
    }

    /// The first of the kept versions that a version repeats, with the cosine where that is why.
    fn twin(&self, version: u32, kept: &[u32]) -> Result<Option<(MemoryId, Option<f32>)>> {
        let index = self.recall.index;
        let columns = &index.columns;
        let at = |version: u32| {
            let at = version as usize;
            (columns.memory_id[at], columns.content_hash[at])
        };
        let (id, content) = at(version);
        let same = |&&other: &&u32| at(other).0 == id || at(other).1 == content;
        if let Some(&other) = kept.iter().find(same) {
            return Ok(Some((at(other).0, None)));
        }
        let (Some(threshold), Some(own)) = (
            self.recall.request.dedup_threshold,
            Seen::vector(index, version)?,
        ) else {
            return Ok(None);
        };
        for &other in kept {
            if let Some(vector) = Seen::vector(index, other)? {
                let cosine = dot(&vector, &own);
                if cosine >= threshold {
                    return Ok(Some((at(other).0, Some(cosine))));
                }
            }
        }
        Ok(None)
    }
}
