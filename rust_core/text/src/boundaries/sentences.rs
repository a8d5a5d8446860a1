//! Sentences of UAX #29, tailored.

use unicode_segmentation::UnicodeSegmentation;

use super::abbreviations::{follows_ordinal, follows_time, goes_on_after};

/// Sentences, and lines.
///
/// # Arguments
///
/// * `text` - Text of any script.
/// * `every_stop` - Whether a stop before a lower-case letter ends a sentence too. Without it "approx. five" stays together,
///   and so do the sentences of somebody who writes no capitals.
pub fn sentences(text: &str, every_stop: bool) -> Vec<&str> {
    let mut ends = ends(text);
    let mut list = List::default();
    ends.retain(|&end| is_end(text, end, every_stop, &mut list));
    let mut pieces = Vec::with_capacity(ends.len() + 1);
    let mut start = 0;
    for end in ends {
        pieces.push(&text[start..end]);
        start = end;
    }
    if !text[start..].trim_start().is_empty() || start == 0 && !text.is_empty() {
        pieces.push(&text[start..]);
    } else if let Some(last) = pieces.last_mut() {
        *last = &text[start - last.len()..];
    }
    pieces
}

/// Bytes that one run of the algorithm reads. A rule of the annex (SB8) looks ahead from each closing sign and space behind a
/// stop, so that its time is quadratic in a run of these.
const WINDOW: usize = 1024;

/// Bytes before a stop in which an abbreviation, or the beginning of a line, is looked for.
const LOOK_BACK: usize = 64;

/// Possible ends in ascending order: those of UAX #29, and those that the annex leaves to the language.
fn ends(text: &str) -> Vec<usize> {
    let mut ends = standard_ends(text);
    // All sentences that are left have something behind them, or are the last.
    ends.pop_if(|&mut end| text[end..].trim_start().is_empty());
    let known = ends.len();
    let mut at = 0;
    while let Some(found) = text[at..].find(is_stop) {
        at += found;
        at += text[at..].chars().next().map_or(1, char::len_utf8);
        let end = after_closers(text, at);
        let next = text[end..].chars().next();
        if next.is_some_and(char::is_whitespace) && !text[end..].trim_start().is_empty() {
            ends.push(end);
        }
    }
    if ends.len() > known {
        ends.sort_unstable();
        ends.dedup();
    }
    ends
}

/// Ends of sentences of UAX #29, before the white space behind them.
fn standard_ends(text: &str) -> Vec<usize> {
    let mut ends = Vec::new();
    let mut start = 0;
    while start < text.len() {
        let stop = window_end(text, start);
        for (at, sentence) in text[start..stop].split_sentence_bound_indices() {
            let is_cut = start + at + sentence.len() == stop && stop < text.len();
            let kept = sentence.trim_end().len();
            if kept > 0 && !is_cut {
                ends.push(start + at + kept);
            }
        }
        start = stop;
    }
    ends
}

/// Where the window that begins at `start` ends: inside a word, where no rule looks back, or where that is not possible at
/// its longest.
fn window_end(text: &str, start: usize) -> usize {
    if text.len() - start <= WINDOW {
        return text.len();
    }
    let end = char_border(text, start + WINDOW);
    let mut after = None;
    for (at, character) in text[start..end].char_indices().rev() {
        let is_letter = character.is_alphabetic();
        if let (true, Some(border)) = (is_letter, after) {
            return border;
        }
        after = is_letter.then_some(start + at);
    }
    end
}

