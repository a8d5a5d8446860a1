//! Words around a candidate that say what it is, or what it is not.

use std::cell::OnceCell;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

/// How far before a candidate a word still speaks of it, in bytes: some eight words.
const BEFORE: usize = 50;
/// How far after it: "... is my number".
const AFTER: usize = 25;
/// How far before it a word speaks against it: an order's number stands right beside the word.
const AGAINST: usize = 25;
/// What a word of its kind adds to the confidence in a candidate.
const RAISE: f32 = 0.4;
/// What a word of things takes from it.
const LOWER: f32 = 0.35;
/// What a word of another kind of identifier takes from it: enough to lose to that kind.
const YIELD: f32 = 0.15;

/// What words speak of, one bit each.
pub(super) mod about {
    pub(crate) const PHONE: u32 = 1;
    pub(crate) const SSN: u32 = 1 << 1;
    pub(crate) const ROUTING: u32 = 1 << 2;
    pub(crate) const PASSPORT: u32 = 1 << 3;
    pub(crate) const LICENCE: u32 = 1 << 4;
    pub(crate) const NINO: u32 = 1 << 5;
    pub(crate) const NHS: u32 = 1 << 6;
    pub(crate) const TAX_DE: u32 = 1 << 7;
    pub(crate) const CPF: u32 = 1 << 8;
    pub(crate) const AADHAAR: u32 = 1 << 9;
    pub(crate) const PAN: u32 = 1 << 10;
    pub(crate) const TFN: u32 = 1 << 11;
    pub(crate) const MEDICARE: u32 = 1 << 12;
    pub(crate) const SIN: u32 = 1 << 13;
    pub(crate) const BIRTH: u32 = 1 << 14;
    pub(crate) const IP: u32 = 1 << 15;
    pub(crate) const CARD: u32 = 1 << 16;
    pub(crate) const SECRET: u32 = 1 << 17;
    pub(crate) const PASSWORD: u32 = 1 << 18;
    /// Numbers of things, not of people: orders, builds, measurements.
    pub(crate) const THING: u32 = 1 << 19;
    /// Identity documents of several countries: "national id".
    pub(crate) const IDENTITY: u32 = 1 << 20;
    /// All that name an identifier.
    pub(crate) const IDENTIFIERS: u32 =
        SSN | ROUTING | NINO | NHS | TAX_DE | CPF | AADHAAR | TFN | MEDICARE | SIN;
}

