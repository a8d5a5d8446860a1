//! The answer to a recall.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::arguments::{Id, Text};
use astrocyte_core::api;

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
pub(super) struct RecallResponse {
    answer: Arc<api::RecallResponse>,
}

impl RecallResponse {
    /// The Python side of `response`.
    pub(super) fn new(response: api::RecallResponse) -> Self {
        Self {
            answer: Arc::new(response),
        }
    }

    /// The response of the core.
    pub(super) fn answer(&self) -> &api::RecallResponse {
        &self.answer
    }

    /// The hits, best first.
    pub(super) fn ranked(&self) -> impl Iterator<Item = &api::Hit> {
        self.answer.hits.iter()
    }

    /// The hit at a place, for Python.
    pub(super) fn at(&self, place: usize) -> Hit {
        Hit {
            answer: Arc::clone(&self.answer),
            place,
        }
    }
}

#[pymethods]
impl RecallResponse {
    #[getter]
    fn hits(&self) -> Vec<Hit> {
        (0..self.answer.hits.len())
            .map(|place| self.at(place))
            .collect()
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
        self.answer.arm_names.iter().map(AsRef::as_ref).collect()
    }

    #[getter]
    fn arm_micros(&self) -> Vec<f64> {
        self.answer.arm_micros.clone()
    }

    #[getter]
    fn arm_candidates(&self) -> Vec<u32> {
        self.answer.arm_candidates.clone()
    }

    #[getter]
    fn feedback_micros(&self) -> f64 {
        self.answer.feedback_micros
    }

    #[getter]
    fn feedback_terms(&self) -> u32 {
        self.answer.feedback_terms
    }

    #[getter]
    fn lead(&self) -> Option<Evidence> {
        self.answer.lead.as_ref().map(evidence)
    }

    #[getter]
    fn subject(&self) -> Option<(f32, f32)> {
        let subject = self.answer.subject.as_ref();
        subject.map(|evidence| (evidence.own, evidence.other))
    }

    #[getter]
    fn turn_micros(&self) -> f64 {
        self.answer.turn_micros
    }

    #[getter]
    fn confidence(&self) -> Option<f64> {
        self.answer.confidence
    }

    #[getter]
    fn lift_micros(&self) -> f64 {
        self.answer.boost_micros
    }

    #[getter]
    fn arm_spreads(&self) -> Vec<(f64, f64)> {
        self.answer.arm_stats.clone()
    }

    #[getter]
    fn candidates(&self) -> u32 {
        self.answer.candidates
    }

    #[getter]
    fn allowed(&self) -> u32 {
        self.answer.allowed
    }

    #[getter]
    fn plan(&self) -> &str {
        &self.answer.plan
    }

    #[getter]
    fn truncated(&self) -> bool {
        self.answer.truncated
    }

    #[getter]
    fn unknown_external(&self) -> u32 {
        self.answer.unknown_external
    }

    #[getter]
    fn position(&self) -> u64 {
        self.answer.position
    }
}
