//! Sentences of UAX #29, tailored.

use unicode_segmentation::UnicodeSegmentation;

use super::abbreviations::{follows_ordinal, goes_on_after};

/// Sentences, and lines.
///
/// # Arguments
///
/// * `text` - Text of any script.
/// * `every_stop` - Whether a stop before a lower-case letter ends a sentence too. Without it "approx. five" stays together,
///   and so do the sentences of somebody who writes no capitals.
pub fn sentences(text: &str, every_stop: bool) -> Vec<&str> {
    let mut ends = ends(text);
    ends.retain(|&end| is_end(text, end, every_stop));
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

/// Returns true if the sentence before `end` ends there.
fn is_end(text: &str, end: usize, every_stop: bool) -> bool {
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
        '.' => (every_stop || !begins_lower) && !goes_on(before, next),
        '…' => every_stop || !begins_lower,
        // "Stop!" she said.
        '!' | '?' => !begins_lower || (every_stop && !closed),
        ';' | '\u{37E}' => is_greek(before[..before.len() - stop.len_utf8()].chars().next_back()),
        _ => true,
    }
}

/// Returns true if the stop at the end of `before` belongs to an abbreviation, an initial or a list number.
fn goes_on(before: &str, next: &str) -> bool {
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
            ("Yahoo!", "It works."),
        ] {
            assert_eq!(trimmed(&format!("{first} {second}")), [first, second]);
        }
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
