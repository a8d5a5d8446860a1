"""Loading of a bank's index: from a checkpoint and the later changes, or from all rows."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import structlog

from astrocyte.core import Core, IndexOptions, Row, failpoint
from astrocyte.errors import AstrocyteError, StoreError, frames
from astrocyte.model import Bank
from astrocyte.pipelines.index.bank_index import BankIndex
from astrocyte.pipelines.index.checkpoints import Checkpoints
from astrocyte.pipelines.index.rows import id_to_bytes
from astrocyte.stores.protocols import MemoryStore

# Memories that are read and replaced at once.
REPLAYED_AT_ONCE = 1_000
# Changes read at once.
CHANGES_AT_ONCE = 10_000
# Versions that are read while those before are applied, at first: a bank of a thousand comes in parts too, in three
# quarters of the time that it takes as one.
READ_AT_ONCE = 256
# Each part is twice the one before up to so many versions. The two threads wait for each other, and for the
# interpreter's lock, once a part: of a large bank, parts of this size take three quarters of the time of small ones.
MOST_AT_ONCE = 4_096
# Versions that a slow load takes at once: few enough that the core prepares them on one thread.
BUILT_AT_ONCE = 96

# English, and the tier of the core.
DEFAULTS = IndexOptions()

log = structlog.get_logger(__name__)


def load_index(
    store: MemoryStore,
    core: Core,
    checkpoints: Checkpoints | None,
    bank: Bank,
    options: IndexOptions = DEFAULTS,
) -> BankIndex:
    """The bank's index at its position or later; what came later may be applied over it again.

    Args:
        store: Whose bank.
        core: What holds the index.
        checkpoints: Where it may have been saved.
        bank: The bank.
        options: Language of its Latin words, and tier.
    """
    index = None if checkpoints is None else _from_checkpoint(store, checkpoints, bank, options)
    return _from_rows(store, core, bank, options) if index is None else index


def _from_rows(store: MemoryStore, core: Core, bank: Bank, options: IndexOptions) -> BankIndex:
    """All rows, read by this thread while another applies those before: a large bank is never in memory twice."""
    index = BankIndex(core.bank(bank.dimensions, *options), bank.embedding_model)
    waiting: list[Row] = []
    part = READ_AT_ONCE
    with ThreadPoolExecutor(1, "astrocyte-load") as applier:
        applied: Future[None] | None = None
        # Nobody sees the index before its last rows, so the positions up to then need only grow.
        for position, versions in enumerate(store.iter_versions(bank, batch_size=READ_AT_ONCE)):
            if len(waiting) >= part and position < bank.position:
                if applied is not None:
                    applied.result()
                applied = applier.submit(index.core.apply, position, waiting)
                waiting, part = [], min(2 * part, MOST_AT_ONCE)
            waiting += index.rows(versions)
        if applied is not None:
            applied.result()
    # The rows may be of a later position than this; replaying what lies between is harmless, missing it is not.
    index.core.apply(bank.position, waiting)
    return index


def load_slowly(
    store: MemoryStore, core: Core, bank: Bank, pace: Callable[[], None], options: IndexOptions = DEFAULTS
) -> BankIndex:
    """As `load_index` from all rows, in small steps: it takes one thread, and less of that where ``pace`` rests."""
    index = BankIndex(core.bank(bank.dimensions, *options), bank.embedding_model)
    for step, versions in enumerate(store.iter_versions(bank, batch_size=BUILT_AT_ONCE), start=1):
        # Each version has a change of its own, so there are positions enough; the last is the bank's.
        index.core.apply(step, index.rows(versions))
        pace()
    index.core.apply(bank.position, ())
    return index


def _from_checkpoint(
    store: MemoryStore, checkpoints: Checkpoints, bank: Bank, options: IndexOptions
) -> BankIndex | None:
    core = checkpoints.load(bank, options)
    if core is None:
        return None
    index = BankIndex(core, bank.embedding_model)
    try:
        return index if replay(store, bank, index) else None
    except AstrocyteError as error:
        # It was whole, but what it holds does not go together.
        log.error(  # noqa: TRY400 - no traceback: it could show the values of variables, which are content
            "checkpoint_dropped", bank_key=bank.key, error=type(error).__name__, frames=frames(error)
        )
        checkpoints.refuse(bank)
        return None


def replay(store: MemoryStore, bank: Bank, index: BankIndex) -> bool:
    """Replay changes up to the bank's position; False if reading all rows is faster.

    A memory that changed since is taken out with all its versions, and put in as the rows have it: the checkpoint may
    hold it in any state between.
    """
    after = index.core.position
    if bank.position - after > index.row_count:
        return False
    changed: dict[str, None] = {}
    position = after
    while position < bank.position:
        changes = store.changes(bank, after=position, limit=CHANGES_AT_ONCE)
        if not changes:
            raise StoreError("the change log ends before the bank's position")
        changed.update((change.memory_id, None) for change in changes if change.position <= bank.position)
        position = changes[-1].position
    failpoint("checkpoint.replay")
    memory_ids = list(changed)
    for number, first in enumerate(range(0, len(memory_ids), REPLAYED_AT_ONCE), start=1):
        part = memory_ids[first : first + REPLAYED_AT_ONCE]
        records = store.version_records(bank, part, at_position=bank.position)
        ids = [identity for identity in map(id_to_bytes, part) if identity is not None]
        gone = set(index.core.keys_of(ids)) - {record.row_key for record in records}
        # Each memory has a change of its own, so there are positions enough; the last is the bank's.
        step = bank.position if first + REPLAYED_AT_ONCE >= len(memory_ids) else after + number
        index.core.apply(step, index.rows(records), removed=sorted(gone))
    return True
