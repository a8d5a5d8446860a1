"""The command line, on a directory and on a server: what it answers, and how it ends."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from astrocyte.cli import cli
from harness.commands import Command, answer, command
from harness.processes import running_server

pytestmark = pytest.mark.process

EXAMPLE = Path(__file__).resolve().parents[3] / "examples/conversation.jsonl"


@pytest.fixture
def local(tmp_path: Path) -> Command:
    return command(["--data-dir", str(tmp_path / "data")])


def test_a_memory_from_retain_to_undelete(astrocyte: Command, bank: str) -> None:
    kept = answer(
        astrocyte(
            *("--json", "retain", bank, "Mara is allergic to sesame.", "--tag", "health", "--speaker", "Ines"),
            *("--meta", "age=7", "--occurred-at", "2025-02-23T17:48:00Z", "--session", "s1", "--source", "chat"),
        )
    )
    assert (kept["stored"], kept["retention_action"]) == (True, "created")
    astrocyte("retain", bank, "The ferry leaves at seven.")
    found = answer(astrocyte("--json", "recall", bank, "what can Mara not eat?", "-k", "1"))
    hit = found["hits"][0]
    assert hit["memory_id"] == kept["memory_id"]
    assert (hit["speaker"], hit["tags"], hit["metadata"], hit["source"]) == ("Ines", ["health"], {"age": 7}, "chat")
    assert hit["occurred_at"] == "2025-02-23T17:48:00+00:00"
    assert found["trace"]["strategies_used"]
    past = answer(astrocyte("--json", "history", bank, "Mara", "--as-of", "2020-01-01T00:00:00Z"))
    assert past["hits"] == []
    preview = answer(astrocyte("--json", "forget", bank, "--tag", "health", "--dry-run"))
    assert (preview["deleted_count"], preview["dry_run"]) == (1, True)
    gone = answer(astrocyte("--json", "forget", bank, "--tag", "health", "--yes", "--reason", "asked to"))
    assert (gone["deleted_count"], gone["memory_ids"]) == (1, [kept["memory_id"]])
    assert "sesame" not in astrocyte("recall", bank, "what can Mara not eat?").stdout
    back = astrocyte("undelete", bank, kept["memory_id"])
    assert back.stdout == f"Restored {kept['memory_id']}: Mara is allergic to sesame.\n"
    assert "sesame" in astrocyte("recall", bank, "what can Mara not eat?").stdout
    erased = answer(astrocyte("--json", "forget", bank, "--id", kept["memory_id"], "--erase", "--yes"))
    assert erased["receipt"]["salted_ids"]
    assert astrocyte("undelete", bank, kept["memory_id"]).exit_code == 3


def test_explain_says_why_and_what_would_help(astrocyte: Command, bank: str) -> None:
    kept = answer(astrocyte("--json", "retain", bank, "The ferry leaves at seven.", "--tag", "travel"))
    question = ("explain", bank, "when does the ferry leave?", kept["memory_id"])
    there = astrocyte(*question).stdout
    assert f"{kept['memory_id']}: returned: hit 1" in there
    assert re.search(r"keyword: rank 1, score \d", there)
    excluded = astrocyte(*question, "--tag", "pets").stdout
    assert "filter: it does not meet tags" in excluded
    assert "would be returned with tags=[pets, travel]" in excluded
    told = answer(astrocyte("--json", *question, "--tag", "pets"))
    assert told["explanations"][0]["counterfactual"]["fields"] == ["tags"]
    astrocyte("retain", f"{bank}-more", "Bread and salt.")
    several = astrocyte(*question, "--also", f"{bank}-more").stdout
    assert f"{kept['memory_id']} in bank {bank}: returned: hit 1" in several
    astrocyte("observations", "create", bank, "The ferry leaves at seven each day.", "--evidence", kept["memory_id"])
    (item,) = answer(astrocyte("--json", *question))["items"]
    beside = astrocyte(*question).stdout
    assert f"observation {item['item_id']}: returned: hit 1" in beside
    assert f"  score {item['score']:.4f}: weight 1.5 x (relevance {item['relevance']:.4f} + 0 for 1 memories)" in beside
    own = astrocyte(*question[:-1], item["item_id"]).stdout
    assert f"{item['item_id']}: returned: hit 1" in own
    assert f"  {item['item_id']}: score {item['score']:.4f}" in own
    nowhere = astrocyte("explain", bank, "ferry", "mem_0").stdout
    assert "no tested change of the query" in nowhere


def test_tables_say_what_happened(astrocyte: Command, bank: str) -> None:
    first = astrocyte("retain", bank, "Biscuit is a border terrier.", "--tag", "pets")
    assert re.fullmatch(r"Stored mem_[0-9a-f]{32} \(semantic, \d+ tokens in 1 chunk, position 1\)\n", first.stdout)
    again = astrocyte("retain", bank, "Biscuit  is a border terrier.")
    assert "Duplicate of mem_" in again.stdout.replace("\n", " ")
    shown = astrocyte("recall", bank, "terrier", "--trace").stdout
    assert "Biscuit is a border terrier." in shown
    assert "keyword 1" in shown
    assert "pets" in shown
    assert re.search(r"1 of 1 candidates in [\d.]+ ms", shown)
    assert "stages in ms: " in shown
    assert astrocyte("recall", bank, "terrier", "--tag", "none of these").stdout.startswith("No hits.")
    assert astrocyte("forget", bank, "--tag", "unknown").stdout == "No matching memories.\n"


def test_content_from_standard_input(astrocyte: Command, bank: str) -> None:
    kept = answer(astrocyte("--json", "retain", bank, "-", "--type", "document", input="One.\n\nTwo.\n"))
    assert kept["memory_layer"] == "semantic"


def test_import_is_resumable_and_accounts_for_every_line(astrocyte: Command, bank: str) -> None:
    lines = EXAMPLE.read_text(encoding="utf-8").count("\n")
    first = answer(astrocyte("--json", "import", bank, EXAMPLE))
    assert (first.pop("format"), first.pop("memories")) == ("jsonl", lines)
    assert sum(first.pop("speakers").values()) == lines
    assert first.pop("sessions") > 1
    assert first.pop("first") < first.pop("last")
    assert first.pop("metadata") == {"id": lines}
    assert first == {
        "dry_run": False,
        "created": lines,
        "updated": 0,
        "skipped": 0,
        "failed": 0,
        "failures": [],
    }
    second = astrocyte("import", bank, EXAMPLE)
    assert second.stdout == f"{lines} memories: {lines} skipped\n"
    stats = answer(astrocyte("--json", "banks", "show", bank))["stats"]
    assert stats["memory_count"] == lines


def test_import_refuses_the_file_before_it_stores_a_line(astrocyte: Command, bank: str, tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    file.write_text('{"content": "fine"}\n\n{"content": "a", "colour": ["red"]}\n{"content": 3}\n', encoding="utf-8")
    result = astrocyte("import", bank, file)
    assert result.exit_code == 2
    assert f"{file}, line 3: colour: expected text, a number, " in result.stderr
    assert f"{file}, line 4: content: expected text, got 3" in result.stderr
    assert "2 invalid entries; nothing was stored" in result.stderr
    assert astrocyte("banks", "show", bank).exit_code == 3


def test_import_reports_what_the_gate_refuses(astrocyte: Command, bank: str, tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    file.write_text('{"content": "fine"}\n{"content": "tagged", "tags": ["a\\u0000b"]}\n', encoding="utf-8")
    checked = astrocyte("import", bank, file, "--check")
    assert checked.stdout.startswith("JSON Lines: 2 memories; nothing was stored.\n")
    result = astrocyte("--json", "import", bank, file)
    assert result.exit_code == 7
    report = json.loads(result.stdout)
    assert (report["created"], report["failed"]) == (1, 1)
    assert report["failures"][0]["place"] == "line 2"
    assert "tags" in report["failures"][0]["error"]


def test_banks(astrocyte: Command, bank: str) -> None:
    made = answer(astrocyte("--json", "banks", "create", bank, "--name", "The family", "--description", "Us"))
    assert (made["display_name"], made["description"]) == ("The family", "Us")
    assert astrocyte("banks", "create", bank).exit_code == 5
    assert bank in [entry["bank_id"] for entry in answer(astrocyte("--json", "banks", "list", "--prefix", bank[:5]))]
    assert "The family" in astrocyte("banks", "show", bank).stdout
    health = answer(astrocyte("--json", "banks", "health", bank))
    assert health["status"] in {"healthy", "warning", "critical"}
    assert health["metrics"]["retain_count"] == sum(day["retain_count"] for day in health["trend"])
    assert "score" in astrocyte("banks", "health", bank).stdout
    assert "The family" in astrocyte("banks", "list").stdout
    assert astrocyte("banks", "delete", bank).exit_code == 2, "no terminal to ask at"
    assert answer(astrocyte("--json", "banks", "delete", bank, "--yes")) == {"bank_id": bank, "deleted_count": 0}
    assert astrocyte("banks", "delete", bank, "--yes").exit_code == 3


def test_a_bank_of_foreign_vectors(astrocyte: Command, bank: str) -> None:
    made = answer(astrocyte("--json", "banks", "create", bank, "--model", "mine", "--dimensions", "3"))
    assert (made["embedding_model"], made["dimensions"]) == ("mine", 3)
    refused = astrocyte("retain", bank, "no vector")
    assert refused.exit_code in {2, 5}
    assert refused.stderr.startswith("astrocyte: ")


def test_info(astrocyte: Command) -> None:
    found = answer(astrocyte("--json", "info"))
    assert found["store"] == "sqlite"
    assert found["core_version"] in astrocyte("info").stdout


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("recall", "nobody", "anything"), 3, "bank 'nobody' does not exist"),
        (("retain", "no bank!", "text"), 2, "bank_id: "),
        (("retain", "bank", ""), 2, "content: "),
        (("recall", "bank", "text", "-k", "1000"), 2, "max_results: "),
        (("forget", "bank", "--yes"), 2, "selector"),
    ],
)
def test_errors_end_in_one_line_and_a_code(
    astrocyte: Command, arguments: tuple[str, ...], code: int, message: str
) -> None:
    astrocyte("retain", "bank", "a memory")
    result = astrocyte(*arguments)
    assert result.exit_code == code, result.stderr
    assert message in result.stderr
    assert result.stderr.startswith("astrocyte: ")
    assert result.stderr.count("\n") == 1


def test_forget_asks(local: Command) -> None:
    local("retain", "family", "a memory")
    result = local("forget", "family", "--all")
    assert result.exit_code == 2
    assert "standard input is not a terminal: confirm with --yes" in result.stderr
    assert answer(local("--json", "banks", "show", "family"))["stats"]["memory_count"] == 1


def test_a_server_out_of_reach() -> None:
    # Port 1 of this machine: nobody listens there.
    result = CliRunner().invoke(cli, ["--server", "127.0.0.1:1", "info"])
    assert result.exit_code == 6
    assert result.stderr.count("\n") == 1


def test_one_place_at_a_time(tmp_path: Path) -> None:
    both = ["--data-dir", str(tmp_path), "info"]
    result = CliRunner().invoke(cli, ["--server", "127.0.0.1:1", *both])
    assert result.exit_code == 2
    assert "--server and --data-dir exclude each other" in result.stderr
    # A directory on the command line is meant, whatever the environment says.
    named = CliRunner().invoke(cli, both, env={"ASTROCYTE_ADDRESS": "127.0.0.1:1"})
    assert named.exit_code == 0, named.stderr


def test_a_directory_that_is_in_use(tmp_path: Path) -> None:
    with running_server(tmp_path):
        result = CliRunner().invoke(cli, ["--data-dir", str(tmp_path / "data"), "info"])
    assert result.exit_code == 5
    assert "to use a running server, pass --server" in result.stderr


def test_settings_that_cannot_be_used(tmp_path: Path) -> None:
    config = tmp_path / "astrocyte.yaml"
    config.write_text("server:\n  prot: 1\n", encoding="utf-8")
    result = CliRunner().invoke(cli, ["--config", str(config), "info"])
    assert result.exit_code == 2
    assert "line 2: server.prot is not a setting; did you mean server.port?" in result.stderr


def test_an_exposed_server_refuses_to_start(tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["--data-dir", str(tmp_path / "data"), "serve", "--host", "0.0.0.0"])  # noqa: S104
    assert result.exit_code == 2
    assert "TLS" in result.stderr
    assert not (tmp_path / "data").exists(), "a store was opened for nothing"


def test_faults_show_their_place_on_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise KeyError("lost")

    monkeypatch.setattr("astrocyte.app.App.__init__", broken)
    place = ["--data-dir", str(tmp_path)]
    quiet = CliRunner().invoke(cli, [*place, "info"])
    assert quiet.exit_code == 1
    assert quiet.stderr == "astrocyte: KeyError: 'lost'; this is a bug, use --debug for a traceback\n"
    loud = CliRunner().invoke(cli, [*place, "--debug", "info"])
    assert isinstance(loud.exception, KeyError)


def test_version() -> None:
    assert CliRunner().invoke(cli, ["--version"]).stdout.startswith("astrocyte, version ")


def test_grants_on_a_directory_and_who_asks(local: Command, tmp_path: Path) -> None:
    settings = tmp_path / "astrocyte.yaml"
    settings.write_text("access_control:\n  enabled: true\n  default_policy: deny\n")
    controlled = ["--config", str(settings)]
    assert local(*controlled, "retain", "notes", "sesame").exit_code == 0
    assert (
        "user:bob now has read, write on notes"
        in local(*controlled, "access", "grant", "notes", "user:bob", "write", "read").stdout
    )
    assert local(*controlled, "access", "check", "notes", "--principal", "user:bob").stdout == "read, write\n"
    check = ("access", "check", "notes", "--principal", "user:bob", "--permission")
    assert local(*controlled, *check, "forget").exit_code == 4
    assert local(*controlled, *check, "read").exit_code == 0
    (grant,) = answer(local("--json", *controlled, "access", "list", "--bank", "notes"))
    assert grant["granted_by"] == "local"
    assert local(*controlled, "access", "revoke", "notes", "user:bob").stdout == "Revoked read, write.\n"
    assert "nothing was revoked" in local(*controlled, "access", "revoke", "notes", "user:bob").stdout
    assert "user:bob" in local(*controlled, "access", "list", "--revoked").stdout
    assert local(*controlled, "access", "grant", "notes", "user:bob", "own").exit_code == 2
    assert local("access", "grant", "notes", "user:bob", "read").exit_code == 5


def test_keys_are_minted_listed_and_revoked(local: Command) -> None:
    minted = local("keys", "mint", "assistant", "agent:a", "--days", "90")
    assert re.fullmatch(r"astro_[0-9a-f]{16}_[\w-]{43}\n", minted.stdout)
    assert "of agent:a, tenant default, until" in minted.stderr
    key = minted.stdout.split("_")[1]
    (listed,) = answer(local("--json", "keys", "list"))
    assert (listed["key_id"], listed["created_by"], listed["revoked_at"]) == (key, "local", None)
    assert local("keys", "revoke", key).stdout == f"Revoked {key} (assistant, agent:a).\n"
    assert "agent:a" in local("keys", "list").stdout
    assert local("keys", "revoke", "nobody").exit_code == 3


def test_a_tenant_has_its_own_banks_and_keys(local: Command) -> None:
    assert local("--tenant", "acme", "retain", "notes", "hers alone").exit_code == 0
    assert local("recall", "notes", "hers").exit_code == 3
    assert "hers alone" in local("--tenant", "acme", "recall", "notes", "hers").stdout
    assert "tenant acme" in local("--tenant", "acme", "keys", "mint", "a", "agent:a").stderr
    assert answer(local("--json", "keys", "list")) == []


def test_a_server_knows_its_tenant_by_the_credential(address: str) -> None:
    refused = CliRunner().invoke(cli, ["--server", address, "--tenant", "acme", "banks", "list"])
    assert refused.exit_code == 4
    assert "not what the credential says" in refused.stderr


def test_holds_and_the_trail(astrocyte: Command, bank: str) -> None:
    assert astrocyte("retain", bank, "Mara plays the oboe.").exit_code == 0
    name = f"case-{bank}"
    placed = astrocyte("holds", "place", bank, "--reason", "Case 4711", "--id", name)
    assert placed.stdout == f"{name} holds everything in {bank}.\n"
    refused = astrocyte("forget", bank, "--all", "--yes")
    assert refused.exit_code == 5
    assert name in refused.stderr
    (hold,) = answer(astrocyte("--json", "holds", "list", "--bank", bank))
    assert (hold["reason"], hold["released_by"]) == ("Case 4711", None)
    assert "Released by local" in astrocyte("holds", "release", bank, name).stdout
    assert astrocyte("holds", "list", "--bank", bank).stdout == "There are no holds.\n"
    (ended,) = answer(astrocyte("--json", "holds", "list", "--bank", bank, "--released"))
    assert (ended["hold_id"], ended["released_by"]) == (name, "local")
    assert "Case" in astrocyte("holds", "list", "--bank", bank, "--released").stdout
    assert "hold_placed" in astrocyte("audit", "list", "--bank", bank).stdout
    events = answer(astrocyte("--json", "audit", "list", "--bank", bank))
    assert [event["event"] for event in events] == ["hold_placed", "hold_released"]
    verified = astrocyte("audit", "verify")
    assert re.fullmatch(r"\d+:[0-9a-f]{64}\n", verified.stdout)
    assert astrocyte("audit", "verify", "--noted", verified.stdout).exit_code == 0
    other = f"1:{'0' * 64}"
    broken = astrocyte("audit", "verify", "--noted", other)
    assert (broken.exit_code, broken.stdout) == (4, "")
    assert "row 1" in broken.stderr
    assert astrocyte("audit", "verify", "--noted", "7").exit_code == 2
