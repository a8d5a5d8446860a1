"""Archives over the wire, in files, by the command line, and across a crash."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import grpc
import pytest
from click.testing import CliRunner, Result

from astrocyte import connect
from astrocyte.api.requests import (
    OPTIONAL_PARTS,
    CompileBank,
    CreateDirective,
    ExportBank,
    GetBankStats,
    Recall,
    Retain,
)
from astrocyte.app import App
from astrocyte.cli import cli
from astrocyte.config import Settings
from astrocyte.errors import AlreadyExists, Unavailable, ValidationError
from astrocyte.facade.archives import PARTIAL_SUFFIX, contained, export_file, import_file
from astrocyte.model import RecallQuery, RetainItem
from astrocyte.v1 import admin_pb2
from harness.serving import Served, reason, serving
from samples.archiving import ME, archive_of, export, id_of, lines_of, load, memory_line, states

MANY = [memory_line(id_of(number), f"Tea number {number}.") for number in range(600)]


async def filled(served: Served, count: int = 3) -> None:
    for number in range(count):
        await served.backend.call(ME, Retain("b", RetainItem(f"Mara drinks tea number {number}.", tags=("tea",))))


async def test_an_archive_crosses_the_wire_both_ways() -> None:
    async with serving() as served:
        await filled(served)
        archive = await export(served.backend, include_embeddings=True)
        assert lines_of(archive)[1:-1] == lines_of(await export(served.app.gate, include_embeddings=True))[1:-1]
        told = await states(served.backend, archive, "c")
        assert told[-1].result is not None
        assert told[-1].result.imported == 3
        query = RecallQuery("tea", "c", max_results=10)
        assert len((await served.backend.call(ME, Recall(query))).hits) == 3
        with pytest.raises(AlreadyExists):
            await load(served.backend, archive, "c", on_conflict="error")
        with pytest.raises(ValidationError, match="truncated"):
            await load(served.backend, archive[:-10], "d")


async def test_sections_are_asked_for_over_the_wire() -> None:
    wanted: dict[str, Any] = {f"include_{part}": True for part in OPTIONAL_PARTS}
    async with serving() as served:
        await filled(served, 1)
        await served.backend.call(ME, CreateDirective("b", "Answer in German."))
        await served.backend.call(ME, CompileBank("b", "tea"))
        assert b"German" not in await export(served.backend)
        archive = await export(served.backend, **wanted)
        assert lines_of(archive)[1:-1] == lines_of(await export(served.app.gate, **wanted))[1:-1]
        result = await load(served.backend, archive, "c")
        assert (result.directives, result.wiki_pages, result.left_out) == (0, 0, 2)
        result = await load(served.backend, archive, "c", **wanted)
        assert (result.directives, result.wiki_pages, result.left_out) == (1, 1, 0)


async def test_the_first_message_names_the_bank() -> None:
    async with serving() as served:
        archive = archive_of([memory_line(id_of("a"), "Mara drinks tea.")])
        messages = [admin_pb2.ImportBankRequest(bank_id="b", data=archive[:50])]
        messages.append(admin_pb2.ImportBankRequest(bank_id="other", data=archive[50:]))
        answers = [answer async for answer in served.admin.ImportBank(iter(messages))]
        assert answers[-1].result.imported == 1
        assert (await served.backend.call(ME, GetBankStats("b"))).memory_count == 1
        for wrong in ([], [admin_pb2.ImportBankRequest(data=archive)]):
            with pytest.raises(grpc.aio.AioRpcError) as raised:
                async for _ in served.admin.ImportBank(iter(wrong)):
                    pass
            assert reason(raised.value) == "INVALID_ARGUMENT"


async def test_a_client_that_goes_away_leaves_nothing() -> None:
    async with serving() as served:
        archive = archive_of(MANY)

        async def halves() -> Any:
            yield admin_pb2.ImportBankRequest(bank_id="b", data=archive[: len(archive) // 2])
            await asyncio.sleep(60)

        call = served.admin.ImportBank(halves())
        with pytest.raises((TimeoutError, asyncio.CancelledError)):
            await asyncio.wait_for(call.read(), 0.5)
        call.cancel()
        assert served.app.storage.store.get_bank("default", "b") is None


async def test_a_stopping_server_ends_exports_and_imports() -> None:
    async with serving() as served:
        await filled(served)

        async def slow() -> Any:
            yield admin_pb2.ImportBankRequest(bank_id="b", data=b"{")
            await asyncio.sleep(60)

        call = served.admin.ImportBank(slow())
        waiting = asyncio.create_task(call.read())
        await asyncio.sleep(0.2)
        await asyncio.wait_for(served.server.stop(5), 10)
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await waiting
        assert raised.value.code() is grpc.StatusCode.UNAVAILABLE


@pytest.mark.parametrize("remote", [False, True])
async def test_an_interrupted_export_is_resumed_from_its_file(tmp_path: Path, remote: bool) -> None:
    async with serving() as served:
        await load(served.app.gate, archive_of(MANY))
        backend: Any = served.backend if remote else served.app.gate
        path = tmp_path / "b.jsonl"
        request = ExportBank("b", include_embeddings=True)
        whole = await export_file(backend, ME, request, path)
        assert whole.memories == 600
        assert path.stat().st_mode & 0o077 == 0
        expected = path.read_bytes()
        path.unlink()
        partial = path.with_name(path.name + PARTIAL_SUFFIX)
        partial.write_bytes(expected[: len(expected) // 2])
        with pytest.raises(ValidationError, match="other parts"):
            await export_file(backend, ME, ExportBank("b"), path, resume=True)
        told: list[tuple[int, int]] = []
        resumed = await export_file(
            backend, ME, request, path, resume=True, report=lambda done, total: told.append((done, total))
        )
        assert resumed.memories == 600
        assert path.read_bytes() == expected
        assert told[0][0] > 200
        assert told[-1][0] == 600
        assert not partial.exists()
        assert (await import_file(backend, ME, "c", path)).imported == 600


async def test_a_file_appears_only_when_it_is_complete(tmp_path: Path) -> None:
    class Breaks:
        def stream(self, *_: object) -> Any:
            async def parts() -> Any:
                yield archive_of(MANY)[:1_000]
                raise Unavailable("gone")

            return parts()

    path = tmp_path / "b.jsonl"
    with pytest.raises(Unavailable):
        await export_file(Breaks(), ME, ExportBank("b"), path)  # type: ignore[arg-type] # streams only
    assert not path.exists()
    assert path.with_name(path.name + PARTIAL_SUFFIX).exists()


@pytest.mark.process
async def test_connect_moves_banks_through_local_files(tmp_path: Path) -> None:
    async with serving() as served:
        await filled(served)
        brain = connect(served.address)
        path = tmp_path / "b.jsonl"
        assert await brain.export_bank("b", path, allowed_roots=[tmp_path]) == 3
        assert (await brain.import_bank("c", path, allowed_roots=[tmp_path])).imported == 3
        await brain.compile("b", scope="tea")
        await brain.export_bank("b", path, include_wiki_pages=True, allowed_roots=[tmp_path])
        assert (await brain.import_bank("c", path, include_wiki_pages=True, allowed_roots=[tmp_path])).wiki_pages == 1
        await brain.close()


def test_paths_are_contained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    (inside / "link").symlink_to(outside)
    monkeypatch.delenv("ASTROCYTE_PORTABILITY_ROOTS", raising=False)
    with pytest.raises(ValueError, match="ASTROCYTE_PORTABILITY_ROOTS"):
        contained(inside / "a")
    assert contained(inside / "a", allow_uncontained=True) == inside / "a"
    for path in (
        outside / "a",
        inside / "../outside/a",
        inside / "link/a",
        tmp_path / "inside2/a",
        inside / "a\nb",
        "",
    ):
        with pytest.raises(ValueError, match="path: "):
            contained(path, allowed_roots=[inside])
        # A named folder wins over the permission for any path.
        with pytest.raises(ValueError, match="path: "):
            contained(path, allowed_roots=[inside], allow_uncontained=True)
    assert contained(inside / "a", allowed_roots=[inside]) == inside / "a"
    monkeypatch.setenv("ASTROCYTE_PORTABILITY_ROOTS", os.pathsep.join([str(outside), str(inside)]))
    assert contained(inside / "a") == inside / "a"
    with pytest.raises(ValueError, match="outside the folders"):
        contained(tmp_path / "a")


@pytest.mark.process
def test_the_command_line_moves_a_bank(tmp_path: Path) -> None:
    def run(*arguments: object) -> Result:
        return CliRunner().invoke(cli, ["--data-dir", str(tmp_path / "data"), "--json", *map(str, arguments)])

    assert run("retain", "b", "Mara drinks tea.", "--tag", "tea").exit_code == 0
    file = tmp_path / "b.ama.jsonl"
    exported = run("export", "b", file, "--embeddings")
    assert exported.exit_code == 0, exported.stderr
    assert json.loads(exported.stdout)["memories"] == 1
    assert run("export", "b", file).exit_code == 2
    assert run("export", "b", file, "--force").exit_code == 0
    imported = run("import", "c", file)
    assert json.loads(imported.stdout)["imported"] == 1
    assert json.loads(run("import", "c", file).stdout)["skipped"] == 1
    assert run("import", "c", file, "--on-conflict", "error").exit_code == 5
    assert run("import", "c", file, "--check").exit_code == 2
    assert json.loads(run("recall", "c", "tea").stdout)["hits"][0]["text"] == "Mara drinks tea."
    assert run("directives", "create", "b", "Answer in German.").exit_code == 0
    assert run("export", "b", file, "--force", "--directives", "--graph").exit_code == 0
    assert json.loads(run("import", "c", file).stdout)["left_out"] == 1
    assert json.loads(run("import", "c", file, "--directives").stdout)["directives"] == 1
    assert run("wiki", "compile", "b", "--scope", "tea").exit_code == 0
    assert run("export", "b", file, "--force", "--wiki-pages").exit_code == 0
    assert json.loads(run("import", "c", file, "--wiki-pages").stdout)["wiki_pages"] == 1
    file.write_bytes(file.read_bytes()[:-5])
    refused = run("import", "d", file)
    assert refused.exit_code == 2
    assert "truncated" in refused.stderr
    lines = tmp_path / "lines.jsonl"
    lines.write_text('{"content": "Ines drinks tea."}\n')
    for option in ("--grants", "--graph", "--observations", "--mental-models", "--directives"):
        assert run("import", "c", lines, option).exit_code == 2


SCRIPT = """
import asyncio, sys
sys.path[:0] = {paths!r}
from samples.archiving import ME, archive_of, id_of, memory_line, states
from astrocyte.api.requests import ImportBank
from samples.archiving import Pieces
from astrocyte.app import App
from astrocyte.config import Settings

