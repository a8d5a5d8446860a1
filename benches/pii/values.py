"""Values of each type, made at random with checks of their own: nothing here is shared with what is measured."""

from __future__ import annotations

import hashlib
import string
from collections.abc import Callable, Mapping, Sequence
from random import Random

Maker = Callable[[Random], str]
UPPER = string.ascii_uppercase
BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
TOKEN = string.ascii_letters + string.digits
FIRST = ("ana", "bo", "carla", "dmitri", "eve", "farid", "grete", "hugo", "ines", "jan", "kofi", "lena", "mei", "nils")
LAST = ("lopez", "berg", "rossi", "ivanov", "smith", "haddad", "weber", "moreau", "costa", "novak", "mensah", "kim")
DOMAINS = (
    "example.org",
    "mail.example.com",
    "post.example.de",
    "uni.example.ac.uk",
    "example.museum",
    "a-b.example.io",
)


def digits(random: Random, count: int) -> str:
    """So many digits, the first not 0."""
    return str(random.randrange(1, 10)) + "".join(random.choices(string.digits, k=count - 1))


def grouped(number: str, sizes: Sequence[int], separator: str) -> str:
    """The number cut into groups."""
    groups, place = [], 0
    for size in sizes:
        groups.append(number[place : place + size])
        place += size
    return separator.join(groups)


def some(random: Random, count: int) -> str:
    """So many digits of any kind."""
    return "".join(random.choices(string.digits, k=count))


def token(random: Random, count: int) -> str:
    """Letters and digits, at least one of each kind that issuers promise."""
    return "7" + "".join(random.choices(TOKEN, k=count - 1))


def luhn_digit(number: str) -> str:
    """The last digit that makes a number pass."""
    total = 0
    for place, digit in enumerate(reversed(number)):
        value = int(digit) * (2 if place % 2 == 0 else 1)
        total += value // 10 + value % 10
    return str(-total % 10)


def card(random: Random) -> str:
    """A payment card of a large issuer, as it is printed or typed."""
    prefix, length = random.choice(
        [("4", 16), ("51", 16), ("55", 16), ("2221", 16), ("34", 15), ("37", 15), ("6011", 16)]
    )
    number = prefix + "".join(random.choices(string.digits, k=length - 1 - len(prefix)))
    number += luhn_digit(number)
    sizes = (4, 6, 5) if length == 15 else (4, 4, 4, 4)
    return grouped(number, sizes, random.choice([" ", "-", ""]))


def iban(random: Random) -> str:
    """A bank account of one of seven countries."""
    country, body = random.choice(
        [
            ("DE", "n" * 18),
            ("GB", "aaaa" + "n" * 14),
            ("FR", "n" * 23),
            ("NL", "aaaa" + "n" * 10),
            ("ES", "n" * 20),
            ("CH", "n" * 17),
            ("NO", "n" * 11),
        ]
    )
    account = "".join(random.choice(string.digits if kind == "n" else UPPER) for kind in body)
    values = "".join(str(int(character, 36)) for character in account + country + "00")
    number = f"{country}{98 - int(values) % 97:02d}{account}"
    return random.choice([number, " ".join(number[place : place + 4] for place in range(0, len(number), 4))])


def nhs(random: Random) -> str:
    """A UK NHS number."""
    while True:
        number = digits(random, 9)
        check = 11 - sum(int(digit) * weight for digit, weight in zip(number, range(10, 1, -1), strict=True)) % 11
        if check != 10:
            return grouped(number + str(check % 11), (3, 3, 4), random.choice([" ", "-", ""]))


def verhoeff_digit(number: str) -> str:
    """The last digit by the dihedral group, worked out from its definition."""

    def times(one: int, other: int) -> int:
        if one < 5:
            return (one + other) % 5 + (5 if other >= 5 else 0)
        return (one - other) % 5 + (0 if other >= 5 else 5)

    table = [1, 5, 7, 6, 2, 8, 3, 0, 9, 4]

    def permuted(value: int, rounds: int) -> int:
        for _ in range(rounds % 8):
            value = table[value]
        return value

    rest = 0
    for place, digit in enumerate(reversed(number), start=1):
        rest = times(rest, permuted(int(digit), place))
    return next(str(value) for value in range(10) if times(rest, value) == 0)


def aadhaar(random: Random) -> str:
    """An Indian Aadhaar number."""
    number = random.choice("23456789") + "".join(random.choices(string.digits, k=10))
    return grouped(number + verhoeff_digit(number), (4, 4, 4), random.choice([" ", "-", ""]))


