import pytest

from astrocyte.pipelines.text.normalisation import normalise

MAIL = (
    "Subject: Lunch on Friday\nFrom: Mara <mara@example.org>\nTo: Jonas\n and others\n\n"
    "Shall we meet at noon?\n\nMara\n-- \nSent from a phone\n"
)


@pytest.mark.parametrize(
    ("content", "content_type", "expected"),
    [
        ("\ufeff a \n", "text", "a"),
        ("a\r\nb\rc", "text", "a\nb\nc"),
        ("a\n\n\n\nb", "text", "a\n\n\n\nb"),
        ("a\n\n\n\nb", "document", "a\n\nb"),
        ("a\n\n\n\nb", "transcript", "a\n\nb"),
        ("a\n\n\n\nb", "conversation", "a\n\nb"),
        ("\ufeff \n ", "text", ""),
        ("a\n\n\n\nb", "anything", "a\n\n\n\nb"),
    ],
)
def test_rules_by_content_type(content: str, content_type: str, expected: str) -> None:
    assert normalise(content, content_type) == expected


def test_a_mail_keeps_its_subject_and_body_alone() -> None:
    assert normalise(MAIL, "email") == "Lunch on Friday\n\nShall we meet at noon?\n\nMara"
    assert normalise(MAIL, "text").startswith("Subject:")


@pytest.mark.parametrize(
    "content",
    ["Note: one colon is no header\n\nbody", "Dear all,\n\nhello", "Subject: a\nFrom: b", "-- \nonly a signature"],
)
def test_a_mail_without_a_clear_header_or_rest_stays_whole(content: str) -> None:
    assert normalise(content, "email") == content


def test_headers_with_crlf_line_ends_are_found() -> None:
    assert normalise("From: a\r\nTo: b\r\n\r\nhello", "email") == "hello"