/// The last character border at or before `at`.
fn char_border(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// The place behind the closing signs at `at`. A closing guillemet may stand after a space.
fn after_closers(text: &str, mut at: usize) -> usize {
    loop {
        let rest = &text[at..];
        let spaced = rest
            .strip_prefix(['\u{A0}', '\u{202F}', ' '])
            .unwrap_or(rest);
        if spaced.starts_with('»') {
            at = text.len() - spaced.len() + '»'.len_utf8();
        } else if let Some(closer) = rest.chars().next().filter(|&one| is_closer(one)) {
            at += closer.len_utf8();
        } else {
            return at;
        }
    }
}

/// Signs that end a sentence before white space, whatever follows.
fn is_stop(character: char) -> bool {
    // The semicolon asks in Greek alone; the shad ends a clause of Tibetan.
    matches!(
        character,
        '.' | '!' | '?' | '…' | ';' | '\u{37E}' | '\u{F0D}' | '\u{F0E}' | '؟' | '۔'
    )
}

fn is_closer(character: char) -> bool {
    matches!(
        character,
        '"' | '\''
            | ')'
            | ']'
            | '}'
            | '”'
            | '’'
            | '»'
            | '›'
            | '“'
            | '」'
            | '』'
            | '）'
            | '】'
            | '》'
            | '*'
            | '_'
    )
}

/// The list on one line whose marks were read: "1. First item. 2. Second item."
#[derive(Default)]
struct List {
    /// The last mark, and the place behind it.
    last: Option<(Mark, usize)>,
}

/// The number of a list's item, or the place in the alphabet of its lower-case letter.
#[derive(Clone, Copy, PartialEq)]
enum Mark {
    Number(u32),
    Letter(u32),
}

impl Mark {
    fn of(word: &str) -> Option<Self> {
        match word.as_bytes() {
            [letter @ b'a'..=b'z'] => Some(Self::Letter(u32::from(letter - b'a' + 1))),
            [b'1'..=b'9'] | [b'1'..=b'9', b'0'..=b'9'] => word.parse().ok().map(Self::Number),
            _ => None,
        }
    }

    fn is_first(self) -> bool {
        matches!(self, Self::Number(1) | Self::Letter(1))
    }

    fn next(self) -> Self {
        match self {
            Self::Number(place) => Self::Number(place + 1),
            Self::Letter(place) => Self::Letter(place + 1),
        }
    }
}

impl List {
    /// Returns true if `word`, whose stop ends at `end`, is the mark of an item: the one after the last on the line, or,
    /// where `begins`, the first of a list.
    fn takes(&mut self, text: &str, word: &str, end: usize, begins: bool) -> bool {
        let Some(mark) = Mark::of(word) else {
            return false;
        };
        let follows = match self.last {
            Some((last, place)) if last.next() == mark => {
                let same_line = !text[place..end].contains('\n');
                if !same_line {
                    self.last = None;
                }
                same_line
            }
            _ => false,
        };
        let taken = follows || (begins && mark.is_first());
        if taken {
            self.last = Some((mark, end));
        }
        taken
    }
}

/// Returns true if the sentence before `end` ends there.
fn is_end(text: &str, end: usize, every_stop: bool, list: &mut List) -> bool {
    let rest = &text[end..];
    let next = rest.trim_start();
    let gap = &rest[..rest.len() - next.len()];
    if gap.contains(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']) {
        return true;
    }
    // « Closed after a space. »
    if next.starts_with('»') {
        return false;
    }
    let before = text[..end]
        .trim_end_matches(|one| is_closer(one) || matches!(one, ' ' | '\u{A0}' | '\u{202F}'));
    let closed = before.len() < end;
    let Some(stop) = before.chars().next_back() else {
        return false;
    };
    let begins_lower = next.chars().next().is_some_and(char::is_lowercase);
    match stop {
        // No space at all divides a word, and a no-break space is there to keep two together.
        '.' if gap.is_empty() => {
            !next.starts_with(|one: char| one.is_alphanumeric() && !is_unspaced(one))
        }
        '.' | '…'
            if gap.chars().all(|one| matches!(one, '\u{A0}' | '\u{202F}')) && !gap.is_empty() =>
        {
            false
        }
        '.' if before.ends_with("..") => every_stop || !begins_lower,
        '.' => {
            // Asked first, because it reads the marks of lists.
            let goes_on = goes_on(text, before, next, list);
            !goes_on && (every_stop || !begins_lower)
        }
        '…' => every_stop || !begins_lower,
        // "Stop!" she said.
        '!' | '?' => !begins_lower || (every_stop && !closed),
        ';' | '\u{37E}' => is_greek(before[..before.len() - stop.len_utf8()].chars().next_back()),
        _ => true,
    }
}

/// Returns true if the stop at the end of `before` belongs to an abbreviation, an initial or a list number.
fn goes_on(text: &str, before: &str, next: &str, list: &mut List) -> bool {
    let end = before.len();
    let before = &before[..before.len() - 1];
    let near = &before[char_border(before, before.len().saturating_sub(LOOK_BACK))..];
    let begins_line = near.len() == before.len() || near.contains('\n');
    let line = &near[near.rfind('\n').map_or(0, |at| at + 1)..];
    let (earlier, token) = line.rsplit_once(char::is_whitespace).unwrap_or(("", line));
    let word = token.trim_start_matches(|one: char| !one.is_alphanumeric());
    let earlier = earlier.trim_end();
    let first_on_line = begins_line && earlier.chars().all(|one| !one.is_alphanumeric());
    if word.is_empty() {
        return false;
    }
    // "Milk, bread: 1." begins a list where "it was 1." ends a sentence.
    let begins_list = first_on_line || earlier.ends_with(|one: char| !one.is_alphanumeric());
    if list.takes(text, word, end, begins_list) {
        return true;
    }
    if word.chars().all(char::is_numeric) {
        let chars = word.chars().count();
        return (first_on_line && chars <= 3) || (chars <= 2 && follows_ordinal(next));
    }
    let mut letters = word.chars();
    if let (Some(letter), None) = (letters.next(), letters.next()) {
        // "I" ends more sentences than it begins names, but where a capital goes before it.
        let named = || {
            earlier
                .rsplit(char::is_whitespace)
                .next()
                .is_some_and(|one| one.ends_with('.'))
        };
        return goes_on_after(word, next)
            || (letter.is_uppercase() && (letter != 'I' || first_on_line || named()));
    }
    // "Meet at 3 p.m. Bring cake."
    let half_day =
        word.trim_start_matches(|one: char| one.is_numeric() || matches!(one, ':' | '.'));
    if half_day.eq_ignore_ascii_case("a.m") || half_day.eq_ignore_ascii_case("p.m") {
        return follows_time(next);
    }
    // "U.S.", "z.B.", "т.е."
    let is_dotted = word.contains('.')
        && word.split('.').all(|part| {
            matches!(part.chars().count(), 1 | 2) && part.chars().all(char::is_alphabetic)
        });
    is_dotted || goes_on_after(word, next)
}

/// Letters of scripts that put no space after a stop.
fn is_unspaced(character: char) -> bool {
    matches!(character, '\u{E00}'..='\u{EFF}' | '\u{1000}'..='\u{109F}' | '\u{1780}'..='\u{17FF}' | '\u{3040}'..='\u{9FFF}' | '\u{AC00}'..='\u{D7A3}')
}

fn is_greek(character: Option<char>) -> bool {
    matches!(
        character,
        Some('\u{370}'..='\u{3FF}' | '\u{1F00}'..='\u{1FFF}')
    )
}

#[cfg(test)]
mod tests {
    use super::sentences;

    fn trimmed(text: &str) -> Vec<&str> {
        sentences(text, false).into_iter().map(str::trim).collect()
    }

    #[test]
    fn sentences_of_all_scripts_end() {
        for (first, second) in [
            ("It rained.", "We stayed."),
            ("Did it rain?", "Yes."),
            ("今日は雨です。", "明日は晴れます。"),
            ("真的吗？", "当然！"),
            ("「行こう。」", "彼は言った。"),
            ("هل أمطرت؟", "نعم."),
            ("بارش ہوئی۔", "ہم گھر رہے۔"),
            ("बारिश हुई।", "हम घर रहे।"),
            ("বৃষ্টি হল।", "আমরা ঘরে।"),
            ("ዘነበ።", "ቤት ቆየን።"),
            ("Անձրևեց։", "Մենք տանն էինք։"),
            ("មេឃភ្លៀង។", "យើងនៅផ្ទះ។"),
            ("မိုးရွာတယ်။", "အိမ်မှာနေတယ်။"),
            ("Έβρεξε;", "Ναι."),
            ("ཆར་པ་བབས།", "ང་ཚོ་བསྡད།"),
            ("Дождь шёл.", "Мы остались."),
            ("ירד גשם.", "נשארנו."),
            ("비가 왔다.", "집에 있었다."),
            ("« Il pleut. »", "Nous restons."),
            ("It rained…", "We stayed."),
            ("“It rains.”", "We stayed."),
            ("(It rains!)", "We stayed."),
        ] {
            for gap in [" ", "\n", "\n\n"] {
                assert_eq!(trimmed(&format!("{first}{gap}{second}")), [first, second]);
            }
        }
        assert_eq!(trimmed("雨です。晴れです。"), ["雨です。", "晴れです。"]);
        assert_eq!(trimmed("真的吗？当然！"), ["真的吗？", "当然！"]);
    }

    #[test]
    fn stops_inside_a_sentence_do_not_end_it() {
        for text in [
            "Dr. Smith met Mrs. Jones.",
            "J. R. R. Tolkien wrote it.",
            "I. Kant wrote it.",
            "The U.S. Navy came at 5 p.m. on Friday.",
            "It costs 3.50 or 1.000,25 today.",
            "See Fig. 3 and No. 5 Main Street.",
            "Wir treffen uns am 3. Mai um zehn.",
            "Das ist z.B. Berlin, d.h. Prof. Kraus.",
            "Le rendez-vous avec Mme. Dupont et M. Roux.",
            "La Sra. Gómez y el Dr. Ruiz.",
            "Это ул. Ленина, т.е. Центр.",
            "1. Buy milk",
            "a. First item, b. Second item",
            "1. Milk 2. Bread 3. Tea",
            "We need: 1. milk, 2. bread, 3. Tea",
            "We met at 3 p.m. Friday.",
            "The call is at 9:30 a.m. Eastern Time.",
            "The call is at 3p.m. CET.",
            "Visit example.com. it is new.",
            "\"Stop!\" she said.",
            "Wait... what is it?",
            "Der Preis: ca. 5 Euro.",
            "He uses Node.js and v1.2.3 daily.",
            "Kapitel 5.\u{A0}Absatz",
        ] {
            assert_eq!(trimmed(text), [text]);
        }
    }

    #[test]
    fn words_that_look_like_abbreviations_end_sentences() {
        for (first, second) in [
            ("He said no.", "Then he left."),
            ("So did I.", "Then we left."),
            ("We bought milk, bread, etc.", "Then we left."),
            ("It was 1999.", "We left."),
            ("We were 12.", "Nobody else came."),
            ("We were 1.", "Nobody else came."),
            ("Meet at 3 p.m.", "Bring cake."),
            ("Meet at 3p.m.", "Bring cake."),
            ("Closed until 10:30 A.M.", "Come later."),
            ("It ends at 5 p.m.", "It was long."),
            ("1. First item.", "2. Second item."),
            ("1. Who came?", "2. Who left?"),
            ("Two steps: 1. Mix it.", "2. Bake it."),
            ("Yahoo!", "It works."),
        ] {
            assert_eq!(trimmed(&format!("{first} {second}")), [first, second]);
        }
    }

    #[test]
    fn a_list_on_one_line_ends_with_the_line() {
        let pieces = trimmed("1. First item.\nWe were 2. Nobody else came.");
        assert_eq!(
            pieces,
            ["1. First item.", "We were 2.", "Nobody else came."]
        );
    }

    #[test]
    fn writers_without_capitals_have_sentences_where_every_stop_counts() {
        let text = "see you then. bring cake! ok? the shop, e.g. ours, is approx. five steps away";
        assert_eq!(sentences(text, false).len(), 1);
        assert_eq!(
            sentences(text, true),
            [
                "see you then.",
                " bring cake!",
                " ok?",
                " the shop, e.g. ours, is approx. five steps away"
            ]
        );
    }

    #[test]
    fn ends_do_not_depend_on_what_is_far_before() {
        let far = "word ".repeat(700);
        for gap in [" ".repeat(3_000), " ".to_owned()] {
            let text = format!("{far}end.{gap}Next one。次です。{far}{far}Last! So.");
            let pieces = sentences(&text, false);
            let ends = ["end.", "Next one。", "次です。", "Last!", "So."];
            assert_eq!(pieces.len(), ends.len());
            assert!(
                pieces
                    .iter()
                    .zip(ends)
                    .all(|(piece, end)| piece.ends_with(end))
            );
        }
    }

    #[test]
    fn blanks_go_to_the_piece_that_follows_or_to_the_last() {
        assert_eq!(sentences(" One.  Two. \n", false), [" One.", "  Two. \n"]);
        assert_eq!(sentences(" \n ", false), [" \n "]);
        assert!(sentences("", false).is_empty());
    }
}
