//! A version of a memory, ready to be indexed.

use pyo3::prelude::*;

use super::arguments::{Id, Text, Vector, string_pairs, strings};
use astrocyte_core::api;

#[pyclass(frozen, module = "astrocyte._core")]
pub(super) struct Row {
    pub(super) row: api::Row,
}

#[pymethods]
impl Row {
    #[new]
    #[pyo3(signature = (
        key, memory_id, content_hash, text, vector, *, tokens, known_from, retained_at=None, known_until=None,
        occurred_at=None, valid_from=None, valid_until=None, fact_type=None, layer=None, tags=vec![], metadata=vec![], session=None,
        chunks=vec![]
    ))]
    #[pyo3(
        text_signature = "(key, memory_id, content_hash, text, vector, *, tokens, known_from, retained_at=None, \
        known_until=None, occurred_at=None, valid_from=None, valid_until=None, fact_type='', layer='', tags=(), metadata=(), \
        session=None, chunks=())"
    )]
    #[expect(clippy::too_many_arguments, reason = "one keyword argument per column")]
    fn new(
        key: u64,
        memory_id: Id,
        content_hash: Id,
        text: Text,
        vector: Option<Vector>,
        tokens: u32,
        known_from: i64,
        retained_at: Option<i64>,
        known_until: Option<i64>,
        occurred_at: Option<i64>,
        valid_from: Option<i64>,
        valid_until: Option<i64>,
        fact_type: Option<Text>,
        layer: Option<Text>,
        tags: Vec<Text>,
        metadata: Vec<(Text, Text)>,
        session: Option<Text>,
        chunks: Vec<(Text, Option<Vector>, u32)>,
    ) -> Self {
        let chunks = chunks.into_iter().map(|(text, vector, tokens)| api::Chunk {
            text: text.into_string(),
            vector: vector.map(|vector| vector.0),
            tokens,
        });
        let row = api::Row {
            vector: vector.map(|vector| vector.0),
            tokens,
            retained_at,
            known_until,
            occurred_at,
            valid_from,
            valid_until,
            fact_type: fact_type.map_or_else(String::new, Text::into_string),
            layer: layer.map_or_else(String::new, Text::into_string),
            tags: strings(tags),
            metadata: string_pairs(metadata),
            session: session.map(Text::into_string),
            chunks: chunks.collect(),
            ..api::Row::new(
                key,
                memory_id.0,
                content_hash.0,
                text.into_string(),
                known_from,
            )
        };
        Self { row }
    }
}
