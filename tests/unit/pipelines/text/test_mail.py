"""Mails in transfer form become text, and signatures alone are left out."""

import base64
from collections.abc import Callable
from email.charset import QP, Charset
from email.message import EmailMessage, MIMEPart
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText
from email.policy import SMTP, SMTPUTF8
from functools import partial
from random import Random

import pytest

from astrocyte.pipelines.text import mail
from astrocyte.pipelines.text.normalisation import normalise
from oracles.growth import takes_less

SUBJECTS = (
    "Lunch on Friday",
    "Größe der Kiste",
    "会議の議題",
    "Повестка дня",
    "جدول الأعمال",
    "Café ☕ at 10:30",
    "x" * 120,
    "Réunion = prévue?",
)
BODIES = (
    "The roofer comes on the 9th.", "Größe: 12 µm, Straße 3", "明日の会議は十時です。", "Крыша протекает.",
    "السقف يسرب الماء.", "a=b==c\tand =3D", "€ 5 – “quoted”", "👩‍👩‍👦 and 🇳🇴", "> quoted line\n>> twice",
    "x" * 200, "From here on it leaks.", ".", "- a list\n- of two", "--\nruled off",
)  # fmt: skip
CHARSETS = (
    "utf-8",
    "iso-8859-1",
    "iso-8859-15",
    "windows-1252",
    "koi8-r",
    "windows-1251",
    "iso-2022-jp",
    "shift_jis",
    "gb18030",
    "euc-kr",
    "windows-1256",
)
POLICIES = (SMTP, SMTPUTF8, SMTP.clone(cte_type="8bit"), SMTP.clone(max_line_length=64))


def read(text: str) -> str:
    return normalise(mail.decoded(text), "email")


def plain(random: Random, body: str) -> EmailMessage:
    message = EmailMessage()
    charset = random.choice([name for name in CHARSETS if _fits(body, name)])
    encoding = random.choice(("base64", "quoted-printable"))
    message.set_content(body, charset=charset, cte=encoding)
    return message


def alternative(random: Random, body: str) -> EmailMessage:
    message = plain(random, body)
    message.add_alternative(f"<p>Not this: {len(body)}</p>", subtype="html")
    return message


def attached(random: Random, body: str) -> EmailMessage:
    message = plain(random, body)
    message.add_attachment(b"\x00\x01" * 40, maintype="image", subtype="png", filename="größe.png")
    message.add_attachment("not this", filename="notes.txt")
    return message


def related(random: Random, body: str) -> EmailMessage:
    message = alternative(random, body)
    html = message.get_payload(1)
    assert isinstance(html, MIMEPart)
    html.add_related(b"\x01\x02", "image", "gif", cid="<a>")
    return message


def html_only(random: Random, body: str) -> EmailMessage:
    message = EmailMessage()
    escaped = body.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    lines = escaped.replace("\t", " ").replace("\n", "<br>")
    style = random.choice(("", "<style>p { color: red }</style>"))
    message.set_content(
        f"<html><head><title>no</title>{style}</head><body><p>{lines}</p></body></html>", subtype="html"
    )
    return message


def forwarded(random: Random, body: str) -> EmailMessage:
    inner = plain(random, body)
    inner["Subject"] = "the first one"
    inner["From"] = "lea@example.org"
    message = EmailMessage()
    message.set_content("See below.")
    message.add_attachment(inner)
    return message


MAKERS: tuple[Callable[[Random, str], EmailMessage], ...] = (
    plain,
    alternative,
    attached,
    related,
    html_only,
    forwarded,
)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("mails", [300, pytest.param(2_000, marks=pytest.mark.slow)])
def test_mails_of_the_standard_library_are_read_back(mails: int) -> None:
    for seed in range(mails):
        random = Random(seed)
        body = "\n".join(random.choices(BODIES, k=random.randint(1, 4)))
        made = MAKERS[seed % len(MAKERS)](random, body)
        made["From"] = random.choice(("Lea <lea@example.org>", "Zoë Größe <zoe@example.org>"))
        made["To"] = "tom@example.org"
        made["Subject"] = subject = random.choice(SUBJECTS)
        text = made.as_bytes(policy=random.choice(POLICIES)).decode("utf-8", "strict")
        expected = (
            "\n".join(" ".join(line.split()) for line in body.split("\n"))
            if made.get_content_type() == "text/html"
            else body
        )
        found = read(random.choice((text, text.replace("\r\n", "\n"))))
        assert found.startswith(f"{subject}\n\n"), seed
        assert expected in found, f"{seed}: {found!r}"
        assert "ot this" not in found, seed
        assert "Content-" not in found, seed
        assert mail.decoded(mail.decoded(text)) == mail.decoded(text)


