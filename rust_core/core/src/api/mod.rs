//! The values that cross the crate's border: rows in, requests in, hits out.

mod error;

use std::borrow::Cow;
use std::sync::Arc;

pub use astrocyte_text::hash::ContentHash;
pub use error::{CoreError, Result};

/// Sixteen bytes that name a memory over all its versions.
pub type MemoryId = [u8; 16];

/// A piece of a memory that has several.
#[derive(Debug, Clone, PartialEq)]
pub struct Chunk {
    /// Text to index for keywords.
    pub text: String,
    /// Embedding, or None when only the whole has one.
    pub vector: Option<Vec<f32>>,
    /// Tokens of the chunk's text, for budgets.
    pub tokens: u32,
}

/// One version of a memory, ready to be indexed. Times are milliseconds since the epoch.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Names the version for ever.
    pub key: u64,
    /// Names the memory.
    pub memory_id: MemoryId,
    /// Hash of the normalised content.
    pub content_hash: ContentHash,
    /// Text of the whole to index for keywords, with speaker and date.
    pub text: String,
    /// Embedding of the whole.
    pub vector: Option<Vec<f32>>,
    /// Tokens of the whole, for budgets.
    pub tokens: u32,
    /// When the service began to hold this version as the truth.
    pub known_from: i64,
    /// When the memory was first stored; None where this is its first version, which `known_from` tells.
    pub retained_at: Option<i64>,
    /// When it stopped; None while it is current. The instant itself is not included.
    pub known_until: Option<i64>,
    /// When the event was.
    pub occurred_at: Option<i64>,
    /// Start of the time for which the statement holds, included.
    pub valid_from: Option<i64>,
    /// End of that time, included.
    pub valid_until: Option<i64>,
    /// Kind of fact; empty when unknown.
    pub fact_type: String,
    /// Memory layer; empty when unknown.
    pub layer: String,
    /// Tags, in any order.
    pub tags: Vec<String>,
    /// Metadata pairs that filters may ask for by equality.
    pub metadata: Vec<(String, String)>,
    /// Conversation that the memory belongs to.
    pub session: Option<String>,
    /// Pieces; empty when the whole is the only chunk.
    pub chunks: Vec<Chunk>,
}

impl Row {
    /// A row with the given identity and text, current from `known_from` on, and nothing else set.
    pub fn new(
        key: u64,
        memory_id: MemoryId,
        content_hash: ContentHash,
        text: String,
        known_from: i64,
    ) -> Self {
        Self {
            key,
            memory_id,
            content_hash,
            text,
            vector: None,
            tokens: 0,
            known_from,
            retained_at: None,
            known_until: None,
            occurred_at: None,
            valid_from: None,
            valid_until: None,
            fact_type: String::new(),
            layer: String::new(),
            tags: Vec::new(),
            metadata: Vec::new(),
            session: None,
            chunks: Vec::new(),
        }
    }
}

/// How several tags of a filter combine.
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

/// How the arms' lists become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FusionMethod {
    /// Distribution-based score fusion: weighted sum of the z-scores within each arm.
    #[default]
    DistributionBased,
    /// Weighted sum of 1 / (rank constant + rank).
    ReciprocalRank,
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
    /// What hits say of it.
    pub name: Arc<str>,
    /// Metadata pairs, of which one is enough.
    pub labels: Vec<(String, String)>,
    /// What is added to a score.
    pub value: f64,
    /// How far a hit that feedback kept at the head is above the next one.
    pub standing: f64,
    /// Hits wanted, out of the `k` that are looked at.
    pub wanted: usize,
    /// Most tokens of these; where they have more, all `k` are hits, for the caller to choose.
    pub budget: u64,
}

/// Everything that one recall needs. `Default` gives the documented defaults.
#[derive(Debug, Clone, PartialEq)]
pub struct RecallRequest {
    /// Words to search; None runs no keyword arm.
    pub text: Option<String>,
    /// Query embedding; None runs no semantic arm.
    pub vector: Option<Vec<f32>>,
    /// Hits wanted.
    pub k: usize,
    /// Candidates per arm.
    pub depth: usize,
    /// Tags to match.
    pub tags: Vec<String>,
    /// How the tags combine.
    pub tag_match: TagMatch,
    /// Fact types that pass; empty lets all pass.
    pub fact_types: Vec<String>,
    /// Metadata pairs that must all be there.
    pub metadata: Vec<(String, String)>,
    /// Conversation to stay within.
    pub session: Option<String>,
    /// First and last instant of `occurred_at` (the time of first storing where there is none), both included, None open.
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
    /// How long after a window the temporal arm's score decays, in milliseconds.
    pub time_tail_ms: i64,
    /// Lists from outside, each a further arm.
    pub external: Vec<ExternalList>,
    /// How arms are fused.
    pub fusion: FusionMethod,
    /// The rank constant of reciprocal rank fusion, above 0.
    pub rank_constant: f64,
    /// Weights of the semantic, keyword and temporal arms; 0 turns an arm off.
    pub weights: [f64; 3],
    /// Weight of the words that the first hits add to the query, against 1 of its own; 0 adds none.
    pub feedback: f32,
    /// Whether a short turn is scored with its neighbours in the conversation.
    pub context_windows: bool,
    /// Factors per memory layer; layers not named count 1.
    pub layer_weights: Vec<(String, f64)>,
    /// Cosine at which two hits count as one; None dedups by content hash alone.
    pub dedup_threshold: Option<f32>,
    /// Most tokens that the hits may have together.
    pub budget: Option<u64>,
    /// Count the whole memory's tokens instead of the hit chunk's.
    pub budget_whole: bool,
    /// What is boosted by a label.
    pub label_boost: Option<LabelBoost>,
}

