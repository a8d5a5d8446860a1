//! Addresses of machines and mailboxes: e-mail, IPv6, MAC, and URLs that carry credentials.

use std::net::Ipv6Addr;

use super::kinds::Kind;
use super::runs::{has, is_word};
use super::view::View;
use super::words::about;

/// RFC 5321: the longest part before the at sign, and the longest domain.
const LOCAL_BYTES: usize = 64;
const DOMAIN_BYTES: usize = 255;
/// The longest IPv6 address in text.
const ADDRESS_BYTES: usize = 45;
/// The longest user and password that are looked for in a URL.
const USER_BYTES: usize = 256;
/// Ends of file names such as `icon@2x.png` that look like a domain's.
const FILE_ENDS: [&str; 12] = [
    "png", "jpg", "jpeg", "gif", "svg", "webp", "css", "js", "ts", "json", "html", "txt",
];

/// Looks at every `@` and `:` of the text.
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

fn is_local(byte: u8) -> bool {
    is_word(byte) || matches!(byte, b'.' | b'_' | b'%' | b'+' | b'-' | b'\'')
}

fn is_domain(byte: u8) -> bool {
    is_word(byte) || matches!(byte, b'.' | b'-')
}

fn email(view: &mut View<'_>, at: usize) {
    let bytes = view.bytes;
    let local = bytes[..at]
        .iter()
        .rev()
        .take(LOCAL_BYTES)
        .take_while(|&&byte| is_local(byte))
        .count();
    let leading = bytes[at - local..at]
        .iter()
        .take_while(|&&byte| !is_word(byte))
        .count();
    let start = at - local + leading;
    let domain = bytes[at + 1..]
        .iter()
        .take(DOMAIN_BYTES)
        .take_while(|&&byte| is_domain(byte))
        .count();
    let trailing = bytes[at + 1..at + 1 + domain]
        .iter()
        .rev()
        .take_while(|&&byte| !is_word(byte))
        .count();
    let end = at + 1 + domain - trailing;
    if start == at || bytes[at - 1] == b'.' || bytes[start..].starts_with(b"git@") {
        return;
    }
    let Ok(domain) = std::str::from_utf8(&bytes[at + 1..end]) else {
        return;
    };
    let mut labels = domain.rsplit('.');
    let top = labels.next().unwrap_or_default();
    let right = top.chars().count() >= 2
        && top.chars().all(|character| {
            character.is_alphabetic()
                || (!character.is_ascii() && character.is_alphanumeric())
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

/// `user:password` between `//` and `@`; where its at sign stands.
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
    let start = place - before;
    let mut end = start + bytes[start..].iter().take_while(|byte| part(byte)).count();
    let until = end;
    while end > start && matches!(bytes[end - 1], b'.' | b':') && !bytes[..end].ends_with(b"::") {
        end -= 1;
    }
    let text = &bytes[start..end];
    let bounded =
        !is_word(view.before(start)) && !is_word(view.at(until)) && view.before(start) != b':';
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