def weighted(random: Random, weights: Sequence[int], modulus: int, prefix: str = "") -> str:
    """A number whose weighted sum is a multiple of the modulus."""
    while True:
        rest = len(weights) - len(prefix)
        number = prefix + (digits(random, rest) if not prefix else "".join(random.choices(string.digits, k=rest)))
        if sum(int(digit) * weight for digit, weight in zip(number, weights, strict=True)) % modulus == 0:
            return number


def routing(random: Random) -> str:
    """A US bank's routing number."""
    return weighted(random, (3, 7, 1) * 3, 10, f"{random.choice([*range(1, 13), *range(21, 33)]):02d}")


def tfn(random: Random) -> str:
    """An Australian tax file number."""
    return grouped(weighted(random, (1, 4, 3, 7, 5, 8, 6, 9, 10), 11), (3, 3, 3), random.choice([" ", ""]))


def medicare(random: Random) -> str:
    """An Australian Medicare number with its issue."""
    number = random.choice("23456") + "".join(random.choices(string.digits, k=7))
    check = sum(int(digit) * weight for digit, weight in zip(number, (1, 3, 7, 9, 1, 3, 7, 9), strict=True)) % 10
    return grouped(f"{number}{check}{random.randrange(1, 10)}", (4, 5, 1), random.choice([" ", ""]))


def sin(random: Random) -> str:
    """A Canadian social insurance number."""
    number = random.choice("1234567") + "".join(random.choices(string.digits, k=7))
    return grouped(number + luhn_digit(number), (3, 3, 3), random.choice([" ", "-", ""]))


def tax_id_de(random: Random) -> str:
    """A German tax id: of ten digits one twice, one never."""
    while True:
        shuffled = random.sample(string.digits, 9)
        shuffled.insert(random.randrange(10), random.choice(shuffled))
        if shuffled[0] == "0":
            continue
        product = 10
        for digit in shuffled:
            product = ((int(digit) + product) % 10 or 10) * 2 % 11
        number = "".join(shuffled) + str((11 - product) % 10)
        return grouped(number, (2, 3, 3, 3), random.choice([" ", ""]))


def nir(random: Random) -> str:
    """A French social security number."""
    parts = (
        f"{random.choice('12')}{random.randrange(100):02d}{random.randrange(1, 13):02d}{random.randrange(1, 96):02d}"
        f"{random.randrange(1, 990):03d}{random.randrange(1, 999):03d}"
    )
    return grouped(f"{parts}{97 - int(parts) % 97:02d}", (1, 2, 2, 2, 3, 3, 2), random.choice([" ", ""]))


def dni(random: Random) -> str:
    """A Spanish DNI."""
    number = random.randrange(10_000_000, 99_999_999)
    return f"{number}{random.choice(['', '-'])}{'TRWAGMYFPDXBNJZSQVHLCKE'[number % 23]}"


def nie(random: Random) -> str:
    """A Spanish NIE."""
    first, number = random.randrange(3), random.randrange(10_000_000)
    return f"{'XYZ'[first]}{number:07d}{'TRWAGMYFPDXBNJZSQVHLCKE'[(first * 10_000_000 + number) % 23]}"


def codice_fiscale(random: Random) -> str:
    """An Italian tax code."""
    odd = dict(zip(string.digits + UPPER, (1, 0, 5, 7, 9, 13, 15, 17, 19, 21) * 2, strict=False))
    odd.update(
        zip(
            UPPER,
            (1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23),
            strict=True,
        )
    )
    code = (
        "".join(random.choices("BCDFGLMNPRST", k=6))
        + f"{random.randrange(100):02d}{random.choice('ABCDEHLMPRST')}{random.randrange(1, 32):02d}"
        + f"{random.choice('ABCDEFGHILM')}{random.randrange(1, 999):03d}"
    )
    total = sum(
        odd[one] if place % 2 == 0 else int(one, 36) - (10 if one.isalpha() else 0) for place, one in enumerate(code)
    )
    return code + UPPER[total % 26]


def _cpf_check(number: str) -> str:
    rest = sum(int(digit) * weight for digit, weight in zip(number, range(len(number) + 1, 1, -1), strict=True)) % 11
    return "0" if rest < 2 else str(11 - rest)


