//! Identifiers of letters and digits: bank accounts, national ids, passports and licences, addresses of coins.

use super::checksums;
use super::coins;
use super::kinds::Kind;
use super::numbers::BY_CONTEXT;
use super::runs::{Run, has};
use super::view::View;
use super::words::about;

/// The longest IBAN.
const IBAN_BYTES: usize = 34;
/// IBAN lengths by country, two letters and the length.
const IBAN_LENGTHS: &[(&[u8; 2], usize)] = &[
    (b"AD", 24),
    (b"AE", 23),
    (b"AL", 28),
    (b"AT", 20),
    (b"AZ", 28),
    (b"BA", 20),
    (b"BE", 16),
    (b"BG", 22),
    (b"BH", 22),
    (b"BI", 27),
    (b"BR", 29),
    (b"BY", 28),
    (b"CH", 21),
    (b"CR", 22),
    (b"CY", 28),
    (b"CZ", 24),
    (b"DE", 22),
    (b"DJ", 27),
    (b"DK", 18),
    (b"DO", 28),
    (b"EE", 20),
    (b"EG", 29),
    (b"ES", 24),
    (b"FI", 18),
    (b"FK", 18),
    (b"FO", 18),
    (b"FR", 27),
    (b"GB", 22),
    (b"GE", 22),
    (b"GI", 23),
    (b"GL", 18),
    (b"GR", 27),
    (b"GT", 28),
    (b"HR", 21),
    (b"HU", 28),
    (b"IE", 22),
    (b"IL", 23),
    (b"IQ", 23),
    (b"IS", 26),
    (b"IT", 27),
    (b"JO", 30),
    (b"KW", 30),
    (b"KZ", 20),
    (b"LB", 28),
    (b"LC", 32),
    (b"LI", 21),
    (b"LT", 20),
    (b"LU", 20),
    (b"LV", 21),
    (b"LY", 25),
    (b"MC", 27),
    (b"MD", 24),
    (b"ME", 22),
    (b"MK", 19),
    (b"MN", 20),
    (b"MR", 27),
    (b"MT", 31),
    (b"MU", 30),
    (b"NI", 28),
    (b"NL", 18),
    (b"NO", 15),
    (b"OM", 23),
    (b"PK", 24),
    (b"PL", 28),
    (b"PS", 29),
    (b"PT", 25),
    (b"QA", 29),
    (b"RO", 24),
    (b"RS", 22),
    (b"RU", 33),
    (b"SA", 24),
    (b"SC", 31),
    (b"SD", 18),
    (b"SE", 24),
    (b"SI", 19),
    (b"SK", 24),
    (b"SM", 27),
    (b"SO", 23),
    (b"ST", 25),
    (b"SV", 28),
    (b"TL", 23),
    (b"TN", 24),
    (b"TR", 26),
    (b"UA", 29),
    (b"VA", 22),
    (b"VG", 24),
    (b"XK", 20),
];

/// Scans every run that contains a digit.
pub(super) fn search(view: &mut View<'_>) {
    let runs = std::mem::take(&mut view.runs);
    for (place, &run) in runs.iter().enumerate() {
        if run.made_of & has::DIGIT == 0 || !view.begins(run.start) {
            continue;
        }
        by_context(view, run);
        if run.is_digits() {
            spanish_with_a_gap(view, &runs, place);
            continue;
        }
        iban(view, &runs, place);
        coins::search(view, run);
        if view.ends(run.end, false) {
            identifier(view, run);
        }
    }
    for place in 0..runs.len() {
        spaced_nino(view, &runs, place);
    }
    view.runs = runs;
}

/// An identifier in one piece, in upper case as cards print it or in lower case as people type it.
fn identifier(view: &mut View<'_>, run: Run) {
    let mut code = [0u8; 18];
    let length = run.len();
    let Some(code) = code.get_mut(..length) else {
        return;
    };
    for (upper, byte) in code.iter_mut().zip(view.slice(run.start, run.end)) {
        *upper = byte.to_ascii_uppercase();
    }
    let code: &[u8] = code;
    match length {
        9 => {
            if is_nino(code) {
                let confidence = by_shape(run, 0.65);
                view.weigh(Kind::UkNino, run.start, run.end, confidence, about::NINO);
            }
            if matches!(code[0], b'S' | b'T' | b'F' | b'G' | b'M')
                && digits_of(&code[1..8])
                    .is_some_and(|digits| checksums::nric(code[0], &digits[..7], code[8]))
            {
                view.weigh(Kind::SgNric, run.start, run.end, 0.85, about::IDENTITY);
            }
            spanish(view, run, code);
        }
        10 if is_pan(code) => {
            let confidence = by_shape(run, 0.65);
            view.weigh(Kind::InPan, run.start, run.end, confidence, about::PAN);
        }
        15 => corsican(view, run, code),
        16 if is_codice_fiscale(code) => view.note(Kind::ItCodiceFiscale, run.start, run.end, 0.95),
        18 if code[17] == b'X' => {
            if let Some(mut digits) = digits_of(&code[..17]) {
                digits[17] = 10;
                if checksums::resident_id(&digits) {
                    view.weigh(Kind::CnResidentId, run.start, run.end, 0.9, about::IDENTITY);
                }
            }
        }
        _ => {}
    }
}

