//! Text to search terms, the same way for what is indexed and what is asked.
//!
//! 1. Fold: NFKC, plain punctuation and digits, and one spelling of what each script spells in several (`fold`).
//! 2. Cut: words by UAX #29, compounds whole and in parts, symbols, pairs of characters for scripts without spaces
//!    (`segment`).
//! 3. Lower case; Snowball stem of the bank's language, or of the script's (`language`); English stop words dropped, on
//!    both sides, so that they cost no memory. A text of nothing but stop words keeps them, so "Who are you?" is found by
//!    "who are you"; "IT", "US" and "WHO" in capitals are names, and so is the letter in "plan A".
//! 4. A second name space holds surface forms: a word as written where its stem differs, and compounds as a whole. It
//!    lifts exact matches, at its own weight.
//!
//! A term is a 64-bit fingerprint of its name space and spelling, so the index holds no text. Two spellings of one bank
//! share a fingerprint with a probability of about n² / 2^64: 5e-8 for a million terms.

mod fold;
mod identifiers;
mod language;
mod phrases;
mod segment;
mod spellings;
mod stems;
mod stop_words;

use std::borrow::Cow;

pub use language::Language;
pub use phrases::{holds_phrase, phrase_words};
use segment::Piece;
pub use stems::is_stem;

/// Weight of a match of a surface form beside one of a stem.
// Between .1 and .2 it gains or costs less than .01 of recall on six development sets; it is here for the exact form
// and the whole identifier, which it puts before their look-alikes.
pub const SURFACE_WEIGHT: f32 = 0.15;

// Longer words are cut here: nobody types them, and a base64 blob is one "word".
const MAX_WORD_BYTES: usize = 128;

/// The terms of a text to be indexed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AnalyzedText {
    /// Distinct terms in ascending order, with how often each occurs.
    pub terms: Vec<(u64, u32)>,
    /// Words that count as the length of the text: each stem once per occurrence, no surface forms.
    length: u32,
}

impl AnalyzedText {
    /// Number of distinct terms.
    pub fn distinct(&self) -> usize {
        self.terms.len()
    }

    /// Length in words, stop words left out.
    pub fn length(&self) -> u32 {
        self.length
    }
}

/// The distinct terms of a query with their weights, in ascending order of the terms.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AnalyzedQuery {
    /// Distinct terms in ascending order, with their weights.
    pub terms: Vec<(u64, f32)>,
    /// Sets of further terms, each of which counts as one term of weight 1. No term is twice in all of them and `terms`.
    pub unions: Vec<Vec<u64>>,
}

impl AnalyzedQuery {
    /// Returns true if there is no term to search for.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty() && self.unions.iter().all(Vec::is_empty)
    }
}

/// The terms of `text` for the index of an English bank.
pub fn analyze_text(text: &str) -> AnalyzedText {
    Language::English.analyze_text(text)
}

/// The terms of `text` for a search of an English bank.
pub fn analyze_query(text: &str) -> AnalyzedQuery {
    Language::English.analyze_query(text)
}

impl Language {
    /// The terms of `text` for the index.
    pub fn analyze_text(self, text: &str) -> AnalyzedText {
        let folded = fold::fold(text);
        let mut collector = Collector::new(&folded, self, true);
        collector.read();
        let Collector {
            mut stems,
            surfaces,
            ..
        } = collector;
        let length = stems.len() as u32;
        stems.extend(surfaces);
        stems.sort_unstable();
        let mut terms: Vec<(u64, u32)> = Vec::with_capacity(stems.len());
        for term in stems {
            match terms.last_mut() {
                Some((last, frequency)) if *last == term => *frequency += 1,
                _ => terms.push((term, 1)),
            }
        }
        AnalyzedText { terms, length }
    }

    /// The terms of `text` for a search.
    pub fn analyze_query(self, text: &str) -> AnalyzedQuery {
        let folded = fold::fold(text);
        let mut collector = Collector::new(&folded, self, false);
        collector.read();
        let stems = collector.stems.into_iter().map(|term| (term, 1.0));
        let surfaces = collector
            .surfaces
            .into_iter()
            .map(|term| (term, SURFACE_WEIGHT));
        let mut terms: Vec<(u64, f32)> = stems.chain(surfaces).collect();
        // A word that is a part of another, too, counts as the word.
        terms.sort_unstable_by(|left, right| left.0.cmp(&right.0).then(right.1.total_cmp(&left.1)));
        terms.dedup_by_key(|&mut (term, _)| term);
        AnalyzedQuery {
            terms,
            unions: Vec::new(),
        }
    }

