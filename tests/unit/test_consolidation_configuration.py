"""The block pipeline.consolidation sets what lifecycle and entity_resolution set, with the same effect."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from astrocyte.api.requests import GetMemory, ListEntities, ListOperations, Retain, RunLifecycle, WaitOperation
from astrocyte.app import App
from astrocyte.config import Settings, load_settings
from astrocyte.errors import ConfigError
from astrocyte.model import ArchiveReason, Caller, MemoryState, RetainItem

ME = Caller()
START = datetime(2026, 1, 1, tzinfo=UTC)
# Retains store what is alike.
ALIKE = {"vector_store": "in_memory", "signal_quality": {"dedup": {"enabled": False}}}
TEXTS = ("Mara plays the oboe.", "Mara plays the oboe well.")
PRINTED = """
pipeline:
  consolidation:
    dedup_similarity_threshold: 0.9
    archive_unretrieved_after_days: 60   # null to disable
    entity_dedup_enabled: false
    schedule: "0 3 * * *"
"""
# Each key, a value, the setting that it sets, and another value of that one.
NAMES = [
    ("dedup_similarity_threshold", "0.9", "lifecycle.similarity_threshold", "0.8"),
    ("archive_unretrieved_after_days", "60", "lifecycle.archive_after_days", "30"),
    ("archive_unretrieved_after_days", "60", "lifecycle.archive_after_days", "null"),
    ("entity_dedup_enabled", "false", "entity_resolution.enabled", "true"),
    ("schedule", "'0 3 * * *'", "lifecycle.schedule", "'0 4 * * *'"),
]


def loaded(text: str, folder: Path, **environ: str) -> Settings:
    path = folder / "astrocyte.yaml"
    path.write_text(text, encoding="utf-8")
    return load_settings(path, environ=environ)


def block(key: str, value: str) -> str:
    return f"pipeline: {{consolidation: {{{key}: {value}}}}}"


def own(key: str, value: str) -> str:
    section, name = key.split(".")
    return f"{section}: {{{name}: {value}}}"


def test_the_block_loads_as_printed_and_sets_the_lifecycle(tmp_path: Path) -> None:
    settings = loaded(PRINTED, tmp_path)
    lifecycle = settings.lifecycle
    assert (lifecycle.similarity_threshold, lifecycle.archive_after_days) == (0.9, 60.0)
    assert (lifecycle.schedule, lifecycle.merge_duplicates) == ("0 3 * * *", True)
    assert not settings.entity_resolution.enabled
    assert Settings.from_mapping(settings.model_dump()) == settings


@pytest.mark.parametrize(("key", "value", "name", "other"), NAMES)
def test_both_names_set_the_same(key: str, value: str, name: str, other: str, tmp_path: Path) -> None:
    section = name.split(".", maxsplit=1)[0]
    by_block = getattr(loaded(block(key, value), tmp_path), section)
    by_name = getattr(loaded(own(name, value), tmp_path), section)
    both = getattr(loaded(f"{block(key, value)}\n{own(name, value)}", tmp_path), section)
    merging = {"merge_duplicates"}
    assert by_block.model_dump(exclude=merging) == by_name.model_dump(exclude=merging)
    assert both == by_block
    assert by_name != getattr(loaded(own(name, other), tmp_path), section)


@pytest.mark.parametrize(("key", "value", "name", "other"), NAMES)
def test_two_values_are_an_error_that_names_both(key: str, value: str, name: str, other: str, tmp_path: Path) -> None:
    message = rf"line 1: pipeline\.consolidation\.{key}: {name} has the different value .*; set only one of them"
    with pytest.raises(ConfigError, match=message):
        loaded(f"{block(key, value)}\n{own(name, other)}", tmp_path)


@pytest.mark.parametrize("key", sorted({name[0] for name in NAMES}))
def test_null_sets_nothing(key: str, tmp_path: Path) -> None:
    assert loaded(block(key, "null"), tmp_path) == Settings()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("dedup_similarity_threshold", "0.4"),
        ("dedup_similarity_threshold", "1.1"),
        ("archive_unretrieved_after_days", "0"),
        ("entity_dedup_enabled", "often"),
        ("schedule", "daily"),
        ("max_memories", "5"),
    ],
)
def test_a_wrong_value_is_named_by_the_name_that_was_written(key: str, value: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=rf"line 1: pipeline\.consolidation\.{key}"):
        loaded(block(key, value), tmp_path)


def test_the_environment_may_use_the_names(tmp_path: Path) -> None:
    variable = {"ASTROCYTE_PIPELINE__CONSOLIDATION__ARCHIVE_UNRETRIEVED_AFTER_DAYS": "7"}
    assert loaded("{}", tmp_path, **variable).lifecycle.archive_after_days == 7.0


@pytest.mark.parametrize(
    ("text", "merges"),
    [
        (block("schedule", "'0 3 * * *'"), True),
        (block("dedup_similarity_threshold", "0.9"), True),
        (block("archive_unretrieved_after_days", "9"), False),
        (block("schedule", "'0 3 * * *'") + "\nlifecycle: {merge_duplicates: false}", False),
        (own("lifecycle.schedule", "'0 3 * * *'"), False),
    ],
)
def test_a_schedule_or_a_threshold_merges_duplicates(text: str, merges: bool, tmp_path: Path) -> None:
    assert loaded(text, tmp_path).lifecycle.merge_duplicates is merges


def test_a_bank_starts_from_the_block_and_may_differ(tmp_path: Path) -> None:
    text = "banks: {a: {}, b: {lifecycle: {archive_after_days: 5}}}\n"
    banks = loaded(text + block("archive_unretrieved_after_days", "60"), tmp_path).banks
    assert [banks[name].lifecycle.archive_after_days for name in "ab"] == [60.0, 5.0]


def test_linking_names_needs_the_graph(tmp_path: Path) -> None:
    off = "entity_graph: {enabled: false}\n"
    assert not loaded(off + block("entity_dedup_enabled", "false"), tmp_path).entity_resolution.enabled
    message = r"line 2: pipeline\.consolidation\.entity_dedup_enabled: true has no effect .* expected false"
    with pytest.raises(ConfigError, match=message):
        loaded(off + block("entity_dedup_enabled", "true"), tmp_path)


@pytest.mark.parametrize("key", ["archive_unretrieved_after_days", "schedule"])
def test_the_block_needs_the_lifecycle(key: str, tmp_path: Path) -> None:
    value = next(name[1] for name in NAMES if name[0] == key)
    message = rf"line 2: pipeline\.consolidation\.{key}: has no effect: lifecycle\.enabled is false; expected null"
    with pytest.raises(ConfigError, match=message):
        loaded(own("lifecycle.enabled", "false") + "\n" + block(key, value), tmp_path)


async def test_memories_that_no_recall_returned_are_archived() -> None:
    now = [round(START.timestamp() * 1_000)]
    values = {"vector_store": "in_memory", "pipeline": {"consolidation": {"archive_unretrieved_after_days": 60}}}
    app = App(Settings.from_mapping(values), clock=lambda: now[0])
    stored = (await app.backend.call(ME, Retain("b", RetainItem("Mara plays the oboe.")))).memory_id or ""
    for days, expected in (
        (59, (MemoryState.ACTIVE, None)),
        (2, (MemoryState.ARCHIVED, ArchiveReason.UNUSED)),
    ):
        now[0] += round(timedelta(days=days).total_seconds() * 1_000)
        await _run(app, merge=False)
        memory = await app.backend.call(ME, GetMemory("b", stored))
        assert (memory.state, memory.archive_reason) == expected
    await app.close()


async def test_the_schedule_starts_runs_that_merge_duplicates() -> None:
    now = [round(START.timestamp() * 1_000)]
    consolidation = {"schedule": "0 3 * * *", "dedup_similarity_threshold": 0.5}
    values = {**ALIKE, "pipeline": {"consolidation": consolidation}}
    app = App(Settings.from_mapping(values), clock=lambda: now[0])
    for text in TEXTS:
        await app.backend.call(ME, Retain("b", RetainItem(text)))
    now[0] += round(timedelta(days=1).total_seconds() * 1_000)
    app.pipelines.lifecycle.notify()
    async with asyncio.timeout(30):
        while not (found := (await app.backend.call(ME, ListOperations("b"))).operations):  # noqa: ASYNC110 - nothing tells of an operation that starts
            await asyncio.sleep(0.01)
    done = await app.backend.call(ME, WaitOperation("b", found[0].operation_id, timeout=60.0))
    assert done.lifecycle is not None
    assert done.lifecycle.merged == 1
    await app.close()


@pytest.mark.parametrize(("threshold", "merged"), [(0.5, 1), (1.0, 0)])
async def test_the_threshold_decides_on_duplicates(threshold: float, merged: int) -> None:
    values = {**ALIKE, "pipeline": {"consolidation": {"dedup_similarity_threshold": threshold}}}
    app = App(Settings.from_mapping(values))
    for text in TEXTS:
        await app.backend.call(ME, Retain("b", RetainItem(text)))
    assert (await _run(app, merge=True)).merged == merged
    await app.close()


@pytest.mark.parametrize(("linked", "count"), [(True, 1), (False, 2)])
async def test_names_of_one_entity_are_linked_or_not(linked: bool, count: int) -> None:
    values = {"vector_store": "in_memory", "pipeline": {"consolidation": {"entity_dedup_enabled": linked}}}
    app = App(Settings.from_mapping(values))
    for text in ("Then Acme Corporation paid.", "Acme Corp moved to Leeds."):
        await app.backend.call(ME, Retain("b", RetainItem(text)))
    names = [one.name for one in (await app.backend.call(ME, ListEntities("b"))).entities]
    assert len([name for name in names if "Acme" in name]) == count, names
    await app.close()


async def _run(app: App, *, merge: bool) -> Any:
    started = await app.backend.call(ME, RunLifecycle("b", merge_duplicates=merge))
    done = await app.backend.call(ME, WaitOperation("b", started.operation_id, timeout=60.0))
    return done.lifecycle