/// Confidence in an identifier without a check digit: `upper` where it is in upper case, as cards print it. In lower case
/// it may be a word with digits, such as the name of a variable, unless words around it say otherwise.
fn by_shape(run: Run, upper: f32) -> f32 {
    if run.made_of & has::LOWER == 0 {
        upper
    } else {
        BY_CONTEXT
    }
}

/// The values of up to 17 digits, with room for one more; None where a letter is among them.
fn digits_of(code: &[u8]) -> Option<[u8; 18]> {
    let mut digits = [0u8; 18];
    for (digit, byte) in digits.iter_mut().zip(code) {
        *digit = byte.checked_sub(b'0').filter(|value| *value < 10)?;
    }
    Some(digits)
}

/// UK national insurance: two letters of those that are given, six digits, A to D.
fn is_nino(code: &[u8]) -> bool {
    let given = |byte: u8| byte.is_ascii_uppercase() && !b"DFIQUV".contains(&byte);
    given(code[0])
        && given(code[1])
        && code[1] != b'O'
        && !matches!(
            &code[..2],
            b"BG" | b"GB" | b"NK" | b"KN" | b"TN" | b"NT" | b"ZZ"
        )
        && code[2..8].iter().all(u8::is_ascii_digit)
        && matches!(code[8], b'A'..=b'D')
}

/// "AB 12 34 56 C", as the letter from the office prints it.
fn spaced_nino(view: &mut View<'_>, runs: &[Run], place: usize) {
    let Some([letters, pairs @ .., last]) = runs.get(place..place + 5) else {
        return;
    };
    if letters.len() != 2
        || letters.made_of & has::DIGIT != 0
        || last.len() != 1
        || last.end - letters.start != 13
    {
        return;
    }
    let mut code = Vec::with_capacity(9);
    for run in [*letters, pairs[0], pairs[1], pairs[2], *last] {
        code.extend(
            view.slice(run.start, run.end)
                .iter()
                .map(u8::to_ascii_uppercase),
        );
    }
    if code.len() == 9 && is_nino(&code) && view.begins(letters.start) && view.ends(last.end, true)
    {
        view.weigh(Kind::UkNino, letters.start, last.end, 0.9, about::NINO);
    }
}

/// Indian PAN: five letters, the fourth a kind of holder, four digits, a letter.
fn is_pan(code: &[u8]) -> bool {
    code[..5].iter().all(u8::is_ascii_uppercase)
        && b"ABCFGHJLPT".contains(&code[3])
        && code[5..9].iter().all(u8::is_ascii_digit)
        && code[9].is_ascii_uppercase()
}

/// Six letters, year, month, day, place and check; letters may stand for digits where two people would share a code.
fn is_codice_fiscale(code: &[u8]) -> bool {
    let digit = |place: usize| code[place].is_ascii_digit() || b"LMNPQRSTUV".contains(&code[place]);
    code[..6].iter().all(u8::is_ascii_uppercase)
        && [6, 7, 9, 10, 12, 13, 14].iter().all(|&place| digit(place))
        && b"ABCDEHLMPRST".contains(&code[8])
        && code[11].is_ascii_uppercase()
        && code[15].is_ascii_uppercase()
        && checksums::codice_fiscale(code)
}

/// A French NIR of Corsica, whose department is 2A or 2B.
fn corsican(view: &mut View<'_>, run: Run, code: &[u8]) {
    let less = match &code[5..7] {
        b"2A" => 1_000_000,
        b"2B" => 2_000_000,
        _ => return,
    };
    let mut plain = [0u8; 15];
    plain.copy_from_slice(code);
    plain[6] = b'0';
    let Some(digits) = digits_of(&plain) else {
        return;
    };
    let number = digits[..13]
        .iter()
        .fold(0u64, |number, &digit| number * 10 + u64::from(digit));
    if 97 - (number - less) % 97 == u64::from(digits[13] * 10 + digits[14])
        && matches!(code[0], b'1' | b'2')
    {
        view.note(Kind::FrNir, run.start, run.end, 0.85);
    }
}

