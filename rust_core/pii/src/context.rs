//! The words around a candidate that speak for or against its kind.

use std::cell::OnceCell;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

use super::words::{WORDS, about};

/// The distance in bytes at which a word before a candidate still counts: some eight words.
const BEFORE: usize = 50;
/// The distance at which a word after it counts: "... is my number".
const AFTER: usize = 25;
/// The distance at which a word before it counts against it: an order's number stands right beside the word.
const AGAINST: usize = 25;
/// The confidence that a word of its kind adds to a candidate.
const RAISE: f32 = 0.4;
/// The confidence that a word for things takes from it.
const LOWER: f32 = 0.35;
/// The confidence that a word of another kind of identifier takes from it: enough to lose to that kind.
const YIELD: f32 = 0.15;

/// The longest at a place wins, so "order number" is not taken for the "number" of a person.
static WORDS_AT_ONCE: LazyLock<(Vec<u32>, Option<AhoCorasick>)> = LazyLock::new(|| {
    let pairs = || {
        WORDS
            .iter()
            .flat_map(|(about, words)| words.iter().map(move |word| (*about, *word)))
    };
    let search = AhoCorasick::builder()
        .kind(Some(AhoCorasickKind::DFA))
        .ascii_case_insensitive(true)
        .match_kind(MatchKind::LeftmostLongest)
        .build(pairs().map(|(_, word)| word))
        .ok();
    (pairs().map(|(about, _)| about).collect(), search)
});

/// A word of the list, standing alone.
#[derive(Clone, Copy, Debug)]
pub(super) struct Word {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) about: u32,
}

/// The words of a text, searched at the first use.
pub(super) struct Context<'a> {
    bytes: &'a [u8],
    words: OnceCell<Vec<Word>>,
    spoken: OnceCell<u32>,
}

impl<'a> Context<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            words: OnceCell::new(),
            spoken: OnceCell::new(),
        }
    }

    /// All that any word of the text speaks of.
    pub(super) fn spoken(&self) -> u32 {
        *self
            .spoken
            .get_or_init(|| self.words().iter().fold(0, |all, word| all | word.about))
    }

    /// All words in order.
    pub(super) fn words(&self) -> &[Word] {
        self.words.get_or_init(|| {
            let (about, search) = &*WORDS_AT_ONCE;
            let Some(search) = search else {
                return Vec::new();
            };
            search
                .find_iter(self.bytes)
                .filter(|found| {
                    self.stands_alone(
                        found.start(),
                        found.end(),
                        about[found.pattern().as_usize()],
                    )
                })
                .map(|found| Word {
                    start: found.start(),
                    end: found.end(),
                    about: about[found.pattern().as_usize()],
                })
                .collect()
        })
    }

    /// Returns true if no letter goes on before or after. Keys such as `DB_PASSWORD` hold the word between underscores.
    fn stands_alone(&self, start: usize, end: usize, about: u32) -> bool {
        // Scripts without spaces have no such borders.
        let other = |place: usize| self.bytes.get(place).is_some_and(|byte| *byte >= 128);
        let letter = |place: usize| self.bytes.get(place).is_some_and(u8::is_ascii_alphabetic);
        if other(start) && other(end - 1) {
            return true;
        }
        if about & (about::SECRET | about::PASSWORD) != 0 {
            // "dbPassword" and "apikey2" count too; "compassword" does no harm.
            return true;
        }
        (start == 0 || !letter(start - 1)) && !letter(end)
    }

    /// The confidence that the words near `start..end` add to `wanted`, or take from it. The nearest word
    /// before speaks, wanted words from farther than others; without one, a wanted word right after does.
    pub(super) fn speaks(&self, start: usize, end: usize, wanted: u32) -> f32 {
        if self.spoken() & (wanted | about::THING | about::IDENTIFIERS) == 0 {
            return 0.0;
        }
        let words = self.words();
        let next = words.partition_point(|word| word.start < start);
        for word in words[..next].iter().rev() {
            let distance = start.saturating_sub(word.end);
            if distance > BEFORE {
                break;
            }
            if word.about & wanted != 0 {
                return RAISE;
            }
            let against = match word.about {
                about if about & about::THING != 0 => LOWER,
                about if about & about::IDENTIFIERS != 0 => YIELD,
                _ => continue,
            };
            if distance <= AGAINST && !self.sentence_ends(word.end, start) {
                return -against;
            }
        }
        let after = words[next..].iter().find(|word| word.start >= end);
        match after {
            Some(word) if word.start - end <= AFTER && word.about & wanted != 0 => RAISE,
            _ => 0.0,
        }
    }

    /// Returns true if a word of `wanted` stands near.
    pub(super) fn says(&self, start: usize, end: usize, wanted: u32) -> bool {
        self.speaks(start, end, wanted) > 0.0
    }

    /// A full stop and a space between: what was said before is another matter.
    fn sentence_ends(&self, start: usize, end: usize) -> bool {
        let between = self.bytes.get(start..end).unwrap_or_default();
        between
            .windows(2)
            .any(|pair| matches!(pair, [b'.' | b'!' | b'?' | b';', b' ' | b'\n']))
    }
}