const WORDS: &[(u32, &[&str])] = &[
    (
        about::PHONE,
        &[
            "phone",
            "phones",
            "telephone",
            "telefon",
            "telefono",
            "teléfono",
            "téléphone",
            "telefone",
            "tel",
            "mobile",
            "mob",
            "cell",
            "cellphone",
            "cellular",
            "call",
            "called",
            "calling",
            "fax",
            "whatsapp",
            "viber",
            "sms",
            "text me",
            "text her",
            "text him",
            "text us",
            "ring me",
            "ring her",
            "ring him",
            "ring us",
            "dial",
            "reach me",
            "reach her",
            "reach him",
            "reach us",
            "contact number",
            "contact no",
            "my number",
            "her number",
            "his number",
            "our number",
            "their number",
            "new number",
            "number is",
            "hotline",
            "helpline",
            "handy",
            "handynummer",
            "móvil",
            "movil",
            "portable",
            "celular",
            "cellulare",
            "rufnummer",
            "appelez",
            "llámame",
            "llama",
            "ligue",
            "chiama",
            "landline",
            "voicemail",
            "pager",
            "ph",
            "phone number",
            "phone no",
            "ruf",
            "anrufen",
            "extension",
            "ext",
            "电话",
            "手机",
            "電話",
        ],
    ),
    (
        about::SSN,
        &[
            "ssn",
            "ssns",
            "social security",
            "social security number",
            "soc sec",
            "itin",
        ],
    ),
    (
        about::ROUTING,
        &[
            "routing",
            "routing number",
            "aba",
            "rtn",
            "wire transfer",
            "direct deposit",
        ],
    ),
    (
        about::PASSPORT,
        &[
            "passport",
            "passeport",
            "pasaporte",
            "passaporto",
            "reisepass",
            "passport number",
            "passport no",
        ],
    ),
    (
        about::LICENCE,
        &[
            "driver's license",
            "drivers license",
            "driver license",
            "driving licence",
            "driving license",
            "driver's licence",
            "drivers licence",
            "driver licence",
            "dl number",
            "license number",
            "licence number",
            "führerschein",
            "permis de conduire",
            "patente",
        ],
    ),
    (
        about::NINO,
        &[
            "nino",
            "national insurance",
            "ni number",
            "national insurance number",
            "ni no",
        ],
    ),
    (
        about::NHS,
        &["nhs", "nhs number", "nhs no", "health service"],
    ),
    (
        about::TAX_DE,
        &[
            "steuer-id",
            "steuerid",
            "steuer id",
            "idnr",
            "steueridentifikationsnummer",
            "steuernummer",
            "tax id",
            "tin",
            "steuerliche",
        ],
    ),
    (about::CPF, &["cpf", "cnpj", "cadastro"]),
    (
        about::AADHAAR,
        &["aadhaar", "aadhar", "adhaar", "uidai", "uid number", "आधार"],
    ),
    (
        about::PAN,
        &["pan", "pan card", "permanent account number", "income tax"],
    ),
    (about::TFN, &["tfn", "tax file", "tax file number"]),
    (
        about::MEDICARE,
        &["medicare", "medicare card", "medicare number"],
    ),
    (
        about::SIN,
        &["sin", "social insurance", "social insurance number", "nas"],
    ),
    (
        about::BIRTH,
        &[
            "born",
            "dob",
            "d.o.b",
            "d.o.b.",
            "date of birth",
            "birth date",
            "birthdate",
            "birthday:",
            "birthday is",
            "geboren",
            "geburtsdatum",
            "né le",
            "née le",
            "date de naissance",
            "nacido",
            "nacida",
            "fecha de nacimiento",
            "nato",
            "nata",
            "data di nascita",
            "nascido",
            "nascida",
            "data de nascimento",
        ],
    ),
    (
        about::IP,
        &[
            "ip",
            "ips",
            "ipv4",
            "ipv6",
            "ip address",
            "host",
            "server",
            "gateway",
            "subnet",
            "dns",
            "router",
            "ping",
            "ssh",
            "logged in from",
            "connected from",
        ],
    ),
    (
        about::CARD,
        &[
            "card",
            "credit card",
            "debit card",
            "visa",
            "mastercard",
            "amex",
            "american express",
            "discover",
            "cc",
            "card number",
            "card no",
            "kreditkarte",
            "karte",
            "carte",
            "tarjeta",
            "cartão",
            "carta di credito",
            "payment",
            "expires",
            "cvv",
            "cvc",
        ],
    ),
    (
        about::SECRET,
        &[
            "secret",
            "token",
            "apikey",
            "api key",
            "api_key",
            "api-key",
            "access key",
            "access_key",
            "accesskey",
            "secret key",
            "secret_key",
            "secretkey",
            "auth_token",
            "authtoken",
            "client_secret",
            "bearer",
            "private_key",
            "encryption_key",
        ],
    ),
    (
        about::PASSWORD,
        &[
            "password",
            "passwd",
            "pwd",
            "passphrase",
            "passcode",
            "kennwort",
            "passwort",
            "contraseña",
            "mot de passe",
            "senha",
        ],
    ),
    (
        about::THING,
        &[
            "order",
            "orders",
            "order id",
            "order no",
            "order number",
            "invoice",
            "ticket",
            "tracking",
            "tracking number",
            "shipment",
            "sku",
            "isbn",
            "issn",
            "serial",
            "serial number",
            "part",
            "part no",
            "part number",
            "build",
            "build number",
            "version",
            "release",
            "firmware",
            "commit",
            "transaction",
            "transaction id",
            "txn",
            "case",
            "ref",
            "reference",
            "confirmation",
            "booking",
            "epoch",
            "timestamp",
            "unix time",
            "hash",
            "checksum",
            "sha",
            "md5",
            "crc",
            "uuid",
            "guid",
            "latitude",
            "longitude",
            "lat",
            "lon",
            "lng",
            "coordinates",
            "gps",
            "score",
            "price",
            "total",
            "amount",
            "usd",
            "eur",
            "pixels",
            "bytes",
            "rows",
            "model",
            "item",
            "product",
            "batch",
            "lot",
            "article",
            "bestellnummer",
            "rechnung",
            "sensor",
            "port",
            "pid",
            "process",
            "request id",
            "trace",
            "trace id",
            "span",
            "line",
            "offset",
            "page",
            "figure",
            "seed",
            "ean",
            "upc",
            "barcode",
            "parcel",
            "asset",
            "inventory",
            "revision",
            "patch",
            "changelog",
            "upgrade",
            "upgraded",
            "id",
            "ids",
            "job",
            "run",
            "sequence",
            "counter",
            "v",
        ],
    ),
    (
        about::IDENTITY,
        &[
            "national id",
            "identity card",
            "id card",
            "identity number",
            "id number",
            "identification number",
            "government id",
            "tax number",
            "taxpayer",
        ],
    ),
];

