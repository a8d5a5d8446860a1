"""Files of archives over HTTP: which paths are allowed to whom, and what a request may say."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from astrocyte.api.requests import CreateBank, Retain
from astrocyte.model import Caller, RetainItem
from harness.doors import api_keys, secret_of
from harness.http_doors import ME, HttpDoors, opened
from samples.archiving import archive_of, id_of, memory_line

ANN = Caller("default", "user:ann")
OTHER = Caller("acme", "user:me")
GRANTS = [
    {"bank_id": "*", "principal": "user:me", "permissions": ["*"]},
    {"bank_id": "*", "principal": "user:me", "permissions": ["*"], "tenant": "acme"},
    {"bank_id": "b", "principal": "user:ann", "permissions": ["*"]},
]

SECTIONS: dict[str, Any] = {
    "auth": {"api_keys": api_keys([ME, ANN, OTHER])},
    "access_control": {"enabled": True},
    "access_grants": GRANTS,
}


@pytest.fixture
async def doors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[HttpDoors]:
    monkeypatch.setenv("ASTROCYTE_PORTABILITY_ROOTS", str(tmp_path))
    async with opened(**SECTIONS) as (_, doors):
        await doors.call(ME, CreateBank("b"))
        await doors.call(ME, Retain("b", RetainItem("Mara drinks tea.")))
        yield doors


async def asked(doors: HttpDoors, door: str, caller: Caller = ME, **body: Any) -> tuple[int, Any]:
    head = {"authorization": f"Bearer {secret_of(caller)}"}
    response = await doors.client.post(f"/v1/{door}", json=body, headers=head)
    told = response.json()
    return response.status_code, told.get("error", {}).get("code", told)


async def test_a_bank_moves_through_a_file(doors: HttpDoors, tmp_path: Path) -> None:
    file = tmp_path / "b.ama.jsonl"
    status, told = await asked(doors, "export", bank_id="b", path=str(file), include_embeddings=True)
    assert (status, told["bytes"]) == (200, file.stat().st_size)
    assert b'"embedding_model"' in file.read_bytes()
    status, told = await asked(doors, "import", bank_id="c", path=str(file), include_grants=True)
    assert (status, told["imported"], told["failures"]) == (200, 1, [])
    assert await asked(doors, "import", bank_id="c", path=str(file), on_conflict="error") == (409, "already_exists")
    file.write_bytes(file.read_bytes()[:-5])
    assert await asked(doors, "import", bank_id="d", path=str(file)) == (400, "invalid_argument")


async def test_paths_outside_are_refused(doors: HttpDoors, tmp_path: Path) -> None:
    outside = tmp_path.parent / "outside.ama.jsonl"
    outside.write_bytes(archive_of([memory_line(id_of("a"), "tea")]))
    (tmp_path / "link").symlink_to(outside)
    for path in (str(outside), f"{tmp_path}/../outside.ama.jsonl", f"{tmp_path}/link", "/etc/passwd", "x\u0000y"):
        for call in ("export", "import"):
            assert await asked(doors, call, bank_id="b", path=path) == (422, "path_not_allowed"), path
    assert outside.read_bytes().startswith(b'{"_ama_version"')
    for path in (str(tmp_path), f"{tmp_path}/missing", f"{tmp_path}/no/folder"):
        assert await asked(doors, "import", bank_id="b", path=path) == (422, "path_not_usable"), path
    assert await asked(doors, "export", bank_id="b", path=f"{tmp_path}/no/folder") == (422, "path_not_usable")


async def test_only_who_administers_all_banks_gets_at_the_files(doors: HttpDoors, tmp_path: Path) -> None:
    file = tmp_path / "b.ama.jsonl"
    assert (await asked(doors, "export", bank_id="b", path=str(file)))[0] == 200
    for call in ("export", "import"):
        assert await asked(doors, call, ANN, bank_id="b", path=str(file)) == (403, "access_denied")
        # Neither learns she of the folders.
        assert await asked(doors, call, ANN, bank_id="b", path="/etc/passwd") == (403, "access_denied")
    response = await doors.client.post("/v1/export", json={"bank_id": "b", "path": str(file)})
    assert response.status_code == httpx.codes.UNAUTHORIZED


async def test_tenants_do_not_get_at_the_files_of_each_other(doors: HttpDoors, tmp_path: Path) -> None:
    theirs = tmp_path / "tenant=acme"
    theirs.mkdir()
    mine = tmp_path / "b.ama.jsonl"
    assert (await asked(doors, "export", bank_id="b", path=str(mine)))[0] == 200
    assert await asked(doors, "import", OTHER, bank_id="b", path=str(mine)) == (422, "path_not_allowed")
    own = str(theirs / "a.ama.jsonl")
    (theirs / "a.ama.jsonl").write_bytes(archive_of([memory_line(id_of("a"), "tea")]))
    status, told = await asked(doors, "import", OTHER, bank_id="b", path=own)
    assert (status, told["imported"]) == (200, 1)
    for call in ("export", "import"):
        assert await asked(doors, call, ME, bank_id="b", path=own) == (422, "path_not_allowed")


@pytest.mark.parametrize(
    ("call", "body", "field"),
    [
        ("export", {"path": "x"}, "bank_id"),
        ("export", {"bank_id": "b"}, "path"),
        ("export", {"bank_id": "b", "path": ""}, "path"),
        ("export", {"bank_id": 7, "path": "x"}, "bank_id"),
        ("export", {"bank_id": "b", "path": "x", "on_conflict": "skip"}, "on_conflict"),
        ("export", {"bank_id": "b", "path": "x", "include_graph": "yes"}, "include_graph"),
        ("import", {"bank_id": "b", "path": "x", "on_conflict": "replace"}, "on_conflict"),
        ("import", {"bank_id": "b", "path": "x", "resume": True}, "resume"),
        ("import", ["b"], "request"),
    ],
)
async def test_a_wrong_body_is_refused_with_its_field(doors: HttpDoors, call: str, body: Any, field: str) -> None:
    head = {"authorization": f"Bearer {secret_of(ME)}"}
    response = await doors.client.post(f"/v1/{call}", json=body, headers=head)
    assert response.status_code == httpx.codes.BAD_REQUEST
    assert response.json()["error"]["field"] == field
    assert (await doors.client.get(f"/v1/{call}", headers=head)).status_code == httpx.codes.METHOD_NOT_ALLOWED
