//! `astrocyte.v1.MemoryHit`.

use super::message::Message;

const MILLIS_PER_SECOND: i64 = 1_000;
const NANOS_PER_MILLI: i64 = 1_000_000;

/// Numbers of the fields of `MemoryHit`, and of the answers that hold hits. A Python test holds them against the
/// protocol's descriptors and fails for a field that is missing here.
pub mod field {
    #![expect(missing_docs, reason = "the protocol documents its fields")]
    /// Of `RecallResponse` and `HistoryResponse` alike.
    pub const HITS: u32 = 1;
    pub const MEMORY_ID: u32 = 1;
    pub const TEXT: u32 = 2;
    pub const SCORE: u32 = 3;
    pub const BANK_ID: u32 = 4;
    pub const METADATA: u32 = 5;
    pub const TAGS: u32 = 6;
    pub const OCCURRED_AT: u32 = 7;
    pub const RETAINED_AT: u32 = 8;
    pub const SOURCE: u32 = 9;
    pub const MEMORY_LAYER: u32 = 10;
    pub const FACT_TYPE: u32 = 11;
    pub const SESSION_ID: u32 = 12;
    pub const SPEAKER: u32 = 13;
    pub const PRINCIPAL: u32 = 14;
    pub const CHUNK_INDEX: u32 = 15;
    pub const CHUNK_COUNT: u32 = 16;
    pub const TOKEN_COUNT: u32 = 17;
    pub const VERSION: u32 = 18;
    pub const ARMS: u32 = 19;
    pub const BOOSTS: u32 = 22;
    pub const FUSED_SCORE: u32 = 25;
}

/// A value of a memory's metadata: the kinds of `MetadataValue`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// `string_value`.
    Text(&'a str),
    /// `int_value`.
    Int(i64),
    /// `double_value`.
    Double(f64),
    /// `bool_value`.
    Bool(bool),
    /// `null_value`.
    Null,
}

/// A hit in the middle of being written: fields are added in the order of their numbers.
#[derive(Debug, Default)]
pub struct Hit {
    message: Message,
    // For what stands within the hit, and within that.
    inner: Message,
    value: Message,
}

impl Hit {
    /// Adds the hit to an answer, and is empty again.
    pub fn finish(&mut self, answer: &mut Message) {
        answer.put_message(field::HITS, &self.message);
        self.message.clear();
    }

    /// A field that holds text; empty is nothing.
    pub fn text(&mut self, number: u32, value: &str) {
        self.message.text(number, value);
    }

    /// A label; an empty one counts.
    pub fn tag(&mut self, value: &str) {
        self.message.put_text(field::TAGS, value);
    }

    /// A field that holds a count.
    pub fn count(&mut self, number: u32, value: i64) {
        self.message.int(number, value);
    }

    /// The relevance.
    pub fn score(&mut self, value: f64) {
        self.message.double(field::SCORE, value);
    }

    /// The score of the fusion.
    pub fn fused_score(&mut self, value: f64) {
        self.message.put_double(field::FUSED_SCORE, value);
    }

    /// The chunk that the text is, from 0; a negative number is none.
    pub fn chunk_index(&mut self, ordinal: i32) {
        if ordinal >= 0 {
            self.message.put_int(field::CHUNK_INDEX, i64::from(ordinal));
        }
    }

    /// One entry of the metadata; entries come in the order of their keys' bytes.
    pub fn metadata(&mut self, key: &str, value: Value<'_>) {
        self.value.clear();
        match value {
            Value::Text(text) => self.value.put_text(1, text),
            Value::Int(number) => self.value.put_int(2, number),
            Value::Double(number) => self.value.put_double(3, number),
            Value::Bool(flag) => self.value.put_bool(4, flag),
            Value::Null => self.value.put_int(5, 0),
        }
        self.inner.clear();
        self.inner.put_text(1, key);
        self.inner.put_message(2, &self.value);
        self.message.put_message(field::METADATA, &self.inner);
    }

    /// An instant in milliseconds since 1970.
    pub fn instant(&mut self, number: u32, milliseconds: i64) {
        self.inner.clear();
        self.inner
            .int(1, milliseconds.div_euclid(MILLIS_PER_SECOND));
        let rest = milliseconds.rem_euclid(MILLIS_PER_SECOND);
        self.inner.int(2, rest * NANOS_PER_MILLI);
        self.message.put_message(number, &self.inner);
    }

    /// Adds a boost of its score by name.
    pub fn boost(&mut self, name: &str, value: f64) {
        self.inner.clear();
        self.inner.text(1, name);
        self.inner.double(2, value);
        self.message.put_message(field::BOOSTS, &self.inner);
    }

    /// Where an arm put it.
    pub fn arm(&mut self, name: &str, rank: u32, score: f64) {
        self.inner.clear();
        self.inner.text(1, name);
        self.inner.int(2, i64::from(rank));
        self.inner.double(3, score);
        self.message.put_message(field::ARMS, &self.inner);
    }
}