def _fits(body: str, charset: str) -> bool:
    try:
        return body.encode(charset).decode(charset) == body
    except UnicodeError:
        return False


HEAD = "From: lea@example.org\nTo: tom@example.org\nSubject: Shed\n"


@pytest.mark.parametrize(
    ("header", "subject"),
    [
        ("=?utf-8?q?Gr=C3=B6=C3=9Fe?=", "Größe"), ("=?UTF-8?B?R3LDtsOfZQ==?=", "Größe"),
        ("=?iso-8859-1?q?Gr=F6=DFe_12?= mm", "Größe 12 mm"), ("Re: =?utf-8?q?Gr=C3=B6=C3=9Fe?=", "Re: Größe"),
        ("=?utf-8?q?one?= =?utf-8?q?_two?=", "one two"), ("=?utf-8?q?one?=\n =?utf-8?q?_two?=", "one two"),
        ("=?koi8-r?b?69LZ28E=?=", "Крыша"), ("=?no-such?q?plain?=", "plain"), ("=?utf-8?b?!!?= left", "left"),
        ("=?utf-8?q?=FF?=", "ÿ"), ("already ö =?utf-8?q?=C3=BC?=", "already ö ü"),
        ("folded\n over\n\tlines =?utf-8?q?x?=", "folded over lines x"),
    ],
)  # fmt: skip
def test_encoded_headers(header: str, subject: str) -> None:
    assert read(f"From: a@example.org\nSubject: {header}\n\nbody").split("\n\n")[0].endswith(subject)


PLAIN, MIXED, DIGEST = "Content-Type: text/plain", "Content-Type: multipart/mixed", "Content-Type: multipart/digest"
HTML, BASE64 = "Content-Type: text/html", "Content-Transfer-Encoding: base64"
QUOTED = "Content-Transfer-Encoding: quoted-printable"


def in_base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


@pytest.mark.parametrize(
    ("more", "body", "expected"),
    [
        (BASE64, in_base64("Größe".encode()), "Größe"),
        (f"{PLAIN}; charset=iso-8859-1\n{QUOTED}", "Gr=F6=DFe =\nhere", "Größe here"),
        (f"{PLAIN}; charset=nonsense\n{QUOTED}", "Gr=C3=B6=C3=9Fe", "Größe"),
        (f"{PLAIN}; charset=us-ascii\nContent-Transfer-Encoding: 8bit", "Größe", "Größe"),
        (f"{PLAIN}; charset=utf-16\n{BASE64}", in_base64("Größe".encode("utf-16")), "Größe"),
        (f"{PLAIN}; charset=utf-8\n{BASE64}", in_base64(b"a\x00b\x07c"), "abc"),
        (f"{PLAIN}; charset=utf-7", "Gr+APYA3w-e", "Größe"),
        (f"{PLAIN}; charset=UNICODE-1-1-UTF-7\nContent-Transfer-Encoding: 7bit", "2 +- 2, Gr+APYA3w-e", "2 + 2, Größe"),
        (f"{PLAIN}; charset=utf-7\n{QUOTED}", "Gr+APYA3w-e =\nhere", "Größe here"),
        (f"{HTML}; charset=utf-7", "+ADw-p+AD4-one+ADw-/p+AD4-", "one"),
        # What is no UTF-7 is left, and half a surrogate pair is no character.
        (f"{PLAIN}; charset=utf-7", "Größe, call +4930", "Größe, call +4930"),
        (f"{PLAIN}; charset=utf-7", "a+2AA-b", "ab"),
        (f"{PLAIN}; charset=hz-gb-2312", "~{VPND~}", "\u4e2d\u6587"),
        (f"{PLAIN}; format=flowed", "One \nparagraph.\n\n> quoted \n> line\n", "One paragraph.\n\n> quoted \n> line"),
        (f"{PLAIN}; format=flowed; delsp=yes", "Para \ngraph", "Paragraph"),
        (HTML, "<ul><li>one<li>two &amp; three</ul><script>x()</script>", "- one\n- two & three"),
        (HTML, "<table><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr></table>", "a\tb\nc"),
        (HTML, "<p>one <b>two</b> <i>three</i></p><!-- <p>no</p> --><p>4 &lt; 5</p>", "one two three\n\n4 < 5"),
        (HTML, "<div>a < b and <a href='x'>link</a></div><div>c</div>", "a < b and link\nc"),
        ("X-Mailer: none", "<!DOCTYPE html><html><body>One<br/>two</body></html>", "One\ntwo"),
        (f"{MIXED}; boundary=x", f"--x\n\nfirst\n--x\n{PLAIN}\n\nsecond\n--x--\n", "first\n\nsecond"),
        (f"{MIXED}; boundary=x", "--x\n\nnever closed", "never closed"),
        (
            f"{DIGEST}; boundary=x",
            "--x\n\nSubject: a\n\nb\n--x\n\nSubject: c\n\nd\n--x--",
            "Subject: a\n\nb\n\nSubject: c\n\nd",
        ),
    ],
)
def test_bodies_in_transfer_form(more: str, body: str, expected: str) -> None:
    assert read(f"{HEAD}{more}\n\n{body}") == f"Shed\n\n{expected}"


