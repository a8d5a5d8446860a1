"""After an erasure no column of any table holds a word of what was erased."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import apsw
import pytest

from astrocyte.api.requests import (
    CreateMentalModel,
    CreateObservation,
    Forget,
    GetMemory,
    Recall,
    Reflect,
    Retain,
    StartReindex,
    UpdateMemory,
)
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.model import (
    ForgetSelector,
    MemoryUpdate,
    ModelBlock,
    ModelSection,
    OperationState,
    RecallQuery,
    ReflectQuery,
    RetainItem,
)
from astrocyte.providers.bounded import BoundedModel
from astrocyte.providers.messages import Completion, Prompt
from astrocyte.stores.sqlite.engine.data_directory import DATABASE
from doubles.language_models import Reply, serve
from samples.moving import BANK, EMBEDDERS, ME, done

pytest.importorskip("httpx_retries", reason="an extra that is not installed")

# A word of its own for each text; none of them is a word of the program's.
WORDS = ("qzxalpha", "qzxbravo", "qzxcharly", "qzxdelta", "qzxecho", "qzxfox", "qzxgolf")
NAMES = [f"{word.title()} Brown" for word in WORDS]
# Tables in which the words stand before the erasure.
REACHED = {
    "chunks",
    "contents",
    "entity_mentions",
    "entity_words",
    "graph_entities",
    "knowledge_revisions",
    "memories",
    "tags",
}
# The other ones, by what keeps the text of a memory out of them, or where an erasure is tried on them.
OTHERS = {
    "ids and times": {
        *("absences", "changes", "entity_links", "erasures", "graph_changes", "knowledge_items", "knowledge_sources"),
        "sealed_banks",
        *("leases", "outboxes", "poll_cursors", "poll_items", "requests", "spare_sets", "told", "waiting_copies"),
        *("webhook_receipts", "installation", "schema_migrations", "sqlite_sequence"),
    },
    "what administrators say": {"access_epochs", "api_keys", "banks", "grants", "holds", "term_epochs", "terms"},
    "what was done, in words of the program": {"audit_events", "audit_heads", "model_budgets", "operations"},
    "vectors": {"embeddings", "second_embeddings"},
    "test_erasing.py, and those of the graph and of the queue": {"entities", "graph_readings", "queued_retains"},
    "test_unanswered_queries.py": {"unanswered_queries"},
    "test_model_consolidation.py": {"consolidations"},
}
ECHO = {"error": {"message": " ".join(WORDS), "code": WORDS[0], "type": WORDS[1], "param": WORDS[2]}}


class Chatty:
    """A language model that repeats what it is shown in all of its answers."""

    model_id = "chatty"

    async def complete(self, prompt: Prompt, *, deadline: float | None = None) -> Completion:
        said = {"action": "add", "target": 0, "memory_layer": "fact", "content": "", "reason": " ".join(WORDS)}
        return Completion(json.dumps(said))

    async def stream(self, prompt: Prompt, *, deadline: float | None = None) -> AsyncIterator[str | Completion]:
        yield await self.complete(prompt, deadline=deadline)

    async def close(self) -> None:
        return


def columns(path: Path) -> dict[str, list[bytes]]:
    """All values of each TEXT, BLOB or untyped column, by table and column."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    found: dict[str, list[bytes]] = {}
    for table in tables:
        for _, column, *_ in list(connection.execute(f'PRAGMA table_xinfo("{table}")')):
            rows = connection.execute(f'SELECT CAST("{column}" AS BLOB) FROM "{table}"')  # noqa: S608 - names of the schema
            found[f"{table}.{column}"] = [value for (value,) in rows if value]
    connection.close()
    return found


def places(path: Path) -> set[str]:
    """The columns in which a word of the texts stands."""
    needles = [word.encode() for word in WORDS]
    return {
        column
        for column, values in columns(path).items()
        if any(needle in value.lower() for value in values for needle in needles)
    }


@pytest.fixture
async def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[App]:
    monkeypatch.setattr("astrocyte.wiring.providers.create_language_model", lambda *_: BoundedModel(Chatty()))
    with serve(Reply(ECHO, 400)) as endpoint:
        echo = {"provider": "openai", "options": {"model": "m", "dimensions": 8, "base_url": endpoint.url}}
        settings = {
            "data_dir": str(tmp_path / "data"),
            "llm_provider": "mock",
            "curated_retain": {"enabled": True},
            "embedders": {**EMBEDDERS, "echo": echo},
            "reindex": {"attempts": 1, "retry_seconds": 0.001, "sample": 0},
        }
        opened = App(Settings.from_mapping(settings))
        yield opened
        await opened.close()


async def test_no_column_holds_a_word_of_what_was_erased(app: App, tmp_path: Path) -> None:
    item = RetainItem(
        "\n\n".join(f"In year {year} {NAMES[0]} sings with {NAMES[1]}. " * 20 for year in range(1990, 2000)),
        tags=(WORDS[2],),
        metadata={WORDS[3]: WORDS[4]},
        session_id=WORDS[5],
        speaker=WORDS[6],
        source=WORDS[0],
    )
    kept = await app.gate.call(ME, Retain(BANK, item, request_id="once"))
    other = await app.gate.call(ME, Retain(BANK, RetainItem("The boat lies in the harbour.")))
    assert kept.memory_id is not None
    said = f"{WORDS[0]} sings with {WORDS[1]}."
    await app.gate.call(ME, CreateObservation(BANK, said, [kept.memory_id, str(other.memory_id)]))
    section = ModelSection("songs", "Songs", (ModelBlock(text=said, source_ids=(kept.memory_id,)),))
    await app.gate.call(ME, CreateMentalModel(BANK, "Songs", (section,), model_id="model:songs"))
    update = MemoryUpdate(kept.memory_id, frozenset({"content"}), content=f"{WORDS[1]} sings alone")
    await app.gate.call(ME, UpdateMemory(BANK, update))
    await app.gate.call(ME, Recall(RecallQuery(WORDS[0], BANK)))
    await app.gate.call(ME, Reflect(ReflectQuery(WORDS[1], BANK)))
    operation = await done(app, await app.gate.call(ME, StartReindex(BANK, embedding_model="m/8")))
    assert operation.state is OperationState.FAILED
    assert operation.error is not None
    assert "400" in operation.error.message
    assert await app.pipelines.graph.follower.caught_up(30.0)
    path = tmp_path / "data" / DATABASE
    assert {place.partition(".")[0] for place in places(path)} >= REACHED
    await app.gate.call(
        ME, Forget(BANK, ForgetSelector(memory_ids=(kept.memory_id,)), compliance=True, reason="asked to")
    )
    assert places(path) == set()
    left = await app.gate.call(ME, GetMemory(BANK, str(other.memory_id)))
    assert left.memory_id == other.memory_id


async def test_every_table_with_texts_is_known(app: App, tmp_path: Path) -> None:
    """A new table belongs to those that an erasure is tried on, or has a reason why no text of a memory is in it."""
    await app.gate.call(ME, Retain(BANK, RetainItem("The boat lies in the harbour.")))
    connection = apsw.Connection(str(tmp_path / "data" / DATABASE), flags=apsw.SQLITE_OPEN_READONLY)
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    texts = {
        table
        for table in tables
        for _, _, kind, *_ in list(connection.execute(f'PRAGMA table_xinfo("{table}")'))
        if kind in {"", "TEXT", "BLOB", "ANY"}
    }
    connection.close()
    known = REACHED.union(*OTHERS.values())
    assert texts - known == set()
    assert known - texts == set()
