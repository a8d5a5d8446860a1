"""Issues of GitHub: limits of all kinds, and a server that is killed while it reads them."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from external.polled import LOCAL, TOKEN, Github, github_server, primary_limit, secondary_limit
from harness.poll_servers import polling_server, wait_until

pytestmark = pytest.mark.process

DAY = 1_700_000_000


def source(base: str, **values: Any) -> dict[str, Any]:
    return {
        "type": "poll",
        "driver": "github",
        "url": base,
        "path": "octo/ships",
        "auth": {"token": TOKEN},
        "target_bank": "issues",
        "interval_seconds": 3_600,
        "batch_size": 10,
        "options": {"allow_networks": LOCAL, "comments": True},
        **values,
    }


def expected(number: int) -> str:
    return f"Ship {number} leaks\n\nThe pump of ship {number} lost {number * 7} litres."


def asked_for(github: Github, least: int) -> bool:
    return len(github.asked) >= least


@pytest.mark.timeout(300)
def test_three_limits_and_two_kills_lose_nothing_and_repeat_nothing(tmp_path: Path) -> None:
    github = Github()
    for number in range(120):
        github.issue(number, f"Ship {number} leaks", DAY + number, expected(number).partition("\n\n")[2])
        if number % 10 == 0:
            github.issue(1_000 + number, "A change", DAY + number, pull_request={"url": "x"})
    for number in range(40):
        github.comment(number, number, f"I saw ship {number} in port {number * 3}.", DAY + 500 + number)
    github.limits = {3: primary_limit(1), 9: secondary_limit(403, 1), 15: secondary_limit(429, 1)}
    wanted = sorted(
        [expected(number) for number in range(120)]
        + [f"I saw ship {number} in port {number * 3}." for number in range(40)]
    )
    with github_server(github) as base:
        for asked in (6, 12):
            with polling_server(tmp_path, {"ships": source(base)}) as server:
                wait_until(partial(asked_for, github, asked))
                server.kill()
        with polling_server(tmp_path, {"ships": source(base)}) as server:
            wait_until(lambda: server.source("ships").get("state") == "waiting")
            assert sorted(server.contents("issues")) == wanted
            found = server.source("ships")
            assert (found["type"], found["driver"], found["healthy"]) == ("poll", "github", True)
            assert "failed" not in found or int(found["failed"]) == 0
        assert github.limited == 3
        # The next process begins where this one ended, and an issue that changed is the next version of its memory.
        github.change(github.issues[0], DAY + 900, body="It is dry again.")
        asked_before = len(github.asked)
        with polling_server(tmp_path, {"ships": source(base)}) as server:
            wait_until(lambda: server.source("ships").get("state") == "waiting")
            memories = server.memories("issues")
        assert len(memories) == len(wanted)
        (changed,) = [memory for memory in memories if memory["content"] == "Ship 0 leaks\n\nIt is dry again."]
        assert changed["version"] == 2
        assert len(github.asked) - asked_before <= 3
