//! The answer to a recall.

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::types;

fn arm_scores(arms: &[types::ArmScore]) -> Vec<(u32, u32, f64)> {
    arms.iter()
        .map(|arm| (arm.arm, arm.rank, arm.score))
        .collect()
}

#[pyclass(frozen, module = "astrocyte._core")]
pub(super) struct Hit {
    hit: types::Hit,
}

#[pymethods]
impl Hit {
    #[getter]
    fn key(&self) -> u64 {
        self.hit.key
    }

    #[getter]
    fn memory_id<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.hit.memory_id)
    }

    #[getter]
    fn content_hash<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.hit.content_hash)
    }

    #[getter]
    fn ordinal(&self) -> i32 {
        self.hit.ordinal
    }

    #[getter]
    fn score(&self) -> f64 {
        self.hit.score
    }

    #[getter]
    fn tokens(&self) -> u32 {
        self.hit.tokens
    }

    #[getter]
    fn layer(&self) -> &str {
        &self.hit.layer
    }

    #[getter]
    fn arms(&self) -> Vec<(u32, u32, f64)> {
        arm_scores(&self.hit.arms)
    }

    #[getter]
    fn boosts(&self) -> Vec<(&str, f64)> {
        let boosts = self.hit.boosts.iter();
        boosts.map(|boost| (&*boost.name, boost.value)).collect()
    }
}

#[pyclass(frozen, module = "astrocyte._core")]
pub(super) struct RecallResponse {
    hits: Vec<Py<Hit>>,
    // Everything but the hits.
    response: types::RecallResponse,
}

impl RecallResponse {
    /// The Python side of `response`.
    pub(super) fn new(py: Python<'_>, mut response: types::RecallResponse) -> PyResult<Self> {
        let hits = std::mem::take(&mut response.hits);
        let hits = hits
            .into_iter()
            .map(|hit| Py::new(py, Hit { hit }))
            .collect::<PyResult<_>>()?;
        Ok(Self { hits, response })
    }

    /// The hits, best first.
    pub(super) fn ranked(&self) -> impl Iterator<Item = &types::Hit> {
        self.hits.iter().map(|hit| &hit.get().hit)
    }

    /// Names of the arms.
    pub(super) fn names(&self) -> &[String] {
        &self.response.arm_names
    }
}

#[pymethods]
impl RecallResponse {
    #[getter]
    fn hits<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, Hit>> {
        self.hits.iter().map(|hit| hit.bind(py).clone()).collect()
    }

    #[getter]
    fn passages(&self) -> Vec<(u64, i32)> {
        self.ranked().map(|hit| (hit.key, hit.ordinal)).collect()
    }

    #[getter]
    fn tokens(&self) -> u64 {
        self.ranked().map(|hit| u64::from(hit.tokens)).sum()
    }

    #[getter]
    fn arm_names(&self) -> Vec<&str> {
        self.response.arm_names.iter().map(String::as_str).collect()
    }

    #[getter]
    fn arm_micros(&self) -> Vec<f64> {
        self.response.arm_micros.clone()
    }

    #[getter]
    fn arm_candidates(&self) -> Vec<u32> {
        self.response.arm_candidates.clone()
    }

    #[getter]
    fn feedback_micros(&self) -> f64 {
        self.response.feedback_micros
    }

    #[getter]
    fn feedback_terms(&self) -> u32 {
        self.response.feedback_terms
    }

    #[getter]
    fn lead(&self) -> Vec<(u32, u32, f64)> {
        arm_scores(&self.response.lead)
    }

    #[getter]
    fn lift_micros(&self) -> f64 {
        self.response.lift_micros
    }

    #[getter]
    fn arm_spreads(&self) -> Vec<(f64, f64)> {
        self.response.arm_spreads.clone()
    }

    #[getter]
    fn candidates(&self) -> u32 {
        self.response.candidates
    }

    #[getter]
    fn allowed(&self) -> u32 {
        self.response.allowed
    }

    #[getter]
    fn plan(&self) -> &str {
        &self.response.plan
    }

    #[getter]
    fn truncated(&self) -> bool {
        self.response.truncated
    }

    #[getter]
    fn unknown_external(&self) -> u32 {
        self.response.unknown_external
    }

    #[getter]
    fn position(&self) -> u64 {
        self.response.position
    }
}
