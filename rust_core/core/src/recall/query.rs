//! A request, checked and prepared for the search.

use crate::api::BankOptions;
use crate::api::{CoreError, RecallRequest, Result};
use crate::dense::{QuantisedQuery, normalise};
use astrocyte_text::analysis::AnalyzedQuery;

/// A request's text and vector, checked and ready to search with.
pub(crate) struct Query {
    pub(super) words: Option<AnalyzedQuery>,
    pub(super) vector: Option<(Vec<f32>, QuantisedQuery)>,
}

impl Query {
    /// The unit vector and its bytes.
    pub(crate) fn vector(&self) -> Option<&(Vec<f32>, QuantisedQuery)> {
        self.vector.as_ref()
    }

    /// Checks the request and prepares its text and vector. An arm of weight 0 is left out.
    pub(crate) fn new(request: &RecallRequest, options: BankOptions) -> Result<Self> {
        check(request)?;
        let vector = request
            .vector
            .as_deref()
            .map(|vector| normalise(0, vector, options.dimensions))
            .transpose()?;
        let [semantic, keyword, _] = request.weights;
        Ok(Self {
            words: request
                .text
                .as_deref()
                .filter(|_| keyword > 0.0)
                .map(|text| options.language.analyze_query(text)),
            vector: vector.filter(|_| semantic > 0.0).map(|unit| {
                let quantised = QuantisedQuery::new(&unit);
                (unit, quantised)
            }),
        })
    }
}

fn check(request: &RecallRequest) -> Result<()> {
    let weights = request
        .weights
        .iter()
        .chain(request.external.iter().map(|list| &list.weight));
    for &weight in weights.chain(request.layer_weights.iter().map(|(_, weight)| weight)) {
        require(
            weight.is_finite() && weight >= 0.0,
            "weights",
            "finite numbers from 0 up",
            weight,
        )?;
    }
    let constant = request.rank_constant;
    require(
        constant.is_finite() && constant > 0.0,
        "rank_constant",
        "a finite number above 0",
        constant,
    )?;
    require(
        request.time_tail_ms > 0,
        "time_tail_ms",
        "a number above 0",
        request.time_tail_ms,
    )?;
    for &(first, last) in &request.time_windows {
        require(
            first <= last,
            "time_windows",
            "windows that end after they begin",
            format!("{first} to {last}"),
        )?;
    }
    require(
        (0.0..=1.0).contains(&request.feedback),
        "feedback",
        "a number from 0 to 1",
        request.feedback,
    )?;
    for &(_, score) in request.external.iter().flat_map(|list| &list.hits) {
        require(score.is_finite(), "external", "finite scores", score)?;
    }
    if let Some(boost) = &request.label_boost {
        for value in [boost.value, boost.standing] {
            require(value.is_finite(), "label_boost", "finite numbers", value)?;
        }
    }
    if let Some(threshold) = request.dedup_threshold {
        require(
            threshold.is_finite(),
            "dedup_threshold",
            "a finite cosine",
            threshold,
        )?;
    }
    Ok(())
}

fn require(holds: bool, field: &'static str, expected: &str, got: impl ToString) -> Result<()> {
    if holds {
        return Ok(());
    }
    Err(CoreError::Invalid {
        field,
        expected: expected.to_owned(),
        got: got.to_string(),
    })
}