async def main():
    app = App(Settings.from_mapping({{"data_dir": {folder!r}}}))
    lines = [memory_line(id_of(number), f"Tea number {{number}}.") for number in range(3000)]
    async for state in app.gate.stream(ME, ImportBank("b", Pieces(archive_of(lines), 100_000))):
        print(state.memories, flush=True)

asyncio.run(main())
"""


def killed_import(folder: Path) -> None:
    """An import into a data directory, killed when some of it is stored."""
    script = SCRIPT.format(paths=[str(Path(__file__).resolve().parents[1])], folder=str(folder))
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if int(line) >= 512:
                process.kill()
                break
    # The archive was in a file without a name.
    assert [path.name for path in folder.iterdir() if path.name.startswith("tmp")] == []


@pytest.mark.process
async def test_an_import_that_was_killed_is_completed_by_a_second_one(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    await asyncio.to_thread(killed_import, folder)
    app = App(Settings.from_mapping({"data_dir": str(folder)}))
    try:
        stored = (await app.gate.call(ME, GetBankStats("b"))).memory_count
        assert stored >= 512
        lines = [memory_line(id_of(number), f"Tea number {number}.") for number in range(3_000)]
        result = await load(app.gate, archive_of(lines))
        assert (result.imported, result.skipped) == (3_000 - stored, stored)
    finally:
        await app.close()
