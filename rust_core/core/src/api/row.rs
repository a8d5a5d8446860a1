//! A memory to be indexed.

use astrocyte_text::hash::ContentHash;

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
