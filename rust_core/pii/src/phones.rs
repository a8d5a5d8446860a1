//! Phone numbers: international ones by their country code, national ones by their shape and the words around them.

use super::kinds::Kind;
use super::numbers::{Window, between, in_a_row, separator};
use super::runs::Run;
use super::view::View;
use super::words::about;

/// Digits of the longest number, with its country code: ITU-T E.164.
const MOST_DIGITS: usize = 15;
/// Groups of the longest: "+33 6 12 34 56 78" has six, and a country code and parentheses may add some.
const MOST_GROUPS: usize = 8;

/// Country codes with the least and the most digits after them.
const COUNTRIES: &[(u32, usize, usize)] = &[
    (1, 10, 10),
    (7, 10, 10),
    (20, 8, 10),
    (27, 9, 9),
    (30, 10, 10),
    (31, 9, 9),
    (32, 8, 9),
    (33, 9, 9),
    (34, 9, 9),
    (36, 8, 9),
    (39, 6, 11),
    (40, 9, 9),
    (41, 9, 9),
    (43, 7, 13),
    (44, 9, 10),
    (45, 8, 8),
    (46, 7, 10),
    (47, 8, 8),
    (48, 9, 9),
    (49, 6, 12),
    (51, 8, 9),
    (52, 10, 11),
    (53, 8, 8),
    (54, 10, 11),
    (55, 10, 11),
    (56, 9, 9),
    (57, 8, 10),
    (58, 10, 10),
    (60, 8, 10),
    (61, 9, 9),
    (62, 8, 12),
    (63, 8, 10),
    (64, 8, 10),
    (65, 8, 8),
    (66, 8, 9),
    (81, 9, 10),
    (82, 8, 11),
    (84, 9, 10),
    (86, 10, 11),
    (90, 10, 10),
    (91, 10, 10),
    (92, 9, 10),
    (93, 9, 9),
    (94, 9, 9),
    (95, 8, 10),
    (98, 10, 10),
];
/// The first two digits of three-digit codes, with the lengths of their numbers.
const THREE_DIGIT_CODES: [u32; 12] = [21, 22, 23, 24, 25, 26, 29, 35, 37, 38, 42, 50];
const MORE_THREE_DIGIT_CODES: [u32; 8] = [59, 67, 68, 69, 80, 85, 88, 96];
const LAST_THREE_DIGIT_CODES: [u32; 3] = [97, 99, 87];

/// Returns true if `digits`, the country code first, have a length that the numbers of that country have.
fn fits(digits: &[u8]) -> bool {
    let value = |count: usize| {
        digits[..count]
            .iter()
            .fold(0, |value, &digit| value * 10 + u32::from(digit))
    };
    if digits.len() < 7 || digits[0] == 0 {
        return false;
    }
    if digits[0] == 1 {
        return digits.len() == 11 && is_nanp(&digits[1..]);
    }
    let width = if digits[0] == 7 { 1 } else { 2 };
    if let Some((_, least, most)) = COUNTRIES.iter().find(|(code, ..)| *code == value(width)) {
        return (least + width..=most + width).contains(&digits.len());
    }
    let two = value(2);
    let known = THREE_DIGIT_CODES.contains(&two)
        || MORE_THREE_DIGIT_CODES.contains(&two)
        || LAST_THREE_DIGIT_CODES.contains(&two);
    known && (10..=15).contains(&digits.len())
}

/// North American: area and exchange begin with 2 to 9, and neither is a service code such as 911.
fn is_nanp(digits: &[u8]) -> bool {
    let starts =
        |place: usize| digits[place] >= 2 && (digits[place + 1], digits[place + 2]) != (1, 1);
    digits.len() == 10 && starts(0) && starts(3)
}

/// A number with its country code: "+44 20 7946 0958", "+1 (415) 555-0123", "0044 20 7946 0958".
pub(super) fn international(view: &mut View<'_>, runs: &[Run], first: usize) {
    if !view.wants(Kind::Phone) {
        return;
    }
    let run = runs[first];
    let plus = if view.before(run.start) == b'+' {
        1
    } else if view.before(run.start) == b'(' && run.start > 1 && view.at(run.start - 2) == b'+' {
        2
    } else {
        0
    };
    let start = run.start - plus;
    let zeros = plus == 0 && view.slice(run.start, run.end).starts_with(b"00");
    let free = start == 0
        || !matches!(view.before(start), b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'_' | b'+' | b'.' | b'=')
        || view.abbreviated(start);
    if (plus == 0 && !zeros)
        || (zeros && !view.begins(run.start))
        || (plus > 0 && !free && view.before(start) != b'=')
    {
        return;
    }
    if let Some(end) = longest(view, &runs[first..], if zeros { 2 } else { 0 }) {
        view.weigh(
            Kind::Phone,
            start,
            end,
            if zeros { 0.6 } else { 0.9 },
            about::PHONE,
        );
    }
}

