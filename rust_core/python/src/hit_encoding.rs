//! Hits for the wire, of what the core ranked and the database read back.
//!
//! This is on the path of every recall. It reads Python's objects from the first to the last, and copies a few
//! kilobytes, so that letting go of the interpreter would cost more than it frees.

use std::borrow::Cow;

use pyo3::Borrowed;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

use super::errors::invalid;
use super::result_encoding::sorted;
use astrocyte_core::api;
use astrocyte_wire::{Message, Value, field};

/// Places in a `HydratedRow`.
mod column {
    pub(super) const ROW_KEY: usize = 0;
    pub(super) const ORDINAL: usize = 1;
    pub(super) const MEMORY_ID: usize = 2;
    pub(super) const VERSION: usize = 3;
    pub(super) const CHUNK_TEXT: usize = 5;
    pub(super) const FACT_TYPE: usize = 6;
    pub(super) const MEMORY_LAYER: usize = 7;
    pub(super) const TAGS: usize = 8;
    pub(super) const METADATA: usize = 9;
    pub(super) const SOURCE: usize = 10;
    pub(super) const SESSION_ID: usize = 11;
    pub(super) const SPEAKER: usize = 12;
    pub(super) const PRINCIPAL: usize = 13;
    pub(super) const OCCURRED_AT: usize = 14;
    pub(super) const RETAINED_AT: usize = 15;
    pub(super) const CHUNK_COUNT: usize = 16;
}

/// A row as the database gave it.
struct Row<'py>(Bound<'py, PyTuple>);

impl<'py> Row<'py> {
    fn at(&self, column: usize) -> PyResult<Borrowed<'_, 'py, PyAny>> {
        self.0.get_borrowed_item(column)
    }

    fn is_of(&self, hit: &api::Hit) -> PyResult<bool> {
        Ok(self.at(column::ROW_KEY)?.extract::<u64>()? == hit.key
            && self.at(column::ORDINAL)?.extract::<i32>()? == hit.ordinal)
    }

    /// Copies a column that holds text or None.
    fn copy_text(&self, column: usize, hit: &mut astrocyte_wire::Hit, number: u32) -> PyResult<()> {
        let value = self.at(column)?;
        if !value.is_none() {
            hit.text(number, value.cast::<PyString>()?.to_str()?);
        }
        Ok(())
    }

    fn copy_count(
        &self,
        column: usize,
        hit: &mut astrocyte_wire::Hit,
        number: u32,
    ) -> PyResult<()> {
        hit.count(number, self.at(column)?.extract()?);
        Ok(())
    }

    /// Copies a column that holds milliseconds or None.
    fn copy_instant(
        &self,
        column: usize,
        hit: &mut astrocyte_wire::Hit,
        number: u32,
    ) -> PyResult<()> {
        let value = self.at(column)?;
        if !value.is_none() {
            hit.instant(number, value.extract()?);
        }
        Ok(())
    }

    fn copy_tags(&self, hit: &mut astrocyte_wire::Hit) -> PyResult<()> {
        for tag in self.at(column::TAGS)?.cast::<PyTuple>()?.iter_borrowed() {
            hit.tag(tag.cast::<PyString>()?.to_str()?);
        }
        Ok(())
    }

    fn copy_metadata(&self, hit: &mut astrocyte_wire::Hit) -> PyResult<()> {
        let metadata = self.at(column::METADATA)?;
        let metadata = metadata.cast::<PyDict>()?;
        for (key, value) in &sorted(&metadata)? {
            hit.metadata(key.to_str()?, self::value(value)?);
        }
        Ok(())
    }
}

