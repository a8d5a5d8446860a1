//! The scanner for personal data and secrets.

use pyo3::prelude::*;

use super::arguments::Text;
use super::errors::{detached, invalid};
use astrocyte_pii::{Finding, KINDS, Scanner, ScannerError};

/// A finding as Python sees it: place of the text, place of the kind, first character, character after the last,
/// confidence.
type Place = (usize, usize, usize, usize, f32);

#[pyclass(frozen, module = "astrocyte._core")]
pub(super) struct PiiScanner {
    scanner: Scanner,
}

#[pymethods]
impl PiiScanner {
    #[new]
    #[pyo3(signature = (kinds, patterns = Vec::new(), *, min_confidence = 0.5))]
    fn new(
        py: Python<'_>,
        kinds: Vec<Text>,
        patterns: Vec<Text>,
        min_confidence: f32,
    ) -> PyResult<Self> {
        let scanner = detached(py, || {
            let kinds: Vec<&str> = kinds.iter().map(|kind| &*kind.0).collect();
            let patterns: Vec<&str> = patterns.iter().map(|pattern| &*pattern.0).collect();
            Ok(Scanner::new(&kinds, &patterns, min_confidence))
        })?
        .map_err(|error| {
            let ScannerError {
                field,
                expected,
                got,
            } = error;
            invalid(field, format!("expected {expected}, got {got}"))
        })?;
        Ok(Self { scanner })
    }

    fn find(&self, py: Python<'_>, texts: Vec<Text>) -> PyResult<Vec<Place>> {
        detached(py, || {
            let mut places = Vec::new();
            for (number, text) in texts.iter().enumerate() {
                let findings = self.scanner.find(&text.0);
                in_characters(&text.0, number, &findings, &mut places);
            }
            Ok(places)
        })
    }
}

/// Appends the findings of one text, their bytes counted as characters in one pass.
fn in_characters(text: &str, number: usize, findings: &[Finding], places: &mut Vec<Place>) {
    let (mut byte, mut character) = (0, 0);
    let mut reach = |place: usize| {
        let between = text.get(byte..place).unwrap_or_default();
        character += if between.is_ascii() {
            between.len()
        } else {
            between.chars().count()
        };
        byte = place;
        character
    };
    for one in findings {
        let (start, end) = (reach(one.start), reach(one.end));
        places.push((number, one.kind, start, end, one.confidence));
    }
}

#[pyfunction]
pub(super) fn pii_kinds() -> Vec<(&'static str, &'static str)> {
    KINDS
        .iter()
        .map(|(_, name, country)| (*name, *country))
        .collect()
}
