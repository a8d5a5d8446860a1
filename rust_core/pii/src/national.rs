//! Identifiers issued by states: the rules beside the check digits.

use super::checksums;
use super::kinds::Kind;
use super::numbers::{BY_CONTEXT, Window, checked};
use super::view::View;
use super::words::about;

/// US social security numbers have no check, but areas 000, 666 and 9xx, group 00 and serial 0000 are never given.
pub(super) fn social_security(view: &mut View<'_>, window: &Window, confidence: f32) {
    let digits = window.digits();
    let area = checksums::weighted(digits, &[100, 10, 1]);
    let given =
        area != 0 && area != 666 && area < 900 && digits[3..5] != [0, 0] && digits[5..] != [0; 4];
    if given {
        view.weigh(
            Kind::UsSsn,
            window.start,
            window.end,
            confidence,
            about::SSN,
        );
    }
}

pub(super) fn nine_digits(view: &mut View<'_>, window: &Window) {
    checked(
        view,
        window,
        Kind::UsRouting,
        checksums::routing,
        BY_CONTEXT,
        about::ROUTING,
    );
    checked(
        view,
        window,
        Kind::CaSin,
        social_insurance,
        BY_CONTEXT,
        about::SIN,
    );
    checked(
        view,
        window,
        Kind::AuTfn,
        checksums::tfn,
        BY_CONTEXT,
        about::TFN,
    );
}

pub(super) fn ten_digits(view: &mut View<'_>, window: &Window) {
    checked(
        view,
        window,
        Kind::UkNhs,
        checksums::nhs,
        BY_CONTEXT,
        about::NHS,
    );
    if window.groups == 1 {
        checked(
            view,
            window,
            Kind::AuMedicare,
            checksums::medicare,
            BY_CONTEXT,
            about::MEDICARE,
        );
    }
}

fn social_insurance(digits: &[u8]) -> bool {
    !matches!(digits[0], 0 | 8) && checksums::luhn(digits)
}

pub(super) fn aadhaar(digits: &[u8]) -> bool {
    digits[0] >= 2 && checksums::verhoeff(digits)
}

pub(super) fn resident(digits: &[u8]) -> bool {
    let year = checksums::weighted(&digits[6..10], &[1000, 100, 10, 1]);
    let (month, day) = (digits[10] * 10 + digits[11], digits[12] * 10 + digits[13]);
    (1..=8).contains(&digits[0])
        && (1900..2100).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && checksums::resident_id(digits)
}

/// French NIR: sex, year, month, department and so on, the last two digits 97 less the rest mod 97.
pub(super) fn nir(digits: &[u8]) -> bool {
    let month = digits[3] * 10 + digits[4];
    let number = digits[..13]
        .iter()
        .fold(0u64, |number, &digit| number * 10 + u64::from(digit));
    matches!(digits[0], 1 | 2)
        && matches!(month, 1..=12 | 20 | 30..=42 | 50..=99)
        && 97 - number % 97 == u64::from(digits[13] * 10 + digits[14])
}