def cpf(random: Random) -> str:
    """A Brazilian person's number."""
    number = digits(random, 9)
    number += _cpf_check(number)
    number += _cpf_check(number)
    return f"{number[:3]}.{number[3:6]}.{number[6:9]}-{number[9:]}"


def cnpj(random: Random) -> str:
    """A Brazilian company's number."""
    number = digits(random, 8) + "0001"
    for weights in ((5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2), (6, 5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2)):
        rest = sum(int(digit) * weight for digit, weight in zip(number, weights, strict=True)) % 11
        number += "0" if rest < 2 else str(11 - rest)
    return f"{number[:2]}.{number[2:5]}.{number[5:8]}/{number[8:12]}-{number[12:]}"


def nric(random: Random) -> str:
    """A Singapore identity number."""
    series, number = random.choice("STFG"), f"{random.randrange(10_000_000):07d}"
    total = sum(int(digit) * weight for digit, weight in zip(number, (2, 7, 6, 5, 4, 3, 2), strict=True))
    letters = "JZIHGFEDCBA" if series in "ST" else "XWUTRQPNMLK"
    return f"{series}{number}{letters[(total + (4 if series in 'TG' else 0)) % 11]}"


def resident_id(random: Random) -> str:
    """A Chinese resident's number."""
    number = (
        f"{random.choice([110105, 310101, 440305, 510104])}{random.randrange(1940, 2015)}"
        f"{random.randrange(1, 13):02d}{random.randrange(1, 29):02d}{random.randrange(1000):03d}"
    )
    total = sum(int(digit) * pow(2, 17 - place, 11) for place, digit in enumerate(number))
    return number + "10X98765432"[total % 11]


def bitcoin(random: Random) -> str:
    """A Base58Check address."""
    body = bytes([random.choice([0, 5])]) + random.randbytes(20)
    payload = body + hashlib.sha256(hashlib.sha256(body).digest()).digest()[:4]
    number, text = int.from_bytes(payload), ""
    while number:
        number, rest = divmod(number, 58)
        text = BASE58[rest] + text
    return "1" * (len(payload) - len(payload.lstrip(b"\0"))) + text


def email(random: Random) -> str:
    """An address at a domain kept for examples."""
    first, last = random.choice(FIRST), random.choice(LAST)
    local = random.choice(
        [f"{first}.{last}", f"{first}{random.randrange(100)}", f"{first}_{last}+news", f"{first[0]}{last}"]
    )
    return f"{local}@{random.choice(DOMAINS)}"


def phone(random: Random) -> str:
    """A number as people of a dozen countries write theirs."""
    area, exchange = (
        f"{random.choice('23456789')}0{random.choice('123456789')}",
        f"{random.choice('23456789')}{random.choice('02345')}7",
    )
    forms = (
        f"+1 {area} {exchange} {some(random, 4)}",
        f"({area}) {exchange}-{some(random, 4)}",
        f"{area}-{exchange}-{some(random, 4)}",
        f"{area}.{exchange}.{some(random, 4)}",
        f"1-{area}-{exchange}-{some(random, 4)}",
        f"+1-{area}-{exchange}-{some(random, 4)}",
        f"+44 20 7{some(random, 3)} {some(random, 4)}",
        f"+44 7{some(random, 3)} {some(random, 6)}",
        f"07{some(random, 3)} {some(random, 6)}",
        f"020 7{some(random, 3)} {some(random, 4)}",
        f"+49 30 {digits(random, 8)}",
        f"0171 {digits(random, 7)}",
        f"+49 (0)89 {digits(random, 6)}",
        f"06 {some(random, 2)} {some(random, 2)} {some(random, 2)} {some(random, 2)}",
        f"+33 6 {some(random, 2)} {some(random, 2)} {some(random, 2)} {some(random, 2)}",
        f"+34 6{some(random, 2)} {some(random, 3)} {some(random, 3)}",
        f"+39 347 {some(random, 3)} {some(random, 4)}",
        f"+91 {random.choice('6789')}{some(random, 4)} {some(random, 5)}",
        f"+86 13{some(random, 1)} {some(random, 4)} {some(random, 4)}",
        f"+81 90-{digits(random, 4)}-{some(random, 4)}",
        f"+55 11 9{some(random, 4)}-{some(random, 4)}",
        f"(11) 9{some(random, 4)}-{some(random, 4)}",
        f"+61 4{some(random, 2)} {some(random, 3)} {some(random, 3)}",
        f"0412 {some(random, 3)} {some(random, 3)}",
        f"+65 9{some(random, 3)} {some(random, 4)}",
        f"+41 79 {some(random, 3)} {some(random, 2)} {some(random, 2)}",
        f"+351 91{some(random, 1)} {some(random, 3)} {some(random, 3)}",
        f"+4790{some(random, 6)}",
        f"0044 20 7{some(random, 3)} {some(random, 4)}",
    )
    return random.choice(forms)


