//! Numbers in groups: cards, national ids, dates of birth, IPv4 addresses, and candidates of phone numbers.
//!
//! From each group of digits the windows of up to eight groups are looked at. The lengths of a window's groups, a
//! nibble each, say which check it gets, so nearly all windows cost one comparison.

use super::checksums;
use super::dates;
use super::kinds::Kind;
use super::national;
use super::phones;
use super::runs::Run;
use super::view::View;
use super::words::about;

/// Groups of the longest number: a French NIR has seven, a phone number in pairs six.
const MOST_GROUPS: usize = 8;
/// Digits of the longest number: a payment card.
const MOST_DIGITS: usize = 19;
/// The confidence in a number that has a kind only by its context.
pub(super) const BY_CONTEXT: f32 = 0.3;

/// Separators between groups, one bit each.
pub(super) mod between {
    pub(crate) const SPACE: u8 = 1;
    pub(crate) const DASH: u8 = 2;
    pub(crate) const DOT: u8 = 4;
    pub(crate) const SLASH: u8 = 8;
    pub(crate) const PARENTHESIS: u8 = 16;
}

/// Consecutive groups of digits.
pub(super) struct Window {
    pub(super) start: usize,
    pub(super) end: usize,
    /// The lengths of the groups, a nibble each, the last one lowest.
    pub(super) shape: u64,
    pub(super) groups: usize,
    /// The separators between the groups, from [`between`].
    pub(super) between: u8,
    digits: [u8; MOST_DIGITS],
    count: usize,
}

impl Window {
    /// Without a group yet.
    fn at(start: usize) -> Self {
        Self {
            start,
            end: start,
            shape: 0,
            groups: 0,
            between: 0,
            digits: [0; MOST_DIGITS],
            count: 0,
        }
    }

    pub(super) fn digits(&self) -> &[u8] {
        &self.digits[..self.count]
    }

    fn push(&mut self, group: &[u8], run: Run) -> bool {
        let Some(room) = self.digits.get_mut(self.count..self.count + group.len()) else {
            return false;
        };
        for (place, byte) in room.iter_mut().zip(group) {
            *place = byte - b'0';
        }
        self.count += group.len();
        // A nibble holds 15; longer groups are never part of more than one.
        self.shape = self.shape << 4 | group.len().min(15) as u64;
        self.groups += 1;
        self.end = run.end;
        true
    }
}

/// The separator between two groups of one number, or 0.
pub(super) fn separator(gap: &[u8]) -> u8 {
    match gap {
        [b' '] => between::SPACE,
        [b'-'] => between::DASH,
        [b'.'] => between::DOT,
        [b'/'] => between::SLASH,
        [b')' | b'('] | [b')', b' ' | b'-' | b'/'] | [b' ', b'('] => between::PARENTHESIS,
        [b' ', b'-', b' '] | [b'-', b' '] => between::DASH | between::SPACE,
        [b' ', b'/', b' '] | [b'/', b' '] => between::SLASH | between::SPACE,
        _ => 0,
    }
}

/// Scans all windows of the text.
pub(super) fn search(view: &mut View<'_>) {
    let runs = std::mem::take(&mut view.runs);
    for (first, run) in runs.iter().enumerate() {
        if run.is_digits() {
            phones::international(view, &runs, first);
            if view.begins(run.start) && view.before(run.start) != b'+' {
                windows(view, &runs, first);
            } else if matches!(view.before(run.start), b'_' | b'$') {
                marked(view, *run);
            }
            dates::written(view, &runs, first);
        }
    }
    view.runs = runs;
}

/// A card right behind a mark of names or prices, which other numbers do not begin behind. A name is context enough only
/// if it says what it is; no price has so many digits.
fn marked(view: &mut View<'_>, run: Run) {
    let mut window = Window::at(run.start);
    if matches!(run.len(), 15 | 16)
        && view.ends(run.end, false)
        && window.push(view.slice(run.start, run.end), run)
    {
        let priced = view.before(run.start) == b'$';
        card(view, &window, if priced { 0.8 } else { BY_CONTEXT });
    }
}

