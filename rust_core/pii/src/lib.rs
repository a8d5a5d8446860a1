//! A scanner for personal data and secrets in text, in time linear in the length of any text.
//!
//! 1. Fold the text into a plain form with a way back to the original (`text`).
//! 2. Leave at once where nothing in it could be part of a finding, as in most queries.
//! 3. Cut it into runs of letters and digits; detectors look at each run and a bounded part of its surroundings.
//! 4. Checksums decide where a kind has one; words nearby raise or lower the confidence in what is left (`context`).
//! 5. Of overlapping candidates the longest stays, then the surest, then the kind that comes first.

mod checksums;
mod coins;
mod context;
mod custom;
mod dates;
mod documents;
mod kinds;
mod national;
mod network;
mod numbers;
mod phones;
mod runs;
mod secrets;
mod text;
mod view;
mod words;

use std::collections::BTreeMap;

use thiserror::Error;

pub use kinds::{KINDS, Kind};

use custom::Custom;
use text::Plain;
use view::{Candidate, View};

/// The error of a scanner whose parameter is out of range.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{field}: expected {expected}, got {got}")]
pub struct ScannerError {
    /// Name of the parameter.
    pub field: &'static str,
    /// The range that it must be in.
    pub expected: String,
    /// The value that came.
    pub got: String,
}

/// A result of this crate.
pub type Result<T> = std::result::Result<T, ScannerError>;

/// A finding in the original text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Finding {
    /// The place of its kind: in [`KINDS`], or behind them the number of the own pattern.
    pub kind: usize,
    /// First byte.
    pub start: usize,
    /// Byte after the last.
    pub end: usize,
    /// The confidence, 0 to 1. Custom patterns have 1.
    pub confidence: f32,
}

/// A scanner for the wanted kinds and for custom patterns. Safe to share between threads.
#[derive(Debug)]
pub struct Scanner {
    wanted: u64,
    custom: Vec<Custom>,
    least: f32,
}

impl Scanner {
    /// A scanner for the built-in kinds of these names and for own patterns, in the syntax of the crate `regex`.
    /// Candidates below the confidence `least`, 0 to 1, are dropped.
    ///
    /// # Errors
    /// [`ScannerError`]: there is no such kind, `least` is out of its range, or a pattern cannot be run in
    /// linear time.
    pub fn new(
        kinds: &[impl AsRef<str>],
        patterns: &[impl AsRef<str>],
        least: f32,
    ) -> Result<Self> {
        if !(0.0..=1.0).contains(&least) {
            return Err(ScannerError {
                field: "min_confidence",
                expected: "0 to 1".to_owned(),
                got: least.to_string(),
            });
        }
        let mut wanted = 0;
        for name in kinds {
            let place = KINDS
                .iter()
                .position(|(_, known, _)| *known == name.as_ref())
                .ok_or_else(|| ScannerError {
                    field: "kinds",
                    expected: "names of kinds".to_owned(),
                    got: format!("{:?}", name.as_ref()),
                })?;
            wanted |= 1 << place;
        }
        let custom = patterns
            .iter()
            .map(|pattern| Custom::new(pattern.as_ref()))
            .collect::<Result<_>>()?;
        Ok(Self {
            wanted,
            custom,
            least,
        })
    }

    /// All findings in `text`, by their place, none overlapping another.
    pub fn find(&self, text: &str) -> Vec<Finding> {
        let candidates = self.candidates(text);
        if candidates.is_empty() {
            candidates
        } else {
            resolve(candidates)
        }
    }

    /// Candidates in the original's bytes.
    fn candidates(&self, original: &str) -> Vec<Finding> {
        let plain = Plain::new(original);
        let bytes = plain.text.as_bytes();
        let mut found = Vec::new();
        if self.wanted != 0 && runs::promising(bytes) {
            let mut view = View::new(bytes, runs::cut(bytes), self.wanted, self.least);
            numbers::search(&mut view);
            documents::search(&mut view);
            network::search(&mut view);
            secrets::search(&mut view);
            found = view.found;
        }
        if self.wanted & (1 << Kind::PrivateKey as u32) != 0 && original.len() > 20 {
            let mut view = View::new(bytes, Vec::new(), self.wanted, self.least);
            secrets::private_keys(&mut view);
            found.append(&mut view.found);
        }
        for (number, custom) in self.custom.iter().enumerate() {
            let kind = (KINDS.len() + number) as u16;
            custom.search(&plain.text, |start, end| {
                found.push(Candidate {
                    start,
                    end,
                    kind,
                    confidence: 1.0,
                });
            });
        }
        found
            .iter()
            .map(|candidate| {
                let (start, end) = plain.original(candidate.start, candidate.end);
                Finding {
                    kind: candidate.kind.into(),
                    start,
                    end,
                    confidence: candidate.confidence,
                }
            })
            .collect()
    }
}

/// Selects of overlapping findings the longest, then the most confident, then the first kind, then the first place.
fn resolve(mut candidates: Vec<Finding>) -> Vec<Finding> {
    candidates.sort_unstable_by_key(|one| one.start);
    if candidates
        .windows(2)
        .all(|pair| pair[0].end <= pair[1].start)
    {
        return candidates;
    }
    candidates.sort_unstable_by(|one, other| {
        (other.end - other.start)
            .cmp(&(one.end - one.start))
            .then(other.confidence.total_cmp(&one.confidence))
            .then(one.kind.cmp(&other.kind))
            .then(one.start.cmp(&other.start))
    });
    let mut kept: BTreeMap<usize, Finding> = BTreeMap::new();
    for candidate in candidates {
        let before = kept.range(..candidate.end).next_back();
        if before.is_none_or(|(_, one)| one.end <= candidate.start) {
            kept.insert(candidate.start, candidate);
        }
    }
    kept.into_values().collect()
}

#[cfg(test)]
mod tests;
