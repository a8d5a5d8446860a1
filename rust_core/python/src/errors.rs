//! The core's failures as two exceptions, and the guard that every entry point works behind.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use parking_lot::Mutex;
use pyo3::create_exception;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use astrocyte_core::{CoreError, Result};

create_exception!(
    astrocyte._core,
    CoreInvalid,
    PyValueError,
    "The caller's value is wrong: ``args`` is (field, message)."
);
create_exception!(
    astrocyte._core,
    CoreFault,
    PyRuntimeError,
    "The core failed: a scratch file, a damaged table, or a bug (a caught panic)."
);

/// The field by which the Python side tells a wrong number of dimensions from other errors.
const VECTOR_LENGTH_FIELD: &str = "vector_length";

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
        Err(_) => Err(CoreFault::new_err(format!(
            "the core has a bug at {}; the call had no result, please report it",
            LAST_PANIC.lock()
        ))),
    }
}

/// A caller's error about `field`.
pub(super) fn invalid(field: &'static str, message: impl Into<String>) -> PyErr {
    CoreInvalid::new_err((field, message.into()))
}

/// The exception for an error of the core.
fn exception(error: CoreError) -> PyErr {
    match &error {
        CoreError::Dimensions { .. } => invalid(VECTOR_LENGTH_FIELD, error.to_string()),
        CoreError::Vector { .. } => invalid("vector", error.to_string()),
        CoreError::Invalid {
            field,
            expected,
            got,
        } => invalid(field, format!("expected {expected}, got {got}")),
        _ => CoreFault::new_err(error.to_string()),
    }
}
