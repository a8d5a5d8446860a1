//! The outcome of certain memories in a recall.

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::answer::Answer;
use astrocyte_core::api::{self, Step};

#[pyclass(frozen, module = "astrocyte._core")]
pub(super) struct Fate {
    fate: api::Fate,
}

/// Place of the arm, memory id of the neighbour, amount, and true if the neighbour ranks above.
type Share<'py> = (u32, Bound<'py, PyBytes>, f64, bool);
/// Memory id and cosine.
type Twin<'py> = (Bound<'py, PyBytes>, Option<f32>);

#[pymethods]
impl Fate {
    #[getter]
    fn memory_id<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.fate.memory_id)
    }

    #[getter]
    fn step(&self) -> &'static str {
        match self.fate.step {
            Step::Unknown => "unknown",
            Step::Filter => "filter",
            Step::Arms => "arms",
            Step::Results => "results",
            Step::Duplicate => "duplicate",
            Step::Budget => "budget",
            Step::Hit => "hit",
        }
    }

    #[getter]
    fn arms(&self) -> Vec<(u32, Option<f64>, bool)> {
        let standing = |arm: &api::Standing| (arm.rank, arm.score, arm.proposed);
        self.fate.arms.iter().map(standing).collect()
    }

    #[getter]
    fn shares<'py>(&self, py: Python<'py>) -> Vec<Share<'py>> {
        let share = |one: &api::Share| {
            let id = PyBytes::new(py, &one.memory_id);
            (one.arm, id, one.amount, one.lender)
        };
        self.fate.shares.iter().map(share).collect()
    }

    #[getter]
    fn fused_rank(&self) -> u32 {
        self.fate.fused_rank
    }

    #[getter]
    fn fused_score(&self) -> Option<f64> {
        self.fate.fused_score
    }

    #[getter]
    fn boosts(&self) -> Vec<(&str, f64)> {
        let boosts = self.fate.boosts.iter();
        boosts.map(|boost| (&*boost.name, boost.value)).collect()
    }

    #[getter]
    fn place(&self) -> u32 {
        self.fate.place
    }

    #[getter]
    fn tokens(&self) -> u32 {
        self.fate.tokens
    }

    #[getter]
    fn left(&self) -> u64 {
        self.fate.left
    }

    #[getter]
    fn shortage(&self) -> u64 {
        self.fate.shortage
    }

    #[getter]
    fn twin<'py>(&self, py: Python<'py>) -> Option<Twin<'py>> {
        let (id, cosine) = self.fate.twin.as_ref()?;
        Some((PyBytes::new(py, id), *cosine))
    }
}

#[pyclass(frozen, module = "astrocyte._core")]
pub(super) struct Explanation {
    response: Py<Answer>,
    fates: Vec<Py<Fate>>,
    arm_cuts: Vec<Option<f64>>,
}

impl Explanation {
    /// The Python side of `explained`.
    pub(super) fn new(py: Python<'_>, explained: api::Explained) -> PyResult<Self> {
        let fates = explained.fates.into_iter();
        Ok(Self {
            response: Py::new(py, Answer::new(explained.response))?,
            fates: fates
                .map(|fate| Py::new(py, Fate { fate }))
                .collect::<PyResult<_>>()?,
            arm_cuts: explained.arm_cuts,
        })
    }
}

#[pymethods]
impl Explanation {
    #[getter]
    fn response<'py>(&self, py: Python<'py>) -> Bound<'py, Answer> {
        self.response.bind(py).clone()
    }

    #[getter]
    fn fates<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, Fate>> {
        self.fates
            .iter()
            .map(|fate| fate.bind(py).clone())
            .collect()
    }

    #[getter]
    fn arm_cuts(&self) -> Vec<Option<f64>> {
        self.arm_cuts.clone()
    }
}