    /// The words of `text` in order, in lower case, each with its stem; none for a stop word.
    pub fn words(self, text: &str) -> Vec<(String, Option<String>)> {
        let folded = fold::fold(text);
        let mut words = Vec::new();
        segment::for_each_piece(&folded, |piece| match piece {
            Piece::Word(word) => {
                let lower = lower_word(cut(word));
                let kept = is_acronym(word) || is_letter_name(&folded, word);
                let stem = stems::stem_of(&lower, self).map(Cow::into_owned);
                let stem = stem.or_else(|| kept.then(|| lower.clone()));
                words.push((lower, stem));
            }
            Piece::Pair(part) | Piece::Symbol(part) => {
                words.push((part.to_owned(), Some(part.to_owned())));
            }
            Piece::Compound(_) | Piece::Character(_) => {}
        });
        words
    }

    /// A number that is another one where analysis makes other terms of a text: what was indexed by it does not fit then.
    pub fn fingerprint(self) -> u64 {
        let mut bytes = self.name().as_bytes().to_vec();
        for sample in SAMPLES {
            let text = self.analyze_text(sample);
            bytes.extend_from_slice(&text.length.to_le_bytes());
            for (term, frequency) in text.terms {
                bytes.extend_from_slice(&term.to_le_bytes());
                bytes.extend_from_slice(&frequency.to_le_bytes());
            }
        }
        xxhash_rust::xxh3::xxh3_64(&bytes)
    }
}

// One text for each rule.
const SAMPLES: &[&str] = &[
    "The gardener's naïve cats are running to 3 cafés; Ärzte waited, or didn't. 10² résumés in IT, plan A.",
    "l'horloge O'Brien Bursa'da rock'n'roll parseHTMLTable HTTP2Server snake_case C++ ann.lee@example.com 1,000.5",
    "東京タワー 臺灣圖書館 서울에서 ข้าว မြန်မာ ខ្មែរ ລາວ",
    "أُسَامَة إيمان مستشفى کتاب שָׁלוֹם צה״ל हिन्दी ज़िंदगी १२ ३٫٥",
    "Ёлка за́мок Мюллера Ωμέγα ὀδός இல்லை Mueller Haakon Sørensen Straße",
    "✅🎈🇧🇷👍🏽👩\u{200D}👦 → €5 ½ ﬁne",
];

struct Collector<'a> {
    folded: &'a str,
    language: Language,
    stems: Vec<u64>,
    surfaces: Vec<u64>,
    lower: String,
    // Adds what only an index needs so that more queries find the text: parts of identifiers, single Han characters.
    for_index: bool,
}

impl<'a> Collector<'a> {
    fn new(folded: &'a str, language: Language, for_index: bool) -> Self {
        // English has about six bytes a word, and half of the words are stop words.
        let expected = folded.len() / 8 + 4;
        Self {
            folded,
            language,
            stems: Vec::with_capacity(expected * 2),
            surfaces: Vec::with_capacity(expected),
            lower: String::new(),
            for_index,
        }
    }

    fn read(&mut self) {
        let folded = self.folded;
        segment::for_each_piece(folded, |piece| self.piece(piece, false));
        if self.stems.is_empty() {
            segment::for_each_piece(folded, |piece| self.piece(piece, true));
        }
    }

    fn piece(&mut self, piece: Piece<'a>, keep_stop_words: bool) {
        match piece {
            Piece::Word(word) => self.word(cut(word), keep_stop_words),
            Piece::Compound(whole) => self.compound(cut(whole)),
            Piece::Pair(pair) => self.stems.push(stems::stem_term(pair)),
            Piece::Character(character) if self.for_index => {
                self.surfaces.push(stems::stem_term(character));
            }
            Piece::Character(_) => {}
            Piece::Symbol(symbol) => self.symbol(symbol),
        }
    }

    fn word(&mut self, word: &'a str, keep_stop_words: bool) {
        self.lower.clear();
        lower_word_into(word, &mut self.lower);
        let terms = stems::word_terms(&self.lower, self.language);
        let is_name = word.len() == 1 && is_letter_name(self.folded, word);
        if is_name {
            self.named_letter(word);
        }
        if !terms.is_stop_word() {
            self.stems.push(terms.stem);
            if terms.differs {
                self.surfaces.push(terms.surface);
            }
            self.spellings(word);
            self.parts(word);
        } else if keep_stop_words || is_name || is_acronym(word) {
            self.stems.push(stems::stem_term(&self.lower));
        }
    }

    /// Adds the compound, and of one with apostrophes the spelling without them: "obrien". They do not count for the length.
    fn compound(&mut self, whole: &str) {
        self.lower.clear();
        lower_word_into(whole, &mut self.lower);
        self.surfaces.push(stems::surface_term(&self.lower));
        if self.lower.contains('\'') {
            self.lower.retain(|character| character != '\'');
            let terms = stems::word_terms(&self.lower, self.language);
            if !terms.is_stop_word() {
                self.surfaces.push(terms.stem);
            }
        }
    }

