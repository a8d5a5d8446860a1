"""Builds where memories are kept: the store, the retrieval core with the indexes, and what follows the store."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from astrocyte.config import Settings
from astrocyte.config.loading.environment import memory_limit
from astrocyte.core import Core, IndexOptions
from astrocyte.pipelines.external_stores.stores import ExternalStores
from astrocyte.pipelines.index.checkpoints import Checkpoints, remove_directory
from astrocyte.pipelines.index.registry import IndexRegistry
from astrocyte.pipelines.retain.drafts import hash_fits
from astrocyte.policy.settings.bank_settings import Overrides
from astrocyte.providers.registry import IN_MEMORY, POSTGRES, SQLITE
from astrocyte.stores.agent_memory import AgentMemoryStore
from astrocyte.stores.sqlite import open_store, system_clock
from astrocyte.stores.sqlite.agent_memory import SqliteAgentMemory
from astrocyte.stores.sqlite.engine.data_directory import AGENT_MEMORY, CHECKPOINTS, RATES, DirectoryLock
from astrocyte.stores.sqlite.store import SqliteStore
from astrocyte.wiring.bank_keys import bank_keys, check_unsealed
from astrocyte.wiring.providers import Providers
from astrocyte.wiring.shared_store import check_shared

# Share of the memory limit beyond which a bank by itself goes to the disk tier: the others would be evicted for it.
DISK_SHARE = 2
# The tier that a bank has by setting, whatever its size.
DISK = "disk"


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """Where the memories of one application are.

    Attributes:
        data_dir: None for a store in memory.
        clock: Milliseconds since the epoch.
        store: The truth; with its further tables as `access`, `audit`, `holds`, `keys`, `operations` and `outbox`.
        executor: Threads for searches and for what would hold the event loop.
        core: The retrieval core.
        checkpoints: Indexes of large banks on disk; None where none are kept.
        agent_memory: The private memories of agents.
        registry: The indexes in memory.
        external: The external stores; None where there are none.
    """

    data_dir: Path | None
    clock: Callable[[], int]
    store: SqliteStore
    executor: ThreadPoolExecutor
    core: Core
    checkpoints: Checkpoints | None
    agent_memory: AgentMemoryStore
    registry: IndexRegistry
    external: ExternalStores | None

    async def close(self) -> None:
        """Write checkpoints, and release files and threads."""
        run = asyncio.get_running_loop().run_in_executor
        # While the change log can still be read.
        await run(None, self.registry.close)
        await run(None, self.agent_memory.close)
        await run(None, self.store.close)
        self.executor.shutdown(wait=True)


def build_storage(
    settings: Settings,
    providers: Providers,
    clock: Callable[[], int],
    undo: contextlib.ExitStack,
    worker: int | None = None,
) -> Storage:
    """The storage of a data directory.

    Args:
        settings: Where, and how large.
        providers: With the external stores.
        clock: Milliseconds since the epoch.
        undo: Takes what releases the storage again where building the application fails later.
        worker: Number of this process, where several share the data directory.

    Raises:
        ConfigError: A setting needs a data directory that this server writes to, and there is none.
        StoreError: The store cannot be opened; `StoreLocked` when another process has it.
    """
    _check_tier(settings)
    in_files = settings.vector_store != IN_MEMORY and settings.store.backend == SQLITE
    data_dir = settings.data_dir.expanduser() if in_files else None
    store = store_of(settings, data_dir, clock, worker)
    undo.callback(store.close)
    agent_memory = _agent_memory(settings, data_dir, clock)
    undo.callback(agent_memory.close)
    if settings.read_only:
        # Scratch files, checkpoints and quotas would be written beside the database.
        data_dir = None
    threads = settings.index.threads or os.cpu_count() or 1
    executor = ThreadPoolExecutor(threads, thread_name_prefix="astrocyte-core")
    undo.callback(executor.shutdown)
    following = providers.external_stores
    external = (
        ExternalStores(following, store, store.following, store.graph_feed, settings, executor) if following else None
    )
    memory_bytes = settings.index.memory_bytes or memory_limit() // 2
    core = _core(settings, data_dir, memory_bytes)
    checkpoints = _checkpoints(settings, store, core, data_dir)
    of = Overrides(settings).of
    registry = IndexRegistry(
        store,
        core,
        executor,
        memory_bytes=memory_bytes,
        checkpoints=checkpoints,
        options_of=lambda bank_id: IndexOptions(of[bank_id].extraction.language, of[bank_id].index.tier),
    )
    # After the registry: an index has moved before anybody hears of it.
    store.subscribe(providers.spaces.on_commit, "moved")
    store.follow(lambda told: providers.spaces.on_told(told, store.bank_of_key(told.bank) if told.moved else None))
    return Storage(
        data_dir=data_dir,
        clock=clock,
        store=store,
        executor=executor,
        core=core,
        checkpoints=checkpoints,
        agent_memory=agent_memory,
        registry=registry,
        external=external,
    )


def _check_tier(settings: Settings) -> None:
    """Refuse the disk tier where no index may lie in files.

    Raises:
        ConfigError: The setting, with the other one that excludes it.
    """
    excluding = [
        f"{name}: {value}"
        for name, value, excludes in (
            ("vector_store", settings.vector_store, settings.vector_store == IN_MEMORY),
            ("store.backend", settings.store.backend, settings.store.backend != SQLITE),
            ("read_only", "true", settings.read_only),
        )
        if excludes
    ]
    if not excluding:
        return
    tiers: dict[tuple[str, ...], str] = {("index", "tier"): settings.index.tier}
    tiers |= {("banks", bank, "index", "tier"): own.index.tier for bank, own in settings.banks.items()}
    for path, tier in tiers.items():
        if tier == DISK:
            raise settings.refusal(
                path, f"disk needs a data directory that this server writes to; change it, or {excluding[0]}"
            )


def store_of(
    settings: Settings, data_dir: Path | None, clock: Callable[[], int] = system_clock, worker: int | None = None
) -> SqliteStore:
    """The store of the settings. Other arguments and errors are those of `build_storage`."""
    own = settings.store
    if own.backend == POSTGRES:
        check_shared(settings)
        dsn = postgres_dsn(settings)
        opened = postgres_store(settings)
        keyring = bank_keys(settings, dsn)
        try:
            return opened(dsn, clock=clock, hash_fits=hash_fits, keyring=keyring, **own.postgres)
        except BaseException:
            if keyring is not None:
                keyring.close()
            raise
    check_unsealed(settings)
    return open_store(
        data_dir, clock=clock, hash_fits=hash_fits, read_only=settings.read_only, worker=worker, **own.sqlite
    )


def postgres_dsn(settings: Settings) -> str:
    """The address of the PostgreSQL database.

    Raises:
        ConfigError: There is none.
    """
    dsn = settings.store.dsn
    if dsn is None:
        raise settings.refusal(("store", "dsn"), "the address of the PostgreSQL database is missing")
    return dsn.get_secret_value()


def postgres_store(settings: Settings) -> Callable[..., SqliteStore]:
    """Return the function that opens a store in PostgreSQL.

    Raises:
        ConfigError: The driver is not installed.
    """
    try:
        from astrocyte.stores.postgres import open_postgres_store  # noqa: PLC0415 - its driver is an extra
    except ImportError as error:
        raise settings.refusal(
            ("store", "backend"), "postgres needs its driver; install astrocyte-grpc[postgres]"
        ) from error
    return open_postgres_store


def prepare_directory(settings: Settings) -> DirectoryLock:
    """Make or migrate the data directory for several processes; returns the lock on it.

    Raises:
        StoreError: It cannot be opened; `StoreLocked` when another process has it.
    """
    data_dir = settings.data_dir.expanduser()
    open_store(data_dir, **settings.store.sqlite).close()
    lock = DirectoryLock(data_dir)
    _agent_memory(settings, data_dir, system_clock).close()
    for suffix in ("", "-wal", "-shm"):
        # Their clock may be that of another start of the machine.
        data_dir.joinpath(f"{RATES}{suffix}").unlink(missing_ok=True)
    return lock


def _agent_memory(settings: Settings, data_dir: Path | None, clock: Callable[[], int]) -> AgentMemoryStore:
    path = None if data_dir is None else data_dir / AGENT_MEMORY
    dsn = settings.agent_memory.dsn
    if dsn is not None:
        return _agent_database(settings, dsn.get_secret_value(), path, clock)
    if settings.read_only and path is not None and not path.exists():
        # A directory of an earlier version has none, and none may be made.
        path = None
    return SqliteAgentMemory(
        path, clock=clock, settings=settings.store, read_only=settings.read_only and path is not None
    )


def _agent_database(settings: Settings, dsn: str, path: Path | None, clock: Callable[[], int]) -> AgentMemoryStore:
    try:
        from astrocyte.stores.agent_postgres import PostgresAgentMemory, copy_file  # noqa: PLC0415 - of an extra
    except ModuleNotFoundError as error:
        raise settings.refusal(
            ("agent_memory", "dsn"), f"needs the package {error.name}: pip install 'astrocyte-grpc[postgres]'"
        ) from error
    store = PostgresAgentMemory(dsn, clock=clock, settings=settings.store, read_only=settings.read_only)
    try:
        if path is not None and path.exists() and not settings.read_only:
            copy_file(path, store)
    except BaseException:
        store.close()
        raise
    return store


def _core(settings: Settings, data_dir: Path | None, memory_bytes: int) -> Core:
    index = settings.index
    return Core(
        str(data_dir) if data_dir is not None and index.scratch else None,
        graph_rows=index.graph_rows,
        build_share=index.build_share,
        graph_candidates=index.graph_candidates,
        scan_rows=index.scan_rows,
        sampling=index.sampling,
        recall_floor=index.recall_floor,
        threads=index.threads,
        dense=index.dense,
        lexical=index.lexical,
        tier=index.tier,
        disk_rows=index.disk_rows,
        disk_bytes=memory_bytes // DISK_SHARE,
    )


def _checkpoints(settings: Settings, store: SqliteStore, core: Core, data_dir: Path | None) -> Checkpoints | None:
    index = settings.index
    if data_dir is None:
        return None
    folder = data_dir / CHECKPOINTS
    if not index.checkpoints:
        # None of before may outlive what is erased from now on.
        remove_directory(folder)
        return None
    return Checkpoints(
        folder,
        store,
        core,
        rows=index.checkpoint_rows,
        evicted_rows=index.checkpoint_evicted_rows,
        generations=index.checkpoint_generations,
    )
