//! Secrets: keys by their issuers' prefixes, tokens, private key blocks, and values that a name such as `password` gives away.

use super::kinds::Kind;
use super::network::is_latin;
use super::runs::has;
use super::view::View;
use super::words::about;

/// A private key block is looked through so far for its end; a 16,384-bit RSA key has some 12,700 characters.
const BLOCK_BYTES: usize = 16_384;
/// The longest value after a name.
const VALUE_BYTES: usize = 256;

/// Prefixes of tokens with the least number of characters after them. `[A-Za-z0-9_-]` goes on a token.
const PREFIXES: &[(&[u8], usize)] = &[
    (b"ghp_", 30),
    (b"gho_", 30),
    (b"ghu_", 30),
    (b"ghs_", 30),
    (b"ghr_", 30),
    (b"github_pat_", 22),
    (b"glpat-", 20),
    (b"xoxb-", 10),
    (b"xoxp-", 10),
    (b"xoxa-", 10),
    (b"xoxr-", 10),
    (b"xoxs-", 10),
    (b"xapp-", 10),
    (b"sk_live_", 16),
    (b"sk_test_", 16),
    (b"rk_live_", 16),
    (b"rk_test_", 16),
    (b"pk_live_", 16),
    (b"whsec_", 24),
    (b"AIza", 35),
    (b"ya29", 20),
    (b"GOCSPX-", 20),
    (b"hf_", 30),
    (b"npm_", 30),
    (b"pypi-", 40),
    (b"dop_v1_", 40),
    (b"sk-", 20),
    (b"sq0atp-", 20),
    (b"shpat_", 30),
    (b"SG.", 40),
    (b"glsa_", 30),
    (b"AGE-SECRET-KEY-", 40),
];
/// The shortest of them.
const LEAST_TOKEN: usize = 15;
/// Of AWS access key ids: four letters, then sixteen.
const AWS: [&[u8]; 4] = [b"AKIA", b"ASIA", b"ABIA", b"ACCA"];

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// Scans every run, and the values of names such as `password`.
pub(super) fn search(view: &mut View<'_>) {
    if view.wants(Kind::ApiKey) || view.wants(Kind::Jwt) {
        let mut until = 0;
        for place in 0..view.runs.len() {
            let run = view.runs[place];
            if run.start >= until && !is_token(view.before(run.start)) {
                until = token(view, run.start);
            }
        }
    }
    if view.wants(Kind::Credential) && view.runs.iter().any(|run| run.made_of & has::DIGIT != 0) {
        named_values(view);
    }
}

/// Scans a token at `start`; returns the place behind it.
fn token(view: &mut View<'_>, start: usize) -> usize {
    let rest = &view.bytes[start..];
    let length = rest.iter().take_while(|&&byte| is_token(byte)).count();
    let text = &rest[..length];
    if text.starts_with(b"eyJ") {
        return json_web_token(view, start, start + length);
    }
    let end = start + length;
    if length < LEAST_TOKEN && text != b"SG" {
        return end;
    }
    let digit = text.iter().any(u8::is_ascii_digit);
    let aws = length == 20
        && AWS.iter().any(|prefix| text.starts_with(prefix))
        && text
            .iter()
            .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
    let known = || {
        PREFIXES
            .iter()
            .any(|(prefix, least)| text.starts_with(prefix) && length >= prefix.len() + least)
    };
    if digit && (aws || known()) {
        view.note(Kind::ApiKey, start, end, 0.97);
    } else if text == b"SG" && view.at(end) == b'.' {
        // SendGrid's have two dots within.
        let dotted = rest
            .iter()
            .take(VALUE_BYTES)
            .take_while(|&&byte| is_token(byte) || byte == b'.')
            .count();
        if (60..=80).contains(&dotted) {
            view.note(Kind::ApiKey, start, start + dotted, 0.97);
            return start + dotted;
        }
    }
    end
}

/// Three parts of base64url with dots between, the first a JSON object.
fn json_web_token(view: &mut View<'_>, start: usize, header: usize) -> usize {
    let mut end = header;
    for _ in 0..2 {
        if view.at(end) != b'.' {
            return end;
        }
        end += 1 + view.bytes[end + 1..]
            .iter()
            .take_while(|&&byte| is_token(byte))
            .count();
    }
    if header - start >= 12 && end - header >= 20 {
        view.note(Kind::Jwt, start, end, 0.98);
    }
    end
}

