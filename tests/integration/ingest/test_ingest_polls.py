"""Feeds, JSON endpoints and folders in a real server: what changes while it runs becomes versions of memories."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from external.polled import LOCAL, Answered, Asked, answered, http_server
from harness.poll_servers import Gateway, polling_server, wait_until

pytestmark = pytest.mark.process

FEED = (
    '<?xml version="1.0"?><rss version="2.0"><channel><title>Port</title>'
    "<item><guid>1</guid><title>Crane</title><description>{}</description></item></channel></rss>"
)


def shows(server: Gateway, bank_id: str, content: str, version: int) -> bool:
    return [(one["content"], one["version"]) for one in server.memories(bank_id)] == [(content, version)]


@pytest.mark.timeout(300)
def test_changes_become_versions(tmp_path: Path) -> None:
    state = "works"
    folder = tmp_path / "notes"
    folder.mkdir()
    limited = iter([True])

    def answer(asked: Asked) -> Answered:
        if asked.path == "/feed":
            return Answered(200, FEED.format(f"Crane 1 {state}.").encode())
        # The first question is answered by a limit.
        if next(limited, False):
            return Answered(429, b"", {"Retry-After": "1"})
        return answered({"cranes": [{"key": 7, "text": f"Crane 7 {state}."}]})

    def note() -> None:
        (folder / "crane.md").write_text(f"Crane 9 {state}.", encoding="utf-8")

    with http_server(answer) as base:
        common: dict[str, Any] = {"type": "poll", "interval_seconds": 1}
        items = {"items": "$.cranes", "id": "$.key", "allow_networks": LOCAL}
        sources = {
            "feed": {"driver": "rss", "url": f"{base}/feed", "options": {"allow_networks": LOCAL}},
            "json": {"driver": "json", "url": base, "options": items, "mapping": {"content": "$.text"}},
            "folder": {"driver": "folder", "path": str(folder), "options": {"settle_seconds": 0}},
        }
        note()
        settings = {name: {**common, "target_bank": name, **source} for name, source in sources.items()}
        contents = {"feed": "Crane\n\nCrane 1 {}.", "json": "Crane 7 {}.", "folder": "Crane 9 {}."}
        with polling_server(tmp_path, settings) as server:
            for name, content in contents.items():
                wait_until(partial(shows, server, name, content.format("works"), 1))
        # Another process goes on with the same memories.
        with polling_server(tmp_path, settings) as server:
            state = "is broken"
            note()
            for name, content in contents.items():
                wait_until(partial(shows, server, name, content.format("is broken"), 2))
                assert server.source(name)["healthy"]
