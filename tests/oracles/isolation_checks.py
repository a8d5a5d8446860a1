"""Checks of every answer in the isolation machine: it passes or not as the model says, and tells no secrets."""

from __future__ import annotations

from collections.abc import Collection, Coroutine
from typing import Any

from astrocyte.api import Creates, Rpc
from astrocyte.api.requests import Grant, Revoke
from astrocyte.app import App
from astrocyte.errors import AccessDenied, AstrocyteError, StoreError
from astrocyte.model import NO_PERMISSIONS, Caller, Permission
from harness.calls import ROWS, ask, request_of
from oracles.isolation_model import CANARY, MEMORY_ID, Kept, Model, Place

# An entity that the memories of all banks mention; of which banks it tells, the canaries beside it say.
EVERYWHERE = "person:mara-silva"

# Calls that find memories of other banks too, where these say that they are relevant and the caller may read both.
FINDING = frozenset({"Recall", "BatchRecall", "History", "Explain", "Reflect", "StreamReflect"})


class Checks:
    """Holds calls to the model."""

    model: Model
    app: App
    gate: Any

    async def _any(self, caller: Caller, rpc: Rpc, bank: str, number: int) -> None:
        """A call of an RPC that changes nothing here: it passes as its permissions say, and tells no secrets."""
        memory = self._any_memory(number)
        work = ask(self.gate, caller, rpc, request_of(rpc, bank, memory))
        if rpc.permissions and not rpc.bank:
            # Needed in every bank.
            await self._decided(work, passes=self.model.may_grant(caller, "*"))
            return
        answer = await self._held_to(caller, rpc.name, bank, work, sent=memory)
        if answer is not None and rpc.creates is Creates.BANK:
            self.model.owners.setdefault((caller.tenant, bank), caller.principal)

    async def _give(self, caller: Caller, pattern: str, principal: str, permissions: frozenset[Permission]) -> None:
        work = self.gate.call(caller, Grant(pattern, principal, sorted(permissions)))
        if await self._decided(work, passes=self.model.may_grant(caller, pattern)) is not None:
            key = (caller.tenant, pattern, principal)
            self.model.grants[key] = self.model.grants.get(key, NO_PERMISSIONS) | permissions

    async def _take(self, caller: Caller, pattern: str, principal: str, permissions: frozenset[Permission]) -> None:
        work = self.gate.call(caller, Revoke(pattern, principal, sorted(permissions)))
        taken = await self._decided(work, passes=self.model.may_grant(caller, pattern))
        if taken is not None:
            key = (caller.tenant, pattern, principal)
            before = self.model.grants.pop(key, NO_PERMISSIONS)
            assert taken == before & permissions
            if before - permissions:
                self.model.grants[key] = before - permissions

    async def _held_to(
        self,
        caller: Caller,
        operation: str,
        bank: str,
        work: Coroutine[Any, Any, Any],
        *,
        sent: str = "",
        needed: frozenset[Permission] | None = None,
        reads: bool = False,
    ) -> Any:
        """The answer of a call that the model lets pass, None of one that failed; no answer holds what it must not."""
        allowed = ROWS[operation].permissions if needed is None else needed
        passes = self.model.passes(caller, operation, bank, allowed)
        may_read = self.model.reads(caller, bank) or reads
        return await self._decided(
            work,
            passes=passes,
            places={(caller.tenant, bank)},
            reads=may_read and passes,
            sent=sent,
            finder=caller if operation in FINDING else None,
        )

    async def _decided(
        self,
        work: Coroutine[Any, Any, Any],
        *,
        passes: bool,
        places: Collection[Place] = (),
        reads: bool = False,
        sent: str = "",
        finder: Caller | None = None,
    ) -> Any:
        before = set(self.model.memories)
        try:
            result = await work
        except AstrocyteError as error:
            refusal = error
        else:
            assert passes, "the model refuses what the gate let pass"
            self._search(repr(result), places, reads=reads, sent=sent, known=before, finder=finder)
            return result
        assert not isinstance(refusal, StoreError), refusal
        assert isinstance(refusal, AccessDenied) is not passes, refusal
        self._search(f"{refusal} {refusal.metadata}", places, reads=reads, sent=sent)
        return None

    def _search(
        self,
        answer: str,
        places: Collection[Place],
        *,
        reads: bool,
        sent: str,
        known: set[str] | None = None,
        finder: Caller | None = None,
    ) -> None:
        """Look for canaries and ids of elsewhere. ``sent`` was in the request; an id not ``known`` is a new one.

        A ``finder`` also sees what other banks hold for these.
        """

        def belongs(source: Place | None, relevant: Collection[str]) -> bool:
            if source is None or source in places:
                return source is not None
            return finder is not None and self.model.shows_beside(finder, source, relevant, places)

        for canary in CANARY.findall(answer):
            assert reads, f"{canary} in the answer to a caller who may not read"
            assert belongs(self.model.names.get(canary), self.model.relevant.get(canary, ())), (
                f"{canary} is of another place"
            )
        for memory in MEMORY_ID.findall(answer):
            if memory != sent and (known is None or memory in known):
                kept = self.model.memories[memory]
                assert belongs(kept.place, kept.relevant), f"{memory} is of another place"

    def _kept(self, caller: Caller, bank: str, memory: str, canary: str, relevant: tuple[str, ...] = ()) -> None:
        place = (caller.tenant, bank)
        self.model.owners.setdefault(place, caller.principal)
        assert memory not in self.model.memories, "two memories of one id"
        self.model.memories[memory] = Kept(place, canary, relevant=relevant)
        self.model.relevant[canary] = relevant

    def _any_memory(self, number: int) -> str:
        known = list(self.model.memories)
        return known[number % len(known)] if known else "mem_" + "0" * 32

    def _any_canary(self, number: int) -> str:
        known = list(self.model.names)
        return known[number % len(known)] if known else ""


def text_of(canary: str) -> str:
    return f"Mara Silva told us about sesame and tea: {canary}. Mara Silva works at {canary.title()} Corp."
