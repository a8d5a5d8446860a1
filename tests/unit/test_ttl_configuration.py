"""The block ttl of lifecycle sets ages, tags and fact types; enabled puts them in force."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from astrocyte.api.requests import GetMemory, Retain, RunLifecycle, WaitOperation
from astrocyte.app import App
from astrocyte.config import Settings, load_settings
from astrocyte.config.derived.lifecycle import LifecycleSettings
from astrocyte.errors import ConfigError
from astrocyte.model import Caller, MemoryState, RetainItem

ME = Caller()
START = datetime(2026, 1, 1, tzinfo=UTC)
BLOCK = """
lifecycle:
  enabled: true
  ttl:
    archive_after_days: 90
    delete_after_days: 365
    exempt_tags: [pinned]
    fact_type_overrides:
      experience: 30
      world: null
"""
OWN = """
lifecycle:
  archive_after_days: 90
  delete_after_days: 365
  exempt_tags: [pinned]
  fact_types:
    experience: {archive_after_days: 30}
    world: {archive_after_days: null}
"""


def loaded(text: str, folder: Path) -> Settings:
    path = folder / "astrocyte.yaml"
    path.write_text(text, encoding="utf-8")
    return load_settings(path, environ={})


def indented(text: str) -> str:
    return "banks:\n  b:" + text.replace("\n", "\n    ").rstrip()


def test_the_block_sets_the_keys_of_the_lifecycle(tmp_path: Path) -> None:
    found, expected = loaded(BLOCK, tmp_path), loaded(OWN, tmp_path)
    assert found == expected
    assert found.lifecycle.archive_after_days == 90.0
    assert found.lifecycle.fact_types["world"].model_fields_set == {"archive_after_days"}
    assert loaded(indented(BLOCK), tmp_path) == loaded(indented(OWN), tmp_path) != Settings()
    assert loaded("lifecycle: {ttl: null}", tmp_path) == Settings()
    assert Settings.from_mapping({"lifecycle": {"ttl": {"delete_after_days": 9}}}).lifecycle.delete_after_days == 9.0
    assert Settings.from_mapping({"lifecycle": LifecycleSettings(delete_after_days=9)}).lifecycle.delete_after_days == 9


@pytest.mark.parametrize(
    ("ttl", "own", "path", "other"),
    [
        ("archive_after_days: 9", "archive_after_days: 9", "archive_after_days", "archive_after_days"),
        ("delete_after_days: 9", "delete_after_days: null", "delete_after_days", "delete_after_days"),
        ("exempt_tags: [a]", "exempt_tags: []", "exempt_tags", "exempt_tags"),
        (
            "fact_type_overrides: {world: 9}",
            "fact_types: {world: {archive_after_days: 9}}",
            "fact_type_overrides",
            "fact_types.world.archive_after_days",
        ),
    ],
)
def test_both_at_once_is_an_error_that_names_both(ttl: str, own: str, path: str, other: str, tmp_path: Path) -> None:
    message = rf"line 1: lifecycle\.ttl\.{path}: is set twice: it is another name of lifecycle\.{other}$"
    with pytest.raises(ConfigError, match=message):
        loaded(f"lifecycle: {{ttl: {{{ttl}}}, {own}}}", tmp_path)
    with pytest.raises(ConfigError, match=message.replace("lifecycle", r"banks\.b\.lifecycle")):
        loaded(f"banks: {{b: {{lifecycle: {{ttl: {{{ttl}}}, {own}}}}}}}", tmp_path)


@pytest.mark.parametrize(
    ("ttl", "message"),
    [
        ("[]", r"line 1: lifecycle\.ttl: expected a mapping, got \[\]"),
        (
            "{days: 9}",
            r"line 1: lifecycle\.ttl\.days: is not a setting; expected one of archive_after_days, ",
        ),
        ("{fact_type_overrides: 9}", r"line 1: lifecycle\.ttl\.fact_type_overrides: expected a mapping, got 9"),
        ("{archive_after_days: -1}", r"line 1: lifecycle\.archive_after_days: .*greater than 0; got -1"),
        ("{fact_type_overrides: {world: -1}}", r"line 1: lifecycle\.fact_types\.world\.archive_after_days: .*got -1"),
    ],
)
def test_a_wrong_block_is_refused_with_its_line(ttl: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=message):
        loaded(f"lifecycle: {{ttl: {ttl}}}", tmp_path)


@pytest.mark.parametrize(("enabled", "state"), [(True, MemoryState.ARCHIVED), (False, MemoryState.ACTIVE)])
async def test_ages_apply_where_they_are_enabled(enabled: bool, state: MemoryState) -> None:
    now = [round(START.timestamp() * 1_000)]
    ttl = {"archive_after_days": 60, "exempt_tags": ["pinned"], "fact_type_overrides": {"plan": None}}
    lifecycle = {"enabled": enabled, "ttl": ttl}
    app = App(Settings.from_mapping({"vector_store": "in_memory", "lifecycle": lifecycle}), clock=lambda: now[0])
    items = (
        RetainItem("Mara plays the oboe."),
        RetainItem("Anders has a boat.", tags=("pinned",)),
        RetainItem("Mara moves to Leeds.", fact_type="plan"),
    )
    ids = [(await app.backend.call(ME, Retain("b", item))).memory_id or "" for item in items]
    now[0] += round(timedelta(days=61).total_seconds() * 1_000)
    started = await app.backend.call(ME, RunLifecycle("b"))
    await app.backend.call(ME, WaitOperation("b", started.operation_id, timeout=60.0))
    states = [(await app.backend.call(ME, GetMemory("b", one))).state for one in ids]
    assert states == [state, MemoryState.ACTIVE, MemoryState.ACTIVE]
    await app.close()


def test_a_schedule_that_is_not_enabled_is_not_in_force() -> None:
    on = LifecycleSettings(schedule="0 3 * * *", archive_after_days=9)
    off = on.model_copy(update={"enabled": False})
    assert (on.runs_at, on.archives_unused) == ("0 3 * * *", True)
    assert (off.runs_at, off.archives_unused) == (None, False)
