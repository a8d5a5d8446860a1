"""The limits that the protocol's comments state are the ones that the settings have by default."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from astrocyte.config import HomeostasisSettings, LimitSettings, RecallSettings
from astrocyte.model.references import MOST_NAMED
from astrocyte.policy.requests.validation import DEFAULT_PAGE, REQUEST_ID_CHARS

PROTOCOL = Path(__file__).resolve().parents[2] / "proto" / "astrocyte" / "v1"
LIMITS = LimitSettings()
HOMEOSTASIS = HomeostasisSettings()
METADATA = [LIMITS.metadata_keys, LIMITS.metadata_key_bytes, LIMITS.metadata_bytes]
# By message and field: the numbers in its comment, the 1 of a range's beginning left out, and their unit.
STATED: list[tuple[str, str, list[int], str]] = [
    ("RetainRequest", "content", [HOMEOSTASIS.retain_max_content_bytes], "bytes"),
    ("RetainItem", "content", [HOMEOSTASIS.retain_max_content_bytes], "bytes"),
    ("RetainRequest", "metadata", [*METADATA, MOST_NAMED], "bytes"),
    ("RetainItem", "metadata", [LIMITS.metadata_keys, LIMITS.metadata_bytes], "bytes"),
    ("RetainRequest", "tags", [LIMITS.tags, LIMITS.tag_chars], "characters"),
    ("RetainItem", "tags", [LIMITS.tags], ""),
    ("RetainRequest", "content_type_name", [LIMITS.label_chars], "characters"),
    ("RetainRequest", "request_id", [REQUEST_ID_CHARS], "characters"),
    ("CreateBankRequest", "request_id", [REQUEST_ID_CHARS], "characters"),
    ("BatchRetainRequest", "items", [LIMITS.batch_items], "items"),
    ("BatchRecallRequest", "queries", [LIMITS.batch_items], "recalls"),
    ("RecallRequest", "query", [LIMITS.query_bytes], "bytes"),
    ("RecallRequest", "max_results", [LIMITS.max_results, 0, 10], ""),
    ("RecallRequest", "rank_constant", [0, round(RecallSettings().rank_constant)], ""),
    ("ForgetRequest", "memory_ids", [LIMITS.memory_ids], ""),
    ("ForgetRequest", "reason", [LIMITS.text_chars], "characters"),
    ("ListMemoriesRequest", "page_size", [LIMITS.page_size, 0, DEFAULT_PAGE], ""),
    ("ListBanksRequest", "page_size", [LIMITS.page_size, 0, DEFAULT_PAGE], ""),
    ("MetadataValue", "string_value", [LIMITS.metadata_value_bytes], "bytes"),
]
SOURCES = "\n".join(path.read_text() for path in sorted(PROTOCOL.glob("*.proto")))


def comment(message: str, field: str) -> str:
    """The comment over a field, in one line."""
    body = re.search(rf"^message {message} \{{\n(.*?)^\}}", SOURCES, re.MULTILINE | re.DOTALL)
    assert body is not None, message
    found = re.search(rf"((?:^ *//.*\n)+)^ *[\w<>, .]+ {field} = \d+;", body[1], re.MULTILINE)
    assert found is not None, f"{message}.{field}"
    return re.sub(r"\s*//\s*", " ", found[1]).strip()


@pytest.mark.parametrize(("message", "field", "numbers", "unit"), STATED)
def test_a_stated_limit_is_the_default(message: str, field: str, numbers: list[int], unit: str) -> None:
    text = comment(message, field)
    stated = [int(number.replace(",", "")) for number in re.findall(r"(?<![\w-])\d[\d,]*(?<!,)", text)]
    assert [number for number in stated if number != 1] == numbers, text
    assert unit in text
