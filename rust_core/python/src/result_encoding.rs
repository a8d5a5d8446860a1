//! The fields of a recall's response beside its hits, for the wire. They come from the attributes of the result and its
//! trace.
//!
//! As in `hit_encoding`, all of it reads Python's objects. Attributes are read by interned names, which costs a tenth of
//! setting each field of a protobuf message from Python.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple};

use astrocyte_wire::Message;
use astrocyte_wire::answer::field;

/// Copies attributes, each with the function for its kind and under the number of its field. None is left out.
macro_rules! copy_attributes {
    ($object:expr => $message:expr, { $($name:literal: $copy:ident = $number:expr,)+ }) => {
        $({
            let value = $object.getattr(intern!($object.py(), $name))?;
            if !value.is_none() {
                $copy($message, $number, &value)?;
            }
        })+
    };
}

/// Adds the fields of a `RecallResult` to a message that has its hits; `windows` are the time windows of its trace, as
/// messages.
pub(super) fn put_result(
    message: &mut Message,
    result: &Bound<'_, PyAny>,
    windows: &[Bound<'_, PyBytes>],
) -> PyResult<()> {
    copy_attributes!(result => message, {
        "total_available": int = field::TOTAL_AVAILABLE,
        "truncated": flag = field::TRUNCATED,
    });
    let trace = result.getattr(intern!(result.py(), "trace"))?;
    if !trace.is_none() {
        message.put_message(field::TRACE, &encoded_trace(&trace, windows)?);
    }
    copy_attributes!(result => message, {
        "authority_context": text = field::AUTHORITY_CONTEXT,
        "warnings": texts = field::WARNINGS,
        "confidence": present_double = field::CONFIDENCE,
        "abstain": flag = field::ABSTAIN,
    });
    Ok(())
}

fn encoded_trace(trace: &Bound<'_, PyAny>, windows: &[Bound<'_, PyBytes>]) -> PyResult<Message> {
    use field::trace as number;
    let mut message = Message::default();
    copy_attributes!(trace => &mut message, {
        "strategies_used": texts = number::STRATEGIES_USED,
        "total_candidates": int = number::TOTAL_CANDIDATES,
        "fusion_method": text = number::FUSION_METHOD,
        "latency_ms": double = number::LATENCY_MS,
        "strategy_timings_ms": doubles_by_name = number::STRATEGY_TIMINGS_MS,
        "strategy_candidate_counts": ints_by_name = number::STRATEGY_CANDIDATE_COUNTS,
        "tier_used": int = number::TIER_USED,
        "layer_distribution": ints_by_name = number::LAYER_DISTRIBUTION,
        "cache_hit": flag = number::CACHE_HIT,
        "wiki_tier_used": flag = number::WIKI_TIER_USED,
        "stage_timings_ms": doubles_by_name = number::STAGE_TIMINGS_MS,
        "plan": text = number::PLAN,
    });
    for window in windows {
        message.put_encoded(number::TIME_WINDOWS, window.as_bytes());
    }
    copy_attributes!(trace => &mut message, {
        "position": int = number::POSITION,
        "degraded": text = number::DEGRADED,
        "intent": text = number::INTENT,
        "intent_confidence": double = number::INTENT_CONFIDENCE,
        "tier_reason": text = number::TIER_REASON,
    });
    Ok(message)
}

fn int(message: &mut Message, number: u32, value: &Bound<'_, PyAny>) -> PyResult<()> {
    message.int(number, value.extract()?);
    Ok(())
}

fn double(message: &mut Message, number: u32, value: &Bound<'_, PyAny>) -> PyResult<()> {
    message.double(number, value.extract()?);
    Ok(())
}

fn present_double(message: &mut Message, number: u32, value: &Bound<'_, PyAny>) -> PyResult<()> {
    message.put_double(number, value.extract()?);
    Ok(())
}

fn flag(message: &mut Message, number: u32, value: &Bound<'_, PyAny>) -> PyResult<()> {
    message.bool(number, value.extract()?);
    Ok(())
}

fn text(message: &mut Message, number: u32, value: &Bound<'_, PyAny>) -> PyResult<()> {
    message.text(number, value.cast::<PyString>()?.to_str()?);
    Ok(())
}

fn texts(message: &mut Message, number: u32, values: &Bound<'_, PyAny>) -> PyResult<()> {
    for value in values.cast::<PyTuple>()?.iter_borrowed() {
        message.put_text(number, value.cast::<PyString>()?.to_str()?);
    }
    Ok(())
}

fn doubles_by_name(message: &mut Message, number: u32, values: &Bound<'_, PyAny>) -> PyResult<()> {
    entries(message, number, values, |entry, value| {
        entry.put_double(2, value.extract()?);
        Ok(())
    })
}

fn ints_by_name(message: &mut Message, number: u32, values: &Bound<'_, PyAny>) -> PyResult<()> {
    entries(message, number, values, |entry, value| {
        entry.put_int(2, value.extract()?);
        Ok(())
    })
}

/// Copies a dictionary by text, in the order of the keys.
fn entries<'py>(
    message: &mut Message,
    number: u32,
    values: &Bound<'py, PyAny>,
    put: impl Fn(&mut Message, &Bound<'py, PyAny>) -> PyResult<()>,
) -> PyResult<()> {
    let mut entry = Message::default();
    for (key, value) in &sorted(values.cast::<PyDict>()?)? {
        entry.clear();
        entry.put_text(1, key.to_str()?);
        put(&mut entry, value)?;
        message.put_message(number, &entry);
    }
    Ok(())
}

/// The entries of a dictionary by text, in the order of the keys' bytes.
pub(super) fn sorted<'py>(
    values: &Bound<'py, PyDict>,
) -> PyResult<Vec<(Bound<'py, PyString>, Bound<'py, PyAny>)>> {
    let mut entries = Vec::with_capacity(values.len());
    for (key, value) in values.iter() {
        let key = key.cast_into::<PyString>()?;
        // The text of a key is read here, where a key without one can be refused.
        key.to_str()?;
        entries.push((key, value));
    }
    entries.sort_unstable_by(|(left, _), (right, _)| left.to_str().ok().cmp(&right.to_str().ok()));
    Ok(entries)
}
