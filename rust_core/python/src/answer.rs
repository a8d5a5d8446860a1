//! The answer to a recall: its hits and its trace are views of it, made when they are asked for, and it writes itself for
//! the wire.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use super::arguments::{Id, Text};
use super::hit_encoding::put_hits;
use super::result_encoding::put_result;
use astrocyte_core::api;
use astrocyte_wire::Message;
use astrocyte_wire::answer::field;

fn arm_scores(arms: &[api::ArmScore]) -> Vec<(u32, u32, f64)> {
    arms.iter()
        .map(|arm| (arm.arm, arm.rank, arm.score))
        .collect()
}

/// Meaning, covered and memories.
type Evidence = (Option<f32>, Option<f32>, u32);

fn evidence(of: &api::Evidence) -> Evidence {
    (of.meaning, of.covered, of.memories)
}

/// A hit of an answer, which it keeps: most are looked at by nobody, so none is copied.
#[pyclass(frozen, module = "astrocyte._core")]
#[derive(Clone)]
pub(super) struct Hit {
    answer: Arc<api::RecallResponse>,
    place: usize,
}

impl Hit {
    pub(super) fn hit(&self) -> &api::Hit {
        &self.answer.hits[self.place]
    }
}

#[pymethods]
impl Hit {
    #[new]
    #[pyo3(signature = (key, memory_id, content_hash, arms, *, ordinal=-1, score=0.0, relevance=0.0, tokens=0, layer=None))]
    #[pyo3(
        text_signature = "(key, memory_id, content_hash, arms, *, ordinal=-1, score=0.0, relevance=0.0, tokens=0, layer='')"
    )]
    #[expect(clippy::too_many_arguments, reason = "one argument per part of a hit")]
    fn new(
        key: u64,
        memory_id: Id,
        content_hash: Id,
        arms: Vec<(u32, u32, f64)>,
        ordinal: i32,
        score: f64,
        relevance: f64,
        tokens: u32,
        layer: Option<Text>,
    ) -> Self {
        let word = |(arm, rank, score)| api::ArmScore { arm, rank, score };
        let hit = api::Hit {
            key,
            memory_id: memory_id.0,
            content_hash: content_hash.0,
            ordinal,
            score,
            relevance,
            evidence: api::Evidence::default(),
            tokens,
            layer: layer.map_or_else(String::new, Text::into_string).into(),
            arms: arms.into_iter().map(word).collect(),
            boosts: Vec::new(),
            turn_lift: 0.0,
        };
        let answer = api::RecallResponse {
            hits: vec![hit],
            ..api::RecallResponse::default()
        };
        Self {
            answer: Arc::new(answer),
            place: 0,
        }
    }

    #[getter]
    fn key(&self) -> u64 {
        self.hit().key
    }

    #[getter]
    fn memory_id<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.hit().memory_id)
    }

    #[getter]
    fn content_hash<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.hit().content_hash)
    }

    #[getter]
    fn ordinal(&self) -> i32 {
        self.hit().ordinal
    }

    #[getter]
    fn score(&self) -> f64 {
        self.hit().score
    }

    #[getter]
    fn relevance(&self) -> f64 {
        self.hit().relevance
    }

    #[getter]
    fn evidence(&self) -> Evidence {
        evidence(&self.hit().evidence)
    }

    #[getter]
    fn tokens(&self) -> u32 {
        self.hit().tokens
    }

    #[getter]
    fn layer(&self) -> &str {
        &self.hit().layer
    }

    #[getter]
    fn arms(&self) -> Vec<(u32, u32, f64)> {
        arm_scores(&self.hit().arms)
    }

    #[getter]
    fn boosts(&self) -> Vec<(&str, f64)> {
        let boosts = self.hit().boosts.iter();
        boosts.map(|boost| (&*boost.name, boost.value)).collect()
    }
}

#[pyclass(frozen, module = "astrocyte._core")]
pub(super) struct Answer {
    response: Arc<api::RecallResponse>,
}

impl Answer {
    /// The Python side of `response`.
    pub(super) fn new(response: api::RecallResponse) -> Self {
        Self {
            response: Arc::new(response),
        }
    }

    /// The response of the core.
    pub(super) fn response(&self) -> &api::RecallResponse {
        &self.response
    }

