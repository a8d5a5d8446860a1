"""Documentation tests: lists are complete, references are current, links resolve, and every Python example runs."""

import ast
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from opentelemetry import trace
from opentelemetry.util._once import Once

from astrocyte.cli import cli
from astrocyte.config import load_settings
from astrocyte.v1 import admin_pb2, agent_memory_pb2, errors_pb2, graph_pb2, knowledge_pb2, memory_pb2
from harness.processes import running_server

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
CALLS = [
    method.name
    for module in (memory_pb2, graph_pb2, admin_pb2, agent_memory_pb2, knowledge_pb2)
    for service in module.DESCRIPTOR.services_by_name.values()
    for method in service.methods
]


def commands(group: click.Group = cli, path: tuple[str, ...] = ("astrocyte",)) -> Iterator[tuple[str, click.Command]]:
    for name, command in sorted(group.commands.items()):
        yield " ".join((*path, name)), command
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))


COMMANDS = dict(commands())


def test_references_are_current() -> None:
    check = [sys.executable, "scripts/reference.py", "--check"]
    done = subprocess.run(check, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("document", ["README.md", "docs/api.md"])
def test_every_call_is_listed(document: str) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    assert [call for call in CALLS if f"`{call}`" not in text] == []


def test_every_reason_is_documented() -> None:
    text = (ROOT / "docs/errors.md").read_text(encoding="utf-8")
    reasons = [name.removeprefix("ERROR_REASON_") for name in errors_pb2.ErrorReason.keys()]  # noqa: SIM118 - an enum, not a mapping
    assert [reason for reason in reasons if reason != "UNSPECIFIED" and f"`{reason}`" not in text] == []


@pytest.mark.parametrize("path", list(COMMANDS))
def test_every_command_teaches(path: str) -> None:
    command = COMMANDS[path]
    text = (ROOT / "docs/cli.md").read_text(encoding="utf-8")
    assert f"## {path}\n" in text
    assert command.help, "a command without help"
    assert "astrocyte " in command.help, "a help without an example"
    silent = [option.name for option in command.params if isinstance(option, click.Option) and not option.help]
    assert silent == [], "options without help"


def test_every_option_of_a_provider_is_documented() -> None:
    text = "".join(
        [
            (ROOT / "docs" / name).read_text(encoding="utf-8")
            for name in ("embedders.md", "language-models.md", "stores.md", "engines.md", "extending.md", "ingest.md")
        ]
    )
    options = [
        option.target.id
        for path in [*(ROOT / "python/astrocyte/providers").rglob("*.py"), ROOT / "python/astrocyte/federation.py"]
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef) and node.name.endswith("Options")
        for option in node.body
        if isinstance(option, ast.AnnAssign) and isinstance(option.target, ast.Name)
    ]
    assert len(options) > 10
    assert [option for option in options if f"`{option}`" not in text] == []


@pytest.mark.parametrize("document", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_named_files_exist(document: str) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    paths = re.findall(r"`((?:python|rust_core|tests|proto|benches|scripts)/[\w./]+)", text)
    assert len(paths) > 10
    assert [path for path in paths if not (ROOT / path).exists()] == []


def configurations() -> Iterator[pytest.param]:  # type: ignore[valid-type] # pytest.param is a function
    for document in DOCUMENTS:
        text = document.read_text(encoding="utf-8")
        for found in re.finditer(r"^```yaml\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
            line = text.count("\n", 0, found.start()) + 1
            yield pytest.param(found[1], id=f"{document.relative_to(ROOT)}:{line}")


@pytest.mark.parametrize("configuration", list(configurations()))
def test_configurations_load(configuration: str, tmp_path: Path) -> None:
    path = tmp_path / "astrocyte.yaml"
    path.write_text(configuration, encoding="utf-8")
    # Those without a default, which a reader sets.
    variables = re.findall(r"\$\{(\w+)\}", configuration)
    environ = {name: "0" * 64 if name.endswith("_SHA256") else "given" for name in variables}
    assert load_settings(path, environ=environ).model_fields_set


def links(document: Path) -> list[str]:
    return re.findall(r"\]\(([^)#:]+)\)", document.read_text(encoding="utf-8"))


@pytest.mark.parametrize("document", [*DOCUMENTS, ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md"], ids=str)
def test_links_lead_somewhere(document: Path) -> None:
    assert [link for link in links(document) if not (document.parent / link).exists()] == []


def examples() -> Iterator[pytest.param]:  # type: ignore[valid-type] # pytest.param is a function
    """Yield each program with the settings above it."""
    for document in DOCUMENTS:
        text = document.read_text(encoding="utf-8")
        settings = ""
        for found in re.finditer(r"^```(python|yaml)\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
            if found[1] == "yaml":
                settings = found[2]
                continue
            line = text.count("\n", 0, found.start()) + 1
            yield pytest.param(found[2], settings, id=f"{document.relative_to(ROOT)}:{line}")


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a server process."""
    with running_server(tmp_path_factory.mktemp("server")) as address:
        yield address


# One process for all examples: starting an interpreter costs more than running one.
@pytest.mark.process
@pytest.mark.parametrize(("example", "settings"), list(examples()))
def test_examples_run(
    example: str, settings: str, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    # An example sets the tracer provider of the process, which OpenTelemetry allows once.
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", None)
    monkeypatch.setattr(trace, "_TRACER_PROVIDER_SET_ONCE", Once())
    Path("astrocyte.yaml").write_text(settings, encoding="utf-8")
    program = tmp_path / "example.py"
    program.write_text(example.replace("localhost:50051", address), encoding="utf-8")
    runpy.run_path(str(program), run_name="__main__")
