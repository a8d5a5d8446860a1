//! Arguments with checks of their own: texts, ids, vectors.

use pyo3::exceptions::PyUnicodeEncodeError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyBytes, PyString};

use super::errors::invalid;

/// Bytes of an f32.
const F32_BYTES: usize = size_of::<f32>();

/// A string that has a UTF-8 form, borrowed from Python.
pub(super) struct Text(pub(super) PyBackedStr);

impl<'py> FromPyObject<'_, 'py> for Text {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let string = object.cast::<PyString>()?.to_owned();
        PyBackedStr::try_from(string).map(Self).map_err(|error| {
            // The exception's own text quotes the string; ours does not.
            if error.is_instance_of::<PyUnicodeEncodeError>(object.py()) {
                invalid(
                    "text",
                    "has a lone surrogate, so it is no Unicode text; replace or drop it",
                )
            } else {
                error
            }
        })
    }
}

impl Text {
    pub(super) fn into_string(self) -> String {
        self.0.to_string()
    }
}

/// Owned strings of `texts`.
pub(super) fn strings(texts: Vec<Text>) -> Vec<String> {
    texts.into_iter().map(Text::into_string).collect()
}

/// Owned pairs of `pairs`.
pub(super) fn string_pairs(pairs: Vec<(Text, Text)>) -> Vec<(String, String)> {
    pairs
        .into_iter()
        .map(|(key, value)| (key.into_string(), value.into_string()))
        .collect()
}

/// Sixteen bytes: a memory id or a content hash.
pub(super) struct Id(pub(super) [u8; 16]);

impl<'py> FromPyObject<'_, 'py> for Id {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let object = object.cast::<PyBytes>()?;
        let bytes = object.as_bytes();
        let id = bytes
            .try_into()
            .map_err(|_| invalid("id", format!("expected 16 bytes, got {}", bytes.len())))?;
        Ok(Self(id))
    }
}

/// Little-endian f32 bytes, copied.
pub(super) struct Vector(pub(super) Vec<f32>);

impl<'py> FromPyObject<'_, 'py> for Vector {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let object = object.cast::<PyBytes>()?;
        let (values, rest) = object.as_bytes().as_chunks::<F32_BYTES>();
        if !rest.is_empty() {
            let got = values.len() * F32_BYTES + rest.len();
            return Err(invalid(
                "vector",
                format!("expected little-endian f32 values, 4 bytes each, got {got} bytes"),
            ));
        }
        Ok(Self(
            values
                .iter()
                .map(|&bytes| f32::from_le_bytes(bytes))
                .collect(),
        ))
    }
}
