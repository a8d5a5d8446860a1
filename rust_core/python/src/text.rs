//! Functions over texts.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use super::arguments::Text;
use super::errors::detached;
use astrocyte_text::analysis::{Language, holds_phrase, phrase_words};
use astrocyte_text::{boundaries, hash, tokens};

#[pyfunction]
pub(super) fn build_info(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let info = PyDict::new(py);
    info.set_item("version", env!("CARGO_PKG_VERSION"))?;
    info.set_item(
        "profile",
        if cfg!(debug_assertions) {
            "debug"
        } else {
            "release"
        },
    )?;
    info.set_item("simd", astrocyte_core::simd_path())?;
    info.set_item("token_table", tokens::TABLE_NAME)?;
    Ok(info)
}

#[pyfunction]
pub(super) fn content_hash(py: Python<'_>, text: Text) -> PyResult<Bound<'_, PyBytes>> {
    let hash = detached(py, || Ok(hash::content_hash(&text.0)))?;
    Ok(PyBytes::new(py, &hash))
}

/// See `_core.pyi`.
#[pyfunction]
pub(super) fn relevance_at_rank(relevance: f64, rank: u32) -> f64 {
    astrocyte_core::at_rank(relevance, rank)
}

/// See `_core.pyi`.
#[pyfunction]
pub(super) fn text_relevance(py: Python<'_>, query: Text, text: Text) -> PyResult<f64> {
    detached(py, || Ok(astrocyte_core::text_relevance(&query.0, &text.0)))
}

#[pyfunction]
pub(super) fn count_tokens(py: Python<'_>, text: Text) -> PyResult<usize> {
    detached(py, || Ok(tokens::count_tokens(&text.0)))
}

#[pyfunction]
pub(super) fn count_tokens_many(py: Python<'_>, texts: Vec<Text>) -> PyResult<Vec<usize>> {
    detached(py, || {
        Ok(texts
            .iter()
            .map(|text| tokens::count_tokens(&text.0))
            .collect())
    })
}

#[pyfunction]
#[pyo3(signature = (text, *, every_stop = false))]
pub(super) fn split_sentences(
    py: Python<'_>,
    text: Text,
    every_stop: bool,
) -> PyResult<Vec<String>> {
    detached(py, || Ok(owned(boundaries::sentences(&text.0, every_stop))))
}

#[pyfunction]
pub(super) fn split_words(py: Python<'_>, text: Text, most_chars: usize) -> PyResult<Vec<String>> {
    detached(py, || Ok(owned(boundaries::words(&text.0, most_chars))))
}

#[pyfunction]
pub(super) fn languages() -> Vec<&'static str> {
    Language::ALL
        .iter()
        .map(|language| language.name())
        .collect()
}

#[pyfunction]
pub(super) fn stemmed_words(py: Python<'_>, text: Text) -> PyResult<Vec<(String, Option<String>)>> {
    detached(py, || Ok(Language::English.words(&text.0)))
}

/// See `_core.pyi`.
#[pyfunction]
pub(super) fn phrase_word_count(py: Python<'_>, phrase: Text) -> PyResult<usize> {
    detached(py, || Ok(phrase_words(&phrase.0).len()))
}

/// See `_core.pyi`.
#[pyfunction]
pub(super) fn holds_phrases(
    py: Python<'_>,
    texts: Vec<Text>,
    phrases: Vec<Text>,
) -> PyResult<Vec<bool>> {
    detached(py, || {
        let phrases: Vec<Vec<u64>> = phrases.iter().map(|one| phrase_words(&one.0)).collect();
        let holds = |text: &Text| {
            let words = phrase_words(&text.0);
            phrases.iter().all(|phrase| holds_phrase(&words, phrase))
        };
        Ok(texts.iter().map(holds).collect())
    })
}

fn owned(pieces: Vec<&str>) -> Vec<String> {
    pieces.into_iter().map(str::to_owned).collect()
}