fn windows(view: &mut View<'_>, runs: &[Run], first: usize) {
    let mut window = Window::at(runs[first].start);
    for run in runs[first..].iter().take(MOST_GROUPS) {
        if window.groups > 0 {
            let separator = separator(view.slice(window.end, run.start));
            if separator == 0 {
                return;
            }
            window.between |= separator;
        }
        if !run.is_digits() || !window.push(view.slice(run.start, run.end), *run) {
            return;
        }
        // A single digit among spaces is a number of its own, but for the last of a Medicare card.
        if window.groups > 1
            && run.len() == 1
            && window.between == between::SPACE
            && window.shape >> 4 != 0x45
        {
            return;
        }
        if window.count >= 4 {
            look(view, &window);
        }
    }
}

fn look(view: &mut View<'_>, window: &Window) {
    let address = window.shape_is_address() && view.at(window.end) == b':';
    if !(address || view.ends(window.end, window.groups > 1)) {
        return;
    }
    if window.groups == 1 {
        bare(view, window);
    } else {
        grouped(view, window);
    }
    phones::national(view, window);
}

impl Window {
    fn shape_is_address(&self) -> bool {
        self.groups == 4 && self.between == between::DOT && self.digits().len() <= 12
    }
}

/// A number without separators.
fn bare(view: &mut View<'_>, window: &Window) {
    match window.count {
        9 => {
            national::social_security(view, window, BY_CONTEXT);
            national::nine_digits(view, window);
        }
        10 => {
            national::ten_digits(view, window);
        }
        11 => {
            checked(
                view,
                window,
                Kind::BrCpf,
                checksums::cpf,
                BY_CONTEXT,
                about::CPF,
            );
            checked(
                view,
                window,
                Kind::DeTaxId,
                checksums::german_tax_id,
                BY_CONTEXT,
                about::TAX_DE,
            );
            checked(
                view,
                window,
                Kind::AuMedicare,
                checksums::medicare,
                BY_CONTEXT,
                about::MEDICARE,
            );
        }
        12 => checked(
            view,
            window,
            Kind::InAadhaar,
            national::aadhaar,
            BY_CONTEXT,
            about::AADHAAR | about::IDENTITY,
        ),
        13..=19 => long(view, window),
        _ => {}
    }
}

fn long(view: &mut View<'_>, window: &Window) {
    card(
        view,
        window,
        if window.count == 15 || window.count == 16 {
            0.8
        } else {
            0.45
        },
    );
    match window.count {
        14 => checked(
            view,
            window,
            Kind::BrCnpj,
            checksums::cnpj,
            BY_CONTEXT,
            about::CPF,
        ),
        15 => checked(
            view,
            window,
            Kind::FrNir,
            national::nir,
            0.6,
            about::SSN | about::IDENTITY,
        ),
        18 => checked(
            view,
            window,
            Kind::CnResidentId,
            national::resident,
            0.9,
            about::IDENTITY,
        ),
        _ => {}
    }
}

/// A number in groups, by the lengths of the groups.
fn grouped(view: &mut View<'_>, window: &Window) {
    let plain = window.between == between::SPACE || window.between == between::DASH;
    match window.shape {
        0x324 if plain => {
            let dashed = window.between == between::DASH;
            // Three numbers with spaces between have the same shape, and there is no check digit.
            let confidence = if dashed { 0.9 } else { BY_CONTEXT };
            national::social_security(view, window, confidence);
        }
        0x333 if plain => national::nine_digits(view, window),
        0x334 if plain => national::ten_digits(view, window),
        0x451 | 0x4511 if window.between == between::SPACE => {
            checked(
                view,
                window,
                Kind::AuMedicare,
                checksums::medicare,
                BY_CONTEXT,
                about::MEDICARE,
            );
        }
        0x2333 if plain || window.between == between::SLASH | between::SPACE => {
            checked(
                view,
                window,
                Kind::DeTaxId,
                checksums::german_tax_id,
                BY_CONTEXT,
                about::TAX_DE,
            );
        }
        0x3332 if window.between == between::DOT | between::DASH => {
            checked(view, window, Kind::BrCpf, checksums::cpf, 0.9, about::CPF);
        }
        0x2_3342 if window.between == between::DOT | between::SLASH | between::DASH => {
            checked(view, window, Kind::BrCnpj, checksums::cnpj, 0.9, about::CPF);
        }
        0x444 if plain => checked(
            view,
            window,
            Kind::InAadhaar,
            national::aadhaar,
            BY_CONTEXT,
            about::AADHAAR | about::IDENTITY,
        ),
        0x4444 | 0x4_4443 | 0x465 | 0x464 if plain || window.between == between::DOT => {
            card(view, window, 0.9);
        }
        0x122_2332 | 0xd2 if plain => checked(
            view,
            window,
            Kind::FrNir,
            national::nir,
            0.9,
            about::SSN | about::IDENTITY,
        ),
        0x224 | 0x422 | 0x214 | 0x124 | 0x114 | 0x412 | 0x421 | 0x411
            if window.between != between::SPACE =>
        {
            dates::numeric(view, window);
        }
        _ if window.shape_is_address() => address(view, window),
        _ => {}
    }
}

