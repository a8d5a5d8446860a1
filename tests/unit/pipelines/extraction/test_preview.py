"""A preview of an extraction equals the extraction of a retain."""

import json
from typing import Any

import pytest

from astrocyte import Astrocyte, extraction_profile_for_source, merged_extraction_profiles, prepare_retain_input
from astrocyte.config import ExtractionProfileSettings
from astrocyte.errors import ConfigError, NotFound, ValidationError

TICKET = {
    "content_type": "document",
    "chunk_size": 400,
    "metadata_mapping": {"project": "$.project", "none": "$.none", "wide": "$.wide"},
    "tag_rules": [{"match": "Invoice", "tags": ["billing"]}],
    "fact_type": "ticket",
    "authority_tier": "draft",
}
CONTENT = "\ufeff" + json.dumps({"project": "apollo", "wide": [1], "text": "the invoice"}) + "\r\n"


async def test_it_says_what_a_retain_does() -> None:
    prepared = prepare_retain_input(
        CONTENT, extraction_profile="ticket", metadata={"own": 1}, tags=["a"], profiles={"ticket": TICKET}
    )
    settings = {"vector_store": "in_memory", "extraction_profiles": {"ticket": TICKET}}
    async with Astrocyte.from_config_dict(settings) as brain:
        kept = await brain.retain(CONTENT, "b", extraction_profile="ticket", metadata={"own": 1}, tags=["a"])
        memory = await brain.get(kept.memory_id or "", "b")
    assert (prepared.content, prepared.metadata, prepared.tags) == (memory.content, memory.metadata, memory.tags)
    assert (prepared.fact_type, prepared.warnings) == (memory.fact_type, kept.warnings)
    assert (prepared.content_type, prepared.chunk_size, prepared.chunking_strategy) == ("document", 400, None)


def test_ones_own_profiles_win() -> None:
    own: dict[str, Any] = {"builtin_text": {"fact_type": "note"}, "made": ExtractionProfileSettings(fact_type="made")}
    merged = merged_extraction_profiles(own)
    assert (merged["builtin_text"].fact_type, merged["made"].fact_type) == ("note", "made")
    assert merged["builtin_conversation"].content_type == "conversation"
    assert set(merged_extraction_profiles()) == set(merged) - {"made"}


def test_what_is_no_profile_is_named() -> None:
    with pytest.raises(ConfigError, match=r"fact_tipe.*fact_type"):
        merged_extraction_profiles({"p": {"fact_tipe": "x"}})
    with pytest.raises(ConfigError, match="chunk_size"):
        merged_extraction_profiles({"p": {"chunk_size": 1}})
    with pytest.raises(ValidationError, match="builtin_text"):
        prepare_retain_input("tea", extraction_profile="p")
    with pytest.raises(ValidationError):
        prepare_retain_input(" ")


def test_a_source_names_its_profile() -> None:
    sources = {"issues": {"extraction_profile": "builtin_text"}, "mails": {"type": "poll"}}
    assert extraction_profile_for_source("issues", sources) == "builtin_text"
    assert extraction_profile_for_source("mails", sources) is None
    with pytest.raises(NotFound, match="issues, mails"):
        extraction_profile_for_source("none", sources)
