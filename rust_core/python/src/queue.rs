//! Recalls that other threads answer while the interpreter does something else.
//!
//! To add some takes a microsecond; who lets go of the interpreter for that waits for milliseconds until another gives
//! it back. The queue's lock is nowhere held by anybody who waits for the interpreter.

use std::sync::Arc;

use pyo3::prelude::*;

use super::bank::Bank;
use super::errors::{attached, detached};
use super::request::RecallRequest;
use super::response::RecallResponse;
use astrocyte_core::batch;

#[pyclass(frozen, module = "astrocyte._core")]
pub(super) struct RecallQueue {
    queue: batch::RecallQueue,
}

impl RecallQueue {
    /// The Python side of `queue`.
    pub(super) fn new(queue: batch::RecallQueue) -> Self {
        Self { queue }
    }
}

/// Answers, and the seconds that each took.
type Answered = (Vec<RecallResponse>, Vec<f64>);

#[pymethods]
impl RecallQueue {
    fn add(&self, requests: Vec<(Py<Bank>, Py<RecallRequest>)>) -> PyResult<Option<usize>> {
        attached(|| {
            let pairs = requests.iter().map(|(bank, request)| {
                let request = Arc::clone(&request.get().request);
                (bank.get().bank.clone(), request)
            });
            Ok(self.queue.add(&pairs.collect::<Vec<_>>()))
        })
    }

    fn take(&self, py: Python<'_>, part: usize) -> PyResult<Option<Answered>> {
        let answers = detached(py, || self.queue.take(part))?;
        Ok(answers.map(|answers| {
            let parts = answers
                .into_iter()
                .map(|(response, took)| (RecallResponse::new(response), took.as_secs_f64()));
            parts.unzip()
        }))
    }

    fn stop(&self) -> PyResult<()> {
        attached(|| {
            self.queue.stop();
            Ok(())
        })
    }
}
