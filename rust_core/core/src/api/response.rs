//! The response to a recall.

use std::borrow::Cow;
use std::sync::Arc;

use astrocyte_text::hash::ContentHash;

use super::row::MemoryId;

/// A current memory that is near to a vector.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Duplicate {
    /// Key of the version.
    pub key: u64,
    /// Id of the memory.
    pub memory_id: MemoryId,
    /// Exact cosine.
    pub cosine: f32,
}

/// The score of an arm for a hit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ArmScore {
    /// Index into [`RecallResponse::arm_names`].
    pub arm: u32,
    /// Rank within the arm, from 1.
    pub rank: u32,
    /// The arm's own score.
    pub score: f64,
}

/// The evidence of the relevance of a memory.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Evidence {
    /// The best cosine of the query with the memory or a chunk of it; None without a vector on either side.
    pub meaning: Option<f32>,
    /// The share of the query's stems that the hit's chunk holds; None for a query without words.
    pub covered: Option<f32>,
    /// Memories that pass the filter.
    pub memories: u32,
}

/// The evidence about the one speaker whom a query names: the largest shares of the query's stems, without the name, in
/// one of the first candidates.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SubjectEvidence {
    /// In what this speaker says of himself, or others tell him of himself.
    pub own: f32,
    /// In what others say of themselves, or this speaker tells them of themselves.
    pub other: f32,
}

/// An amount that was added to a score after the fusion.
#[derive(Debug, Clone, PartialEq)]
pub struct Boost {
    /// Name of the boost.
    pub name: Arc<str>,
    /// The amount.
    pub value: f64,
}

/// A ranked version of a memory.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// Key of the version.
    pub key: u64,
    /// Id of the memory.
    pub memory_id: MemoryId,
    /// Hash of the memory's content: equal in all banks that hold it.
    pub content_hash: ContentHash,
    /// The best chunk, -1 when the whole is the only chunk.
    pub ordinal: i32,
    /// Fused score; higher is better; finite.
    pub score: f64,
    /// The calibrated probability that the memory answers the query, if it is the first hit; see
    /// [`at_rank`](crate::at_rank).
    pub relevance: f64,
    /// The evidence of the relevance.
    pub evidence: Evidence,
    /// Tokens that the hit counts against the budget.
    pub tokens: u32,
    /// The memory's layer.
    pub layer: Arc<str>,
    /// The arms that proposed it.
    pub arms: Vec<ArmScore>,
    /// Amounts that were added to the fused score; the score includes them.
    pub boosts: Vec<Boost>,
    /// The sum of those for the kind of turn that it is, in deviations of an arm's scores.
    pub turn_lift: f64,
}

/// The answer to one recall, with what a trace needs.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RecallResponse {
    /// Best first; equal scores by ascending memory id.
    pub hits: Vec<Hit>,
    /// Arms that ran, in the order of their indices.
    pub arm_names: Vec<Cow<'static, str>>,
    /// Time that each arm took.
    pub arm_micros: Vec<f64>,
    /// Candidates that each arm proposed.
    pub arm_candidates: Vec<u32>,
    /// Time that finding and searching further words took; it is part of the keyword arm's.
    pub feedback_micros: f64,
    /// Words that the first hits added to the query.
    pub feedback_terms: u32,
    /// The evidence of the first candidate of the fusion, before any boost.
    pub lead: Option<Evidence>,
    /// The evidence about the speaker whom the query names; None if it names none, or several, or nothing else.
    pub subject: Option<SubjectEvidence>,
    /// The calibrated probability that the hits hold what was asked, by their evidence; None without a candidate.
    pub confidence: Option<f64>,
    /// Time that boosting took.
    pub boost_micros: f64,
    /// Time that boosting turns and reading their evidence took.
    pub turn_micros: f64,
    /// Mean and standard deviation of each arm's scores over all memories that pass; zeros for outside lists.
    pub arm_stats: Vec<(f64, f64)>,
    /// Distinct memories proposed by any arm.
    pub candidates: u32,
    /// Memories that pass the filter.
    pub allowed: u32,
    /// The plan of the search: "scan", "gather" or "graph", with counts.
    pub plan: String,
    /// True if the token budget dropped a hit, or the first one must be cut.
    pub truncated: bool,
    /// Ids of outside lists that this bank does not hold.
    pub unknown_external: u32,
    /// Position of the last applied commit that the answer saw.
    pub position: u64,
}

/// Versions that pass a filter and hold all words of some phrases, in any order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PhraseCandidates {
    /// Key and memory of each, by the keyword score of the words; equal scores by ascending memory id.
    pub found: Vec<(u64, MemoryId)>,
    /// Number of all such versions, those beyond the wanted number included.
    pub total: usize,
}

/// The words of a bank that begin with a prefix.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Expansion {
    /// The words, folded and in lower case, the best known first.
    pub words: Vec<String>,
    /// Number of all such words, those beyond the wanted number included.
    pub total: usize,
    /// True if the bank has more words than are kept, so that some may be missing.
    pub cut: bool,
}
