"""The composition root: an application built from settings. `astrocyte.wiring` builds its parts."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
from collections.abc import Callable
from datetime import UTC, datetime
from time import monotonic

import apsw
import structlog

from astrocyte.config import Settings
from astrocyte.config.loading.environment import package_version
from astrocyte.core import build_info
from astrocyte.errors import AstrocyteError, frames
from astrocyte.ingest import IngestTarget, SourceRegistry
from astrocyte.ingest.board import SourceBoard
from astrocyte.model import EngineOutbox, RetainItem, ServerInfo
from astrocyte.pipelines.graph.retrieval_arm import GraphArm
from astrocyte.pipelines.index.embedding_spaces import EmbeddingSpaces
from astrocyte.pipelines.sharing import Follower
from astrocyte.policy.gate import Gate
from astrocyte.policy.observability.telemetry import Telemetry
from astrocyte.policy.operations.parts import GateParts
from astrocyte.providers.registry import IN_MEMORY
from astrocyte.stores.sharing import FENCE, Fence, Told, Topic
from astrocyte.stores.sqlite import system_clock
from astrocyte.wiring.custom_stages import Stages
from astrocyte.wiring.pipelines import build_pipelines
from astrocyte.wiring.policies import build_limits, build_policies, build_rules
from astrocyte.wiring.providers import build_providers
from astrocyte.wiring.storage import Storage, build_storage

# How often a process notes what it was asked for.
FLUSH_SECONDS = 10.0

log = structlog.get_logger(__name__)


class App:
    """Everything that runs for one data directory, built from settings and released by `close`.

    Args:
        settings: The settings of the server.
        clock: Milliseconds since the epoch; tests bring their own.
        worker: Number of this process, where several share the data directory (`astrocyte.pipelines.sharing`).

    Raises:
        ConfigError: A provider or a pattern of the settings cannot be used, or a setting needs a provider that is not
            there.
        StoreError: The store cannot be opened; `StoreLocked` when another process has it.
    """

    def __init__(
        self, settings: Settings, *, clock: Callable[[], int] = system_clock, worker: int | None = None
    ) -> None:
        self.settings = settings
        self._purging: asyncio.Task[None] | None = None
        self._noting: asyncio.Task[None] | None = None
        self._next_flush = 0.0
        with contextlib.ExitStack() as undo:
            self.telemetry = telemetry = Telemetry(settings)
            undo.callback(telemetry.close)
            self.providers = providers = build_providers(settings, telemetry)
            rules = build_rules(settings, providers)
            self.storage = storage = build_storage(settings, providers, clock, undo, worker)
            graph_arm = GraphArm(
                storage.store,
                storage.store.graph,
                storage.registry,
                storage.core,
                storage.executor,
                settings.entity_graph.recall_intents,
            )
            self.stages = stages = Stages(settings, providers.language_model, rules.barriers.passages, graph_arm)
            limits = build_limits(settings, rules, storage)
            confirm = None if storage.store.leases is None else self._confirm
            self.pipelines = pipelines = build_pipelines(settings, providers, rules, storage, stages, confirm)
            undo.pop_all()
        self.policies = build_policies(settings, providers, rules, limits, storage, pipelines)
        store = storage.store
        info = _server_info(settings, storage, providers.spaces)
        board = SourceBoard(settings.sources)
        self.gate = Gate(
            GateParts(
                settings=settings,
                clock=clock,
                executor=storage.executor,
                info=info,
                lifecycle=self,
                store=store,
                grants=store.access,
                holds=store.holds,
                audit=store.audit,
                keys=store.keys,
                operations=store.operations,
                terms=store.terms,
                agent_memory=storage.agent_memory,
                core=storage.core,
                knowledge=store.knowledge,
                consolidations=store.consolidation,
                wiki=store.wiki,
                diagnosis=store.diagnosis,
                activity=store.activity,
                registry=storage.registry,
                spaces=providers.spaces,
                pipelines=telemetry.pipelines(pipelines),
                policies=self.policies,
                sources=board.listed,
                confirm=confirm,
            )
        )
        self.follower = (
            None if store.leases is None else Follower(store, store.leases, self._let_go, self._take_over, self._tick)
        )
        store.follow(self._on_told)
        telemetry.watch(store, store, storage.registry, self._outboxes)
        telemetry.watch_banks(self.policies.activity, clock)
        telemetry.watch_sources(board.listed)
        telemetry.watch_vocabulary(store.terms.count_proposed, storage.agent_memory.count_topics)
        self.backend = telemetry.backend(self.gate, info)
        self.sources = SourceRegistry(
            settings.sources,
            IngestTarget(self.backend, store.ingest, self._completed, writes=not settings.read_only),
            board,
        )

    @property
    def healthy(self) -> bool:
        """True if writes are taken; once False it stays so until the application is built anew."""
        return self.storage.store.healthy

    def start_purging(self) -> None:
        """Start the background tasks on the running loop: purges, retries, outbox relay; a second call does nothing.

        The gate calls this at its first use; a server that may wait long for its first call does it itself.
        """
        if self.follower is not None:
            self.follower.start()
        elif not self.settings.read_only:
            self._start_background()

    def _take_over(self, fence: Fence) -> None:
        """Start the background tasks of all processes on the data directory; their writes carry the fence."""
        context = contextvars.copy_context()
        context.run(FENCE.set, fence)
        if self.storage.checkpoints is not None:
            self.storage.checkpoints.writes = True
        context.run(self._start_background)

    async def _let_go(self, bank_key: int) -> None:
        """Keep nothing of what another process erased in a bank."""
        await self.storage.registry.let_go(bank_key)
        self.policies.unanswered.forget(bank_key)
        await self.storage.store.activity.drop_unanswered(bank_key)
        bank = self.storage.store.bank_of_key(bank_key)
        if bank is not None:
            # Once more, now that no answer of before can be kept any longer.
            self.pipelines.recall.forget(bank)

    async def _tick(self) -> None:
        """Do the small work that each process has, with or without the lease on background work."""
        # Operations go on in another process, which tells nobody how far it is.
        self.pipelines.reindexer.progressed()
        if monotonic() > self._next_flush:
            self._next_flush = monotonic() + FLUSH_SECONDS
            await self.pipelines.lifecycle.recalls.flush()
            await self.policies.flush()

    def _on_told(self, told: Told) -> None:
        """Look for the background work that another process noted."""
        if told.topic is Topic.WORK:
            self.pipelines.reindexer.notify()
            self.pipelines.lifecycle.notify()

    async def _confirm(self, bank_key: int) -> None:
        if self.follower is not None:
            await self.follower.confirm(bank_key)

    def _start_background(self) -> None:
        if self._purging is None:
            self._purging = asyncio.get_running_loop().create_task(self._purge_for_ever(), name="astrocyte-purge")
            if self.follower is None:
                self._noting = asyncio.get_running_loop().create_task(self._note_for_ever(), name="astrocyte-notes")
            self.policies.escalation.retries.start()
            self.policies.outbox_relay.start()
            self.pipelines.reindexer.start()
            self.pipelines.graph.start()
            self.pipelines.consolidator.start()
            self.pipelines.lifecycle.start()
            if self.storage.external is not None:
                self.storage.external.start()

    async def close(self) -> None:
        """Finish the writes that wait, then release files, threads and connections. A second call does nothing."""
        if self.follower is not None:
            await self.follower.stop()
        for task in filter(None, (self._purging, self._noting)):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        self._purging = self._noting = None
        await self.sources.stop()
        await self.policies.escalation.retries.close()
        await self.policies.outbox_relay.close()
        await self.pipelines.reindexer.close()
        await self.pipelines.graph.close()
        await self.pipelines.consolidator.close()
        await self.pipelines.lifecycle.close()
        with contextlib.suppress(AstrocyteError):
            await self.gate.keys.note()
        await self.gate.agent_memories.close()
        if not self.settings.read_only:
            with contextlib.suppress(AstrocyteError):
                await self.policies.flush()
        if self.follower is not None:
            await self.follower.leave()
        if self.storage.external is not None:
            await self.storage.external.close()
        await self.stages.close()
        await self.providers.close()
        await self.policies.limits.close()
        await self.storage.close()
        # Telemetry waits for the exporter of spans.
        await asyncio.get_running_loop().run_in_executor(None, self.telemetry.close)

    def _completed(self, bank_id: str, item: RetainItem) -> RetainItem:
        """An item with what its bank and its extraction profile add at a retain."""
        policies = self.policies
        return policies.profiles.applied(bank_id, policies.authority.stamped(bank_id, item))[0]

    def _outboxes(self) -> dict[str, EngineOutbox]:
        """The outboxes of the engines, by the engines' names."""
        states = {engine.name: self.policies.outbox_relay.state(engine) for engine in self.providers.engines}
        return {name: state for name, state in states.items() if state is not None}

    async def _note_for_ever(self) -> None:
        while True:
            await asyncio.sleep(FLUSH_SECONDS)
            try:
                await self.policies.flush()
            except AstrocyteError as error:
                log.warning("flush_failed", reason=error.reason)

    async def _purge_for_ever(self) -> None:
        storage, swept = self.storage, False
        while True:
            try:
                await self.gate.agent_memories.audit_deletions()
                erased = await storage.store.purge(storage.clock())
                if erased:
                    log.info("purged", memories=erased)
                    await storage.registry.scrub_all()
                if storage.checkpoints is not None and (erased or not swept):
                    await asyncio.get_running_loop().run_in_executor(None, storage.checkpoints.sweep)
                swept = True
            except AstrocyteError as error:
                log.warning("purge_failed", reason=error.reason)
            except Exception as error:  # noqa: BLE001 - what is due stays due, and the next round may fare better
                # No traceback: it could show the values of variables, which are content.
                log.error("purge_failed", error=type(error).__name__, frames=frames(error))  # noqa: TRY400
            await asyncio.sleep(self.settings.forget.purge_interval_seconds)


def _server_info(settings: Settings, storage: Storage, spaces: EmbeddingSpaces) -> ServerInfo:
    build = build_info()
    return ServerInfo(
        version=package_version(),
        core_version=build["version"],
        core_profile=build["profile"],
        simd=build["simd"],
        sqlite_version=apsw.sqlite_lib_version(),
        schema_version=storage.store.schema_version,
        embedding_model=spaces.default.model_id,
        dimensions=spaces.default.dimensions,
        token_table=build["token_table"],
        store=IN_MEMORY if settings.vector_store == IN_MEMORY else settings.store.backend,
        started_at=datetime.now(UTC),
        index_memory=storage.registry.memory,
        embedding_models=tuple(spaces.models),
    )
