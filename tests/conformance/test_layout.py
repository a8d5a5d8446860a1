"""Habits of the tree that no linter knows: each test names what broke the habit."""

import ast
import importlib
import importlib.metadata
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

import astrocyte
from astrocyte import _core  # noqa: TID251 - the test is about the border

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python/astrocyte"
SOURCES = sorted(path for path in PACKAGE.rglob("*.py") if "v1" not in path.relative_to(PACKAGE).parts)
CORE = (PACKAGE / "core.py").read_text(encoding="utf-8")
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")


# Modules of an extra, and the package that it brings.
OPTIONAL = {
    "astrocyte.gateway": "uvicorn",
    "astrocyte.gateway.application": "starlette",
    "astrocyte.gateway.calls": "orjson",
    "astrocyte.gateway.exchange": "orjson",
    "astrocyte.gateway.handshakes": "uvicorn",
    "astrocyte.gateway.listener": "uvicorn",
    "astrocyte.gateway.openapi": "orjson",
    "astrocyte.gateway.pages": "starlette",
    "astrocyte.gateway.protocol": "httptools",
    "astrocyte.gateway.requests": "orjson",
    "astrocyte.pipelines.query.multilingual_dates": "dateparser",
    "astrocyte.providers.openai": "httpx_sse",
    "astrocyte.providers.fastembed": "fastembed",
    "astrocyte.policy.auth.jwks": "jwt",
    "astrocyte.policy.observability.gauges": "prometheus_client",
    "astrocyte.policy.observability.metrics": "prometheus_client",
    "astrocyte.policy.observability.metrics_middleware": "prometheus_client",
    "astrocyte.policy.observability.cardinality": "prometheus_client",
    "astrocyte.policy.observability.tracing_middleware": "opentelemetry",
    "astrocyte.policy.observability.tracing": "opentelemetry",
    "astrocyte.policy.auth.jwt_verifier": "jwt",
    "astrocyte.providers.cross_encoder": "fastembed",
    "astrocyte.providers.storage.elasticsearch": "httpx",
    "astrocyte.providers.storage.elasticsearch.conditions": "httpx",
    "astrocyte.providers.storage.elasticsearch.documents": "httpx",
    "astrocyte.providers.storage.elasticsearch.indexes": "httpx",
    "astrocyte.providers.storage.neo4j": "neo4j",
    "astrocyte.providers.storage.neo4j.conditions": "neo4j",
    "astrocyte.providers.storage.neo4j.database": "neo4j",
    "astrocyte.providers.storage.neo4j.graph": "neo4j",
    "astrocyte.providers.ingest.feed": "feedparser",
    "astrocyte.providers.ingest.github": "httpx",
    "astrocyte.providers.ingest.json_endpoint": "httpx",
    "astrocyte.providers.ingest.requests": "httpx",
    "astrocyte.providers.proxy.credentials": "httpx",
    "astrocyte.providers.proxy.egress": "httpx",
    "astrocyte.providers.proxy.engine": "httpx",
    "astrocyte.providers.storage.postgres": "psycopg",
    "astrocyte.providers.storage.postgres.database": "psycopg",
    "astrocyte.providers.storage.postgres.documents": "psycopg",
    "astrocyte.providers.storage.postgres.graph": "psycopg",
    "astrocyte.providers.storage.postgres.table": "psycopg",
    "astrocyte.providers.storage.postgres.vectors": "psycopg",
    "astrocyte.providers.storage.qdrant": "qdrant_client",
    "astrocyte.providers.storage.qdrant.collections": "qdrant_client",
    "astrocyte.providers.storage.qdrant.points": "qdrant_client",
    "astrocyte.providers.storage.qdrant.vectors": "qdrant_client",
    "astrocyte.stores.postgres": "psycopg",
    "astrocyte.stores.postgres.engine": "psycopg",
    "astrocyte.stores.postgres.engine.connection": "psycopg",
    "astrocyte.stores.postgres.engine.connections": "psycopg",
    "astrocyte.stores.postgres.engine.dialect": "psycopg",
    "astrocyte.stores.postgres.engine.errors": "psycopg",
    "astrocyte.stores.postgres.engine.migrations": "psycopg",
    "astrocyte.stores.postgres.engine.sharing": "psycopg",
    "astrocyte.stores.postgres.engine.values": "psycopg",
    "astrocyte.stores.postgres.leases": "psycopg",
    "astrocyte.stores.postgres.engine.sealing": "psycopg",
    "astrocyte.stores.postgres.sealed_banks": "psycopg",
    "astrocyte.stores.postgres.store": "psycopg",
    "astrocyte.stores.postgres.vacuum": "psycopg",
    "astrocyte.stores.sealing.cipher": "cryptography",
    "astrocyte.stores.sealing.key_database": "psycopg",
    "astrocyte.stores.sealing.key_stores": "cryptography",
    "astrocyte.stores.sealing.keyring": "cryptography",
    "astrocyte.stores.transfer": "psycopg",
}
MODULES = [module_name(path) for path in SOURCES if path.name != "__main__.py"]


@pytest.mark.parametrize("name", MODULES)
def test_all_names_what_exists(name: str) -> None:
    if name in OPTIONAL:
        pytest.importorskip(OPTIONAL[name], reason="an extra that is not installed")
    module = importlib.import_module(name)
    missing = [export for export in getattr(module, "__all__", ()) if not hasattr(module, export)]
    assert missing == []


