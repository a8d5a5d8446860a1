"""Client request ids: what a request is recognised by, and how its answer is written down to be given again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields, is_dataclass
from datetime import UTC, datetime
from typing import Any

from astrocyte.model import Curation, CurationAction, RetainResult
from astrocyte.stores.records import RequestKey

# 128 bits: two requests of one client do not meet by chance.
FINGERPRINT_BYTES = 16


def request_key(request_id: str, operation: str, *parts: object) -> RequestKey:
    """The id with a digest of everything that the request says."""
    text = json.dumps([operation, *map(plain, parts)], sort_keys=True, separators=(",", ":"))
    return RequestKey(request_id, operation, hashlib.blake2b(text.encode(), digest_size=FINGERPRINT_BYTES).digest())


def key_of(request_id: str | None, operation: str, *parts: object) -> RequestKey | None:
    """`request_key` where the client gave an id."""
    return None if request_id is None else request_key(request_id, operation, *parts)


def encode_results(results: Sequence[RetainResult]) -> bytes:
    """Results of a retain as bytes; they outlive an erasure, so a model's reasons, which may quote, are left out."""
    return json.dumps([_without_reason(asdict(result)) for result in results], separators=(",", ":")).encode()


def decode_results(response: bytes) -> list[RetainResult]:
    """The results that `encode_results` wrote, by this version or an earlier one."""
    known = {field.name for field in fields(RetainResult)}
    return [_result({key: value for key, value in entry.items() if key in known}) for entry in json.loads(response)]


def _without_reason(values: dict[str, Any]) -> dict[str, Any]:
    decision = values["curation"]
    return values if decision is None else {**values, "curation": {**decision, "reason": ""}}


def _result(values: dict[str, Any]) -> RetainResult:
    """A result of what JSON holds, which has no tuples and no classes."""
    decision = values.get("curation")
    if decision is not None:
        values["curation"] = Curation(**{**decision, "action": CurationAction(decision["action"])})
    return RetainResult(**{**values, "warnings": tuple(values.get("warnings", ()))})


def plain(value: object) -> Any:  # noqa: ANN401 - JSON is any of its types
    """The value as JSON can hold it: equal values give equal JSON."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    convert = next((convert for kind, convert in _PLAIN.items() if isinstance(value, kind)), None)
    if convert is None:
        raise TypeError(f"a request cannot hold {type(value).__name__}")
    return convert(value)


_PLAIN: dict[type, Callable[[Any], Any]] = {
    bytes: bytes.hex,
    datetime: lambda value: value.astimezone(UTC).isoformat(),
    Mapping: lambda value: {key: plain(one) for key, one in value.items()},
    frozenset: lambda value: sorted(map(plain, value)),
    Sequence: lambda value: [plain(one) for one in value],
}
