//! Dates of birth, in digits and with the month's name.

use super::kinds::Kind;
use super::numbers::Window;
use super::runs::Run;
use super::view::View;
use super::words::about;

/// A day, month and year in digits, which only its context makes a date of birth.
pub(super) fn numeric(view: &mut View<'_>, window: &Window) {
    if !view.wants(Kind::DateOfBirth) {
        return;
    }
    let mut parts = [0u32; 3];
    let mut part = 0;
    for byte in view.slice(window.start, window.end) {
        if byte.is_ascii_digit() {
            parts[part] = parts[part] * 10 + u32::from(byte - b'0');
        } else if part < 2 {
            part += 1;
        } else {
            return;
        }
    }
    let [first, second, third] = parts;
    let (year, month, day) = if first > 99 {
        (first, second, third)
    } else {
        (third, first, second)
    };
    let days = (1..=12).contains(&month) && (1..=31).contains(&day)
        || (1..=12).contains(&day) && (1..=31).contains(&month);
    if days && BIRTH_YEARS.contains(&year) {
        birth(view, window.start, window.end);
    }
}

/// The birth years of living people.
const BIRTH_YEARS: std::ops::RangeInclusive<u32> = 1900..=2039;

const MONTHS: [&[u8]; 12] = [
    b"jan", b"feb", b"mar", b"apr", b"may", b"jun", b"jul", b"aug", b"sep", b"oct", b"nov", b"dec",
];

/// A date with the month's name and a year: "12 March 1985", "March 12th, 1985". The run is the year.
pub(super) fn written(view: &mut View<'_>, runs: &[Run], place: usize) {
    let year = runs[place];
    if year.len() != 4 || place < 2 || !view.wants(Kind::DateOfBirth) {
        return;
    }
    let value = view
        .slice(year.start, year.end)
        .iter()
        .fold(0, |value, byte| value * 10 + u32::from(byte - b'0'));
    let (first, second) = (runs[place - 2], runs[place - 1]);
    let close = second.start - first.end <= 2 && year.start - second.end <= 2;
    let dated = is_month(view, first) && is_day(view, second)
        || is_day(view, first) && is_month(view, second);
    if BIRTH_YEARS.contains(&value) && close && dated && !view.at(year.end).is_ascii_alphanumeric()
    {
        birth(view, first.start, year.end);
    }
}

fn is_month(view: &View<'_>, run: Run) -> bool {
    let mut start = [0u8; 3];
    for (place, byte) in start.iter_mut().zip(view.slice(run.start, run.end)) {
        *place = byte.to_ascii_lowercase();
    }
    (3..=9).contains(&run.len()) && MONTHS.contains(&start.as_slice())
}

fn is_day(view: &View<'_>, run: Run) -> bool {
    let text = view.slice(run.start, run.end);
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let day = text[..digits]
        .iter()
        .take(3)
        .fold(0u32, |value, byte| value * 10 + u32::from(byte - b'0'));
    (1..=31).contains(&day)
        && digits <= 2
        && matches!(&text[digits..], b"" | b"st" | b"nd" | b"rd" | b"th")
}

fn birth(view: &mut View<'_>, start: usize, end: usize) {
    if view.context.says(start, end, about::BIRTH) {
        view.note(Kind::DateOfBirth, start, end, 0.85);
    }
}