def ip_address(random: Random) -> str:
    """A public IPv4 or IPv6 address."""
    if random.random() < 0.3:
        groups = [f"{random.randrange(1, 65536):x}" for _ in range(5)]
        return f"2001:db8:{':'.join(groups[:2])}::{':'.join(groups[2:])}"
    parts = [random.choice([81, 93, 141, 203]), *(random.randrange(10, 255) for _ in range(3))]
    return ".".join(map(str, parts))


def mac_address(random: Random) -> str:
    """A network card's address."""
    separator = random.choice(":-")
    return separator.join(
        [f"{random.choice('aceACE')}{random.choice(string.digits)}"]
        + [f"{random.randrange(256):02x}" for _ in range(5)]
    )


def ssn(random: Random) -> str:
    """A US social security number with its dashes."""
    area = random.choice([*range(1, 666), *range(667, 900)])
    return f"{area:03d}-{random.randrange(1, 100):02d}-{random.randrange(1, 10_000):04d}"


def nino(random: Random) -> str:
    """A UK national insurance number."""
    number = digits(random, 6)
    last = random.choice("ABCD")
    first = random.choice("ABCEHJKLMPRSTWXYZ") + random.choice("ABCEHJLMPRSWXY")
    first = "AB" if first in {"BG", "KN", "TN", "ZZ"} else first
    return random.choice([f"{first}{number}{last}", f"{first} {number[:2]} {number[2:4]} {number[4:]} {last}"])


def pan(random: Random) -> str:
    """An Indian tax number."""
    letters = "".join(random.choices(UPPER, k=3)) + random.choice("PCHF") + random.choice(UPPER)
    return f"{letters}{digits(random, 4)}{random.choice(UPPER)}"


def api_key(random: Random) -> str:
    """A key with its issuer's prefix."""
    return random.choice(
        [
            f"AKIA7{''.join(random.choices(UPPER + '234567', k=15))}",
            f"ghp_{token(random, 36)}",
            f"sk_live_{token(random, 24)}",
            f"sk-proj-{token(random, 40)}",
            f"xoxb-{digits(random, 11)}-{token(random, 24)}",
            f"AIza{token(random, 35)}",
            f"glpat-{token(random, 20)}",
            f"hf_{token(random, 34)}",
        ]
    )


def password(random: Random) -> str:
    """A password or token as it follows its name."""
    return "".join(random.choices(string.ascii_letters, k=9)) + digits(random, 5)


def born(random: Random) -> str:
    """A date in one of four forms."""
    year, month, day = random.randrange(1940, 2012), random.randrange(1, 13), random.randrange(1, 29)
    name = ("January", "February", "March", "April", "May", "June", "July")[month % 7]
    return random.choice(
        [
            f"{year}-{month:02d}-{day:02d}",
            f"{day:02d}/{month:02d}/{year}",
            f"{day} {name} {year}",
            f"{name} {day}, {year}",
        ]
    )


def passport(random: Random) -> str:
    """A passport's number."""
    return random.choice([digits(random, 9), random.choice(UPPER) + digits(random, 8)])


MAKERS: Mapping[str, Maker] = {
    "credit_card": card,
    "iban": iban,
    "nhs_number": nhs,
    "aadhaar": aadhaar,
    "bank_routing": routing,
    "tfn": tfn,
    "medicare": medicare,
    "sin": sin,
    "tax_id_de": tax_id_de,
    "nir": nir,
    "dni": dni,
    "nie": nie,
    "codice_fiscale": codice_fiscale,
    "cpf": cpf,
    "cnpj": cnpj,
    "nric": nric,
    "resident_id": resident_id,
    "crypto_address": bitcoin,
    "email": email,
    "phone": phone,
    "ip_address": ip_address,
    "mac_address": mac_address,
    "ssn": ssn,
    "nino": nino,
    "pan": pan,
    "api_key": api_key,
    "credential": password,
    "date_of_birth": born,
    "passport": passport,
}
# Types whose digits or letters check themselves.
CHECKSUMMED = tuple(MAKERS)[: tuple(MAKERS).index("email")]
