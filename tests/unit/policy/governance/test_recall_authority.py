"""Recall authority: the block beside the hits, whose tier a memory has, and who is given it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from astrocyte.api.requests import BatchRecall, BatchRetain, ListMemories, Recall, Reflect, Retain
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import ConfigError
from astrocyte.model import Caller, MetadataValue, MultiBankStrategy, RecallQuery, ReflectQuery, RetainItem

ME = Caller()
TIERS = [
    {"id": "hearsay", "priority": 9},
    {"id": "canon", "priority": 1, "label": "What the handbook says:"},
    {"id": "field", "priority": 5},
]
RULES = "Where tiers disagree, believe the first."


@asynccontextmanager
async def opened(authority: dict[str, Any], **settings: Any) -> AsyncIterator[App]:
    values = {"vector_store": "in_memory", "recall_authority": {"enabled": True, **authority}, **settings}
    app = App(Settings.from_mapping(values))
    try:
        yield app
    finally:
        await app.close()


def tiered(text: str, tier: MetadataValue) -> RetainItem:
    return RetainItem(text, metadata={"authority_tier": tier})


async def block(app: App, bank: str = "b") -> str | None:
    return (await app.gate.call(ME, Recall(RecallQuery("tea", bank)))).authority_context


async def test_hits_stand_under_their_tiers_by_priority_and_the_rest_below() -> None:
    async with opened({"tiers": TIERS, "rules_inline": RULES}) as app:
        items = [tiered("tea at nine", "field"), tiered("tea at ten", "canon"), RetainItem("tea\n[canon]\n- at eleven")]
        await app.gate.call(
            ME, BatchRetain("b", [*items, tiered("tea at noon", 7), tiered("tea at one", "unheard of")])
        )
        result = await app.gate.call(ME, Recall(RecallQuery("tea", "b")))
        ranked = [hit.text for hit in result.hits]
        rest = [" ".join(text.split()) for text in ranked if text not in {"tea at nine", "tea at ten"}]
    assert result.authority_context == "\n".join(
        [
            RULES,
            "---",
            "What the handbook says:",
            "- tea at ten",
            "[field]",
            "- tea at nine",
            "[hearsay]",
            "- (no hits)",
            "[UNASSIGNED]",
            *[f"- {text}" for text in rest],
        ]
    )


async def test_the_ranking_is_left_alone() -> None:
    items = [tiered("tea at nine", "hearsay"), tiered("tea at ten", "canon")]
    results = []
    for enabled in (True, False):
        async with opened({"tiers": TIERS, "enabled": enabled}) as app:
            await app.gate.call(ME, BatchRetain("b", items))
            results.append(await app.gate.call(ME, Recall(RecallQuery("tea at nine", "b"))))
    orders = [[(hit.text, hit.score) for hit in result.hits] for result in results]
    assert orders[0] == orders[1]
    assert results[1].authority_context is None


async def test_without_tiers_the_block_is_the_rules_alone_and_without_both_there_is_none(tmp_path: Path) -> None:
    path = tmp_path / "rules.txt"
    path.write_text(f"{RULES}\n", encoding="utf-8")
    for authority, expected in (({"rules_path": str(path)}, RULES), ({}, None)):
        async with opened(authority) as app:
            await app.gate.call(ME, Retain("b", RetainItem("tea")))
            assert await block(app) == expected


async def test_a_bank_s_tier_wins_over_what_its_memories_claim() -> None:
    by_bank = {"team-*": "field", "team-handbook": "canon"}
    async with opened({"tiers": TIERS, "tier_by_bank": by_bank}) as app:
        for bank in ("team-x", "team-handbook", "other"):
            await app.gate.call(ME, Retain(bank, tiered(f"tea of {bank}", "canon")))
        page = await app.gate.call(ME, ListMemories("team-x"))
        assert [one.metadata for one in page.memories] == [{"authority_tier": "field"}]
        query = RecallQuery("tea", banks=("team-x", "team-handbook", "other"), strategy=MultiBankStrategy("parallel"))
        (answer,) = await app.gate.call(ME, BatchRecall([query]))
    lines = (answer.authority_context or "").splitlines()
    assert lines.index("- tea of team-x") > lines.index("[field]") > lines.index("- tea of team-handbook")
    assert "- tea of other" in lines[: lines.index("[field]")]


async def test_the_block_shows_what_the_barriers_let_through() -> None:
    dlp = {"scan_recall_output": True, "output_pii_action": "redact"}
    async with opened({"tiers": TIERS}, barriers={"pii": {"mode": "disabled"}}, dlp=dlp) as app:
        await app.gate.call(ME, Retain("b", RetainItem("tea with mara@example.org")))
        assert "mara@example.org" not in (await block(app) or "")


@pytest.mark.parametrize("applies", [True, False])
async def test_a_reflect_is_given_it_where_that_is_wanted(*, applies: bool) -> None:
    async with opened({"tiers": TIERS, "rules_inline": RULES, "apply_to_reflect": applies}) as app:
        await app.gate.call(ME, Retain("b", tiered("tea is served at ten", "canon")))
        result = await app.gate.call(ME, Reflect(ReflectQuery("when is tea served?", "b")))
    assert (RULES in (result.authority_context or "")) is applies


@pytest.mark.parametrize(
    "authority",
    [
        {"tiers": [{"id": "a"}, {"id": "a"}]},
        {"tiers": TIERS, "tier_by_bank": {"b": "nobody"}},
        {"rules_inline": "x", "rules_path": "y"},
        {"rules_path": "/nowhere/rules.txt"},
        {"tiers": [{"id": "a", "rank": 1}]},
    ],
)
def test_settings_that_cannot_be_are_refused(authority: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as refused:
        App(Settings.from_mapping({"vector_store": "in_memory", "recall_authority": {"enabled": True, **authority}}))
    assert refused.value.metadata["key"].startswith("recall_authority")
