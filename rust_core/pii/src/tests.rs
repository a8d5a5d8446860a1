//! Texts with and without findings, and the law that no text makes the scanner panic or misplace a finding.

use proptest::prelude::*;

use super::{KINDS, Scanner};

fn scanner() -> Scanner {
    let kinds: Vec<&str> = KINDS.iter().map(|(_, name, _)| *name).collect();
    Scanner::new(&kinds, &[r"CUST-\d{8}"], 0.5).expect("the kinds are known")
}

/// Findings as (name, text).
fn found(text: &str) -> Vec<(&'static str, &str)> {
    scanner()
        .find(text)
        .iter()
        .map(|one| {
            (
                KINDS.get(one.kind).map_or("custom", |(_, name, _)| name),
                &text[one.start..one.end],
            )
        })
        .collect()
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table of all kinds")]
fn kinds_are_found_where_they_stand() {
    for (text, kind, value) in [
        (
            "write to ana.lopez+home@mail.example.org.",
            "email",
            "ana.lopez+home@mail.example.org",
        ),
        ("mail: jörg@bücher.example", "email", "jörg@bücher.example"),
        (
            "paid with 4111 1111 1111 1111 today",
            "credit_card",
            "4111 1111 1111 1111",
        ),
        ("Карта№4242424242424242", "credit_card", "4242424242424242"),
        ("№DE89370400440532013000", "iban", "DE89370400440532013000"),
        ("тел№+79161234567", "phone", "+79161234567"),
        ("card_4242424242424242", "credit_card", "4242424242424242"),
        ("$4242424242424242", "credit_card", "4242424242424242"),
        ("①4242424242424242", "credit_card", "4242424242424242"),
        ("*4242424242424242*", "credit_card", "4242424242424242"),
        (
            "**4242 4242 4242 4242** ok",
            "credit_card",
            "4242 4242 4242 4242",
        ),
        ("_4242424242424242_", "credit_card", "4242424242424242"),
        ("~4242424242424242~", "credit_card", "4242424242424242"),
        ("…4242424242424242…", "credit_card", "4242424242424242"),
        ("_203.0.113.9_", "ip_address", "203.0.113.9"),
        ("*219-09-9999*", "ssn", "219-09-9999"),
        (
            "__DE89370400440532013000__",
            "iban",
            "DE89370400440532013000",
        ),
        ("tel.+49-30-901820", "phone", "+49-30-901820"),
        ("Tel.030 901820 21", "phone", "030 901820 21"),
        ("τηλ.+30 210 1234567", "phone", "+30 210 1234567"),
        ("โทร.08-1234-5678", "phone", "08-1234-5678"),
        ("тел.+79161234567", "phone", "+79161234567"),
        ("⒈4242424242424242", "credit_card", "4242424242424242"),
        ("note²4242424242424242", "credit_card", "4242424242424242"),
        (
            "card 4242424242424242² and",
            "credit_card",
            "4242424242424242",
        ),
        ("①+79161234567", "phone", "+79161234567"),
        ("①DE89370400440532013000", "iban", "DE89370400440532013000"),
        ("①192.168.7.20 is down", "ip_address", "192.168.7.20"),
        (
            "paid by 4242.4242.4242.4242 today",
            "credit_card",
            "4242.4242.4242.4242",
        ),
        (
            "paid by 4242·4242·4242·4242 today",
            "credit_card",
            "4242·4242·4242·4242",
        ),
        ("amex 3782-822463-10005", "credit_card", "3782-822463-10005"),
        (
            "account GB82 WEST 1234 5698 7654 32, please",
            "iban",
            "GB82 WEST 1234 5698 7654 32",
        ),
        ("DE89370400440532013000", "iban", "DE89370400440532013000"),
        ("SSN 123-45-6789", "ssn", "123-45-6789"),
        ("my social security number is 123456789", "ssn", "123456789"),
        ("call +44 20 7946 0958 now", "phone", "+44 20 7946 0958"),
        ("ring +49 (0)30 901820", "phone", "+49 (0)30 901820"),
        ("at (415) 555-0123, thanks", "phone", "(415) 555-0123"),
        ("415-555-0123", "phone", "415-555-0123"),
        ("my phone is 4155550123", "phone", "4155550123"),
        ("Tel. 06 12 34 56 78", "phone", "06 12 34 56 78"),
        ("tel:020 7946 0958", "phone", "020 7946 0958"),
        ("from 203.0.113.77:8080", "ip_address", "203.0.113.77"),
        (
            "at 2001:db8:85a3::8a2e:370:7334.",
            "ip_address",
            "2001:db8:85a3::8a2e:370:7334",
        ),
        ("the host is 8.8.8.8", "ip_address", "8.8.8.8"),
        (
            "nic 00:1B:44:11:3A:B7 up",
            "mac_address",
            "00:1B:44:11:3A:B7",
        ),
        (
            "nic 00-1B-44-11-3A-B7 up",
            "mac_address",
            "00-1B-44-11-3A-B7",
        ),
        (
            "postgres://app:s3cret@db.example.com/x",
            "url_credentials",
            "app:s3cret",
        ),
        ("NINO AB123456C", "nino", "AB123456C"),
        ("AB 12 34 56 C", "nino", "AB 12 34 56 C"),
        (
            "my NHS number is 943 476 5919",
            "nhs_number",
            "943 476 5919",
        ),
        ("aadhaar 2341 2341 2346", "aadhaar", "2341 2341 2346"),
        ("PAN ABCPE1234F", "pan", "ABCPE1234F"),
        (
            "her SIN is 046 454 286? no: 130 692 544",
            "sin",
            "130 692 544",
        ),
        ("Steuer-ID 86 095 742 719", "tax_id_de", "86 095 742 719"),
        ("DNI 12345678Z", "dni", "12345678Z"),
        ("NIE X1234567L", "nie", "X1234567L"),
        ("CF RSSMRA85T10A562S", "codice_fiscale", "RSSMRA85T10A562S"),
        ("CPF 529.982.247-25", "cpf", "529.982.247-25"),
        ("CNPJ 11.222.333/0001-81", "cnpj", "11.222.333/0001-81"),
        ("NRIC S1234567D", "nric", "S1234567D"),
        ("TFN 123 456 782", "tfn", "123 456 782"),
        ("Medicare 2123 45670 1", "medicare", "2123 45670 1"),
        ("routing number 021000021", "bank_routing", "021000021"),
        ("sécu 2 55 08 14 168 025 38", "nir", "2 55 08 14 168 025 38"),
        ("id 11010519491231002X", "resident_id", "11010519491231002X"),
        ("passport no. C01234567", "passport", "C01234567"),
        (
            "her driver's license D1234567",
            "driving_licence",
            "D1234567",
        ),
        (
            "born on 12 March 1985 in Porto",
            "date_of_birth",
            "12 March 1985",
        ),
        ("birthday: 12/03/1985", "date_of_birth", "12/03/1985"),
        (
            "my NHS number is 379-588-6333",
            "nhs_number",
            "379-588-6333",
        ),
        ("DOB: 1985-03-12", "date_of_birth", "1985-03-12"),
        (
            "BTC 1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa",
            "crypto_address",
            "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa",
        ),
        (
            "key AKIAIOSFODNN7EXAMPLE",
            "api_key",
            "AKIAIOSFODNN7EXAMPLE",
        ),
        (
            "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
            "api_key",
            "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
        ),
        ("password: hunter2!x", "credential", "hunter2!x"),
        (
            "export DB_SECRET_KEY=\"a8F3kd92LmQ0xZ\"",
            "credential",
            "a8F3kd92LmQ0xZ",
        ),
        ("see CUST-12345678", "custom", "CUST-12345678"),
    ] {
        assert_eq!(
            found(text).last(),
            Some(&(kind, value)),
            "{text}: {:?}",
            found(text)
        );
    }
}

#[test]
fn what_only_looks_alike_is_left_alone() {
    for text in [
        "order_4242424242424242 is due",
        "file_4242424242424241",
        "$4242424242424241",
        "$4242.42",
        "version 4242.4242.4242.4241",
        "№42",
        "Acme™4242",
        "12·34·56",
        "①42 and 10² and 4242²",
        "photo.4242424242424242",
        "order_*4242424242424242",
        "0.4242424242424242",
        "total.+493090182012",
        "init__4242424242424242__",
        "order 4155550123 shipped",
        "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
        "id 550e8400-e29b-41d4-a716-446655440000",
        "at 1700000000 and 1700000000123",
        "2024-05-08T12:30:45.123456Z",
        "version 10.2.3.4 of 2024-2025",
        "std::vector<int> a1::b2",
        "lat 40.712776, lon -74.005974",
        "it costs $1,234,567.89 or 12.345.678 EUR",
        "see icon@2x.png and lodash@4.17.21",
        "git@github.com:org/repo.git",
        "the score was 415 to 555",
        "chapter 12 on page 345, line 6789",
        "she was happy on 12 March 1985",
        "the secret is patience, the password is long",
        "sha256 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16",
        "ISBN 978-3-16-148410-0",
        "4111 1111 1111 1112",
        "numbers were 61500–61580 (math. 3, 117-142, 218-234 (1945))",
        "the appointment number is 20250330",
        "her birthday party on March 15, 2024",
        "password = db.Column(db.String(120), nullable=False)",
        "000-12-3456 and 666-12-3456 and 900-12-3456",
    ] {
        assert_eq!(found(text), [], "{text}");
    }
}

#[test]
fn disguises_do_not_help() {
    for (text, kind, value) in [
        (
            "card ４１１１　１１１１　１１１１　１１１１.",
            "credit_card",
            "４１１１　１１１１　１１１１　１１１１",
        ),
        (
            "card 4111\u{200b}1111\u{200b}1111\u{200b}1111.",
            "credit_card",
            "4111\u{200b}1111\u{200b}1111\u{200b}1111",
        ),
        ("ssn 123–45–6789", "ssn", "123–45–6789"),
        ("a\u{ad}na@example.org", "email", "a\u{ad}na@example.org"),
        ("+٤٤ ٢٠ ٧٩٤٦ ٠٩٥٨", "phone", "+٤٤ ٢٠ ٧٩٤٦ ٠٩٥٨"),
    ] {
        assert_eq!(found(text), [(kind, value)], "{text}");
    }
}

#[test]
fn letters_of_other_scripts_end_an_identifier_as_a_space_does() {
    for (text, kind, value) in [
        (
            "付費卡5555555555554444過期",
            "credit_card",
            "5555555555554444",
        ),
        ("цена4012888888881881руб", "credit_card", "4012888888881881"),
        ("déjà4000056655665556é", "credit_card", "4000056655665556"),
        (
            "計좌DE89370400440532013000입니다",
            "iban",
            "DE89370400440532013000",
        ),
        (
            "บัญชีFR1420041010050500013M02606ค่ะ",
            "iban",
            "FR1420041010050500013M02606",
        ),
        ("主机198.51.100.23宕机", "ip_address", "198.51.100.23"),
        (
            "адрес:2001:db8:1::9:42и порт",
            "ip_address",
            "2001:db8:1::9:42",
        ),
        (
            "κάρτα:3c:22:fb:0a:91:7eείναι",
            "mac_address",
            "3c:22:fb:0a:91:7e",
        ),
        (
            "メールはtanaka.k@example.jpまで",
            "email",
            "tanaka.k@example.jp",
        ),
        (
            "我的邮箱是20481234@example.cn谢谢",
            "email",
            "20481234@example.cn",
        ),
        ("メールはgo@example.co.jpです", "email", "go@example.co.jp"),
        ("почта@пример.рф", "email", "почта@пример.рф"),
        (
            "écris à zoé.b@école.example",
            "email",
            "zoé.b@école.example",
        ),
        ("โทร089-555-7788ครับ", "phone", "089-555-7788"),
        ("번호는+82 10-5550-9876이다", "phone", "+82 10-5550-9876"),
        (
            "身份11010519491231002X号",
            "resident_id",
            "11010519491231002X",
        ),
        (
            "密钥AKIAIOSFODNN7EXAMPLE泄露",
            "api_key",
            "AKIAIOSFODNN7EXAMPLE",
        ),
        ("パスワードはsakura42x9です", "credential", "sakura42x9"),
        ("Пароль: zima2041k", "credential", "zima2041k"),
    ] {
        assert_eq!(
            found(text).last(),
            Some(&(kind, value)),
            "{text}: {:?}",
            found(text)
        );
    }
}

#[test]
fn a_shape_alone_is_no_proof() {
    for text in [
        "sizes 210 44 3120 mm",
        "scores: 305 12 1999, 418 77 2044",
        "the variable probe1234x and jumbo8842k",
        "build ab123456c of the firmware",
        "2024年第10章第20节",
        "総額1234567円",
    ] {
        assert_eq!(found(text), [], "{text}");
    }
    for (text, kind, value) in [
        ("his ssn is 305 12 1999", "ssn", "305 12 1999"),
        ("pan card abcpe1234f", "pan", "abcpe1234f"),
        ("national insurance ab123456c", "nino", "ab123456c"),
    ] {
        assert_eq!(found(text), [(kind, value)], "{text}");
    }
}

#[test]
fn only_wanted_kinds_are_found() {
    let scanner = Scanner::new(&["email"], &[] as &[&str], 0.5).expect("it is known");
    assert_eq!(scanner.find("a@example.org 4111 1111 1111 1111").len(), 1);
    assert!(Scanner::new(&["e-mail"], &[] as &[&str], 0.5).is_err());
    assert!(Scanner::new(&["email"], &[] as &[&str], f32::NAN).is_err());
}

#[test]
fn a_private_key_goes_whole() {
    let key = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nabc=\n-----END RSA PRIVATE KEY-----";
    assert_eq!(found(&format!("x {key} y")), [("private_key", key)]);
    let cut = "-----BEGIN PRIVATE KEY-----\nMIIEow";
    assert_eq!(found(cut), [("private_key", cut)]);
}

proptest! {
    #[test]
    fn findings_are_in_order_and_on_characters(text in "(\\PC|[0-9@:+ .-]){0,80}") {
        let mut last = 0;
        for one in scanner().find(&text) {
            prop_assert!(last <= one.start && one.start < one.end && one.end <= text.len());
            prop_assert!(text.is_char_boundary(one.start) && text.is_char_boundary(one.end));
            last = one.end;
        }
    }

    #[test]
    fn likely_pieces_in_any_order_do_no_harm(pieces in proptest::collection::vec(
        prop_oneof![
            Just("+49"), Just("("), Just(")"), Just(" "), Just("-"), Just("."), Just("/"), Just("@"), Just("::"),
            Just("://"), Just("password="), Just("4111"), Just("0"), Just("２"), Just("\u{200b}"), Just("eyJ"),
            Just("-----BEGIN "), Just("PRIVATE KEY"), Just("AB"), Just("é"), Just("GB82"), Just("born "), Just("12"),
            Just("1985"), Just("March"), Just("passport "), Just("SG"), Just("sk-"), Just("0x"), Just("bc1"),
        ],
        0..40,
    )) {
        let text = pieces.concat();
        for one in scanner().find(&text) {
            prop_assert!(text.is_char_boundary(one.start) && text.is_char_boundary(one.end));
        }
    }
}
