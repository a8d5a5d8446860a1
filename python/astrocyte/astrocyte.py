"""The Python API: the same operations in process and, through `astrocyte.connect`, over the wire.

async with Astrocyte.from_config("astrocyte.yaml") as brain:
    await brain.retain("Mara cannot eat sesame.", bank_id="family")
    result = await brain.recall("what can Mara not eat?", bank_id="family")
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from astrocyte.api import Backend
from astrocyte.config import HookSettings, Settings, load_settings
from astrocyte.core import vector_bytes
from astrocyte.errors import CapabilityNotSupported
from astrocyte.facade.administration import Administration
from astrocyte.facade.agent_memory import AgentMemories
from astrocyte.facade.entity_graph import EntityGraph
from astrocyte.facade.knowledge import Knowledge
from astrocyte.facade.memories import Memories
from astrocyte.facade.portability import Portability
from astrocyte.facade.retrieval import Retrieval
from astrocyte.facade.unsupported import Unsupported
from astrocyte.facade.wiki import Wiki
from astrocyte.model import (
    Embedding,
)
from astrocyte.policy.engines.registry import Engines
from astrocyte.policy.observability.hooks_middleware import Hookable
from astrocyte.providers.engines import EngineProvider
from astrocyte.providers.hybrid import HybridEngineProvider
from astrocyte.shared_kb import SharedKnowledge

if TYPE_CHECKING:
    # A client of a server has no sources.
    from astrocyte.ingest import IngestTarget, SourceRegistry


class Astrocyte(
    Memories,
    Retrieval,
    Administration,
    AgentMemories,
    SharedKnowledge,
    EntityGraph,
    Knowledge,
    Portability,
    Wiki,
    Hookable,
    Unsupported,
):
    """Memory for agents.

    Make one by `from_config` or `from_config_dict`, or `astrocyte.connect` for a server's; close it at the end, or use
    it as an async context manager. Every method checks its arguments first and raises `ValidationError` for a wrong
    one; ``context`` says who calls, and defaults to the local user.

    Args:
        backend: What does the work.
        hooks: How hooks are called; None where policies are applied in another process, and what they do is not known.
        engines: The engines of this process; None where another process has them.
        sources: The sources of this process; None where another process has them.
    """

    def __init__(
        self,
        backend: Backend,
        hooks: HookSettings | None = None,
        engines: Engines | None = None,
        sources: SourceRegistry | None = None,
    ) -> None:
        self._backend = backend
        self._hook_settings = hooks
        self._engines = engines
        self._sources = sources

    @classmethod
    def from_config(cls, path: str | Path) -> Self:
        """Memory in this process, as a YAML file and the environment say.

        Raises:
            ConfigError: A setting is wrong; the message names its line.
            StoreLocked: Another process has the data directory.
        """
        return cls._opened(load_settings(path))

    @classmethod
    def from_config_dict(cls, config: Mapping[str, Any]) -> Self:
        """Memory in this process, as a dictionary of settings says; the environment is not read.

        Raises:
            ConfigError: A setting is wrong.
            StoreLocked: Another process has the data directory.
        """
        return cls._opened(Settings.from_mapping(config))

    @classmethod
    def _opened(cls, settings: Settings) -> Self:
        from astrocyte.app import App  # noqa: PLC0415 - a client of a server needs no store

        app = App(settings)
        return cls(app.backend, settings.hooks, app.providers.engines, app.sources)

    async def __aenter__(self) -> Self:
        """Start the configured sources that are read, such as streams and polls; `close` stops them."""
        if self._sources is not None:
            self._sources.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def set_engine_provider(self, engine: HybridEngineProvider | EngineProvider) -> None:
        """Let an engine stand beside the pipeline of this process; a bare one takes its place (docs/engines.md).

        Raises:
            CapabilityNotSupported: The memory is a server's, whose configuration names its engines.
            ConfigError: The engine cannot do what it should, or its name is taken.
        """
        if self._engines is None:
            raise CapabilityNotSupported("engines of a server are set in its configuration; add one under engines")
        self._engines.attach(engine)

    async def start_sources(self) -> None:
        """Read the streams and polls of ``sources``, as ``async with`` does by itself; a second call does nothing.

        Deliveries of webhooks come through `astrocyte.gateway.create_ingest_webhook_app`, or to a server.

        Raises:
            CapabilityNotSupported: The memory is a server's, which runs its sources by itself.
        """
        self.source_registry.start()

    async def stop_sources(self) -> None:
        """Stop reading; what is not acknowledged comes again after the next start. A second call does nothing.

        Raises:
            CapabilityNotSupported: The memory is a server's.
        """
        await self.source_registry.stop()

    @property
    def source_registry(self) -> SourceRegistry:
        """The configured sources of this process.

        Raises:
            CapabilityNotSupported: The memory is a server's.
        """
        if self._sources is None:
            raise CapabilityNotSupported("sources of a server are in its configuration, and run there")
        return self._sources

    def ingest_target(self) -> IngestTarget:
        """The target of sources that a program runs by itself (docs/ingest.md).

        Raises:
            CapabilityNotSupported: The memory is a server's.
        """
        return self.source_registry.target


def make_embedding(model: str, values: Sequence[float]) -> Embedding:
    """A vector of your own for retain, update and recall.

    Args:
        model: Name of the model that made it; it must be the bank's.
        values: A list or a one-dimensional array; need not be of length 1.

    Raises:
        ValidationError: A value is no number, or too large for 32 bits.
    """
    return Embedding(model, len(values), vector_bytes(values))