@pytest.mark.parametrize(
    "text",
    [
        "Note: =?utf-8?q?x?= is how it is written",
        "Content-Type: multipart/mixed is a header",
        "Dear all,\n\nContent-Type: text/html\n\n<p>",
        "plain",
        "",
    ],
)
def test_what_is_no_mail_stays(text: str) -> None:
    assert mail.decoded(text) == text
    assert normalise(text, "email") == text


def test_a_mail_without_a_text_keeps_its_subject() -> None:
    image = MIMEMultipart()
    image["Subject"] = "the plan"
    image["From"] = "lea@example.org"
    part = MIMEText("x", "plain")
    part.add_header("Content-Disposition", "attachment")
    image.attach(part)
    assert read(image.as_string()) == "the plan"


@pytest.mark.parametrize(
    "rest",
    [
        "On 5 May 2024, Lea wrote:\n> kept", "Am 5. Mai 2024 schrieb Lea:\n> kept", "> kept",
        "-----Original Message-----\nkept", "---------- Forwarded message ---------\nkept",
        "Begin forwarded message:\n\nkept", "From: lea@example.org\nSubject: x\n\nkept",
        "Von: lea@example.org\n\nkept", "______________\nkept", "Message 2\nkept", "Issue: 2\nkept",
        "------------------------------\n\nkept", "5 мая 2024 Леа написала:\nkept", "差出人: lea\nkept",
        "\nkept by the next one\n-- \nTom",
    ],
)  # fmt: skip
def test_a_signature_ends_where_the_next_mail_begins(rest: str) -> None:
    found = read(f"{HEAD}\nIssue: 1\nThe lock is broken.\n-- \nLea Example\nHead of Locks\n{rest}")
    assert "The lock is broken." in found
    assert "kept" in found
    assert "Head of Locks" not in found
    assert "Tom" not in found


@pytest.mark.parametrize("rule", ["--", "---", "-- -", " -- ", "--  ", "——", "-- x", "> -- ", "==", "__"])
def test_a_rule_of_dashes_cuts_nothing(rule: str) -> None:
    assert "the 9th" in read(f"{HEAD}\nThe plan:\n\n{rule}\n1. Clear it on the 9th.\n")


@pytest.mark.parametrize(
    "body", ["See you.\n-- \nLea\nHead of Sheds\n\nTel: 5", "See you.\r\n-- \r\nLea", "See you.\n\n-- \n"]
)
def test_a_signature_goes_to_the_end(body: str) -> None:
    assert read(f"{HEAD}\n{body}") == "Shed\n\nSee you."


def test_a_body_in_quoted_printable_has_a_signature_too() -> None:
    message = MIMEText("See you.\n-- \nLea Größe", "plain", _qp())
    message["Subject"] = "Shed"
    message["From"] = "lea@example.org"
    assert read(message.as_string()) == "Shed\n\nSee you."


def _qp() -> str:
    charset = Charset("utf-8")
    charset.body_encoding = QP
    return charset  # type: ignore[return-value]  # taken, and said nowhere


@pytest.mark.parametrize(
    "body",
    [
        "Content-Type: message/rfc822\n\n" * 1_600, "Content-Type: multipart/mixed; boundary=x\n\n--x\n" * 1_200,
        "<" * 50_000, "<a " * 16_000, "<!--" * 12_000, "&#" * 25_000, "-- \n" * 12_000, "-- \n\n" * 10_000,
        "a: -- \n" * 7_000, "=?utf-8?q?x?= " * 3_000, "<div>" * 10_000, "=" * 50_000, "<script>" * 6_000,
    ],
)  # fmt: skip
def test_hostile_mails_are_read_in_time(body: str) -> None:
    for more in (
        "Content-Type: message/rfc822\n\n",
        "Content-Type: text/html\n\n",
        "\n",
        "Content-Type: multipart/mixed; boundary=x\n\n",
    ):
        mail = f"{HEAD}{more}{body}"
        # Linear reading takes some hundredths of it.
        assert takes_less(1, partial(read, mail))
