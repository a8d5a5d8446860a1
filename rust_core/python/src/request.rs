//! Everything that one recall needs.

use std::sync::Arc;

use pyo3::prelude::*;

use super::arguments::{Id, Text, Vector, string_pairs, strings};
use super::errors::invalid;
use astrocyte_core::api;

#[pyclass(frozen, module = "astrocyte._core")]
pub(super) struct RecallRequest {
    pub(super) request: Arc<api::RecallRequest>,
}

type OpenRange = (Option<i64>, Option<i64>);
type ScoredIds = Vec<(Id, f64)>;
/// Name, labels, value, standing, hits wanted, their budget.
type Lift = (Text, Vec<(Text, Text)>, f64, f64, usize, u64);
/// Names, amounts of speaker, question and date, windows, standing, unit.
type Turns = (Vec<Text>, f64, f64, f64, Vec<(i64, i64)>, f64, f64);

#[pymethods]
impl RecallRequest {
    #[new]
    #[pyo3(signature = (
        *, text=None, unions=vec![], vector=None, k=10, depth=100, tags=vec![], tag_match=None, fact_types=vec![], metadata=vec![],
        session=None, occurred=None, retained=None, as_of=None, valid_at=None, memory_ids=None, time_windows=vec![],
        time_tail_ms=2_592_000_000, external=vec![], fusion=None, rank_constant=60.0, weights=(1.0, 1.0, 1.0),
        feedback=0.0, context_windows=true, layer_weights=vec![], dedup_threshold=None, budget=None, budget_whole=false,
        lift=None, turns=None
    ))]
    #[pyo3(
        text_signature = "(*, text=None, unions=(), vector=None, k=10, depth=100, tags=(), tag_match='any', fact_types=(), \
        metadata=(), session=None, occurred=None, retained=None, as_of=None, valid_at=None, memory_ids=None, \
        time_windows=(), time_tail_ms=2592000000, external=(), fusion='dbsf', rank_constant=60.0, \
        weights=(1.0, 1.0, 1.0), feedback=0.0, context_windows=True, layer_weights=(), dedup_threshold=None, budget=None, \
        budget_whole=False, lift=None, turns=None)"
    )]
    #[expect(
        clippy::too_many_arguments,
        reason = "one keyword argument per part of the request"
    )]
    fn new(
        text: Option<Text>,
        unions: Vec<Vec<Text>>,
        vector: Option<Vector>,
        k: usize,
        depth: usize,
        tags: Vec<Text>,
        tag_match: Option<Text>,
        fact_types: Vec<Text>,
        metadata: Vec<(Text, Text)>,
        session: Option<Text>,
        occurred: Option<OpenRange>,
        retained: Option<OpenRange>,
        as_of: Option<i64>,
        valid_at: Option<i64>,
        memory_ids: Option<Vec<Id>>,
        time_windows: Vec<(i64, i64)>,
        time_tail_ms: i64,
        external: Vec<(Text, f64, ScoredIds)>,
        fusion: Option<Text>,
        rank_constant: f64,
        weights: (f64, f64, f64),
        feedback: f32,
        context_windows: bool,
        layer_weights: Vec<(Text, f64)>,
        dedup_threshold: Option<f32>,
        budget: Option<u64>,
        budget_whole: bool,
        lift: Option<Lift>,
        turns: Option<Turns>,
    ) -> PyResult<Self> {
        let request = api::RecallRequest {
            text: text.map(Text::into_string),
            unions: unions.into_iter().map(strings).collect(),
            vector: vector.map(|vector| vector.0),
            k,
            depth,
            tags: strings(tags),
            tag_match: tag_match.map_or(Ok(api::TagMatch::Any), |name| tag_match_of(&name.0))?,
            fact_types: strings(fact_types),
            metadata: string_pairs(metadata),
            session: session.map(Text::into_string),
            occurred,
            retained,
            as_of,
            valid_at,
            memory_ids: memory_ids.map(|ids| ids.into_iter().map(|id| id.0).collect()),
            time_windows,
            time_tail_ms,
            external: external.into_iter().map(external_list).collect(),
            fusion: fusion.map_or(Ok(api::FusionMethod::DistributionBased), |name| {
                fusion_of(&name.0)
            })?,
            rank_constant,
            weights: weights.into(),
            feedback,
            context_windows,
            layer_weights: layer_weights
                .into_iter()
                .map(|(layer, weight)| (layer.into_string(), weight))
                .collect(),
            dedup_threshold,
            budget,
            budget_whole,
            label_boost: lift.map(label_boost),
            turns: turns.map(turn_boosts),
        };
        Ok(Self {
            request: Arc::new(request),
        })
    }
}

fn external_list((name, weight, hits): (Text, f64, ScoredIds)) -> api::ExternalList {
    let hits = hits.into_iter().map(|(id, score)| (id.0, score)).collect();
    api::ExternalList {
        name: name.into_string(),
        weight,
        hits,
    }
}

fn label_boost((name, labels, value, standing, wanted, budget): Lift) -> api::LabelBoost {
    api::LabelBoost {
        name: (*name.0).into(),
        labels: string_pairs(labels),
        value,
        standing,
        wanted,
        budget,
    }
}

fn turn_boosts(
    (names, speaker, question, date, date_windows, standing, unit): Turns,
) -> api::TurnBoosts {
    api::TurnBoosts {
        names: strings(names),
        speaker,
        question,
        date,
        date_windows,
        standing,
        unit,
    }
}

fn tag_match_of(name: &str) -> PyResult<api::TagMatch> {
    match name {
        "any" => Ok(api::TagMatch::Any),
        "all" => Ok(api::TagMatch::All),
        "none" => Ok(api::TagMatch::None),
        _ => Err(invalid(
            "tag_match",
            format!("expected any, all or none, got {name:?}"),
        )),
    }
}

pub(super) fn fusion_of(name: &str) -> PyResult<api::FusionMethod> {
    match name {
        "dbsf" => Ok(api::FusionMethod::DistributionBased),
        "relative_score" => Ok(api::FusionMethod::RelativeScore),
        "rrf" => Ok(api::FusionMethod::ReciprocalRank),
        _ => Err(invalid(
            "fusion",
            format!("expected dbsf, relative_score or rrf, got {name:?}"),
        )),
    }
}
