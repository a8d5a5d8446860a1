//! Parts of identifiers: `parseHTMLTable`, `HTTP2Server`, `covid19`.

/// More parts are those of a key or an encoded text, which nobody names by them.
const MOST_PARTS: usize = 8;

/// Calls `found` with each part of an ASCII `word` of letters and digits, and whether it is a hump of its capitals.
///
/// Humps keep their digits (`HTTP2`); one with digits comes in its letters and its digits as well. A word without a border
/// between small and capital letters or between letters and digits has no parts.
pub(super) fn for_each_part(word: &str, mut found: impl FnMut(&str, bool)) {
    let bytes = word.as_bytes();
    // "1990s" and "20th" are numbers.
    if bytes[0].is_ascii_digit() || !bytes.iter().all(u8::is_ascii_alphanumeric) {
        return;
    }
    let is_border = |at: usize| is_hump(bytes, at) || is_digit_border(bytes, at);
    let borders = (1..bytes.len())
        .filter(|&at| is_border(at))
        .take(MOST_PARTS)
        .count();
    if borders == 0 || borders == MOST_PARTS {
        return;
    }
    let mut hump = 0;
    for end in 1..=bytes.len() {
        if end < bytes.len() && !is_hump(bytes, end) {
            continue;
        }
        if end - hump < bytes.len() {
            found(&word[hump..end], true);
        }
        // A number with one letter before it is a name as a whole: "v2", "a4".
        if bytes[hump..end]
            .iter()
            .filter(|byte| byte.is_ascii_alphabetic())
            .count()
            > 1
        {
            let mut start = hump;
            for at in hump + 1..=end {
                if (at == end || is_digit_border(bytes, at)) && at - start < end - hump {
                    found(&word[start..at], false);
                    start = at;
                }
            }
        }
        hump = end;
    }
}

/// Returns true if a hump begins at `at`: a capital after a small letter or a digit, or the last capital before a small
/// letter.
fn is_hump(bytes: &[u8], at: usize) -> bool {
    bytes[at].is_ascii_uppercase()
        && (bytes[at - 1].is_ascii_lowercase()
            || (bytes[at - 1].is_ascii_digit()
                && bytes.get(at + 1).is_some_and(u8::is_ascii_lowercase))
            || (bytes[at - 1].is_ascii_uppercase()
                && bytes.get(at + 1).is_some_and(u8::is_ascii_lowercase)))
}

fn is_digit_border(bytes: &[u8], at: usize) -> bool {
    bytes[at].is_ascii_digit() != bytes[at - 1].is_ascii_digit()
}

#[cfg(test)]
mod tests {
    use super::for_each_part;

    fn parts(word: &str) -> Vec<&str> {
        let mut all = Vec::new();
        for_each_part(word, |part, _| {
            let at = word.find(part).expect("a part of the word");
            all.push(&word[at..at + part.len()]);
        });
        all
    }

    #[test]
    fn identifiers_have_parts() {
        for (word, expected) in [
            ("getUserName", &["get", "User", "Name"][..]),
            ("parseHTMLTable", &["parse", "HTML", "Table"]),
            ("HTTP2Server", &["HTTP2", "HTTP", "2", "Server"]),
            ("XMLHttpRequest", &["XML", "Http", "Request"]),
            ("covid19", &["covid", "19"]),
            ("iOS17", &["i", "OS17", "OS", "17"]),
            ("utf8String", &["utf8", "utf", "8", "String"]),
            ("B2B", &["B", "2", "B"]),
            ("sha256sum", &["sha", "256", "sum"]),
            ("word", &[]),
            ("HTML", &[]),
            ("2024", &[]),
            ("1990s", &[]),
            ("v2", &[]),
            ("v1.2", &[]),
            ("a1b2c3d4e5f6", &[]),
        ] {
            assert_eq!(parts(word), expected, "{word}");
        }
    }
}
