//! Check digits. Every function takes digits as values 0 to 9, or the upper-case ASCII of an identifier.

/// Luhn: every second digit from the right doubled, the sum a multiple of 10.
pub(super) fn luhn(digits: &[u8]) -> bool {
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(place, &digit)| {
            let doubled = u32::from(digit) << (place & 1);
            if doubled > 9 { doubled - 9 } else { doubled }
        })
        .sum();
    sum.is_multiple_of(10)
}

/// ISO 7064 mod 97, 10: letters count 10 to 35; right when the remainder is 1. The caller has moved the first four.
pub(super) fn mod97(characters: impl Iterator<Item = u8>) -> u32 {
    characters.fold(0, |rest, byte| match byte {
        b'0'..=b'9' => (rest * 10 + u32::from(byte - b'0')) % 97,
        b'A'..=b'Z' => (rest * 100 + u32::from(byte - b'A') + 10) % 97,
        _ => rest,
    })
}

const VERHOEFF_MULTIPLY: [[u8; 10]; 10] = [
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
    [1, 2, 3, 4, 0, 6, 7, 8, 9, 5],
    [2, 3, 4, 0, 1, 7, 8, 9, 5, 6],
    [3, 4, 0, 1, 2, 8, 9, 5, 6, 7],
    [4, 0, 1, 2, 3, 9, 5, 6, 7, 8],
    [5, 9, 8, 7, 6, 0, 4, 3, 2, 1],
    [6, 5, 9, 8, 7, 1, 0, 4, 3, 2],
    [7, 6, 5, 9, 8, 2, 1, 0, 4, 3],
    [8, 7, 6, 5, 9, 3, 2, 1, 0, 4],
    [9, 8, 7, 6, 5, 4, 3, 2, 1, 0],
];
const VERHOEFF_PERMUTE: [[u8; 10]; 8] = [
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
    [1, 5, 7, 6, 2, 8, 3, 0, 9, 4],
    [5, 8, 0, 3, 7, 9, 6, 1, 4, 2],
    [8, 9, 1, 6, 0, 4, 3, 5, 2, 7],
    [9, 4, 5, 3, 1, 2, 6, 8, 7, 0],
    [4, 2, 8, 6, 5, 7, 3, 9, 0, 1],
    [2, 7, 9, 3, 8, 0, 6, 4, 1, 5],
    [7, 0, 4, 6, 9, 1, 3, 2, 5, 8],
];

/// Verhoeff's dihedral check: Aadhaar.
pub(super) fn verhoeff(digits: &[u8]) -> bool {
    let rest = digits
        .iter()
        .rev()
        .enumerate()
        .fold(0u8, |rest, (place, &digit)| {
            VERHOEFF_MULTIPLY[usize::from(rest)]
                [usize::from(VERHOEFF_PERMUTE[place % 8][usize::from(digit)])]
        });
    rest == 0
}

/// The sum of digits times weights, as far as both go.
pub(super) fn weighted(digits: &[u8], weights: &[u32]) -> u32 {
    digits
        .iter()
        .zip(weights)
        .map(|(&digit, &weight)| u32::from(digit) * weight)
        .sum()
}

/// US bank routing number: 9 digits, weights 3 7 1, and a prefix that the Federal Reserve gives out.
pub(super) fn routing(digits: &[u8]) -> bool {
    let prefix = digits[0] * 10 + digits[1];
    matches!(prefix, 0..=12 | 21..=32 | 61..=72 | 80)
        && digits.iter().any(|&digit| digit != 0)
        && weighted(digits, &[3, 7, 1, 3, 7, 1, 3, 7, 1]).is_multiple_of(10)
}

/// UK NHS number: 10 digits, mod 11 with weights 10 to 2; a check of 10 is never given.
pub(super) fn nhs(digits: &[u8]) -> bool {
    let check = (11 - weighted(digits, &[10, 9, 8, 7, 6, 5, 4, 3, 2]) % 11) % 11;
    check == u32::from(digits[9]) && digits.iter().any(|&digit| digit != digits[0])
}

/// Australian tax file number: 9 digits, weighted sum a multiple of 11.
pub(super) fn tfn(digits: &[u8]) -> bool {
    weighted(digits, &[1, 4, 3, 7, 5, 8, 6, 9, 10]).is_multiple_of(11)
        && digits.iter().any(|&digit| digit != 0)
}

/// Australian Medicare card: 10 digits (an issue number may follow), first 2 to 6, the ninth a check of the first 8.
pub(super) fn medicare(digits: &[u8]) -> bool {
    (2..=6).contains(&digits[0])
        && weighted(digits, &[1, 3, 7, 9, 1, 3, 7, 9]) % 10 == u32::from(digits[8])
        && digits[9] != 0
}

/// German tax id: 11 digits, ISO 7064 mod 11, 10; of the first ten one digit comes twice or three times.
pub(super) fn german_tax_id(digits: &[u8]) -> bool {
    let mut counts = [0u8; 10];
    for &digit in &digits[..10] {
        counts[usize::from(digit)] += 1;
    }
    let repeated = counts.iter().filter(|&&count| count > 1).count();
    let most = counts.iter().copied().max().unwrap_or(0);
    if digits[0] == 0 || repeated != 1 || most > 3 {
        return false;
    }
    let product = digits[..10].iter().fold(10u32, |product, &digit| {
        let sum = (u32::from(digit) + product) % 10;
        (if sum == 0 { 10 } else { sum }) * 2 % 11
    });
    (11 - product) % 10 == u32::from(digits[10])
}

