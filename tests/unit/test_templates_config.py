"""Templates and profiles as settings: what is read, what is refused, and what lies over what."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from astrocyte.config import BankSettings, Settings, load_settings
from astrocyte.config.banks import SHARED, at
from astrocyte.config.templates import PLACEHOLDERS, PROFILES, ProfileName, bind, closest, profile_values
from astrocyte.errors import ConfigError
from astrocyte.policy.settings.bank_settings import Overrides

PRINTED = """
bank_templates:
  user:
    name_pattern: "user-{user_id}"
    profile: personal
    auto_create: true
    access:
      - principal: "user:{user_id}"
        permissions: [read, write, forget, admin]
      - principal: "agent:{agent_id}"
        permissions: [read, write]
  team:
    name_pattern: "team-{team_id}"
    profile: support
    auto_create: false
"""
NAMES = st.text("ab-:.", min_size=1, max_size=12)


def template(**values: Any) -> Settings:
    return Settings.from_mapping({"bank_templates": {"t": {"name_pattern": "user-{user_id}", **values}}})


@pytest.mark.parametrize("name", PROFILES)
def test_a_profile_is_a_file_of_blocks_that_a_bank_has(name: ProfileName) -> None:
    values = profile_values(name)
    assert values
    made = BankSettings.model_validate(values)
    # What is there once for the whole server cannot come with a bank, and no value is the default already in all.
    assert [path for path in SHARED if at(values, path) is not None] == []
    assert made != BankSettings()
    assert "access" not in values


def test_the_files_are_the_profiles() -> None:
    folder = Path(load_settings.__code__.co_filename).parent.parent / "profiles"
    assert sorted(path.stem for path in folder.glob("*.yaml")) == sorted(get_args(ProfileName))


def test_a_bank_lies_over_its_profile_and_that_over_the_whole() -> None:
    settings = Settings.from_mapping(
        {
            "homeostasis": {"recall_max_tokens": 99, "quotas": {"retain_per_day": 7}},
            "banks": {"x": {"profile": "coding", "barriers": {"validation": {"max_content_length": 5}}}},
        }
    )
    own = Overrides(settings).of["x"]
    assert own.profile == "coding"
    assert own.homeostasis.recall_max_tokens == 8_192
    assert own.homeostasis.quotas.retain_per_day == 7
    assert own.barriers.validation.max_content_length == 5
    assert own.barriers.pii.action == "warn"
    assert Overrides(settings).of["y"].homeostasis.recall_max_tokens == 99


def test_the_printed_templates_load_and_hold_for_their_banks(tmp_path: Path) -> None:
    path = tmp_path / "astrocyte.yaml"
    path.write_text(f"{PRINTED}banks:\n  user-7:\n    homeostasis: {{retain_per_minute: 3}}\n", encoding="utf-8")
    overrides = Overrides(load_settings(path, environ={}))
    assert overrides.of["user-123"].homeostasis.rate_limits.retain_per_minute == 60
    assert overrides.of["team-support"].homeostasis.rate_limits.retain_per_minute == 30
    assert overrides.of["users"] is overrides.of["anything"]
    # A bank of a template may say some of it itself.
    assert overrides.of["user-7"].homeostasis.rate_limits.retain_per_minute == 3
    assert overrides.of["user-7"].homeostasis.rate_limits.recall_per_minute == 120
    assert [overrides.template(name) for name in ("user-7", "team-a", "a")] == ["user", "team", ""]


def test_a_banks_own_profile_is_not_its_templates() -> None:
    banks = {"user-7": {"profile": "minimal"}}
    patterns = {"user": {"name_pattern": "user-{user_id}", "profile": "personal"}}
    overrides = Overrides(Settings.from_mapping({"banks": banks, "bank_templates": patterns}))
    assert overrides.of["user-7"].profile == "minimal"
    assert overrides.of["user-7"].homeostasis.rate_limits.retain_per_minute is None


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ({"name_pattern": "user-1"}, "name_pattern"),
        ({"name_pattern": "user-{usr_id}"}, "name_pattern"),
        ({"name_pattern": "user-{user_id}-{user_id}"}, "name_pattern"),
        ({"name_pattern": "{user_id}{team_id}"}, "name_pattern"),
        ({"name_pattern": "user-{user_id"}, "name_pattern"),
        ({"name_pattern": "user-{user_id!r}"}, "name_pattern"),
        ({"name_pattern": "user-{{{user_id}"}, "name_pattern"),
        ({"profile": "perzonal"}, "profile"),
        ({"access": [{"principal": "user:{usr_id}", "permissions": ["read"]}]}, "access.0.principal"),
        ({"access": [{"principal": "user:{user_id}", "permissions": ["fly"]}]}, "access.0.permissions.0"),
        ({"acces": []}, "acces"),
    ],
)
def test_what_is_wrong_in_a_template_is_named(values: dict[str, Any], key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        template(**values)
    assert caught.value.metadata["key"] == f"bank_templates.t.{key}"


def test_an_unknown_profile_of_a_bank_is_named() -> None:
    with pytest.raises(ConfigError) as caught:
        Settings.from_mapping({"banks": {"x": {"profile": "perzonal"}}})
    assert caught.value.metadata["key"] == "banks.x.profile"


@given(st.lists(NAMES, min_size=1, max_size=3), st.lists(st.sampled_from(["-", "-a-", "."]), min_size=4, max_size=4))
def test_a_name_is_read_back_to_itself(values: list[str], between: list[str]) -> None:
    braces = "".join(f"{between[index]}{{{PLACEHOLDERS[index]}}}" for index in range(len(values)))
    pattern = f"u{braces}{between[3]}"
    filled = pattern.format_map(dict(zip(PLACEHOLDERS, values, strict=False)))
    bound = bind(pattern, filled)
    # There is a reading, perhaps another one; whichever it is, it gives this very name and leaves nothing empty.
    assert bound is not None
    assert pattern.format_map(bound) == filled
    assert all(bound.values())


@given(NAMES)
def test_what_has_another_form_is_not_read(name: str) -> None:
    bound = bind("b-{user_id}.x", name)
    assert (bound is not None) == (name.startswith("b-") and name.endswith(".x") and len(name) > 4)


def test_the_pattern_that_says_most_wins() -> None:
    patterns = {"any": "{user_id}-x", "user": "user-{user_id}", "eu": "user-eu-{user_id}", "same": "user-{team_id}"}
    chosen = [closest(patterns, name) for name in ("user-1", "user-eu-1", "b-x", "b")]
    assert chosen == [("user", {"user_id": "1"}), ("eu", {"user_id": "1"}), ("any", {"user_id": "b"}), None]
