//! The core's failures as exceptions of `astrocyte.errors`, and the guard that every entry point works behind.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::types::IntoPyDict;
use pyo3::{PyTypeInfo, import_exception};

use astrocyte_core::{CoreError, Result};

import_exception!(astrocyte.errors, DimensionMismatch);
import_exception!(astrocyte.errors, StoreError);
import_exception!(astrocyte.errors, ValidationError);

/// The location of the last panic. Its message may hold a caller's text, so it is neither printed nor passed on.
static LAST_PANIC: Mutex<String> = Mutex::new(String::new());

/// Replaces the report on standard error by a note of the place.
pub(super) fn keep_panics_quiet() {
    std::panic::set_hook(Box::new(|info| {
        let place = info
            .location()
            .map_or_else(|| "an unknown place".to_owned(), ToString::to_string);
        *LAST_PANIC.lock() = place;
    }));
}

/// Runs `work` without the interpreter; its error, or its panic, becomes an exception.
pub(super) fn detached<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T> + Send,
) -> PyResult<T> {
    raised(py.detach(|| catch_unwind(AssertUnwindSafe(work))))
}

fn raised<T>(result: thread::Result<Result<T>>) -> PyResult<T> {
    match result {
        Ok(result) => result.map_err(exception),
        Err(_) => Err(fault(format_args!(
            "the core has a bug at {}; the call had no result, please report it",
            LAST_PANIC.lock()
        ))),
    }
}

/// A `ValidationError`: the caller's value of `field` is wrong.
pub(super) fn invalid(field: &'static str, message: impl Into<String>) -> PyErr {
    refusal::<ValidationError>(field, message.into())
}

/// A `StoreError`: a scratch file, a damaged table, or a bug.
pub(super) fn fault(error: impl std::fmt::Display) -> PyErr {
    StoreError::new_err(format!("the retrieval core failed: {error}"))
}

fn refusal<E: PyTypeInfo>(field: &str, message: String) -> PyErr {
    Python::attach(|py| {
        let named = [("field", field)].into_py_dict(py)?;
        let error = py.get_type::<E>().call((message,), Some(&named))?;
        Ok(PyErr::from_value(error))
    })
    .unwrap_or_else(|error: PyErr| error)
}

/// The exception for an error of the core.
fn exception(error: CoreError) -> PyErr {
    match &error {
        CoreError::Dimensions { .. } => refusal::<DimensionMismatch>(
            "embedding",
            format!("{error}; send vectors of the bank's embedding model"),
        ),
        CoreError::Vector { .. } => invalid("vector", error.to_string()),
        CoreError::Invalid {
            field,
            expected,
            got,
        } => invalid(field, format!("expected {expected}, got {got}")),
        _ => fault(error),
    }
}
