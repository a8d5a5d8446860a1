//! Custom patterns of the operator, on a regex engine without back-tracking.

use regex_automata::meta::{BuildError, Config, Regex};
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input};

use crate::{Result, ScannerError};

/// The memory limit of a compiled pattern; `\w{1000}` takes more.
const COMPILED_BYTES: usize = 1 << 20;
/// The longest match, which bounds a fruitless look-ahead.
const MATCH_BYTES: usize = 1_024;
/// Nested groups in a pattern.
const NESTING: u32 = 64;

/// A pattern, ready to search.
#[derive(Debug)]
pub(super) struct Custom {
    regex: Regex,
}

impl Custom {
    /// Compiles `pattern`, the syntax of the crate `regex`.
    ///
    /// # Errors
    /// It is no pattern, is not linear (look-around, back-references), is too large, or matches empty text.
    pub(super) fn new(pattern: &str) -> Result<Self> {
        let invalid = |got: String| ScannerError {
            field: "pattern",
            expected: "a pattern that runs in linear time".to_owned(),
            got,
        };
        let config = Config::new()
            .nfa_size_limit(Some(COMPILED_BYTES))
            .onepass_size_limit(Some(COMPILED_BYTES))
            .hybrid_cache_capacity(COMPILED_BYTES);
        let regex = Regex::builder()
            .configure(config)
            .syntax(syntax::Config::new().nest_limit(NESTING))
            .build(pattern)
            .map_err(|error| invalid(reason(&error)))?;
        if regex.is_match(Input::new("").anchored(Anchored::Yes)) {
            return Err(invalid("one that matches the empty text".to_owned()));
        }
        Ok(Self { regex })
    }

    /// Calls `found` with every match of at most [`MATCH_BYTES`], leftmost first, none overlapping.
    pub(super) fn search(&self, text: &str, mut found: impl FnMut(usize, usize)) {
        let mut at = 0;
        while at < text.len() {
            // Two lengths of a match at once, of which the first may hold a match's start.
            let limit = boundary(text, at + 2 * MATCH_BYTES);
            let Some(hit) = self.regex.find(Input::new(text).span(at..limit)) else {
                if limit == text.len() {
                    return;
                }
                at = boundary(text, at + MATCH_BYTES);
                continue;
            };
            if hit.end() > hit.start() {
                found(hit.start(), hit.end());
                at = hit.end();
            } else {
                at = boundary(text, hit.end() + 1);
            }
        }
    }
}

/// The first border of characters at or after `place`, or the end.
fn boundary(text: &str, place: usize) -> usize {
    (place..text.len())
        .find(|&place| text.is_char_boundary(place))
        .unwrap_or(text.len())
}

/// The reason why a pattern cannot be compiled, in one line and without the pattern.
fn reason(error: &BuildError) -> String {
    if error.size_limit().is_some() {
        return format!("one that takes more than {COMPILED_BYTES} bytes compiled");
    }
    let text = error
        .syntax_error()
        .map_or_else(|| error.to_string(), ToString::to_string);
    let last = text.lines().last().unwrap_or_default();
    format!("one that it is not: {}", last.trim_start_matches("error: "))
}

#[cfg(test)]
mod tests {
    use super::{Custom, MATCH_BYTES};

    fn matches(pattern: &str, text: &str) -> Vec<(usize, usize)> {
        let mut found = Vec::new();
        Custom::new(pattern)
            .expect("it compiles")
            .search(text, |start, end| found.push((start, end)));
        found
    }

    #[test]
    fn matches_are_found_across_the_borders_of_what_is_searched_at_once() {
        for before in [
            0,
            1,
            MATCH_BYTES - 3,
            MATCH_BYTES,
            2 * MATCH_BYTES - 5,
            5 * MATCH_BYTES,
        ] {
            let text = format!(
                "{}CUST-12345678 é",
                "é".repeat(before / 2) + &"x".repeat(before % 2)
            );
            assert_eq!(matches(r"CUST-\d{8}", &text), [(before, before + 13)]);
        }
    }

    #[test]
    fn what_cannot_run_in_linear_time_is_refused_with_its_reason() {
        for (pattern, reason) in [
            (r"(?=x)y", "look-around"),
            (r"(a)\1", "backreferences"),
            (r"(", "unclosed group"),
            (r"x*", "matches the empty text"),
            (r"\w{1000}{1000}", "bytes compiled"),
        ] {
            let error = Custom::new(pattern).expect_err(pattern).to_string();
            assert!(error.contains(reason), "{error}");
        }
    }
}
