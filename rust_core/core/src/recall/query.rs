//! A request, checked and prepared for the search.

use crate::api::BankOptions;
use crate::api::{CoreError, RecallRequest, Result};
use crate::dense::{QuantisedQuery, normalise};
use astrocyte_text::analysis::AnalyzedQuery;

/// A request's text and vector, checked and ready to search with.
pub(crate) struct Query {
    pub(super) words: Option<AnalyzedQuery>,
    pub(super) vector: Option<(Vec<f32>, QuantisedQuery)>,
    /// The bits of the stems of each name of the request's [`TurnBoosts`](crate::api::TurnBoosts).
    pub(super) name_bits: Vec<u64>,
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
        let text = request.text.as_deref();
        let words = text
            .or((!request.unions.is_empty()).then_some(""))
            .filter(|_| keyword > 0.0)
            .map(|text| {
                let mut words = options.language.analyze_query(text);
                for union in &request.unions {
                    options.language.add_union(&mut words, union);
                }
                words
            });
        let names = request.turns.iter().flat_map(|turns| &turns.names);
        let name_bits = names
            .filter_map(|name| {
                Some(bits_of(
                    words.as_ref()?,
                    &options.language.analyze_query(name),
                ))
            })
            .collect();
        Ok(Self {
            words,
            name_bits,
            vector: vector.filter(|_| semantic > 0.0).map(|unit| {
                let quantised = QuantisedQuery::new(&unit);
                (unit, quantised)
            }),
        })
    }
}

/// The bits of the stems of `words` that `name` has, numbered as
/// [`LexicalIndex::stems`](crate::lexical::LexicalIndex::stems) does.
fn bits_of(words: &AnalyzedQuery, name: &AnalyzedQuery) -> u64 {
    let stems = words.terms.iter().filter(|term| term.1 >= 1.0);
    stems
        .zip(0..64)
        .filter(|((stem, _), _)| name.terms.iter().any(|term| term.0 == *stem))
        .fold(0, |bits, (_, bit)| bits | 1 << bit)
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
    if let Some(turns) = &request.turns {
        for value in [turns.speaker, turns.question, turns.date, turns.standing] {
            require(value.is_finite(), "turns", "finite numbers", value)?;
        }
        let unit = turns.unit;
        let holds = unit.is_finite() && unit > 0.0;
        require(holds, "turns", "a finite unit above 0", unit)?;
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
