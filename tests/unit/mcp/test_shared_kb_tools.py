"""The tools on shared documents, through the client of the SDK."""

from pathlib import Path
from typing import Any

import pytest

from astrocyte import Astrocyte
from astrocyte.api.requests import CreateBank
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.model import Caller
from harness.mcp_sessions import called, connected, failure
from samples.folders import BANK, HANDBOOK, write


async def indexed(tmp_path: Path, bank: str = BANK) -> App:
    app = App(Settings.from_mapping({"vector_store": "in_memory"}))
    await Astrocyte(app.backend).shared_kb_index_folder(write(tmp_path / "docs", HANDBOOK), bank)
    return app


@pytest.mark.parametrize("fixed", [False, True])
async def test_an_agent_reads_shared_documents(tmp_path: Path, fixed: bool) -> None:
    app = await indexed(tmp_path)
    named: dict[str, Any] = {} if fixed else {"bank_id": BANK}
    async with connected(backend=app.backend, bank_id=BANK if fixed else None) as client:
        (hit,) = (await called(client, "shared_kb_search", query="graphs", type="adr", status="accepted", **named))[
            "hits"
        ]
        assert (hit["document"]["document_id"], hit["document"]["path"]) == ("ADR-0005", "decisions/0005-database.md")
        assert "JSONB" in hit["text"]
        assert 0 < hit["score"] <= 1
        page = await called(client, "shared_kb_list", type="component", **named)
        assert [(one["title"], one["depends_on"]) for one in page["documents"]] == [
            ("gateway", ["auth", "store"]),
            ("store", []),
        ]
        first = await called(client, "shared_kb_list", page_size=4, **named)
        rest = await called(client, "shared_kb_list", page_size=4, page_token=first["next_page_token"], **named)
        assert (len(first["documents"]), len(rest["documents"]), rest["next_page_token"]) == (4, 2, "")
        index = await called(client, "shared_kb_index", status="approved", **named)
        assert (index["document_count"], index["truncated"]) == (1, False)
        assert "| SPEC-023 | Memory of agents | approved |" in index["content"]
    await app.close()


async def test_a_search_needs_no_bank(tmp_path: Path) -> None:
    shared = {"vector_store": "in_memory", "agent_memory": {"shared_banks": [BANK]}}
    app = App(Settings.from_mapping(shared))
    await Astrocyte(app.backend).shared_kb_index_folder(write(tmp_path / "docs", HANDBOOK), BANK)
    async with connected(backend=app.backend) as client:
        hits = (await called(client, "shared_kb_search", query="graphs", type="adr"))["hits"]
        assert (hits[0]["bank_id"], hits[0]["document"]["document_id"]) == (BANK, "ADR-0005")
        assert (await failure(client, "shared_kb_list", {})).startswith("INVALID_ARGUMENT: bank_id: ")
    await app.close()
    without = App(Settings.from_mapping({"vector_store": "in_memory"}))
    async with connected(backend=without.backend) as client:
        told = await failure(client, "shared_kb_search", {"query": "graphs"})
        assert told.startswith("INVALID_ARGUMENT: bank_id: is missing, and there is no bank")
    await without.close()


async def test_a_fixed_bank_cannot_be_left(tmp_path: Path) -> None:
    app = await indexed(tmp_path)
    await app.backend.call(Caller(), CreateBank("other"))
    async with connected(backend=app.backend, bank_id="other") as client:
        assert (await called(client, "shared_kb_list"))["documents"] == []
        refused = await failure(client, "shared_kb_list", {"bank_id": BANK})
        assert refused.startswith("INVALID_ARGUMENT: bank_id: ")
    await app.close()


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("shared_kb_search", {"query": "", "bank_id": BANK}, "INVALID_ARGUMENT: query"),
        ("shared_kb_search", {"query": "x", "bank_id": BANK, "max_results": 51}, "INVALID_ARGUMENT: max_results"),
        ("shared_kb_list", {"bank_id": BANK, "type": "a\nb"}, "INVALID_ARGUMENT: type"),
        ("shared_kb_index", {"bank_id": "none"}, "BANK_NOT_FOUND: "),
    ],
)
async def test_wrong_arguments_are_told(tmp_path: Path, name: str, arguments: dict[str, Any], told: str) -> None:
    app = await indexed(tmp_path)
    async with connected(backend=app.backend) as client:
        assert (await failure(client, name, arguments)).startswith(told)
    await app.close()
