//! The fields of an answer beside its hits, for the wire. They come from the attributes of the result and the trace.
//!
//! As in `encode`, all of it reads Python's objects. Attributes are read by interned names, which costs a tenth of setting
//! each field of a protobuf message from Python.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple};

use astrocyte_wire::Message;
use astrocyte_wire::answer::field;

/// Calls a method of [`Message`] with a field's number and the value of an attribute.
macro_rules! copy {
    ($message:ident . $method:ident, $object:expr, $name:literal, $number:expr, $kind:ty) => {
        if let Some(value) = $object
            .getattr(intern!($object.py(), $name))?
            .extract::<Option<$kind>>()?
        {
            $message.$method($number, value);
        }
    };
}

/// An answer's fields but its hits. See `_core.pyi`.
#[pyfunction]
pub(super) fn encode_answer<'py>(
    py: Python<'py>,
    result: &Bound<'py, PyAny>,
    trace: Option<&[u8]>,
) -> PyResult<Bound<'py, PyBytes>> {
    let mut answer = Message::default();
    copy!(
        answer.int,
        result,
        "total_available",
        field::TOTAL_AVAILABLE,
        i64
    );
    copy!(answer.bool, result, "truncated", field::TRUNCATED, bool);
    if let Some(trace) = trace {
        answer.put_encoded(field::TRACE, trace);
    }
    copy_text(
        &mut answer,
        result,
        intern!(py, "authority_context"),
        field::AUTHORITY_CONTEXT,
    )?;
    copy_texts(
        &mut answer,
        result,
        intern!(py, "warnings"),
        field::WARNINGS,
    )?;
    copy!(
        answer.put_double,
        result,
        "confidence",
        field::CONFIDENCE,
        f64
    );
    copy!(answer.bool, result, "abstain", field::ABSTAIN, bool);
    Ok(PyBytes::new(py, answer.bytes()))
}

/// Answers, each in two pieces, as the members of a batch's. See `_core.pyi`.
#[pyfunction]
pub(super) fn encode_answers<'py>(
    py: Python<'py>,
    answers: Vec<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)>,
) -> Bound<'py, PyBytes> {
    let mut batch = Message::default();
    for (hits, rest) in &answers {
        batch.put_pieces(field::RESULTS, [hits.as_bytes(), rest.as_bytes()]);
    }
    PyBytes::new(py, batch.bytes())
}

/// A trace. See `_core.pyi`.
#[pyfunction]
pub(super) fn encode_trace<'py>(
    py: Python<'py>,
    trace: &Bound<'py, PyAny>,
    windows: Vec<Bound<'py, PyBytes>>,
) -> PyResult<Bound<'py, PyBytes>> {
    use field::trace as number;
    let mut message = Message::default();
    let to = &mut message;
    copy_texts(
        to,
        trace,
        intern!(py, "strategies_used"),
        number::STRATEGIES_USED,
    )?;
    copy!(
        to.int,
        trace,
        "total_candidates",
        number::TOTAL_CANDIDATES,
        i64
    );
    copy_text(
        to,
        trace,
        intern!(py, "fusion_method"),
        number::FUSION_METHOD,
    )?;
    copy!(to.double, trace, "latency_ms", number::LATENCY_MS, f64);
    copy_reals(
        to,
        trace,
        intern!(py, "strategy_timings_ms"),
        number::STRATEGY_TIMINGS_MS,
    )?;
    let counts = intern!(py, "strategy_candidate_counts");
    copy_counts(to, trace, counts, number::STRATEGY_CANDIDATE_COUNTS)?;
    copy!(to.int, trace, "tier_used", number::TIER_USED, i64);
    copy_counts(
        to,
        trace,
        intern!(py, "layer_distribution"),
        number::LAYER_DISTRIBUTION,
    )?;
    copy!(to.bool, trace, "cache_hit", number::CACHE_HIT, bool);
    copy!(
        to.bool,
        trace,
        "wiki_tier_used",
        number::WIKI_TIER_USED,
        bool
    );
    copy_reals(
        to,
        trace,
        intern!(py, "stage_timings_ms"),
        number::STAGE_TIMINGS_MS,
    )?;
    copy_text(to, trace, intern!(py, "plan"), number::PLAN)?;
    for window in windows {
        to.put_encoded(number::TIME_WINDOWS, window.as_bytes());
    }
    copy!(to.int, trace, "position", number::POSITION, i64);
    copy_text(to, trace, intern!(py, "degraded"), number::DEGRADED)?;
    copy_text(to, trace, intern!(py, "intent"), number::INTENT)?;
    copy!(
        to.double,
        trace,
        "intent_confidence",
        number::INTENT_CONFIDENCE,
        f64
    );
    copy_text(to, trace, intern!(py, "tier_reason"), number::TIER_REASON)?;
    Ok(PyBytes::new(py, message.bytes()))
}