    /// The hits, best first.
    pub(super) fn ranked(&self) -> impl Iterator<Item = &api::Hit> {
        self.response.hits.iter()
    }

    /// The hit at a place, for Python.
    pub(super) fn at(&self, place: usize) -> Hit {
        Hit {
            answer: Arc::clone(&self.response),
            place,
        }
    }
}

#[pymethods]
impl Answer {
    #[getter]
    fn hits(&self) -> Vec<Hit> {
        (0..self.response.hits.len())
            .map(|place| self.at(place))
            .collect()
    }

    #[getter]
    fn trace(&self) -> AnswerTrace {
        AnswerTrace(Arc::clone(&self.response))
    }

    /// See `_core.pyi`.
    fn encode<'py>(
        &self,
        py: Python<'py>,
        result: &Bound<'py, PyAny>,
        rows: &Bound<'py, PyList>,
        bank_id: &str,
        include_sources: bool,
        windows: Vec<Bound<'py, PyBytes>>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let mut message = Message::default();
        put_hits(&mut message, &self.response, rows, bank_id, include_sources)?;
        put_result(&mut message, result, &windows)?;
        Ok(PyBytes::new(py, message.bytes()))
    }

    /// See `_core.pyi`.
    fn encode_hits<'py>(
        &self,
        py: Python<'py>,
        rows: &Bound<'py, PyList>,
        bank_id: &str,
        include_sources: bool,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let mut message = Message::default();
        put_hits(&mut message, &self.response, rows, bank_id, include_sources)?;
        Ok(PyBytes::new(py, message.bytes()))
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
        self.response.arm_names.iter().map(AsRef::as_ref).collect()
    }

    #[getter]
    fn lead(&self) -> Option<Evidence> {
        self.response.lead.as_ref().map(evidence)
    }

    #[getter]
    fn subject(&self) -> Option<(f32, f32)> {
        let subject = self.response.subject.as_ref();
        subject.map(|evidence| (evidence.own, evidence.other))
    }

    #[getter]
    fn confidence(&self) -> Option<f64> {
        self.response.confidence
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
    fn truncated(&self) -> bool {
        self.response.truncated
    }

    #[getter]
    fn position(&self) -> u64 {
        self.response.position
    }
}

/// Times and counts of the search behind an answer.
#[pyclass(frozen, module = "astrocyte._core")]
pub(super) struct AnswerTrace(Arc<api::RecallResponse>);

impl AnswerTrace {
    /// A dictionary from the names of the arms, in their order.
    fn by_arm<'py, T: IntoPyObject<'py>>(
        &self,
        py: Python<'py>,
        values: impl Iterator<Item = T>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (name, value) in self.0.arm_names.iter().zip(values) {
            dict.set_item(&**name, value)?;
        }
        Ok(dict)
    }
}

#[pymethods]
impl AnswerTrace {
    #[getter]
    fn arm_millis<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.by_arm(py, self.0.arm_micros.iter().map(|micros| micros / 1e3))
    }

    #[getter]
    fn arm_candidates<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.by_arm(py, self.0.arm_candidates.iter().copied())
    }

    #[getter]
    fn arm_spreads(&self) -> Vec<(f64, f64)> {
        self.0.arm_stats.clone()
    }

    #[getter]
    fn feedback_millis(&self) -> f64 {
        self.0.feedback_micros / 1e3
    }

    #[getter]
    fn feedback_terms(&self) -> u32 {
        self.0.feedback_terms
    }

    #[getter]
    fn turn_millis(&self) -> f64 {
        self.0.turn_micros / 1e3
    }

    #[getter]
    fn lift_millis(&self) -> f64 {
        self.0.boost_micros / 1e3
    }

    #[getter]
    fn plan(&self) -> &str {
        &self.0.plan
    }

    #[getter]
    fn unknown_external(&self) -> u32 {
        self.0.unknown_external
    }
}

/// Responses as the members of a batch's. See `_core.pyi`.
#[pyfunction]
pub(super) fn encode_batch<'py>(
    py: Python<'py>,
    responses: Vec<Bound<'py, PyBytes>>,
) -> Bound<'py, PyBytes> {
    let mut batch = Message::default();
    for response in &responses {
        batch.put_encoded(field::RESULTS, response.as_bytes());
    }
    PyBytes::new(py, batch.bytes())
}
