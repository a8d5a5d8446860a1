"""Messages of mailboxes as items: texts, headers, and messages that are hostile."""

from __future__ import annotations

import hashlib
from email.message import EmailMessage

import pytest

from astrocyte.providers.ingest.mail_items import mail_item


def mail(text: str = "The crane is broken.\n", **headers: str) -> EmailMessage:
    message = EmailMessage()
    message["Subject"] = "Crane"
    message["From"] = "Ann Smith <ann@port.example>"
    message["To"] = "bob@port.example"
    message["Date"] = "Tue, 14 Nov 2023 23:13:20 +0100"
    message["Message-ID"] = "<1@port.example>"
    for name, value in headers.items():
        message[name.replace("_", "-")] = value
    message.set_content(text)
    return message


def session(message_id: str) -> str:
    return f"mail-{hashlib.sha256(message_id.encode()).hexdigest()[:32]}"


def test_a_message_has_its_text_and_its_headers() -> None:
    item = mail_item(mail().as_bytes(), "INBOX")
    assert item is not None
    assert item.message == {
        "content": "Subject: Crane\n\nThe crane is broken.",
        "content_type": "email",
        "occurred_at": "2023-11-14T22:13:20+00:00",
        "source": "mid:1@port.example",
        "session_id": session("1@port.example"),
        "speaker": "Ann Smith",
        "metadata": {
            "message_id": "1@port.example",
            "subject": "Crane",
            "mailbox": "INBOX",
            "from": "Ann Smith <ann@port.example>",
            "to": "bob@port.example",
        },
    }
    assert item.document["text"] == "The crane is broken."


def test_answers_belong_to_the_session_of_the_first_message() -> None:
    for headers in ({"References": "<0@a> <1@a>"}, {"In_Reply_To": "<0@a>"}):
        item = mail_item(mail(**headers).as_bytes(), "INBOX")
        assert item is not None
        assert item.message is not None
        assert item.message["session_id"] == session("0@a")


def test_a_time_without_a_zone_is_in_utc() -> None:
    for zone in ("-0000", ""):
        item = mail_item(f"Subject: x\nDate: Tue, 14 Nov 2023 22:13:20 {zone}\n\nx".encode(), "INBOX")
        assert item is not None
        assert item.document["date"] == "2023-11-14T22:13:20+00:00"


def test_the_plain_text_is_preferred_and_html_is_stripped() -> None:
    message = mail("Plain.")
    message.add_alternative("<p>Marked <b>up</b>.</p><script>x</script>", subtype="html")
    message.add_attachment(b"%PDF", maintype="application", subtype="pdf")
    item = mail_item(message.as_bytes(), "INBOX")
    assert item is not None
    assert item.document["text"] == "Plain."
    message = mail()
    message.set_content("<p>Marked <b>up</b>.</p><script>x</script><p>More.</p>", subtype="html")
    item = mail_item(message.as_bytes(), "INBOX")
    assert item is not None
    assert item.document["text"] == "Marked up.\n\nMore."
    message = mail()
    message.set_content("a,b", subtype="csv", disposition="attachment")
    item = mail_item(message.as_bytes(), "INBOX")
    assert item is not None
    assert item.message is not None
    assert item.message["content"] == "Subject: Crane\n\n"


def test_other_charsets_and_encoded_headers() -> None:
    message = mail("Der Kran ist größer.", X_Mailer="x")
    message.set_content("Der Kran ist größer.", charset="iso-8859-1", cte="quoted-printable")
    message.replace_header("Subject", "Größe")
    item = mail_item(message.as_bytes(), "INBOX")
    assert item is not None
    assert (item.document["subject"], item.document["text"]) == ("Größe", "Der Kran ist größer.")
    raw = b"Subject: =?utf-8?B?8J+aog==?= =?x-none?Q?a?=\nContent-Type: text/plain; charset=x-none\n\ngr\xf6\xdfer"
    item = mail_item(raw, "INBOX")
    assert item is not None
    assert item.document["text"] == "größer"


def test_a_message_with_a_known_id_is_another_item() -> None:
    first, second = mail_item(mail("a").as_bytes(), "INBOX"), mail_item(mail("b").as_bytes(), "INBOX")
    assert first is not None
    assert second is not None
    assert first.document["message_id"] == second.document["message_id"]
    assert first.item_id != second.item_id


def nested(levels: int) -> bytes:
    head = b"".join(
        b'Content-Type: multipart/mixed; boundary="b%d"\n\n--b%d\n' % (level, level) for level in range(levels)
    )
    return b"Subject: x\n" + head + b"\ntext\n"


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\0" * 10_000,
        b"\n" * 10_000,
        nested(5_000),
        b"Subject: x\nContent-Type: multipart/mixed; boundary=b\n\n" + b"--b\n" * 500_000,
        b"Content-Type: text/plain\nContent-Transfer-Encoding: base64\n\n" + b"=" * 10_000,
    ],
)
def test_messages_without_a_text_or_with_too_many_parts_are_none(raw: bytes) -> None:
    assert mail_item(raw, "INBOX") is None


@pytest.mark.parametrize(
    "raw",
    [
        b"Subject: " + b"=?utf-8?Q?" * 100_000 + b"\n\nx",
        b"Subject: x\nDate: " + b"9" * 100_000 + b"\n\nx",
        b"Subject: x\nDate: Tue, 99 Nov 99999 22:13:20 +9999\n\nx",
        b"Subject: x\nReferences: " + b"<" * 100_000 + b"\n\nx",
        b"Subject: x\nFrom: " + b"(" * 100_000 + b"\n\nx",
        b"Subject: x\nContent-Type: text/plain; charset=punycode\n\n" + b"a-" * 500_000,
        b"Subject: x\nContent-Type: text/plain; charset=idna\n\n" + b"xn--" * 100_000,
        b"Subject: =?punycode?Q?" + b"a-" * 4_000 + b"?=\n\nx",
        b"Subject: x\nContent-Type: text/html\n\n" + b"<!--" * 500_000,
        b"Subject: x\nContent-Type: text/html\n\n" + b"<a " * 500_000,
        b"Subject: \xff\xfe\nMessage-ID: <\xff>\n\nx",
        *[nested(levels) for levels in (1, 50, 150)],
    ],
)
def test_hostile_messages_are_items_of_bounded_fields(raw: bytes) -> None:
    item = mail_item(raw, "INBOX")
    assert item is not None
    assert item.message is not None
    assert all(len(value) <= 255 for value in item.message["metadata"].values())
    assert item.message["occurred_at"] is None