/// The longest at a place wins, so "order number" is not taken for the "number" of a person.
static WORDS_AT_ONCE: LazyLock<(Vec<u32>, Option<AhoCorasick>)> = LazyLock::new(|| {
    let pairs = || {
        WORDS
            .iter()
            .flat_map(|(about, words)| words.iter().map(move |word| (*about, *word)))
    };
    let search = AhoCorasick::builder()
        .kind(Some(AhoCorasickKind::DFA))
        .ascii_case_insensitive(true)
        .match_kind(MatchKind::LeftmostLongest)
        .build(pairs().map(|(_, word)| word))
        .ok();
    (pairs().map(|(about, _)| about).collect(), search)
});

/// A word of the list, standing alone.
#[derive(Clone, Copy, Debug)]
pub(super) struct Word {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) about: u32,
}

/// The words of a text, looked for when a candidate first asks.
pub(super) struct Context<'a> {
    bytes: &'a [u8],
    words: OnceCell<Vec<Word>>,
    spoken: OnceCell<u32>,
}

impl<'a> Context<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            words: OnceCell::new(),
            spoken: OnceCell::new(),
        }
    }

    /// All that any word of the text speaks of.
    pub(super) fn spoken(&self) -> u32 {
        *self
            .spoken
            .get_or_init(|| self.words().iter().fold(0, |all, word| all | word.about))
    }

    /// All words in order.
    pub(super) fn words(&self) -> &[Word] {
        self.words.get_or_init(|| {
            let (about, search) = &*WORDS_AT_ONCE;
            let Some(search) = search else {
                return Vec::new();
            };
            search
                .find_iter(self.bytes)
                .filter(|found| {
                    self.stands_alone(
                        found.start(),
                        found.end(),
                        about[found.pattern().as_usize()],
                    )
                })
                .map(|found| Word {
                    start: found.start(),
                    end: found.end(),
                    about: about[found.pattern().as_usize()],
                })
                .collect()
        })
    }

    /// Whether no letter goes on before or after. Keys such as `DB_PASSWORD` hold the word between underscores.
    fn stands_alone(&self, start: usize, end: usize, about: u32) -> bool {
        // Scripts without spaces have no such borders.
        let other = |place: usize| self.bytes.get(place).is_some_and(|byte| *byte >= 128);
        let letter = |place: usize| self.bytes.get(place).is_some_and(u8::is_ascii_alphabetic);
        if other(start) && other(end - 1) {
            return true;
        }
        if about & (about::SECRET | about::PASSWORD) != 0 {
            // "dbPassword" and "apikey2" count too; "compassword" does no harm.
            return true;
        }
        (start == 0 || !letter(start - 1)) && !letter(end)
    }

    /// What the words near `start..end` add to the confidence that it is `wanted`, or take from it. The nearest word
    /// before speaks, wanted words from farther than others; without one, a wanted word right after does.
    pub(super) fn speaks(&self, start: usize, end: usize, wanted: u32) -> f32 {
        if self.spoken() & (wanted | about::THING | about::IDENTIFIERS) == 0 {
            return 0.0;
        }
        let words = self.words();
        let next = words.partition_point(|word| word.start < start);
        for word in words[..next].iter().rev() {
            let distance = start.saturating_sub(word.end);
            if distance > BEFORE {
                break;
            }
            if word.about & wanted != 0 {
                return RAISE;
            }
            let against = match word.about {
                about if about & about::THING != 0 => LOWER,
                about if about & about::IDENTIFIERS != 0 => YIELD,
                _ => continue,
            };
            if distance <= AGAINST && !self.sentence_ends(word.end, start) {
                return -against;
            }
        }
        let after = words[next..].iter().find(|word| word.start >= end);
        match after {
            Some(word) if word.start - end <= AFTER && word.about & wanted != 0 => RAISE,
            _ => 0.0,
        }
    }

    /// Whether a word of `wanted` stands near.
    pub(super) fn says(&self, start: usize, end: usize, wanted: u32) -> bool {
        self.speaks(start, end, wanted) > 0.0
    }

    /// A full stop and a space between: what was said before is another matter.
    fn sentence_ends(&self, start: usize, end: usize) -> bool {
        let between = self.bytes.get(start..end).unwrap_or_default();
        between
            .windows(2)
            .any(|pair| matches!(pair, [b'.' | b'!' | b'?' | b';', b' ' | b'\n']))
    }
}