/// `-----BEGIN ... PRIVATE KEY-----` to its end, or as far as base64 goes on.
pub(super) fn private_keys(view: &mut View<'_>) {
    const BEGIN: &[u8] = b"-----BEGIN ";
    if !view.wants(Kind::PrivateKey) {
        return;
    }
    let bytes = view.bytes;
    let mut place = 0;
    while let Some(found) = bytes.get(place..).and_then(|rest| find(rest, BEGIN)) {
        let start = place + found;
        let line = &bytes[start..bytes.len().min(start + 80)];
        let Some(label) =
            find(line, b"PRIVATE KEY").filter(|at| find(&line[..*at], b"\n").is_none())
        else {
            place = start + BEGIN.len();
            continue;
        };
        let body = start + label;
        let window = &bytes[body..bytes.len().min(body + BLOCK_BYTES)];
        let end = find(window, b"-----END ").map_or_else(
            || {
                body + window
                    .iter()
                    .take_while(|byte| !matches!(byte, b'"' | b'<' | b'`'))
                    .count()
            },
            |at| {
                let rest = &window[at + 9..];
                body + at
                    + 9
                    + find(&rest[..rest.len().min(80)], b"-----").map_or(0, |dashes| dashes + 5)
            },
        );
        view.note(Kind::PrivateKey, start, end, 0.99);
        place = end;
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes
        .windows(wanted.len())
        .position(|window| window == wanted)
}

/// Values of names such as `password`, `DB_SECRET_KEY` or `api key`: the value alone is the secret.
fn named_values(view: &mut View<'_>) {
    let names: Vec<(usize, u32)> = view
        .context
        .words()
        .iter()
        .filter(|word| word.about & (about::SECRET | about::PASSWORD) != 0)
        .map(|word| (word.end, word.about))
        .collect();
    let mut until = 0;
    for (end, about) in names {
        if end < until {
            continue;
        }
        if let Some((start, length)) = value(view, end) {
            until = start + length;
            if is_secret(view.slice(start, start + length), about) {
                view.note(Kind::Credential, start, start + length, 0.8);
            }
        }
    }
}

/// Where the value of the name that ends at `end` stands: after `=`, `:` or "is", in quotes or not.
fn value(view: &View<'_>, end: usize) -> Option<(usize, usize)> {
    let mut place = end
        + view.bytes[end..]
            .iter()
            .take(24)
            .take_while(|&&byte| is_token(byte))
            .count();
    let skip = |mut place: usize, marks: &[u8], most: usize| {
        let limit = place + most;
        while place < limit && marks.contains(&view.at(place)) {
            place += 1;
        }
        place
    };
    place = skip(place, b" \t\"'`]", 3);
    if matches!(view.at(place), b'=' | b':') {
        place = skip(place, b"=:>", 2);
    } else {
        place += copula(view.bytes.get(place..)?)?;
    }
    place = skip(place, b" \t\"'`:", 4);
    let rest = view.bytes.get(place..)?;
    let mut length = written(&rest[..rest.len().min(VALUE_BYTES)]);
    while length > 0 && matches!(rest[length - 1], b'.' | b')' | b'!' | b'?' | b']' | b'}') {
        length -= 1;
    }
    (length > 0).then_some((place, length))
}

/// Bytes of the word between a name and its value, such as "is ".
fn copula(rest: &[u8]) -> Option<usize> {
    /// Of languages that part words by spaces; a space follows.
    const APART: [&str; 12] = [
        "is ",
        "was ",
        "es ",
        "est ",
        "ist ",
        "era ",
        "è ",
        "é ",
        "это ",
        "είναι ",
        "هي ",
        "है ",
    ];
    /// Of scripts that do not, and particles.
    const JOINED: [&str; 9] = ["是", "为", "為", "は", "が", "는", "은", "คือ", "হল"];
    let apart = APART.iter().find(|word| {
        let found = rest.get(..word.len());
        found.is_some_and(|found| found.eq_ignore_ascii_case(word.as_bytes()))
    });
    let joined = || JOINED.iter().find(|word| rest.starts_with(word.as_bytes()));
    apart.or_else(joined).map(|word| word.len())
}

/// Bytes of the value at the start of `rest`: as far as no space, quote or list mark comes. A value that begins in the Latin
/// script ends where another script begins.
fn written(rest: &[u8]) -> usize {
    let text = match std::str::from_utf8(rest) {
        Ok(text) => text,
        // The cut fell into a character.
        Err(error) => std::str::from_utf8(&rest[..error.valid_up_to()]).unwrap_or_default(),
    };
    let latin = text.chars().next().is_some_and(is_latin);
    text.chars()
        .take_while(|&character| {
            let mark = matches!(
                character,
                '"' | '\'' | '`' | '<' | '>' | ',' | ';' | '&' | '、' | '。'
            );
            let in_script = !latin || is_latin(character);
            !character.is_whitespace() && !mark && in_script
        })
        .map(char::len_utf8)
        .sum()
}

/// Letters and digits mixed, as no word is; a token must be longer and more varied than a password.
fn is_secret(value: &[u8], about: u32) -> bool {
    let digits = value.iter().filter(|byte| byte.is_ascii_digit()).count();
    let letters = value
        .iter()
        .filter(|byte| byte.is_ascii_alphabetic())
        .count();
    if digits == 0
        || letters == 0
        || value.starts_with(b"http")
        || value.starts_with(b"${")
        || value.starts_with(b"{{")
    {
        return false;
    }
    // Code: `db.Column(`.
    let call = value
        .iter()
        .position(|byte| !(byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.')));
    if call.is_some_and(|place| place > 0 && value[place] == b'(') {
        return false;
    }
    if about & about::PASSWORD != 0 {
        return value.len() >= 6;
    }
    value.len() >= 12 && varied(value)
}

/// At least 3 bits a character: base64 and hex of some length have it, repeated and dotted words have not.
fn varied(value: &[u8]) -> bool {
    let mut counts = [0u32; 256];
    for &byte in value {
        counts[usize::from(byte)] += 1;
    }
    let total = value.len() as f32;
    let bits: f32 = counts
        .iter()
        .filter(|&&count| count > 0)
        .map(|&count| {
            let share = count as f32 / total;
            -share * share.log2()
        })
        .sum();
    bits >= 2.9
}