def test_the_package_exports_what_all_says() -> None:
    ours = {
        name
        for name, value in vars(astrocyte).items()
        if not name.startswith("_") and getattr(value, "__module__", "").startswith("astrocyte.")
    }
    assert len(ours) > 10
    assert ours - set(astrocyte.__all__) == set()
    assert list(astrocyte.__all__) == sorted(astrocyte.__all__)


def imports_of(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found


def test_only_core_imports_the_extension() -> None:
    importers = {module_name(path) for path in SOURCES if "astrocyte._core" in imports_of(path)}
    assert importers == {"astrocyte.core"}


def test_generated_names_stay_at_the_doors() -> None:
    doors = ("astrocyte.services", "astrocyte.server", "astrocyte.client", "astrocyte.cli")
    users = {module_name(path) for path in SOURCES if any(name.startswith("astrocyte.v1") for name in imports_of(path))}
    assert {name for name in users if not name.startswith(doors)} == set()


def test_the_stub_lists_the_extension() -> None:
    stub = ast.parse((PACKAGE / "_core.pyi").read_text(encoding="utf-8"))
    assigned = [
        node for node in stub.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    ]
    listed = ast.literal_eval(assigned[0].value)
    assert listed == sorted(listed)
    assert set(listed) == {name for name in dir(_core) if not name.startswith("_")}


def test_every_name_of_the_extension_is_used() -> None:
    unused = [name for name in dir(_core) if not name.startswith("_") and not re.search(rf"\b{name}\b", CORE)]
    assert unused == []


def test_extension_classes_are_frozen_and_know_their_module() -> None:
    loose = [
        f"{path.name}: {attribute}"
        for path in sorted((ROOT / "rust_core/python").rglob("*.rs"))
        for attribute in re.findall(r"^#\[pyclass.*?\]$", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
        if "frozen" not in attribute or 'module = "astrocyte._core"' not in attribute
    ]
    assert loose == []


def test_only_the_python_layer_names_pyo3() -> None:
    sources = ROOT / "rust_core"
    users = [
        path.relative_to(sources).as_posix()
        for path in sorted(sources.rglob("*.rs"))
        if re.search(r"\bpyo3\b", path.read_text(encoding="utf-8")) and path.relative_to(sources).parts[0] != "python"
    ]
    assert users == []


def floor(distribution: str) -> str:
    found = [line for line in PYPROJECT["project"]["dependencies"] if re.match(rf"{distribution}>=", line)]
    return re.match(r".*>=([\d.]+),<\d+$", found[0])[1]  # type: ignore[index] # a line without bounds fails here


def test_dependencies_have_a_floor_and_a_ceiling() -> None:
    optional = PYPROJECT["project"]["optional-dependencies"]
    lines = [*PYPROJECT["project"]["dependencies"], *(line for extra in optional.values() for line in extra)]
    assert [line for line in lines if not re.match(r"[\w-]+(?:\[[\w,]+\])?(>=[\d.]+,<[\d.]+|==[\d.]+)$", line)] == []


def test_floors_are_those_of_the_generated_code() -> None:
    generated = PACKAGE / "v1"
    protobuf = {
        re.search(r"Protobuf Python Version: ([\d.]+)", path.read_text(encoding="utf-8"))[1]  # type: ignore[index]
        for path in generated.glob("*_pb2.py")
    }
    grpc = {
        re.search(r"GRPC_GENERATED_VERSION = '([\d.]+)'", path.read_text(encoding="utf-8"))[1]  # type: ignore[index]
        for path in generated.glob("*_pb2_grpc.py")
    }
    assert protobuf == {floor("protobuf")}
    assert grpc == {floor("grpcio")}


def test_versions_agree() -> None:
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["package"]["version"]
    assert PYPROJECT["project"]["version"] == workspace == importlib.metadata.version("astrocyte-grpc")


def test_entry_points_load() -> None:
    embedders = importlib.metadata.entry_points(group="astrocyte.embedders")
    assert {point.name for point in embedders} >= {"static", "openai", "fastembed"}
    models = importlib.metadata.entry_points(group="astrocyte.language_models")
    assert {point.name for point in models} >= {"anthropic", "mock", "openai"}
    # Extras that are not installed; the module itself is there.
    optional = set(OPTIONAL.values())
    loaded = {point.name: load(point) for point in (*embedders, *models)}
    assert [name for name, found in loaded.items() if not callable(found) and found not in optional] == []


def load(point: importlib.metadata.EntryPoint) -> object:
    try:
        return point.load()
    except ModuleNotFoundError as error:
        return error.name


def tracked_files() -> list[Path]:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout.decode().split("\0")
    return [ROOT / name for name in names if name and (ROOT / name).is_file()]


# Home and work directories of some machine, and hosts that packages come from: none of them is anybody else's.
HOST_SPECIFIC = re.compile(rb"(?<![\w.:])/(?:root|work|home|Users)/\w|/opt/wheels|files\.pythonhosted|pypi\.org/simple")


def test_no_file_names_a_machine() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout: only git knows which files belong to the project")
    named = [
        f"{path.relative_to(ROOT)}: {found[0].decode()}"
        for path in tracked_files()
        if path != Path(__file__).resolve() and (found := HOST_SPECIFIC.search(path.read_bytes()))
    ]
    assert named == []