/// Copies an attribute that holds text or None.
fn copy_text(
    message: &mut Message,
    object: &Bound<'_, PyAny>,
    name: &Bound<'_, PyString>,
    number: u32,
) -> PyResult<()> {
    let value = object.getattr(name)?;
    if !value.is_none() {
        message.text(number, value.cast::<PyString>()?.to_str()?);
    }
    Ok(())
}

/// Copies an attribute that holds a tuple of texts or None.
fn copy_texts(
    message: &mut Message,
    object: &Bound<'_, PyAny>,
    name: &Bound<'_, PyString>,
    number: u32,
) -> PyResult<()> {
    let values = object.getattr(name)?;
    if values.is_none() {
        return Ok(());
    }
    for value in values.cast::<PyTuple>()?.iter_borrowed() {
        message.put_text(number, value.cast::<PyString>()?.to_str()?);
    }
    Ok(())
}

fn copy_reals(
    message: &mut Message,
    object: &Bound<'_, PyAny>,
    name: &Bound<'_, PyString>,
    number: u32,
) -> PyResult<()> {
    copy_map(message, object, name, number, |entry, value| {
        entry.put_double(2, value.extract()?);
        Ok(())
    })
}

fn copy_counts(
    message: &mut Message,
    object: &Bound<'_, PyAny>,
    name: &Bound<'_, PyString>,
    number: u32,
) -> PyResult<()> {
    copy_map(message, object, name, number, |entry, value| {
        entry.put_int(2, value.extract()?);
        Ok(())
    })
}

/// Copies an attribute that holds a dictionary by text or None, in the order of the keys.
fn copy_map<'py>(
    message: &mut Message,
    object: &Bound<'py, PyAny>,
    name: &Bound<'py, PyString>,
    number: u32,
    put: impl Fn(&mut Message, &Bound<'py, PyAny>) -> PyResult<()>,
) -> PyResult<()> {
    let map = object.getattr(name)?;
    if map.is_none() {
        return Ok(());
    }
    put_dict(message, map.cast::<PyDict>()?, number, put)
}

fn put_dict<'py>(
    message: &mut Message,
    map: &Bound<'py, PyDict>,
    number: u32,
    put: impl Fn(&mut Message, &Bound<'py, PyAny>) -> PyResult<()>,
) -> PyResult<()> {
    let mut entries = Vec::with_capacity(map.len());
    for (key, value) in map.iter() {
        entries.push((key.cast_into::<PyString>()?, value));
    }
    let mut entries = entries
        .iter()
        .map(|(key, value)| Ok((key.to_str()?, value)))
        .collect::<PyResult<Vec<_>>>()?;
    entries.sort_unstable_by_key(|(key, _)| *key);
    let mut entry = Message::default();
    for (key, value) in entries {
        entry.clear();
        entry.put_text(1, key);
        put(&mut entry, value)?;
        message.put_message(number, &entry);
    }
    Ok(())
}