pub(super) fn checked(
    view: &mut View<'_>,
    window: &Window,
    kind: Kind,
    check: fn(&[u8]) -> bool,
    confidence: f32,
    about: u32,
) {
    if view.wants(kind) && !view.hopeless(confidence, about) && check(window.digits()) {
        view.weigh(kind, window.start, window.end, confidence, about);
    }
}

/// Returns true if the number is one of several that only spaces part: a table, rather than a number in groups.
pub(super) fn in_a_row(view: &View<'_>, window: &Window) -> bool {
    let digit = |place: usize| view.at(place).is_ascii_digit();
    (window.start > 1 && view.before(window.start) == b' ' && digit(window.start - 2))
        || (view.at(window.end) == b' ' && digit(window.end + 1))
}

/// Payment cards: an issuer's prefix, its lengths, and Luhn.
fn card(view: &mut View<'_>, window: &Window, confidence: f32) {
    let digits = window.digits();
    if view.wants(Kind::CreditCard) && issued(digits) && checksums::luhn(digits) {
        view.weigh(
            Kind::CreditCard,
            window.start,
            window.end,
            confidence,
            about::CARD,
        );
    }
}

/// Returns true if an issuer gives out cards of this prefix and length.
fn issued(digits: &[u8]) -> bool {
    let prefix = checksums::weighted(digits, &[1000, 100, 10, 1]);
    // The test number of zeros and its kind are nobody's.
    let varied = digits[4..].iter().any(|&digit| digit != digits[4]);
    let lengths: &[usize] = match prefix {
        4000..=4999 => &[13, 16, 19],
        5100..=5599 | 2221..=2720 | 2200..=2204 | 6060..=6099 => &[16],
        3400..=3499 | 3700..=3799 => &[15],
        3000..=3059 | 3095 | 3600..=3699 | 3800..=3999 => &[14, 16, 19],
        3528..=3589 | 6011 | 6440..=6599 => &[16, 19],
        6200..=6299 | 8100..=8199 => &[16, 17, 18, 19],
        5018 | 5020 | 5038 | 5893 | 6304 | 6759 | 6761..=6763 => &[13, 14, 15, 16, 17, 18, 19],
        _ => &[],
    };
    lengths.contains(&digits.len()) && (varied || prefix == 4111)
}

/// IPv4 in dotted decimals. Versions look the same: with one digit each it takes a word to tell.
fn address(view: &mut View<'_>, window: &Window) {
    let text = view.slice(window.start, window.end);
    let mut parts = text.split(|&byte| byte == b'.');
    let valid = parts.all(|part| {
        part.len() <= 3
            && (part.len() == 1 || part[0] != b'0')
            && part
                .iter()
                .fold(0u32, |value, byte| value * 10 + u32::from(byte - b'0'))
                <= 255
    });
    // Loopback, "any", broadcast and masks are nobody's.
    if !valid || text.starts_with(b"127.") || text.starts_with(b"0.") || text.starts_with(b"255.") {
        return;
    }
    let confidence = if window.count <= 5 { BY_CONTEXT } else { 0.75 };
    view.weigh(
        Kind::IpAddress,
        window.start,
        window.end,
        confidence,
        about::IP,
    );
}