/// A value of metadata. Truth values are whole numbers to Python, so they are asked for first.
fn value<'a>(value: &'a Bound<'_, PyAny>) -> PyResult<Value<'a>> {
    if let Ok(text) = value.cast::<PyString>() {
        Ok(Value::Text(text.to_str()?))
    } else if let Ok(flag) = value.cast::<PyBool>() {
        Ok(Value::Bool(flag.is_true()))
    } else if let Ok(number) = value.cast::<PyInt>() {
        Ok(Value::Int(number.extract()?))
    } else if let Ok(number) = value.cast::<PyFloat>() {
        Ok(Value::Double(number.value()))
    } else if value.is_none() {
        Ok(Value::Null)
    } else {
        Err(invalid(
            "metadata",
            "expected text, a number, a truth value or None",
        ))
    }
}

/// Adds the hits of `response` that are among `rows` to an answer's message, as its first field.
pub(super) fn put_hits(
    answer: &mut Message,
    response: &api::RecallResponse,
    rows: &Bound<'_, PyList>,
    bank_id: &str,
    include_sources: bool,
) -> PyResult<()> {
    let rows = rows
        .iter()
        .map(|row| Ok(Row(row.cast_into()?)))
        .collect::<PyResult<Vec<_>>>()?;
    let names = &response.arm_names;
    let mut encoded = astrocyte_wire::Hit::default();
    // Rows come in the order of the hits, as a rule: the search for a hit's goes on behind the last one's.
    let mut next = 0;
    // No score is above the one before.
    let (mut score, mut rank) = (1.0f64, 0);
    for hit in &response.hits {
        let (after, before) = (next..rows.len(), 0..next);
        for place in after.chain(before) {
            if rows[place].is_of(hit)? {
                rank += 1;
                score = score.min(astrocyte_core::at_rank(hit.relevance, rank));
                encode(
                    &rows[place],
                    hit,
                    score,
                    names,
                    bank_id,
                    include_sources,
                    &mut encoded,
                )?;
                encoded.finish(answer);
                next = place + 1;
                break;
            }
        }
    }
    Ok(())
}

/// Writes one hit, its fields in the order of their numbers.
fn encode(
    row: &Row<'_>,
    hit: &api::Hit,
    score: f64,
    names: &[Cow<'static, str>],
    bank_id: &str,
    include_sources: bool,
    encoded: &mut astrocyte_wire::Hit,
) -> PyResult<()> {
    row.copy_text(column::MEMORY_ID, encoded, field::MEMORY_ID)?;
    row.copy_text(column::CHUNK_TEXT, encoded, field::TEXT)?;
    encoded.score(score);
    encoded.text(field::BANK_ID, bank_id);
    row.copy_metadata(encoded)?;
    row.copy_tags(encoded)?;
    row.copy_instant(column::OCCURRED_AT, encoded, field::OCCURRED_AT)?;
    row.copy_instant(column::RETAINED_AT, encoded, field::RETAINED_AT)?;
    if include_sources {
        row.copy_text(column::SOURCE, encoded, field::SOURCE)?;
    }
    row.copy_text(column::MEMORY_LAYER, encoded, field::MEMORY_LAYER)?;
    row.copy_text(column::FACT_TYPE, encoded, field::FACT_TYPE)?;
    row.copy_text(column::SESSION_ID, encoded, field::SESSION_ID)?;
    row.copy_text(column::SPEAKER, encoded, field::SPEAKER)?;
    if include_sources {
        row.copy_text(column::PRINCIPAL, encoded, field::PRINCIPAL)?;
    }
    encoded.chunk_index(hit.ordinal);
    row.copy_count(column::CHUNK_COUNT, encoded, field::CHUNK_COUNT)?;
    encoded.count(field::TOKEN_COUNT, i64::from(hit.tokens));
    row.copy_count(column::VERSION, encoded, field::VERSION)?;
    for arm in &hit.arms {
        let name = names.get(arm.arm as usize).map_or("", AsRef::as_ref);
        encoded.arm(name, arm.rank, arm.score);
    }
    for boost in &hit.boosts {
        encoded.boost(&boost.name, boost.value);
    }
    encoded.fused_score(hit.score);
    Ok(())
}
