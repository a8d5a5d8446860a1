"""Every block with curl in README and in docs/ runs against a gateway as it is written, but for host and folders."""

from __future__ import annotations

import asyncio
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from astrocyte.api.requests import CreateBank, Retain
from astrocyte.model import Caller, RetainItem
from harness.serving import serving

ROOT = Path(__file__).resolve().parents[3]
ME = Caller()
HOST, FOLDER, MEMORY = "http://localhost:8080", "/backups", "MEMORY_ID"
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# The banks that the commands name.
BANKS = ("engineering", "family", "friends", "shared_kb", "support-acme")
# A watch goes on until its client leaves; curl says that its time is over by this code.
WATCH, OUT_OF_TIME = "/changes?", 28
# Functions of the shell that stand in for the commands: no progress, an error by its status, an end for a watch.
HEAD = """
set -eo pipefail
curl() { command curl --silent --show-error --fail-with-body --max-time %d "$@"; }
"""


@dataclass(frozen=True)
class Example:
    """A block of commands.

    Attributes:
        place: The document and its line, as the id of the test.
        text: The commands.
    """

    place: str
    text: str


def examples() -> list[Example]:
    """The blocks with curl. A webhook needs a source and a signature; its tests are in `tests/integration/ingest`."""
    found = []
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        text = path.read_text(encoding="utf-8")
        for block in BLOCK.finditer(text):
            if re.search(rf"\bcurl [^\n]*{HOST}", block[1]) and "/ingest/webhook/" not in block[1]:
                line = text.count("\n", 0, block.start()) + 1
                found.append(Example(f"{path.relative_to(ROOT)}:{line}", block[1]))
    return found


EXAMPLES = examples()


def test_the_documents_have_examples() -> None:
    assert {"README.md", "docs/rest.md", "docs/wiki.md", "docs/coverage.md", "docs/shared-kb.md"} == {
        one.place.partition(":")[0] for one in EXAMPLES
    }


@pytest.mark.process
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda one: one.place)
async def test_the_example_succeeds(example: Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASTROCYTE_PORTABILITY_ROOTS", str(tmp_path))
    async with serving(gateway={"port": 0}) as served:
        for bank in BANKS:
            await served.backend.call(ME, CreateBank(bank))
        for text in ("The deployment runs every Friday.", "A deployment takes an hour.", "No deployment in May."):
            await served.backend.call(ME, Retain("engineering", RetainItem(text, tags=("deployment",))))
        kept = await served.backend.call(ME, Retain("family", RetainItem("Mara is allergic to sesame.")))
        watches = WATCH in example.text
        commands = HEAD % (2 if watches else 30) + example.text
        for written, used in (
            (HOST, str(served.server.http_address)), (FOLDER, str(tmp_path)), (MEMORY, str(kept.memory_id)),
        ):  # fmt: skip
            commands = commands.replace(written, used)
        shell = await asyncio.create_subprocess_exec(
            "bash", "-c", commands, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        output, errors = await shell.communicate()
    assert shell.returncode == (OUT_OF_TIME if watches else 0), (output, errors)
    assert output