/// Brazilian CPF: 11 digits, the last two checks of those before.
pub(super) fn cpf(digits: &[u8]) -> bool {
    let check = |length: u32| {
        let weights: [u32; 10] =
            std::array::from_fn(|place| (length + 1).saturating_sub(place as u32));
        let rest = weighted(&digits[..length as usize], &weights) * 10 % 11 % 10;
        rest == u32::from(digits[length as usize])
    };
    digits.iter().any(|&digit| digit != digits[0]) && check(9) && check(10)
}

/// Brazilian CNPJ: 14 digits, the last two checks of those before.
pub(super) fn cnpj(digits: &[u8]) -> bool {
    const WEIGHTS: [u32; 13] = [6, 5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2];
    let check = |weights: &[u32]| {
        let rest = weighted(digits, weights) % 11;
        let wanted = if rest < 2 { 0 } else { 11 - rest };
        wanted == u32::from(digits[weights.len()])
    };
    digits.iter().any(|&digit| digit != digits[0]) && check(&WEIGHTS[1..]) && check(&WEIGHTS)
}

/// Chinese resident id: 17 digits and a check, 10 standing for X; ISO 7064 mod 11, 2.
pub(super) fn resident_id(digits: &[u8]) -> bool {
    const WEIGHTS: [u32; 17] = [7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2];
    let check = (12 - weighted(&digits[..17], &WEIGHTS) % 11) % 11;
    check == u32::from(digits[17])
}

/// Italian codice fiscale: 16 upper-case characters, the last a check of the rest.
pub(super) fn codice_fiscale(code: &[u8]) -> bool {
    const ODD: [u8; 26] = [
        1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24,
        23,
    ];
    let sum: u32 = code[..15]
        .iter()
        .enumerate()
        .map(|(place, &byte)| {
            let value = if byte.is_ascii_digit() {
                byte - b'0'
            } else {
                byte - b'A'
            };
            u32::from(if place % 2 == 0 {
                ODD[usize::from(value)]
            } else {
                value
            })
        })
        .sum();
    u32::from(code[15] - b'A') == sum % 26
}

/// Spanish DNI and NIE: the letter is the number mod 23.
pub(super) fn spanish_letter(number: u32) -> u8 {
    b"TRWAGMYFPDXBNJZSQVHLCKE"[(number % 23) as usize]
}

/// Singapore NRIC and FIN: 7 digits between a letter of the series and a check letter.
pub(super) fn nric(series: u8, digits: &[u8], check: u8) -> bool {
    let sum = weighted(digits, &[2, 7, 6, 5, 4, 3, 2]);
    let (offset, letters): (u32, &[u8; 11]) = match series {
        b'S' => (0, b"JZIHGFEDCBA"),
        b'T' => (4, b"JZIHGFEDCBA"),
        b'F' => (0, b"XWUTRQPNMLK"),
        b'G' => (4, b"XWUTRQPNMLK"),
        b'M' => (3, b"KLJNPQRTUWX"),
        _ => return false,
    };
    let rest = ((sum + offset) % 11) as usize;
    let place = if series == b'M' { 10 - rest } else { rest };
    letters[place] == check
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digits(text: &str) -> Vec<u8> {
        text.bytes().map(|byte| byte - b'0').collect()
    }

    /// Each check passes a published example, and no number that differs from it in one digit.
    fn holds(check: impl Fn(&[u8]) -> bool, example: &str, changed: std::ops::Range<usize>) {
        let good = digits(example);
        assert!(check(&good), "{example}");
        for place in changed {
            let mut bad = good.clone();
            bad[place] = (bad[place] + 1) % 10;
            assert!(!check(&bad), "{example} at {place}");
        }
    }

    #[test]
    fn checks_pass_examples_and_no_slip() {
        holds(luhn, "4111111111111111", 0..16);
        holds(luhn, "046454286", 0..9);
        holds(verhoeff, "234123412346", 0..12);
        holds(routing, "021000021", 2..9);
        holds(nhs, "9434765919", 0..10);
        holds(tfn, "123456782", 0..9);
        holds(medicare, "2123456701", 1..9);
        holds(german_tax_id, "86095742719", 0..11);
        holds(cpf, "52998224725", 0..11);
        holds(cnpj, "11222333000181", 0..14);
    }

    #[test]
    fn letters_are_checked() {
        assert!(codice_fiscale(b"RSSMRA85T10A562S"));
        assert!(!codice_fiscale(b"RSSMRA85T10A562T"));
        assert_eq!(spanish_letter(12_345_678), b'Z');
        assert!(nric(b'S', &digits("1234567"), b'D'));
        assert!(!nric(b'S', &digits("1234567"), b'E'));
        assert!(resident_id(&[
            1, 1, 0, 1, 0, 5, 1, 9, 4, 9, 1, 2, 3, 1, 0, 0, 2, 10
        ]));
        assert_eq!(mod97(b"WEST12345698765432GB82".iter().copied()), 1);
    }
}