    /// Adds other spellings of umlauts: "mueller" for "müller" in an index, "muller" for "mueller". They do not count for the
    /// length.
    fn spellings(&mut self, word: &str) {
        let other = if word.is_ascii() {
            fold::drawn_together(&self.lower)
        } else if self.for_index {
            let mut lower = String::new();
            fold::lower_into(word, &mut lower);
            let out = fold::written_out(&lower);
            (out != lower).then_some(out)
        } else {
            None
        };
        if let Some(other) = other {
            let terms = stems::word_terms(&other, self.language);
            if !terms.is_stop_word() {
                self.surfaces.push(terms.stem);
            }
        }
    }

    /// Adds the parts of `getUserName` and `HTTP2Server`, so that "user name" and "http server" find them. They do not count
    /// for the length.
    fn parts(&mut self, word: &str) {
        identifiers::for_each_part(word, |part, is_whole_hump| {
            // A question names an identifier by its humps; what is inside them is for the index alone.
            if self.for_index || is_whole_hump {
                let terms = stems::word_terms(&part.to_ascii_lowercase(), self.language);
                if !terms.is_stop_word() {
                    self.surfaces.push(terms.stem);
                }
            }
        });
    }

    /// Adds a noun and its letter as one: "device a".
    fn named_letter(&mut self, letter: &'a str) {
        let mut pair = String::new();
        lower_word_into(word_before(self.folded, letter), &mut pair);
        if !pair.is_empty() {
            pair.push(' ');
            pair.push_str(&self.lower);
            self.surfaces.push(stems::surface_term(&pair));
        }
    }

    fn symbol(&mut self, symbol: &str) {
        let plain: String = symbol
            .chars()
            .filter(|&character| !segment::is_skin_tone(character))
            .collect();
        self.stems.push(stems::stem_term(&plain));
        if plain.len() < symbol.len() {
            self.surfaces.push(stems::surface_term(symbol));
        }
        if self.for_index && plain.contains(segment::JOINER) {
            for part in plain.split(segment::JOINER) {
                self.surfaces.push(stems::stem_term(part));
            }
        }
    }
}

/// `word`, folded, in the spelling that terms are made of.
fn lower_word(word: &str) -> String {
    let mut lower = String::with_capacity(word.len());
    lower_word_into(word, &mut lower);
    lower
}

/// Appends [`lower_word`] of `word`.
fn lower_word_into(word: &str, lower: &mut String) {
    let start = lower.len();
    fold::lower_into(word, lower);
    if word.is_ascii() {
        if word.as_bytes().first().is_some_and(u8::is_ascii_digit) {
            // 1,000 and 1000 are one number.
            lower.retain(|character| character != ',');
        }
        return;
    }
    let plain = fold::plain_umlauts(&lower[start..]);
    lower.truncate(start);
    if plain.is_ascii() {
        lower.push_str(&plain);
    } else {
        // Beyond Latin an apostrophe is a letter that may be left out.
        lower.extend(plain.chars().filter(|&character| character != '\''));
    }
}

/// `word` without what is beyond the longest length, at a character border.
fn cut(word: &str) -> &str {
    let mut end = word.len().min(MAX_WORD_BYTES);
    while !word.is_char_boundary(end) {
        end -= 1;
    }
    &word[..end]
}

/// Two or more capitals: a name, even if it is spelled like a stop word.
fn is_acronym(word: &str) -> bool {
    word.len() > 1 && word.bytes().all(|byte| byte.is_ascii_uppercase())
}

/// Returns true if a letter, a part of `text`, names something: "plan A", "vitamin D", "is it box a?".
fn is_letter_name(text: &str, letter: &str) -> bool {
    let &[byte] = letter.as_bytes() else {
        return false;
    };
    let before = word_before(text, letter);
    let after_noun = before.len() > 1 && !stop_words::is_stop_word(&lower_word(before));
    let rest = &text[offset(text, letter) + 1..];
    let ends = |rest: &str| rest.is_empty() || rest.starts_with(char::is_whitespace);
    let is_last = rest.trim().is_empty()
        || rest
            .strip_prefix(['.', '?', '!', ',', ';', ':', ')'])
            .is_some_and(ends);
    // "William D. Leahy": an initial, of which a text has many.
    let is_initial = rest.starts_with(". ") && before.starts_with(char::is_uppercase);
    match byte {
        b'I' | b'a' => after_noun && is_last,
        _ => byte.is_ascii_uppercase() && after_noun && !is_initial,
    }
}

/// The word that a single space divides from `word`, a part of `text`; empty where there is none.
fn word_before<'a>(text: &'a str, word: &str) -> &'a str {
    let Some(before) = text[..offset(text, word)].strip_suffix(' ') else {
        return "";
    };
    let start = before
        .char_indices()
        .rev()
        .take_while(|&(_, character)| character.is_alphanumeric())
        .last()
        .map_or(before.len(), |(at, _)| at);
    &before[start..]
}

/// Where `part` begins in `text`, of which it is a part.
fn offset(text: &str, part: &str) -> usize {
    part.as_ptr() as usize - text.as_ptr() as usize
}

#[cfg(test)]
mod tests;
