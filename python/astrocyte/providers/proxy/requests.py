"""The request of a proxy source: address and body with the question in their placeholders."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from astrocyte.config.sources.proxies import BANK, IN_BODY, IN_URL, QUERY, RESULTS, ProxySource


def address(source: ProxySource, values: Mapping[str, str | int]) -> str:
    """The address, each value encoded as one component. A GET always has the query, by default as the parameter q."""
    filled = IN_URL.sub(lambda found: quote(str(values[found[1]]), safe=""), source.url)
    if source.recall_method == "GET" and f"{{{QUERY}}}" not in source.url:
        separator = "&" if "?" in filled else "?"
        filled += f"{separator}q={quote(str(values[QUERY]), safe='')}"
    return filled


def body(source: ProxySource, values: Mapping[str, str | int]) -> bytes | None:
    """The body as JSON; None for a GET."""
    if source.recall_method == "GET":
        return None
    template = source.recall_body
    filled = {name: values[name] for name in (QUERY, BANK, RESULTS)} if template is None else _filled(template, values)
    return json.dumps(filled, ensure_ascii=False).encode("utf-8", "replace")


def _filled(part: Any, values: Mapping[str, str | int]) -> Any:  # noqa: ANN401 - JSON
    match part:
        case dict():
            return {name: _filled(value, values) for name, value in part.items()}
        case list():
            return [_filled(value, values) for value in part]
        case str():
            whole = IN_BODY.fullmatch(part)
            # A number stays one where the placeholder is all there is.
            return values[whole[1]] if whole else IN_BODY.sub(lambda found: str(values[found[1]]), part)
        case _:
            return part
