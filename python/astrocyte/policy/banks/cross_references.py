"""Memories of other banks that are relevant to a bank, by their metadata.

A memory says so in its metadata (`also_relevant_to`). What all of them say is held in memory: read once from the store,
and kept up by its commits. A recall on a bank finds them too, where its caller may read both banks; about a bank that
the caller may not read, nothing shows.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from astrocyte.model import ALSO_RELEVANT_TO, Bank, Caller, Permission, Reference
from astrocyte.policy.auth.access_control import Access
from astrocyte.policy.banks.lifecycle import Banks
from astrocyte.stores.protocols import MemoryStore
from astrocyte.stores.records import IndexBatch
from astrocyte.stores.sharing import Told, Topic


class Relevant(NamedTuple):
    """Memories of a bank that are relevant to another one."""

    bank: Bank
    memory_ids: tuple[str, ...]


class Relevance:
    """The references between banks.

    Args:
        store: Holds them.
        banks: Which there are.
        access: Who may read them.
    """

    def __init__(self, store: MemoryStore, banks: Banks, access: Access) -> None:
        self._banks = banks
        self._access = access
        # Commits are told on the store's thread.
        self._lock = threading.Lock()
        # By row; empty in most servers, whose calls ask for nothing then.
        self.references: dict[int, Reference] = {}
        self._sources: dict[tuple[str, str], dict[str, dict[int, str]]] = {}
        self._store = store
        store.subscribe(self.on_commit, "refers")
        store.follow(self._on_told)
        with self._lock:
            for reference in store.references():
                self._add(reference)

    def on_commit(self, batch: IndexBatch) -> None:
        """Take in what a commit changed."""
        upserts = [version.memory for version in batch.upserts if ALSO_RELEVANT_TO in version.memory.metadata]
        if not upserts and not self.references:
            return
        with self._lock:
            for row_key in (*(row_key for row_key, _ in batch.ended), *batch.removed):
                self._drop(row_key)
            for version in batch.upserts:
                self._drop(version.row_key)
                named = version.memory.metadata.get(ALSO_RELEVANT_TO)
                if isinstance(named, str):
                    bank = batch.bank
                    self._add(Reference(version.row_key, bank.tenant, bank.bank_id, version.memory.memory_id, named))

    def _on_told(self, told: Told) -> None:
        """Read the references anew where another process may have changed some."""
        if told.topic is not Topic.DELETED and not (told.topic is Topic.CHANGES and told.refers):
            return
        with self._lock:
            self.references.clear()
            self._sources.clear()
            for reference in self._store.references():
                self._add(reference)

    def beside(self, caller: Caller, banks: Sequence[Bank]) -> Mapping[str, tuple[Relevant, ...]]:
        """By bank of a call, the relevant memories of other banks that the caller may read.

        A bank that the call names itself is left out, and one that is relevant to several counts for the first.
        """
        if not self.references:
            return {}
        found: dict[str, dict[str, set[str]]] = {}
        taken = {bank.bank_id: "" for bank in banks}
        with self._lock:
            for bank in banks:
                for source, rows in self._sources.get((bank.tenant, bank.bank_id), {}).items():
                    target = taken.setdefault(source, bank.bank_id)
                    if target:
                        found.setdefault(target, {}).setdefault(source, set()).update(rows.values())
        relevant = {target: tuple(self._readable(caller, sources.items())) for target, sources in found.items()}
        return {target: those for target, those in relevant.items() if those}

    def _readable(self, caller: Caller, sources: Iterable[tuple[str, set[str]]]) -> Iterable[Relevant]:
        for source, memory_ids in sorted(sources):
            bank = self._banks.known(caller, source)
            if bank is not None and Permission.READ in self._access.permissions(caller, source, bank):
                yield Relevant(bank, tuple(sorted(memory_ids)))

    def _add(self, reference: Reference) -> None:
        self.references[reference.row_key] = reference
        for target in reference.targets:
            sources = self._sources.setdefault((reference.tenant, target), {})
            sources.setdefault(reference.bank_id, {})[reference.row_key] = reference.memory_id

    def _drop(self, row_key: int) -> None:
        reference = self.references.pop(row_key, None)
        for target in () if reference is None else reference.targets:
            sources = self._sources[reference.tenant, target]  # type: ignore[union-attr]  # there are targets
            del sources[reference.bank_id][row_key]  # type: ignore[union-attr]  # as above
            if not sources[reference.bank_id]:  # type: ignore[union-attr]  # as above
                del sources[reference.bank_id]  # type: ignore[union-attr]  # as above
