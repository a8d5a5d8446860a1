//! The explanation of a recall: what became of certain memories.

use super::response::{Boost, RecallResponse};
use super::row::MemoryId;

/// The step of a recall at which a memory fell out; [`Hit`](Self::Hit) when it did not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The bank's index holds no such memory.
    Unknown,
    /// It does not pass the filter.
    Filter,
    /// No arm proposed it.
    Arms,
    /// Enough hits were better.
    Results,
    /// It repeats a better hit.
    Duplicate,
    /// The token budget had no room for it.
    Budget,
    /// It is among the hits.
    Hit,
}

/// The standing of a memory in an arm, whether the arm proposes it or not.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Standing {
    /// Rank among all memories that pass, from 1; 0 when the arm does not know it.
    pub rank: u32,
    /// The arm's own score.
    pub score: Option<f64>,
    /// True if the rank is within the depth, so that the arm proposes it.
    pub proposed: bool,
}

/// A part of a score that comes from a neighbour in a conversation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share {
    /// Index into [`RecallResponse::arm_names`].
    pub arm: u32,
    /// The neighbour.
    pub memory_id: MemoryId,
    /// The amount in the score of the arm.
    pub amount: f64,
    /// True if the neighbour's own fused score is better: then it ranks above this memory.
    pub lender: bool,
}

/// The fate of a memory in a recall.
#[derive(Debug, Clone, PartialEq)]
pub struct Fate {
    /// The memory.
    pub memory_id: MemoryId,
    /// The step that it reached.
    pub step: Step,
    /// By arm, in the order of [`RecallResponse::arm_names`]; empty for a memory that does not pass.
    pub arms: Vec<Standing>,
    /// The shares of neighbours in the scores of the arms; empty without context windows.
    pub shares: Vec<Share>,
    /// Rank in the fused list, from 1; 0 when no arm proposed it.
    pub fused_rank: u32,
    /// Fused score, where it has a rank.
    pub fused_score: Option<f64>,
    /// Amounts that were added to the score for the kind of turn that it is; the fused score includes them.
    pub boosts: Vec<Boost>,
    /// Its place among the hits, or the place that it would have if there were room, from 1; 0 when it was not
    /// considered.
    pub place: u32,
    /// Tokens that it counts against the budget.
    pub tokens: u32,
    /// Tokens that were left at its turn.
    pub left: u64,
    /// The least by which a larger budget would let in one more of those up to it; 0 when none was kept out.
    pub shortage: u64,
    /// The better hit that it repeats, with the cosine where that is why.
    pub twin: Option<(MemoryId, Option<f32>)>,
}

impl Fate {
    /// The fate of a memory that the index does not hold.
    pub(crate) fn new(memory_id: MemoryId) -> Self {
        Self {
            memory_id,
            step: Step::Unknown,
            arms: Vec::new(),
            shares: Vec::new(),
            fused_rank: 0,
            fused_score: None,
            boosts: Vec::new(),
            place: 0,
            tokens: 0,
            left: 0,
            shortage: 0,
            twin: None,
        }
    }
}

/// A recall's answer, and what became of some memories in it.
#[derive(Debug, Clone, PartialEq)]
pub struct Explained {
    /// The answer of a scan.
    pub response: RecallResponse,
    /// One for each memory that was asked about, in that order.
    pub fates: Vec<Fate>,
    /// By arm the score of the last memory that it proposed; None where it proposed all that it knows.
    pub arm_cuts: Vec<Option<f64>>,
}