/// The end of the most groups that together are a number of their country, the first `skip` digits not counted.
fn longest(view: &View<'_>, runs: &[Run], skip: usize) -> Option<usize> {
    let mut digits = [0u8; MOST_DIGITS];
    let mut count = 0;
    let mut end = None;
    let mut last = runs.first()?.start;
    for (place, run) in runs.iter().take(MOST_GROUPS).enumerate() {
        if place > 0 && separator(view.slice(last, run.start)) == 0 {
            break;
        }
        let group = view.slice(run.start, run.end);
        if !run.is_digits() {
            break;
        }
        let mut group = if place == 0 {
            group.get(skip..)?
        } else {
            group
        };
        // "+44 (0)20 ..." and "+49 (0) 30 ...": the national zero is not dialled from abroad.
        if group == b"0" && place > 0 && view.before(run.start) == b'(' {
            group = &[];
        }
        let Some(room) = digits.get_mut(count..count + group.len()) else {
            break;
        };
        for (digit, byte) in room.iter_mut().zip(group) {
            *digit = byte - b'0';
        }
        count += group.len();
        last = run.end;
        if view.ends(run.end, true) && fits(&digits[..count]) {
            end = Some(run.end);
        }
    }
    end
}

/// A number without its country code, in groups or bare.
pub(super) fn national(view: &mut View<'_>, window: &Window) {
    if !view.wants(Kind::Phone) || !(7..=13).contains(&window.digits().len()) {
        return;
    }
    let opened = view.before(window.start) == b'(' && window.between & between::PARENTHESIS != 0;
    let confidence = if window.groups == 1 {
        bare(window.digits())
    } else {
        grouped(view, window, opened)
    };
    if confidence > 0.0 {
        view.weigh(
            Kind::Phone,
            window.start - usize::from(opened),
            window.end,
            confidence,
            about::PHONE,
        );
    }
}

/// Without separators a number is a phone number only by the words around it.
fn bare(digits: &[u8]) -> f32 {
    let mobile = digits[0] == 0 && (digits.len() == 10 || digits.len() == 11);
    if mobile && digits[1] != 0 {
        0.4
    } else if (8..=12).contains(&digits.len())
        && !is_compact_date(digits)
        && digits.iter().any(|&digit| digit != digits[0])
    {
        0.15
    } else {
        0.0
    }
}

fn grouped(view: &View<'_>, window: &Window, opened: bool) -> f32 {
    let digits = window.digits();
    if is_date(window)
        || window.between == between::SLASH
        || is_years(window)
        || window.between & between::DOT != 0 && window.between != between::DOT
        || window.between & between::PARENTHESIS != 0 && !opened
    {
        return 0.0;
    }
    let row = window.between == between::SPACE && in_a_row(view, window);
    if opened {
        let american = window.shape == 0x334 && !is_nanp(digits);
        return if digits.len() >= 8 && !american {
            0.85
        } else {
            0.3
        };
    }
    let confidence: f32 = match window.shape {
        0x334 if is_nanp(digits) => {
            if window.between & between::DASH != 0 {
                0.8
            } else {
                0.65
            }
        }
        0x1334 if digits[0] == 1 && is_nanp(&digits[1..]) => 0.8,
        _ if trunk(window) => 0.65,
        // India, China, and Brazil's mobile numbers.
        0x55 if digits[0] >= 6 && window.between == between::SPACE => 0.6,
        0x344 if digits[0] == 1 && digits[1] >= 3 => 0.6,
        0x254 if digits[2] == 9 => 0.6,
        _ if window.between == between::DOT => 0.0,
        // Spain and Singapore, local numbers, and what only words can tell.
        0x333 if matches!(digits[0], 6 | 7 | 9) => 0.35,
        0x44 if matches!(digits[0], 6 | 8 | 9) => 0.35,
        0x34 if digits[0] >= 2 => 0.3,
        _ if least_group(window) >= 2 => 0.2,
        _ => 0.0,
    };
    if row { confidence.min(0.3) } else { confidence }
}

/// A number that begins with the 0 that is dialled before the area: "020 7946 0958", "06 12 34 56 78", "0171-1234567".
fn trunk(window: &Window) -> bool {
    let digits = window.digits();
    let first = window.shape >> (4 * (window.groups - 1));
    digits[0] == 0
        && digits[1] != 0
        && (2..=6).contains(&first)
        && (9..=12).contains(&digits.len())
        && least_group(window) >= 2
}

fn least_group(window: &Window) -> u64 {
    (0..window.groups)
        .map(|group| window.shape >> (4 * group) & 15)
        .min()
        .unwrap_or(0)
}

/// Year, month and day in any order.
fn is_date(window: &Window) -> bool {
    matches!(
        window.shape,
        0x422 | 0x224 | 0x214 | 0x124 | 0x412 | 0x421 | 0x4222 | 0x4_2222 | 0x42_2222
    )
}

/// Year, month and day without separators.
fn is_compact_date(digits: &[u8]) -> bool {
    matches!(
        digits,
        [1, 9, _, _, 0 | 1, _, 0..=3, _] | [2, 0, _, _, 0 | 1, _, 0..=3, _]
    )
}

/// Two years, as in "2024-2025".
fn is_years(window: &Window) -> bool {
    let year = |digits: &[u8]| matches!(digits, [1, 9, ..] | [2, 0, ..]);
    window.shape == 0x44 && year(window.digits()) && year(&window.digits()[4..])
}