/// Spanish DNI and NIE in one piece.
fn spanish(view: &mut View<'_>, run: Run, code: &[u8]) {
    let mut number = [0u8; 8];
    number.copy_from_slice(&code[..8]);
    let kind = match code[0] {
        b'X' | b'Y' | b'Z' => {
            number[0] = code[0] - b'X' + b'0';
            Kind::EsNie
        }
        _ => Kind::EsDni,
    };
    if is_spanish(&number, code[8]) {
        view.weigh(kind, run.start, run.end, 0.7, about::IDENTITY);
    }
}

/// "12345678-Z" and "12345678 Z".
fn spanish_with_a_gap(view: &mut View<'_>, runs: &[Run], place: usize) {
    let (run, Some(letter)) = (runs[place], runs.get(place + 1)) else {
        return;
    };
    if run.len() != 8
        || letter.len() != 1
        || letter.start != run.end + 1
        || !matches!(view.at(run.end), b'-' | b' ')
    {
        return;
    }
    let check = view.at(letter.start).to_ascii_uppercase();
    let confidence = if view.at(run.end) == b'-' { 0.7 } else { 0.4 };
    if is_spanish(view.slice(run.start, run.end), check) && view.ends(letter.end, true) {
        view.weigh(
            Kind::EsDni,
            run.start,
            letter.end,
            confidence,
            about::IDENTITY,
        );
    }
}

fn is_spanish(number: &[u8], check: u8) -> bool {
    digits_of(number).is_some_and(|digits| {
        let value = digits[..8]
            .iter()
            .fold(0, |value, &digit| value * 10 + u32::from(digit));
        checksums::spanish_letter(value) == check && value > 0
    })
}

/// A bank account: its country's length, in one piece or in groups of four, and the remainder 1.
fn iban(view: &mut View<'_>, runs: &[Run], place: usize) {
    let run = runs[place];
    let start = view.slice(run.start, run.end);
    let &[first, second, third, fourth, ..] = start else {
        return;
    };
    if !view.wants(Kind::Iban) || !third.is_ascii_digit() || !fourth.is_ascii_digit() {
        return;
    }
    let country = [first.to_ascii_uppercase(), second.to_ascii_uppercase()];
    let Ok(found) = IBAN_LENGTHS.binary_search_by_key(&&country, |(code, _)| *code) else {
        return;
    };
    let length = IBAN_LENGTHS[found].1;
    let mut code = [0u8; IBAN_BYTES];
    let mut count = 0;
    let mut last = run.start;
    for part in &runs[place..] {
        if count > 0 && (part.start != last + 1 || !matches!(view.before(part.start), b' ' | b'-'))
        {
            return;
        }
        last = part.end;
        let Some(room) = code.get_mut(count..count + part.len()) else {
            return;
        };
        for (upper, byte) in room.iter_mut().zip(view.slice(part.start, part.end)) {
            *upper = byte.to_ascii_uppercase();
        }
        count += part.len();
        if count >= length {
            let whole = count == length
                && checksums::mod97(code[4..length].iter().chain(&code[..4]).copied()) == 1;
            if whole
                && code[..length].iter().all(u8::is_ascii_alphanumeric)
                && view.ends(part.end, true)
            {
                view.note(Kind::Iban, run.start, part.end, 0.98);
            }
            return;
        }
        // Only the last group is short.
        if part.len() != 4 {
            return;
        }
    }
}

/// Passports and licences, which have no form of their own: digits, perhaps after letters, near such a word.
fn by_context(view: &mut View<'_>, run: Run) {
    let length = run.len();
    if view.hopeless(0.25, about::PASSPORT | about::LICENCE)
        || !(6..=16).contains(&length)
        || run.made_of & has::OTHER != 0
        || !view.ends(run.end, false)
    {
        return;
    }
    let digits = view
        .slice(run.start, run.end)
        .iter()
        .filter(|byte| byte.is_ascii_digit())
        .count();
    if length <= 9 && digits >= 5 {
        view.weigh(Kind::Passport, run.start, run.end, 0.25, about::PASSPORT);
    }
    if digits >= 4 {
        view.weigh(
            Kind::DrivingLicence,
            run.start,
            run.end,
            0.25,
            about::LICENCE,
        );
    }
}
