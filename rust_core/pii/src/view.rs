//! The input of every detector: the plain text, its runs and its words, and the list of findings.

use super::context::Context;
use super::kinds::Kind;
use super::runs::{Run, is_word};

/// Words that are written with a full stop right before a number. Behind others it is part of a name.
const ABBREVIATIONS: [&[u8]; 12] = [
    b"tel", b"telef", b"tlf", b"ph", b"mob", b"cell", b"fax", b"no", b"nr", b"num", b"acct", b"kto",
];

/// A place in the plain text that may be of a kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub(super) start: usize,
    pub(super) end: usize,
    /// The kind's number; own patterns count on from the built-in kinds.
    pub(super) kind: u16,
    pub(super) confidence: f32,
}

/// One text while it is searched.
pub(super) struct View<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) runs: Vec<Run>,
    pub(super) context: Context<'a>,
    pub(super) found: Vec<Candidate>,
    wanted: u64,
    least: f32,
}

impl<'a> View<'a> {
    /// `wanted` has a bit per kind; candidates below the confidence `least` are dropped.
    pub(super) fn new(bytes: &'a [u8], runs: Vec<Run>, wanted: u64, least: f32) -> Self {
        Self {
            bytes,
            runs,
            context: Context::new(bytes),
            found: Vec::new(),
            wanted,
            least,
        }
    }

    pub(super) fn wants(&self, kind: Kind) -> bool {
        self.wanted & (1 << kind as u32) != 0
    }

    /// Notes a candidate whose confidence is settled.
    pub(super) fn note(&mut self, kind: Kind, start: usize, end: usize, confidence: f32) {
        // A hundredth of slack: sums of decimal fractions are not exact.
        if self.wants(kind) && confidence + 0.01 >= self.least {
            self.found.push(Candidate {
                start,
                end,
                kind: kind as u16,
                confidence: confidence.clamp(0.0, 1.0),
            });
        }
    }

    /// Notes a candidate whose confidence words around it raise or lower.
    pub(super) fn weigh(
        &mut self,
        kind: Kind,
        start: usize,
        end: usize,
        confidence: f32,
        about: u32,
    ) {
        if self.wants(kind) && !self.hopeless(confidence, about) {
            let confidence = confidence + self.context.speaks(start, end, about);
            self.note(kind, start, end, confidence);
        }
    }

    /// Returns true if no words of the text could raise a candidate of this confidence to the threshold.
    pub(super) fn hopeless(&self, confidence: f32, about: u32) -> bool {
        confidence + 0.01 < self.least && self.context.spoken() & about == 0
    }

    pub(super) fn at(&self, place: usize) -> u8 {
        self.bytes.get(place).copied().unwrap_or(b' ')
    }

    pub(super) fn before(&self, place: usize) -> u8 {
        if place == 0 { b' ' } else { self.at(place - 1) }
    }

    pub(super) fn slice(&self, start: usize, end: usize) -> &'a [u8] {
        self.bytes.get(start..end).unwrap_or_default()
    }

    /// Returns true if a number or an identifier may begin here: not inside a name, a fraction, a path or a price.
    pub(super) fn begins(&self, start: usize) -> bool {
        let earlier = if start < 2 { b' ' } else { self.at(start - 2) };
        match self.before(start) {
            // Marks of emphasis open behind a space or a sign; behind a letter they are part of a name.
            mark @ (b'_' | b'*' | b'~') => {
                let marks = self.repeated_before(start, mark);
                !is_word(self.before(start - marks))
            }
            b'.' => self.abbreviated(start),
            b'&' | b'?' | b'$' | b'%' | b'@' | b'\\' | b'^' => false,
            b'-' => !is_word(earlier) && earlier != b'-' && start > 1,
            b'/' | b',' | b':' => {
                !is_word(earlier) || (self.before(start) == b':' && !earlier.is_ascii_digit())
            }
            byte => !is_word(byte),
        }
    }

    /// Returns true if the full stop before `start` ends an abbreviation ("tel.", "τηλ.") or is part of an ellipsis.
    pub(super) fn abbreviated(&self, start: usize) -> bool {
        let dots = self.repeated_before(start, b'.');
        let end = start - dots;
        if dots > 1 {
            return !is_word(self.before(end));
        }
        // Identifiers are ASCII.
        if dots == 0 || self.before(end) >= 128 {
            return dots == 1;
        }
        let before = self.bytes.get(..end).unwrap_or_default();
        let letters = before
            .iter()
            .rev()
            .take_while(|byte| is_word(**byte))
            .count();
        let word = self.slice(end - letters, end);
        ABBREVIATIONS
            .iter()
            .any(|one| word.eq_ignore_ascii_case(one))
    }

    /// The number of times that a mark is repeated right before `start`.
    fn repeated_before(&self, start: usize, mark: u8) -> usize {
        let before = self.bytes.get(..start).unwrap_or_default();
        before
            .iter()
            .rev()
            .take_while(|&&byte| byte == mark)
            .count()
    }

    /// Returns true if a number or an identifier may end here. `grouped` ones may stand in a list without spaces.
    pub(super) fn ends(&self, end: usize, grouped: bool) -> bool {
        let later = self.at(end + 1);
        match self.at(end) {
            mark @ (b'_' | b'*') => {
                let rest = self.bytes.get(end..).unwrap_or_default();
                let marks = rest.iter().take_while(|&&byte| byte == mark).count();
                !is_word(self.at(end + marks))
            }
            b'%' | b'@' | b'^' | b'=' => false,
            b'-' | b'.' | b'/' | b'\\' => !is_word(later),
            b',' => grouped || !later.is_ascii_digit(),
            b':' => !later.is_ascii_digit(),
            byte => !is_word(byte),
        }
    }
}
