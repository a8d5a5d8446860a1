//! Addresses of machines and mailboxes: e-mail, IPv6, MAC, and URLs that carry credentials.

use std::net::Ipv6Addr;

use super::kinds::Kind;
use super::runs::{has, is_word};
use super::view::View;
use super::words::about;

/// RFC 5321: the longest part before the at sign, and the longest domain.
const LOCAL_BYTES: usize = 64;
const DOMAIN_BYTES: usize = 255;
/// Marks of the part before the at sign, beside letters and digits.
const LOCAL_MARKS: &str = "._%+-'";
/// The longest IPv6 address in text.
const ADDRESS_BYTES: usize = 45;
/// The longest user and password that are looked for in a URL.
const USER_BYTES: usize = 256;
/// Ends of file names such as `icon@2x.png` that look like a domain's.
const FILE_ENDS: [&str; 12] = [
    "png", "jpg", "jpeg", "gif", "svg", "webp", "css", "js", "ts", "json", "html", "txt",
];

/// Scans at every `@` and `:` of the text.
pub(super) fn search(view: &mut View<'_>) {
    let bytes = view.bytes;
    let mut colons_until = 0;
    let mut credentials_until = 0;
    for (place, &byte) in bytes.iter().enumerate() {
        match byte {
            // The at sign of a URL with a password is no mailbox's.
            b'@' if place != credentials_until => email(view, place),
            b':' => {
                if bytes[place..].starts_with(b"://") {
                    credentials_until =
                        url_credentials(view, place + 3).unwrap_or(credentials_until);
                } else if place >= colons_until {
                    colons_until = colons(view, place);
                }
            }
            _ => {}
        }
    }
    dashes(view);
}

/// Letters of the Latin script, plain or accented, and the marks that go with them.
pub(super) fn is_latin(character: char) -> bool {
    character.is_ascii() || matches!(character, '\u{c0}'..='\u{24f}' | '\u{1e00}'..='\u{1eff}')
}

/// Characters of a part of an address: letters and digits, of any script, and these marks.
fn is_part(character: char, marks: &str) -> bool {
    character.is_alphanumeric()
        || marks.contains(character)
        // Vowel signs and other marks of Indic and South-East Asian scripts, which are no letters.
        || (!character.is_ascii() && !character.is_whitespace() && !character.is_control() && is_mark(character))
}

fn is_mark(character: char) -> bool {
    matches!(character, '\u{300}'..='\u{36f}' | '\u{900}'..='\u{dff}' | '\u{e31}'..='\u{e4e}')
}

/// Bytes at the end of `text` that are the part of an address before its at sign.
///
/// All letters are of the Latin script or none is: text of a script without spaces may stand right before an address.
fn local_bytes(text: &str) -> usize {
    let mut latin = None;
    text.chars()
        .rev()
        .take_while(|&character| {
            let same = is_part(character, LOCAL_MARKS) && fits_script(&mut latin, character);
            same && character != '@'
        })
        .map(char::len_utf8)
        .sum()
}

/// Bytes at the start of `text` that are a domain. A label is of the Latin script or has no letter of it.
fn domain_bytes(text: &str) -> usize {
    let mut latin = None;
    text.chars()
        .take_while(|&character| {
            if character == '.' {
                latin = None;
                return true;
            }
            is_part(character, "-") && fits_script(&mut latin, character)
        })
        .map(char::len_utf8)
        .sum()
}

/// Returns true if the character has the script of those before; the first one that is no mark decides.
fn fits_script(latin: &mut Option<bool>, character: char) -> bool {
    if !character.is_alphanumeric() && character.is_ascii() {
        return true;
    }
    *latin.get_or_insert_with(|| is_latin(character)) == is_latin(character)
}

/// The first border of characters at or after `place`.
fn border(text: &[u8], mut place: usize) -> usize {
    while text.get(place).is_some_and(|byte| byte & 0xc0 == 0x80) {
        place += 1;
    }
    place
}

fn email(view: &mut View<'_>, at: usize) {
    let bytes = view.bytes;
    let from = border(bytes, at.saturating_sub(LOCAL_BYTES));
    let until = bytes.len().min(at + 1 + DOMAIN_BYTES);
    let until = (at + 1..=until)
        .rev()
        .find(|&place| border(bytes, place) == place)
        .unwrap_or(at + 1);
    let (Ok(before), Ok(after)) = (
        std::str::from_utf8(&bytes[from..at]),
        std::str::from_utf8(&bytes[at + 1..until]),
    ) else {
        return;
    };
    let local = &before[before.len() - local_bytes(before)..];
    let local = local.trim_start_matches(|character: char| LOCAL_MARKS.contains(character));
    let domain = &after[..domain_bytes(after)];
    let domain = domain.trim_end_matches(['.', '-']);
    let (start, end) = (at - local.len(), at + 1 + domain.len());
    if local.is_empty() || local.ends_with('.') || bytes[start..].starts_with(b"git@") {
        return;
    }
    let mut labels = domain.rsplit('.');
    let top = labels.next().unwrap_or_default();
    let right = top.chars().count() >= 2
        && top.chars().all(|character| {
            character.is_alphabetic()
                || (!character.is_ascii() && is_part(character, ""))
                || (top.starts_with("xn--") && character.is_ascii_alphanumeric()
                    || character == '-')
        })
        && domain.len() > top.len()
        && labels
            .all(|label| !label.is_empty() && !label.starts_with('-') && !label.ends_with('-'));
    let file = FILE_ENDS.contains(&top);
    if right && !file {
        view.note(Kind::Email, start, end, 0.95);
    }
}

