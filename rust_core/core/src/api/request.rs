//! The request of a recall.

use std::sync::Arc;

use super::row::MemoryId;
use super::turns::TurnBoosts;

/// The combination of several tags of a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TagMatch {
    /// At least one of them.
    #[default]
    Any,
    /// Every one of them.
    All,
    /// Not one of them; rows without tags pass.
    None,
}

/// The method that fuses the rankings of the arms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FusionMethod {
    /// Distribution-based score fusion: weighted sum of the z-scores within each arm.
    #[default]
    DistributionBased,
    /// Weighted sum of 1 / (rank constant + rank).
    ReciprocalRank,
    /// Relative score fusion: weighted sum of the scores of each arm's ranking, laid over 0 to 1 by its least and its
    /// most.
    RelativeScore,
}

/// A ranked list that another system proposes.
#[derive(Debug, Clone, PartialEq)]
pub struct ExternalList {
    /// Name of the arm in the response.
    pub name: String,
    /// Weight in the fusion.
    pub weight: f64,
    /// Memory ids with scores, best first.
    pub hits: Vec<(MemoryId, f64)>,
}

/// A boost of the memories that have a label, after the fusion.
#[derive(Debug, Clone, PartialEq)]
pub struct LabelBoost {
    /// Name of the boost in hits.
    pub name: Arc<str>,
    /// Metadata pairs, of which one is enough.
    pub labels: Vec<(String, String)>,
    /// The amount that is added to a score.
    pub value: f64,
    /// Distance to the next hit of a hit that feedback kept at the head.
    pub standing: f64,
    /// Hits wanted, out of the `k` that are looked at.
    pub wanted: usize,
    /// Most tokens of these; where they have more, all `k` are hits, for the caller to choose.
    pub budget: u64,
}

/// So many first memories of the semantic arm have exact cosines at least, however few hits are wanted: rounding decides
/// between near equals, and the first hits are not to change where a caller asks for more. Most callers ask for fewer.
const EXACT_HEAD: usize = 60;

/// Everything that one recall needs. `Default` gives the documented defaults.
#[derive(Debug, Clone, PartialEq)]
pub struct RecallRequest {
    /// Words to search; None runs no keyword arm.
    pub text: Option<String>,
    /// Sets of words, folded and in lower case, of which each counts as one word of the text: the words of a prefix. With
    /// any, there is no feedback.
    pub unions: Vec<Vec<String>>,
    /// Query embedding; None runs no semantic arm.
    pub vector: Option<Vec<f32>>,
    /// Hits wanted.
    pub k: usize,
    /// Candidates per arm.
    pub depth: usize,
    /// Tags to match.
    pub tags: Vec<String>,
    /// The combination of the tags.
    pub tag_match: TagMatch,
    /// Fact types that pass; empty lets all pass.
    pub fact_types: Vec<String>,
    /// Metadata pairs that must all be there.
    pub metadata: Vec<(String, String)>,
    /// Conversation to stay within.
    pub session: Option<String>,
    /// First and last instant of `occurred_at` (the time of first storing where there is none), both included, None
    /// open.
    pub occurred: Option<(Option<i64>, Option<i64>)>,
    /// First and last instant of the first storing, both included, None open.
    pub retained: Option<(Option<i64>, Option<i64>)>,
    /// See what the service knew then; None sees the current versions.
    pub as_of: Option<i64>,
    /// Only statements that held then.
    pub valid_at: Option<i64>,
    /// Only these memories; an empty list lets none pass.
    pub memory_ids: Option<Vec<MemoryId>>,
    /// Windows (first, last) of event time that make the temporal arm run.
    pub time_windows: Vec<(i64, i64)>,
    /// Duration over which the score of the temporal arm decays outside a window, in milliseconds.
    pub time_tail_ms: i64,
    /// Lists from outside, each a further arm.
    pub external: Vec<ExternalList>,
    /// The fusion method.
    pub fusion: FusionMethod,
    /// The rank constant of reciprocal rank fusion, above 0.
    pub rank_constant: f64,
    /// Weights of the semantic, keyword and temporal arms; 0 turns an arm off.
    pub weights: [f64; 3],
    /// Weight of the words that the first hits add to the query, against 1 of its own; 0 adds none.
    pub feedback: f32,
    /// True if a short turn is scored with its neighbours in the conversation.
    pub context_windows: bool,
    /// Factors per memory layer; layers not named count 1.
    pub layer_weights: Vec<(String, f64)>,
    /// Cosine at which two hits count as one; None dedups by content hash alone.
    pub dedup_threshold: Option<f32>,
    /// Most tokens that the hits may have together.
    pub budget: Option<u64>,
    /// Count the whole memory's tokens instead of the hit chunk's.
    pub budget_whole: bool,
    /// A boost of memories with certain labels.
    pub label_boost: Option<LabelBoost>,
    /// Boosts of turns; None adds nothing and reads no speaker.
    pub turns: Option<TurnBoosts>,
}

impl RecallRequest {
    /// Number of first memories of the semantic arm whose cosines are to be exact; 0 where no hit is wanted.
    pub(crate) fn exact_head(&self) -> usize {
        if self.k == 0 {
            0
        } else {
            self.k.max(EXACT_HEAD)
        }
    }
}

impl Default for RecallRequest {
    fn default() -> Self {
        Self {
            text: None,
            unions: Vec::new(),
            vector: None,
            k: 10,
            depth: 100,
            tags: Vec::new(),
            tag_match: TagMatch::Any,
            fact_types: Vec::new(),
            metadata: Vec::new(),
            session: None,
            occurred: None,
            retained: None,
            as_of: None,
            valid_at: None,
            memory_ids: None,
            time_windows: Vec::new(),
            // About a month: people tell of things later.
            time_tail_ms: 2_592_000_000,
            external: Vec::new(),
            fusion: FusionMethod::DistributionBased,
            // The constant of the paper (Cormack, Clarke and Buettcher, SIGIR 2009).
            rank_constant: 60.0,
            weights: [1.0; 3],
            feedback: 0.0,
            context_windows: true,
            layer_weights: Vec::new(),
            dedup_threshold: None,
            budget: None,
            budget_whole: false,
            label_boost: None,
            turns: None,
        }
    }
}