impl Default for RecallRequest {
    fn default() -> Self {
        Self {
            text: None,
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
        }
    }
}

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

/// An arm's word on a hit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ArmScore {
    /// Index into [`RecallResponse::arm_names`].
    pub arm: u32,
    /// Rank within the arm, from 1.
    pub rank: u32,
    /// The arm's own score.
    pub score: f64,
}

/// What was added to a score after the fusion.
#[derive(Debug, Clone, PartialEq)]
pub struct Boost {
    /// Of what.
    pub name: Arc<str>,
    /// How much.
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
    /// Tokens that the hit counts against the budget.
    pub tokens: u32,
    /// The memory's layer.
    pub layer: Arc<str>,
    /// The arms that proposed it.
    pub arms: Vec<ArmScore>,
    /// What was added to the fused score; part of it.
    pub boosts: Vec<Boost>,
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
    /// What the arms say of the first hit of the fusion, whatever was boosted after it.
    pub lead: Vec<ArmScore>,
    /// Time that boosting took.
    pub boost_micros: f64,
    /// Mean and standard deviation of each arm's scores over all memories that pass; zeros for outside lists.
    pub arm_stats: Vec<(f64, f64)>,
    /// Distinct memories proposed by any arm.
    pub candidates: u32,
    /// Memories that pass the filter.
    pub allowed: u32,
    /// How the filter was met: "scan" or "gather", with counts.
    pub plan: String,
    /// Whether the token budget dropped a hit, or the first one must be cut.
    pub truncated: bool,
    /// Ids of outside lists that this bank does not hold.
    pub unknown_external: u32,
    /// Position of the last applied commit that the answer saw.
    pub position: u64,
}

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

/// What an arm says of a memory, whether it proposes it or not.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Standing {
    /// Rank among all memories that pass, from 1; 0 when the arm does not know it.
    pub rank: u32,
    /// The arm's own score.
    pub score: Option<f64>,
    /// Whether the rank is within the depth, so that the arm proposes it.
    pub proposed: bool,
}

/// What became of a memory in a recall.
#[derive(Debug, Clone, PartialEq)]
pub struct Fate {
    /// The memory.
    pub memory_id: MemoryId,
    /// How far it came.
    pub step: Step,
    /// By arm, in the order of [`RecallResponse::arm_names`]; empty for a memory that does not pass.
    pub arms: Vec<Standing>,
    /// Rank in the fused list, from 1; 0 when no arm proposed it.
    pub fused_rank: u32,
    /// Fused score, where it has a rank.
    pub fused_score: Option<f64>,
    /// Which hit it is, or would be if there were room, from 1; 0 when it never had a turn.
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
    /// Of a memory that the index does not hold.
    pub(crate) fn new(memory_id: MemoryId) -> Self {
        Self {
            memory_id,
            step: Step::Unknown,
            arms: Vec::new(),
            fused_rank: 0,
            fused_score: None,
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

/// Counts and bytes of a bank's index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BankStats {
    /// Current memories.
    pub memories: u64,
    /// Versions held, ended ones included.
    pub versions: u64,
    /// Indexed rows: wholes and chunks.
    pub rows: u64,
    /// Rows of removed versions, not yet compacted away.
    pub dead_rows: u64,
    /// Distinct terms.
    pub terms: u64,
    /// Conversations.
    pub sessions: u64,
    /// Resident bytes of the int8 rows.
    pub bytes_vectors: u64,
    /// Resident bytes of the keyword index.
    pub bytes_lexical: u64,
    /// Resident bytes of columns, maps and filters.
    pub bytes_columns: u64,
    /// Bytes of original vectors: on disk, or in memory without a scratch file.
    pub bytes_scratch: u64,
    /// Sealed segments.
    pub segments: u64,
    /// Vectors in the segments' graphs, dead ones included.
    pub graph_rows: u64,
    /// Resident bytes of the graphs.
    pub bytes_graphs: u64,
    /// Walks of the graphs that were compared with a scan, of late.
    pub sampled: u64,
    /// Of the ten nearest rows in each of these, how many there were.
    pub sampled_wanted: u64,
    /// And how many of them the walk had found.
    pub sampled_found: u64,
    /// How often the walks were widened because too few were found; beyond three the scan has taken over.
    pub widened: u64,
    /// All resident bytes, with what the builds that are due will add.
    pub bytes: u64,
}