/// The place of the at sign after `user:password` in a URL.
fn url_credentials(view: &mut View<'_>, start: usize) -> Option<usize> {
    let rest = view.bytes.get(start..)?;
    let length = rest
        .iter()
        .take(USER_BYTES)
        .take_while(|byte| {
            !matches!(
                byte,
                b'/' | b'?' | b'#' | b'@' | b'"' | b'<' | b'>' | b'\'' | b' ' | b'\n' | b'\t'
            )
        })
        .count();
    let user = &rest[..length];
    let colon = user.iter().position(|&byte| byte == b':')?;
    if rest.get(length) != Some(&b'@') || colon + 1 == length {
        return None;
    }
    view.note(Kind::UrlCredentials, start, start + length, 0.95);
    Some(start + length)
}

/// The longest piece of hex digits, colons and dots around a colon: an IPv6 or a MAC address, or neither. Where it ends.
fn colons(view: &mut View<'_>, place: usize) -> usize {
    let bytes = view.bytes;
    let part = |byte: &u8| byte.is_ascii_hexdigit() || matches!(byte, b':' | b'.');
    let before = bytes[..place]
        .iter()
        .rev()
        .take(4)
        .take_while(|byte| byte.is_ascii_hexdigit())
        .count();
    // One colon after a word or a label ("host:") is not part of the address.
    let label = usize::from(before == 0 && view.at(place + 1) != b':');
    let start = place - before + label;
    let mut end = start + bytes[start..].iter().take_while(|byte| part(byte)).count();
    let until = end;
    while end > start && matches!(bytes[end - 1], b'.' | b':') && !bytes[..end].ends_with(b"::") {
        end -= 1;
    }
    let text = &bytes[start..end];
    let bounded = !is_word(view.before(start))
        && !is_word(view.at(until))
        && (label == 1 || view.before(start) != b':');
    if !bounded || text.len() > ADDRESS_BYTES || text.len() < 4 {
        return until;
    }
    if is_mac(text, b':') {
        view.note(Kind::MacAddress, start, end, 0.9);
    } else if is_ipv6(text) {
        view.weigh(Kind::IpAddress, start, end, 0.85, about::IP);
    }
    until
}

fn is_ipv6(text: &[u8]) -> bool {
    let groups = text
        .split(|&byte| byte == b':')
        .filter(|group| !group.is_empty())
        .count();
    // `a1::b2` is C++ more often than an address.
    let plain = groups >= 3 && text.iter().any(u8::is_ascii_digit);
    plain
        && std::str::from_utf8(text)
            .ok()
            .and_then(|text| text.parse::<Ipv6Addr>().ok())
            .is_some_and(|address| !address.is_loopback() && !address.is_unspecified())
}

fn is_mac(text: &[u8], separator: u8) -> bool {
    text.len() == 17
        && text.chunks(3).all(|pair| {
            pair[0].is_ascii_hexdigit()
                && pair[1].is_ascii_hexdigit()
                && pair.get(2).is_none_or(|&byte| byte == separator)
        })
        && text.iter().any(|&byte| byte != b'0' && byte != separator)
}

/// MAC addresses with dashes, or in three groups with dots.
fn dashes(view: &mut View<'_>) {
    if !view.wants(Kind::MacAddress) {
        return;
    }
    for place in 0..view.runs.len() {
        let run = view.runs[place];
        let (length, separator, groups) = match run.len() {
            2 => (17, b'-', 6),
            4 => (14, b'.', 3),
            _ => continue,
        };
        let Some(last) = view.runs.get(place + groups - 1) else {
            continue;
        };
        if !run.is_hex()
            || view.at(run.end) != separator
            || last.end != run.start + length
            || !view.begins(run.start)
        {
            continue;
        }
        let text = view.slice(run.start, last.end);
        let pairs = &view.runs[place..place + groups];
        let right = pairs
            .iter()
            .all(|one| one.is_hex() && one.len() == run.len())
            && text
                .iter()
                .all(|&byte| byte == separator || byte.is_ascii_hexdigit())
            && pairs
                .iter()
                .any(|one| one.made_of & (has::UPPER | has::LOWER) != 0);
        if right && view.ends(last.end, true) && view.at(last.end) != separator {
            view.note(Kind::MacAddress, run.start, last.end, 0.85);
        }
    }
}
