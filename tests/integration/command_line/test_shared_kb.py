"""Shared documents by the command line, on a directory and on a server, over HTTP, and with many files."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from astrocyte import Astrocyte, connect
from astrocyte.api.requests import GetSharedKbIndex, ListSharedKb, SearchSharedKb
from astrocyte.cli import cli
from astrocyte.cli.failures import ExitCode
from harness.commands import Command, answer, said
from harness.doors import secret_of
from harness.http_doors import ME, opened
from harness.serving import serving
from samples.folders import HANDBOOK, write

pytestmark = pytest.mark.process
FILES = 2_000
# Of the time of the first run, a run after one change of 2,000 files: 3 % where nothing else runs.
MOST_SHARE = 0.1


def test_a_folder_is_indexed_searched_and_listed(astrocyte: Command, bank: str, tmp_path: Path) -> None:
    root = write(tmp_path / "docs", HANDBOOK)
    index = ("kb", "index", root, "--bank", bank)
    assert said(astrocyte(*index)) == "6 created, 0 updated, 0 moved, 0 removed, 0 unchanged, 0 ignored, 0 failed\n"
    (root / "GLOSSARY.md").unlink()
    (root / "link.md").symlink_to("/etc/hostname")
    assert said(astrocyte(*index)) == "0 created, 0 updated, 0 moved, 1 removed, 5 unchanged, 1 ignored, 0 failed\n"
    report = answer(astrocyte("--json", *index))
    assert (report["unchanged"], report["ignored"], report["failures"]) == (5, ["link.md"], {})

    found = answer(astrocyte("--json", "kb", "search", "graphs", "--bank", bank, "--type", "adr", "-k", 1))
    assert [hit["document"]["document_id"] for hit in found["hits"]] == ["ADR-0005"]
    assert "ADR-0005" in said(astrocyte("kb", "search", "graphs", "--bank", bank, "--status", "accepted"))
    assert said(astrocyte("kb", "search", "zebra", "--bank", bank, "--type", "none")) == "No document is relevant.\n"

    listed = answer(astrocyte("--json", "kb", "list", "--bank", bank, "--type", "spec", "--status", "approved"))
    assert [one["path"] for one in listed] == ["specs/approved/SPEC-023-memory.md"]
    assert "gateway" in said(astrocyte("kb", "list", "--bank", bank, "--type", "component"))
    assert said(astrocyte("kb", "list", "--bank", bank, "--name", "other")) == "There are no documents.\n"
    markdown = said(astrocyte("kb", "list", "--bank", bank, "--markdown"))
    assert markdown.startswith("---\ntype: index\n---\n")
    assert "| ADR-0005 | Store graphs in PostgreSQL | accepted | 2026-05-06 | decisions/0005-database.md |" in markdown
    assert answer(astrocyte("--json", "kb", "list", "--bank", bank, "--markdown"))["document_count"] == 7


def test_files_that_fail_are_told(astrocyte: Command, bank: str, tmp_path: Path) -> None:
    root = write(tmp_path / "docs", {**HANDBOOK, "bad.md": "---\nstatus: [\n---\n"})
    (root / "latin.md").write_bytes(b"caf\xe9")
    result = astrocyte("kb", "index", root, "--bank", bank)
    assert (result.exit_code, result.stdout.split(", ")[0]) == (ExitCode.PARTIAL, "6 created")
    assert "latin.md: is not UTF-8, by its byte 3; convert it\n" in result.stderr
    assert "bad.md: front matter is not YAML" in result.stderr


def test_a_glossary_becomes_canonical_terms(place: list[str], tmp_path: Path) -> None:
    def astrocyte(*arguments: object) -> Result:
        return CliRunner().invoke(cli, [*place, *map(str, arguments)])

    glossary = tmp_path / "GLOSSARY.md"
    glossary.write_text("| term | definition | aliases |\n|---|---|---|\n| deploy window | Hours. | release window |\n")
    assert answer(astrocyte("--json", "terms", "import", glossary)) == {"approved": 1, "skipped": 0}
    assert answer(astrocyte("--json", "terms", "import", glossary)) == {"approved": 0, "skipped": 1}
    assert said(astrocyte("terms", "lookup", "release windows")).startswith("deploy window")
    table = tmp_path / "glossary.csv"
    table.write_text("term,definition,aliases\noutage,Hours without service.,downtime;failure\n")
    assert answer(astrocyte("--json", "terms", "import", table)) == {"approved": 1, "skipped": 0}
    assert answer(astrocyte("--json", "terms", "lookup", "downtime"))["term"]["name"] == "outage"
    for name, text, told in (
        ("a.md", b"# None", "has no term"),
        ("b.md", b"---\na: [\n---\n", "is not YAML"),
        ("c.csv", b"caf\xe9", "is not UTF-8, by its byte 3"),
        ("d.csv", b"word\nx", "expected a column term, got word"),
    ):
        (tmp_path / name).write_bytes(text)
        refused = astrocyte("terms", "import", tmp_path / name)
        assert (refused.exit_code, told in refused.stderr) == (2, True), refused.stderr


def test_an_empty_folder_needs_consent(astrocyte: Command, bank: str, tmp_path: Path) -> None:
    root = write(tmp_path / "docs", {"a.md": "# A"})
    index = ("kb", "index", root, "--bank", bank, "--name", "handbook")
    said(astrocyte(*index))
    (root / "a.md").unlink()
    refused = astrocyte(*index)
    assert refused.exit_code != 0
    assert "allow an empty folder to remove them" in refused.stderr
    assert "1 removed" in said(astrocyte(*index, "--allow-empty"))
    assert astrocyte(*index, "--allow-empty", "--watch").exit_code == 2


def test_a_folder_with_too_many_files_is_refused(
    astrocyte: Command, bank: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("astrocyte.shared_kb.folder.MOST_FILES", 3)
    refused = astrocyte("kb", "index", write(tmp_path / "docs", HANDBOOK), "--bank", bank)
    assert (refused.exit_code, "more than 3 Markdown files" in refused.stderr) == (2, True)


def test_a_watched_folder_is_followed(address: str, tmp_path: Path) -> None:
    root = write(tmp_path / "docs", HANDBOOK)
    command = ["--server", address, "kb", "index", str(root), "--bank", "watched", "--watch", "--interval", "0.1"]
    watch = subprocess.Popen(
        [sys.executable, "-m", "astrocyte", *command], stdout=subprocess.PIPE, text=True, env=dict(os.environ)
    )
    try:
        assert watch.stdout is not None
        assert watch.stdout.readline().startswith("6 created")
        write(root, {"GLOSSARY.md": "# Glossary\n\nOther words."})
        assert watch.stdout.readline().startswith("0 created, 1 updated, 0 moved, 0 removed, 5 unchanged")
        (root / "GLOSSARY.md").rename(root / "WORDS.md")
        assert watch.stdout.readline().startswith("0 created, 0 updated, 1 moved, 0 removed, 5 unchanged")
    finally:
        # A shell that runs tests in the background has them ignore SIGINT.
        watch.terminate()
        assert watch.wait(20) != 0
        watch.stdout.close()  # type: ignore[union-attr]


async def test_the_calls_answer_over_http(tmp_path: Path) -> None:
    async with opened() as (app, http):
        await Astrocyte(app.backend).shared_kb_index_folder(write(tmp_path / "docs", HANDBOOK), "kb")
        headers = {"authorization": f"Bearer {secret_of(ME)}"}
        query = {"query": "graphs", "type": "adr"}
        found = await http.client.post("/v1/banks/kb/shared-kb:search", json=query, headers=headers)
        assert found.json()["hits"][0]["document"]["document_id"] == "ADR-0005"
        assert found.json()["hits"][0]["bank_id"] == "kb"
        nowhere = await http.client.post("/v1/shared-kb:search", json=query, headers=headers)
        assert (nowhere.status_code, nowhere.json()["error"]["field"]) == (400, "bank_id")
        table = {"type": "spec", "status": "approved"}
        listed = await http.client.get("/v1/banks/kb/shared-kb", params=table, headers=headers)
        assert [one["path"] for one in listed.json()["documents"]] == ["specs/approved/SPEC-023-memory.md"]
        index = await http.client.get("/v1/banks/kb/shared-kb:index", headers=headers)
        assert index.json()["document_count"] == 8
        # The same by every interface.
        requests: tuple[Any, ...] = (
            SearchSharedKb("kb", "graphs"),
            ListSharedKb("kb", include_rows=True),
            GetSharedKbIndex("kb"),
        )
        for request in requests:
            assert await http.call(ME, request) == await app.backend.call(ME, request)


async def test_one_change_of_many_files_takes_a_small_part_of_the_first_run(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    words = "A document has some text about what was decided, and why. " * 60
    files = {
        f"{'decisions' if number % 2 else 'specs/approved'}/{number:04}-text.md": (
            f"---\nstatus: accepted\ndate: 2026-01-{number % 28 + 1:02}\ntags: [a, b]\n---\n# Text {number}\n\n{words}"
        )
        for number in range(FILES)
    }
    root = write(tmp_path / "docs", files)
    async with serving(vector_store="sqlite", data_dir=str(tmp_path / "data")) as served:
        brain = connect(served.address)
        times = {}
        for name in ("first", "unchanged", "changed", "changed again", "renamed", "removed"):
            path = root / "decisions/0007-text.md"
            if name.startswith("changed"):
                path.write_text(f"# Another text\n\nOf other words, {name}.")
            elif name == "renamed":
                path.rename(root / "decisions/9007-text.md")
            elif name == "removed":
                (root / "decisions/9007-text.md").unlink()
            began = time.perf_counter()
            report = await brain.shared_kb_index_folder(root, "kb")
            times[name] = time.perf_counter() - began
            assert not report.failures
            assert report.changed == {"first": FILES, "unchanged": 0}.get(name, 1)
        await brain.close()
    for name, seconds in times.items():
        record_property(name, round(seconds, 3))
        sys.stdout.write(f"{name}: {seconds:.3f} s\n")
    # The better of two: another process may have had the processor.
    assert min(times["changed"], times["changed again"]) <= MOST_SHARE * times["first"]
