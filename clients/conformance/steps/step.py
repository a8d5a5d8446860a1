"""A step of the conformance test."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Step:
    """One call.

    Attributes:
        method: Name of the RPC.
        requests: Its requests as JSON; `{name}` in a text is what an earlier step saved.
        expect: Paths and values of the outcome: equal outcomes could be equally wrong.
        save: Paths into the first response, by the names under which their values are saved.
        options: Options of the call, as drivers read them.
    """

    method: str
    requests: tuple[dict[str, Any], ...]
    expect: Mapping[str, Any]
    save: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)


def step(method: str, *requests: dict[str, Any], expect: Mapping[str, Any], **rest: Any) -> Step:
    """A step."""
    return Step(method, requests, expect, **rest)


def failed(kind: str, **parts: Any) -> dict[str, Any]:
    """The expectation of an error."""
    return {"error.kind": kind, **{f"error.{name}": value for name, value in parts.items()}}
