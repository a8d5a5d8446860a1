"""Extraction at retain, over the wire: through generated stubs, the client, and the command line."""

from __future__ import annotations

import json
from pathlib import Path

import grpc
import pytest
import yaml
from click.testing import CliRunner

from astrocyte import ContentPart, CurationAction, PartKind, connect
from astrocyte.cli import cli
from astrocyte.errors import CapabilityNotSupported
from astrocyte.v1 import memory_pb2
from doubles.language_models import Reply, openai_answer, serve
from harness.serving import reason, serving

PROFILES = {
    "ticket": {
        "metadata_mapping": {"project": "$.project"},
        "tag_rules": [{"contains": "invoice", "tags": ["billing"]}],
        "entity_extraction": "rules",
    }
}
TICKET = json.dumps({"project": "apollo", "text": "Ines Lopes says that the invoice went to Porto."})


async def test_a_profile_over_the_wire() -> None:
    async with serving(extraction_profiles=PROFILES) as served:
        kept = await served.memory.Retain(
            memory_pb2.RetainRequest(bank_id="work", content=TICKET, extraction_profile="ticket")
        )
        request = memory_pb2.GetMemoryRequest(bank_id="work", memory_id=kept.memory_id)
        memory = (await served.memory.GetMemory(request)).memory
        assert memory.metadata["project"].string_value == "apollo"
        assert list(memory.tags) == ["billing"]
        assert [(one.id, one.name, one.entity_type) for one in memory.entities] == [
            ("name:ines-lopes", "Ines Lopes", "NAME"), ("name:porto", "Porto", "NAME"),
        ]  # fmt: skip
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await served.memory.Retain(
                memory_pb2.RetainRequest(bank_id="work", content="tea", extraction_profile="tickets")
            )
        assert reason(caught.value) == "INVALID_ARGUMENT"


async def test_the_client_sees_what_was_decided() -> None:
    decision = {"action": "update", "target": 1, "content": "", "memory_layer": "fact", "reason": "she moved"}
    replies = [json.dumps({**decision, "action": "add", "target": 0}), json.dumps(decision)]
    settings = {"llm_provider": "mock", "llm_provider_config": {"replies": replies}}
    async with serving(**settings, curated_retain={"enabled": True}) as served, connect(served.address) as brain:
        first = await brain.retain("Mara lives in Porto.", bank_id="friends")
        (second,) = await brain.retain_many([{"content": "Mara lives in Lisbon now."}], "friends")
        assert (second.memory_id, second.retention_action, second.curated) == (first.memory_id, "updated", True)
        assert second.curation is not None
        assert second.curation.action is CurationAction.UPDATE
        assert (second.curation.target_id, second.curation.reason) == (first.memory_id, "she moved")


async def test_images_over_the_wire() -> None:
    picture = ContentPart(PartKind.IMAGE, data=b"\x89PNG", media_type="image/png")
    async with serving() as served, connect(served.address) as brain:
        with pytest.raises(CapabilityNotSupported, match=r"parts\[0\]"):
            await brain.retain("", bank_id="trips", parts=[picture])
    with serve(Reply(openai_answer("A pier at dusk."))) as model:
        settings = {"llm_provider": "openai", "llm_provider_config": {"base_url": model.url}}
        async with serving(**settings) as served, connect(served.address) as brain:
            kept = await brain.retain("Porto.", bank_id="trips", parts=[picture])
            assert (await brain.get(kept.memory_id or "", "trips")).content == "Porto.\n\nImage: A pier at dusk."


def test_the_command_line_brings_images(tmp_path: Path) -> None:
    settings = tmp_path / "settings.yaml"
    mock = {"llm_provider": "mock", "llm_provider_config": {"replies": ["A pier at dusk."]}}
    settings.write_text(yaml.safe_dump({"data_dir": str(tmp_path / "data"), **mock}), encoding="utf-8")
    image = tmp_path / "pier.jpg"
    image.write_bytes(b"\xff\xd8")
    run = ["--config", str(settings)]
    done = CliRunner().invoke(cli, [*run, "retain", "trips", "", "--image", str(image)])
    assert done.exit_code == 0, done.stderr
    found = CliRunner().invoke(cli, [*run, "recall", "trips", "pier"])
    assert "A pier at dusk." in found.stdout
    image.rename(tmp_path / "pier.txt")
    done = CliRunner().invoke(cli, [*run, "retain", "trips", "", "--image", str(tmp_path / "pier.txt")])
    assert done.exit_code != 0
