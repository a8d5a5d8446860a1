from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

from astrocyte.model import Embedding, ForgetSelector, RetainItem, RetainResult
from astrocyte.policy.requests.request_keys import decode_results, encode_results, request_key

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)
ITEM = RetainItem(
    "a", metadata={"x": 1, "y": "2"}, tags=("t",), occurred_at=NOON, embedding=Embedding("m", 1, b"\0" * 4)
)


def test_equal_requests_have_equal_keys() -> None:
    same = replace(ITEM, metadata={"y": "2", "x": 1}, occurred_at=NOON.astimezone(timezone(timedelta(hours=5))))
    assert request_key("id", "retain", "bank", ITEM) == request_key("id", "retain", "bank", same)


def test_anything_else_that_is_said_makes_another_key() -> None:
    keys = {
        request_key("id", operation, bank, item).fingerprint
        for operation, bank, item in [
            ("retain", "bank", ITEM),
            ("retain", "other", ITEM),
            ("forget", "bank", ITEM),
            ("retain", "bank", replace(ITEM, content="b")),
            ("retain", "bank", replace(ITEM, metadata={"x": 1.0, "y": "2"})),
            ("retain", "bank", replace(ITEM, tags=())),
            ("retain", "bank", replace(ITEM, embedding=None)),
            ("retain", "bank", [ITEM]),
            ("retain", "bank", ForgetSelector(tags=("t",))),
        ]
    }
    assert len(keys) == 9


def test_results_survive() -> None:
    results = [RetainResult(stored=True, memory_id="mem_1", position=3, similarity=0.5), RetainResult(stored=False)]
    assert decode_results(encode_results(results)) == results


def test_results_of_a_later_version_are_read() -> None:
    assert decode_results(b'[{"stored":true,"memory_id":"mem_1","colour":"red"}]') == [RetainResult(True, "mem_1")]
