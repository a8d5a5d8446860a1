import sys
from importlib.metadata import EntryPoint
from typing import Any

import pytest

import astrocyte
from astrocyte import pipeline
from astrocyte.errors import ConfigError
from astrocyte.pipeline import extraction
from astrocyte.providers import registry
from astrocyte.providers.registry import create_embedder, create_language_model, create_vector_store


def test_the_static_embedder_is_there() -> None:
    embedder = create_embedder("static", {})
    assert embedder.local
    assert embedder.dimensions == 256
    assert len(embedder.embed_now(["hello"])[0]) == 4 * 256


def test_a_name_that_is_none_suggests_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean 'openai'"):
        create_embedder("openia", {})


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "astrocyte.providers.openai", None)
    monkeypatch.delitem(sys.modules, "httpx", raising=False)
    monkeypatch.setattr(registry, "import_module", _without_httpx)
    with pytest.raises(ConfigError, match=r"needs httpx: pip install 'astrocyte-grpc\[openai\]'") as caught:
        create_embedder("openai", {"model": "m", "dimensions": 2})
    assert caught.value.metadata["extra"] == "openai"


def _without_httpx(name: str) -> Any:
    raise ModuleNotFoundError(f"No module named 'httpx', wanted by {name}", name="httpx")


def test_an_entry_point_of_another_distribution_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("mine", f"{__name__}:create", registry.GROUP)
    broken = EntryPoint("broken", "no.such.module:create", registry.GROUP)
    monkeypatch.setattr(registry, "entry_points", lambda group: [point, broken] if group == registry.GROUP else [])
    monkeypatch.setattr(EntryPoint, "load", lambda self: create if self.name == "mine" else _raise_import())
    made: Any = create_embedder("mine", {"a": 1})
    assert made == {"a": 1}
    with pytest.raises(ConfigError, match="cannot be loaded"):
        create_embedder("broken", {})


def create(options: dict[str, Any]) -> Any:
    return options


def _raise_import() -> Any:
    raise ImportError("no module")


@pytest.mark.parametrize(
    ("options", "message"),
    [({"tabel": "x"}, "did you mean table"), ({"table": "/none/such"}, "cannot read"), ({"table": 3}, "table")],
)
def test_options_that_are_wrong(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        create_embedder("static", options)


def test_there_may_be_no_language_model() -> None:
    assert create_language_model("none", {}) is None
    with pytest.raises(ConfigError, match="no effect while llm_provider is none"):
        create_language_model("none", {"model": "m"})


def test_a_language_model_of_another_distribution_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("mine", "astrocyte.providers.mock:create", registry.LANGUAGE_MODELS)
    monkeypatch.setattr(registry, "entry_points", lambda group: [point] if group == registry.LANGUAGE_MODELS else [])
    made = create_language_model("mine", {"replies": ["hello"]})
    assert made is not None
    assert made.model_id == "mock"
    with pytest.raises(ConfigError, match=r"llm_provider: there is no provider 'mien'; did you mean 'mine'\?"):
        create_language_model("mien", {})


def test_pgvector_names_the_store_of_postgresql() -> None:
    for name in ("pgvector", "postgres"):
        store = create_vector_store(name, {"dsn": "postgresql://nobody@localhost:1/none"})
        assert type(store).__module__.startswith("astrocyte.providers.storage.postgres")


def test_names_of_the_pipeline_are_those_of_the_package() -> None:
    for name in extraction.__all__:
        assert getattr(pipeline, name) is getattr(extraction, name) is getattr(astrocyte, name)
