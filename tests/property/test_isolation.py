"""Three tenants, the same bank names, the same principals, grants that come and go: nobody ever sees a foreign canary.

Every text holds a canary of its own, and every answer, error and id is searched for the canaries of others. Who may do
what is decided a second time here, from the model alone, and each call must be refused or pass accordingly. The index
is made to lie: now and then it answers with another bank's rows. What holds is that the database is asked again; with
that switched off the same machine finds leaks, which is a test here too.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Callable, Collection, Coroutine
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import product
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, Phase
from hypothesis import settings as budget
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from astrocyte.app import App
from astrocyte.client import RemoteBackend
from astrocyte.config import Settings
from astrocyte.errors import AccessDenied, AstrocyteError, AuthorizationError, StoreError
from astrocyte.model import (
    ALL_PERMISSIONS,
    NO_PERMISSIONS,
    Bank,
    Caller,
    ExplainQuery,
    ForgetSelector,
    MemoryUpdate,
    MultiBankMode,
    MultiBankStrategy,
    Permission,
    RecallQuery,
    ReflectQuery,
    RetainItem,
)
from astrocyte.pipelines.analysis import from_ms
from astrocyte.pipelines.bank_index import BankIndex
from astrocyte.pipelines.registry import IndexRegistry
from astrocyte.policy.permissions import MAKING, REQUIRED
from astrocyte.stores.sqlite import store as sqlite_store
from doors import Doors, api_keys

TENANTS = ("acme", "beta", "core")
BANKS = ("b0", "b1", "b2", "b3")
PRINCIPALS = tuple(f"user:p{number}" for number in range(5))
# May grant everywhere in its tenant, and read nothing.
CLERK = PRINCIPALS[0]
PATTERNS = (*BANKS, "b*", "*")
CANARY = re.compile(r"canary\d{6}")
MEMORY_ID = re.compile(r"mem_[0-9a-f]{32}")
LATER = from_ms(4_000_000_000_000)
# What fills banks, and what could mix them up.
OFTEN = ("Retain", "BatchRetain", "Recall", "BatchRecall", "History") * 4
# How often, of ten times, the index of another bank answers.
LIES = 3

Place = tuple[str, str]


@dataclass
class Kept:
    """A memory as it should be."""

    place: Place
    canary: str
    visible: bool = True


@dataclass
class Model:
    """Who may do what, and what is where."""

    owning: bool
    owners: dict[Place, str] = field(default_factory=dict)
    grants: dict[tuple[str, str, str], frozenset[Permission]] = field(default_factory=dict)
    memories: dict[str, Kept] = field(default_factory=dict)
    names: dict[str, Place] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)
    canaries: int = 0

    def canary(self, place: Place) -> str:
        self.canaries += 1
        made = f"canary{self.canaries:06}"
        self.names[made] = place
        return made

    def held(self, tenant: str, principal: str, bank: str) -> frozenset[Permission]:
        if self.owning and self.owners.get((tenant, bank)) == principal:
            return ALL_PERMISSIONS
        given = [
            permissions
            for (where, pattern, who), permissions in self.grants.items()
            if where == tenant and who == principal and fnmatchcase(bank, pattern)
        ]
        clerk = {Permission.ADMIN} if principal == CLERK else set()
        return NO_PERMISSIONS.union(clerk, *given)

    def passes(self, caller: Caller, operation: str, bank: str, needed: frozenset[Permission]) -> bool:
        own = self.held(caller.tenant, caller.principal, bank)
        free = self.owning and operation in MAKING and (caller.tenant, bank) not in self.owners
        if not (needed <= own or free):
            return False
        return caller.on_behalf_of is None or needed <= self.held(caller.tenant, caller.on_behalf_of, bank)

    def reads(self, caller: Caller, bank: str) -> bool:
        return self.passes(caller, "Recall", bank, frozenset({Permission.READ}))

    def may_grant(self, caller: Caller, pattern: str) -> bool:
        if pattern in BANKS:
            return self.passes(caller, "Grant", pattern, frozenset({Permission.ADMIN}))
        covering = {"*": {"*"}, "b*": {"*", "b*"}}[pattern]
        return all(
            who == CLERK
            or any(
                Permission.ADMIN in permissions
                for (tenant, wide, principal), permissions in self.grants.items()
                if (tenant, principal) == (caller.tenant, who) and wide in covering
            )
            for who in filter(None, (caller.principal, caller.on_behalf_of))
        )

    def visible(self, place: Place) -> set[str]:
        return {memory for memory, kept in self.memories.items() if kept.place == place and kept.visible}

    def delete(self, place: Place) -> None:
        del self.owners[place]
        self.memories = {memory: kept for memory, kept in self.memories.items() if kept.place != place}
        # The canaries of a bank that is gone belong nowhere: whoever sees one sees too much.
        self.names = {canary: where for canary, where in self.names.items() if where != place}
        tenant, bank = place
        self.grants = {key: given for key, given in self.grants.items() if key[:2] != (tenant, bank)}


class Confused:
    """A registry whose index is at times that of another bank, of any tenant."""

    def __init__(self, registry: IndexRegistry, chance: random.Random) -> None:
        self._registry = registry
        self._chance = chance
        self._seen: dict[int, Bank] = {}

    def loaded(self, bank: Bank) -> BankIndex | None:
        self._seen[bank.key] = bank
        if self._chance.randrange(10) < LIES:
            return self._registry.loaded(self._chance.choice(list(self._seen.values())))
        return self._registry.loaded(bank)

    async def get(self, bank: Bank) -> BankIndex:
        return await self._registry.get(bank)


class Isolation(RuleBasedStateMachine):
    """One step is one call of one principal of one tenant, about one bank."""

    guarded: ClassVar[bool] = True
    # Whether calls come over the wire, by generated stubs, or to the gate.
    wire: ClassVar[bool] = False

    @initialize(policy=st.sampled_from(["deny", "owner_only"]), cached=st.booleans())
    def begin(self, policy: str, *, cached: bool) -> None:
        self.model = Model(policy == "owner_only")
        self.chance = random.Random(0)
        settings = Settings.from_mapping(
            {
                "vector_store": "in_memory",
                "server": {"port": 0},
                "auth": {"api_keys": api_keys(Caller(*who) for who in product(TENANTS, PRINCIPALS))},
                "recall": {"cache_bytes": 1 << 20 if cached else 0},
                "access_control": {"enabled": True, "default_policy": policy},
                "access_grants": [
                    {"bank_id": "*", "principal": CLERK, "permissions": ["admin"], "tenant": tenant}
                    for tenant in TENANTS
                ],
            }
        )
        self.runner = asyncio.Runner()
        self.app = self.runner.run(self._open(settings))
        confused = Confused(self.app.gate._registry, self.chance)
        self.app.gate._pipelines.recall._registry = confused  # type: ignore[assignment]
        self.gate: Any = self.runner.run(Doors.open(self.app)) if self.wire else self.app.gate
        # Keys that were made by call, by their ids, and whom each stands for.
        self.minted: dict[str, tuple[str, Caller]] = {}
        self.revoked: set[str] = set()

    async def _open(self, settings: Settings) -> App:
        with pytest.MonkeyPatch.context() as patch:
            store = sqlite_store.SqliteStore
            if not self.guarded:
                patch.setattr("astrocyte.app.open_store", lambda path, **rest: store(path, **rest, _guarded=False))
            return App(settings)

    def teardown(self) -> None:
        if hasattr(self, "gate"):
            if self.wire:
                self.runner.run(self.gate.close())
            self.runner.run(self.app.close())
            self.runner.close()

    @rule(
        tenant=st.sampled_from(TENANTS),
        principal=st.sampled_from(PRINCIPALS),
        behalf=st.sampled_from([None] * 7 + list(PRINCIPALS[:3])),
        bank=st.sampled_from(BANKS),
        operation=st.sampled_from([*sorted(REQUIRED), *OFTEN]),
        number=st.integers(0, 1_000),
    )
    def call(self, tenant: str, principal: str, behalf: str | None, bank: str, operation: str, number: int) -> None:
        caller = Caller(tenant, principal, behalf)
        work = getattr(self, f"_{operation.lower()}")
        self.runner.run(work(caller, bank, number))

    @rule(
        tenant=st.sampled_from(TENANTS),
        principal=st.sampled_from(PRINCIPALS),
        behalf=st.sampled_from([None] * 7 + list(PRINCIPALS[:3])),
        banks=st.lists(st.sampled_from(BANKS), min_size=1, max_size=3, unique=True),
        mode=st.sampled_from(MultiBankMode),
        how=st.sampled_from(["recall", "recall_batch", "reflect", "reflect_stream"]),
    )
    def several(
        self, tenant: str, principal: str, behalf: str | None, banks: list[str], mode: MultiBankMode, how: str
    ) -> None:
        """One call about several banks: all of them may be read, or nothing is said of any."""
        caller = Caller(tenant, principal, behalf)
        strategy = MultiBankStrategy(mode)
        query = RecallQuery("sesame", "", banks=tuple(banks), strategy=strategy, max_results=200)
        question = ReflectQuery("What about sesame?", "", banks=tuple(banks), strategy=strategy, include_sources=True)

        async def pieces() -> list[object]:
            return [piece async for piece in self.gate.reflect_stream(caller, question)]

        work: dict[str, Callable[[], Coroutine[Any, Any, Any]]] = {
            "recall": lambda: self.gate.recall(caller, query),
            "recall_batch": lambda: self.gate.recall_batch(caller, [query]),
            "reflect": lambda: self.gate.reflect(caller, question),
            "reflect_stream": pieces,
        }
        passes = all(self.model.reads(caller, bank) for bank in banks)
        places = {(tenant, bank) for bank in banks}
        self.runner.run(self._decided(work[how](), passes=passes, places=places, reads=passes))

    @rule(number=st.integers(0, 1_000), bank=st.sampled_from(BANKS))
    def minted_key(self, number: int, bank: str) -> None:
        """A recall with a key that was made by call: it is of whom the key stands for, or nobody's any more."""
        if self.wire and self.minted:
            self.runner.run(self._by_key(list(self.minted)[number % len(self.minted)], bank))

    async def _by_key(self, key_id: str, bank: str) -> None:
        secret, caller = self.minted[key_id]
        client = RemoteBackend(self.gate.address, api_key=secret)
        work = client.recall(Caller(), RecallQuery("sesame", bank, max_results=200))
        try:
            if key_id in self.revoked:
                with pytest.raises(AuthorizationError):
                    await work
            else:
                await self._held_to(caller, "Recall", bank, work)
        finally:
            await client.close()

    # Grants are what makes the rest worth trying, so they come more often than one call in many.
    @rule(
        tenant=st.sampled_from(TENANTS),
        principal=st.sampled_from(PRINCIPALS),
        pattern=st.sampled_from(PATTERNS),
        permissions=st.frozensets(st.sampled_from(Permission), min_size=1),
        give=st.booleans(),
    )
    def clerk(
        self, tenant: str, principal: str, pattern: str, permissions: frozenset[Permission], *, give: bool
    ) -> None:
        change = self._give if give else self._take
        self.runner.run(change(Caller(tenant, CLERK), pattern, principal, permissions))

    # -- Calls -------------------------------------------------------------------------------------------------------

    async def _retain(self, caller: Caller, bank: str, number: int) -> None:
        canary = self.model.canary((caller.tenant, bank))
        work = self.gate.retain(caller, bank, RetainItem(_text(canary), tags=(f"t{number % 3}",)))
        result = await self._held_to(caller, "Retain", bank, work)
        if result is not None:
            self._kept(caller, bank, result.memory_id, canary)

    async def _batchretain(self, caller: Caller, bank: str, number: int) -> None:
        del number
        canaries = [self.model.canary((caller.tenant, bank)) for _ in range(2)]
        work = self.gate.retain_batch(caller, bank, [RetainItem(_text(canary)) for canary in canaries])
        for result, canary in zip(await self._held_to(caller, "BatchRetain", bank, work) or (), canaries, strict=False):
            self._kept(caller, bank, result.memory_id, canary)

    async def _streamretain(self, caller: Caller, bank: str, number: int) -> None:
        # The same line everywhere: whether it is a duplicate is a matter of its own bank alone.
        del number
        place = (caller.tenant, bank)
        holds = any(self.model.memories[memory].canary == "" for memory in self.model.visible(place))

        async def each() -> list[Any]:
            results = await self.gate.retain_many(caller, bank, [RetainItem("One line that everybody keeps.")])
            # A stream tells each item what the gate tells the whole.
            if isinstance(results[0], AstrocyteError):
                raise results[0]
            return list(results)

        results = await self._held_to(caller, "StreamRetain", bank, each())
        if results is not None:
            assert results[0].deduplicated is holds
            if not holds:
                self._kept(caller, bank, results[0].memory_id, "")

    async def _getmemory(self, caller: Caller, bank: str, number: int) -> None:
        memory = self._any_memory(number)
        await self._held_to(caller, "GetMemory", bank, self.gate.get_memory(caller, bank, memory), sent=memory)

    async def _listmemories(self, caller: Caller, bank: str, number: int) -> None:
        del number
        page = await self._held_to(caller, "ListMemories", bank, self.gate.list_memories(caller, bank, page_size=1_000))
        if page is not None:
            expected = self.model.visible((caller.tenant, bank))
            assert {memory.memory_id for memory in page.memories} == expected
            assert page.total_size == len(expected)

    async def _updatememory(self, caller: Caller, bank: str, number: int) -> None:
        memory = self._any_memory(number)
        canary = self.model.canary((caller.tenant, bank))
        update = MemoryUpdate(memory, frozenset({"content"}), content=_text(canary))
        work = self.gate.update_memory(caller, bank, update)
        if await self._held_to(caller, "UpdateMemory", bank, work, sent=memory) is not None:
            self.model.memories[memory].canary = canary

    async def _recall(self, caller: Caller, bank: str, number: int) -> None:
        query = RecallQuery(f"sesame {self._any_canary(number)}", bank, max_results=200, include_sources=True)
        await self._held_to(caller, "Recall", bank, self.gate.recall(caller, query))

    async def _batchrecall(self, caller: Caller, bank: str, number: int) -> None:
        query = RecallQuery("sesame", bank, memory_ids=(self._any_memory(number),))
        queries = [query, RecallQuery("sesame", bank, tags=("t1",))]
        await self._held_to(caller, "BatchRecall", bank, self.gate.recall_batch(caller, queries))

    async def _history(self, caller: Caller, bank: str, number: int) -> None:
        del number
        query = RecallQuery("sesame", bank, as_of=LATER, max_results=200)
        await self._held_to(caller, "History", bank, self.gate.history(caller, query))

    async def _explain(self, caller: Caller, bank: str, number: int) -> None:
        memory = self._any_memory(number)
        query = ExplainQuery(RecallQuery(f"sesame {self._any_canary(number)}", bank), (memory,))
        await self._held_to(caller, "Explain", bank, self.gate.explain(caller, query), sent=memory)

    async def _reflect(self, caller: Caller, bank: str, number: int) -> None:
        query = ReflectQuery(f"What about sesame {self._any_canary(number)}?", bank)
        await self._held_to(caller, "Reflect", bank, self.gate.reflect(caller, query))

    async def _streamreflect(self, caller: Caller, bank: str, number: int) -> None:
        del number

        async def pieces() -> list[object]:
            return [piece async for piece in self.gate.reflect_stream(caller, ReflectQuery("What about sesame?", bank))]

        await self._held_to(caller, "StreamReflect", bank, pieces())

    async def _forget(self, caller: Caller, bank: str, number: int) -> None:
        memory = self._any_memory(number)
        place = (caller.tenant, bank)
        everything = number % 50 == 0
        selector = ForgetSelector(scope="all") if everything else ForgetSelector(memory_ids=(memory,))
        needed = frozenset({Permission.ADMIN if everything else Permission.FORGET})
        work = self.gate.forget(caller, bank, selector, compliance=number % 4 == 0)
        result = await self._held_to(caller, "Forget", bank, work, sent=memory, needed=needed)
        if result is None:
            return
        chosen = self.model.visible(place) if everything else self.model.visible(place) & {memory}
        if number % 4:
            assert result.deleted_count == len(chosen)
            for gone in chosen:
                self.model.memories[gone].visible = False
        else:
            for gone, kept in list(self.model.memories.items()):
                if kept.place == place and (everything or gone == memory):
                    del self.model.memories[gone]

    async def _undeletememory(self, caller: Caller, bank: str, number: int) -> None:
        memory = self._any_memory(number)
        work = self.gate.undelete(caller, bank, memory)
        if await self._held_to(caller, "UndeleteMemory", bank, work, sent=memory) is not None:
            self.model.memories[memory].visible = True

    async def _watch(self, caller: Caller, bank: str, number: int) -> None:
        del number
        # Over the wire an answer takes its time; only where none will come is it not waited for.
        place = (caller.tenant, bank)
        comes = not self.model.reads(caller, bank) or any(kept.place == place for kept in self.model.memories.values())
        seconds = 0.0 if not self.wire else 20.0 if comes else 0.02

        async def first() -> object:
            stream: Any = self.gate.watch(caller, bank, after=0)
            try:
                async with asyncio.timeout(seconds):
                    return await anext(stream)
            except TimeoutError:
                return "nothing yet"
            finally:
                await stream.aclose()

        await self._held_to(caller, "Watch", bank, first())

    async def _createbank(self, caller: Caller, bank: str, number: int) -> None:
        del number
        canary = self.model.canary((caller.tenant, bank))
        work = self.gate.create_bank(caller, bank, display_name=canary)
        made = await self._held_to(caller, "CreateBank", bank, work, reads=True)
        if made is not None:
            assert (caller.tenant, bank) not in self.model.owners
            self.model.owners[caller.tenant, bank] = caller.principal

    async def _getbank(self, caller: Caller, bank: str, number: int) -> None:
        del number
        await self._held_to(caller, "GetBank", bank, self.gate.get_bank(caller, bank))

    async def _listbanks(self, caller: Caller, bank: str, number: int) -> None:
        del bank
        page = await self.gate.list_banks(caller, page_size=1 + number % 3)
        banks = list(page.banks)
        while page.next_page_token:
            page = await self.gate.list_banks(caller, page_size=1 + number % 3, page_token=page.next_page_token)
            banks += page.banks
        expected = [
            name for name in BANKS if (caller.tenant, name) in self.model.owners and self.model.reads(caller, name)
        ]
        assert [found.bank_id for found in banks] == expected
        self._search(repr(banks), {(caller.tenant, name) for name in expected}, reads=True, sent="")

    async def _updatebank(self, caller: Caller, bank: str, number: int) -> None:
        del number
        canary = self.model.canary((caller.tenant, bank))
        await self._held_to(caller, "UpdateBank", bank, self.gate.update_bank(caller, bank, display_name=canary))

    async def _deletebank(self, caller: Caller, bank: str, number: int) -> None:
        if number % 3:
            # Seldom enough for banks to fill.
            return
        place = (caller.tenant, bank)
        count = await self._held_to(caller, "DeleteBank", bank, self.gate.delete_bank(caller, bank))
        if count is not None:
            assert count == len(self.model.visible(place))
            self.model.delete(place)

    async def _getbankstats(self, caller: Caller, bank: str, number: int) -> None:
        del number
        stats = await self._held_to(caller, "GetBankStats", bank, self.gate.bank_stats(caller, bank))
        if stats is not None:
            assert stats.memory_count == len(self.model.visible((caller.tenant, bank)))

    async def _getserverinfo(self, caller: Caller, bank: str, number: int) -> None:
        del bank, number
        self._search(repr(await self.gate.server_info(caller)), set(), reads=False, sent="")

    async def _grant(self, caller: Caller, bank: str, number: int) -> None:
        await self._give(caller, bank, PRINCIPALS[number % 5], frozenset({list(Permission)[number % 4]}))

    async def _revoke(self, caller: Caller, bank: str, number: int) -> None:
        await self._take(caller, bank, PRINCIPALS[number % 5], ALL_PERMISSIONS)

    async def _listgrants(self, caller: Caller, bank: str, number: int) -> None:
        which = "" if number % 5 == 0 else bank
        passes = self.model.may_grant(caller, which or "*")
        page = await self._decided(self.gate.list_grants(caller, bank_id=which, page_size=1_000), passes=passes)
        if page is not None:
            found = {
                (caller.tenant, grant.bank_id, grant.principal): grant.permissions
                for grant in page.grants
                if grant.granted_by
            }
            assert found == {
                key: given
                for key, given in self.model.grants.items()
                if key[0] == caller.tenant and (not which or fnmatchcase(which, key[1]))
            }

    async def _createapikey(self, caller: Caller, bank: str, number: int) -> None:
        del bank
        work = self.gate.create_api_key(caller, f"key {number % 3}", PRINCIPALS[number % 5])
        made = await self._decided(work, passes=self.model.may_grant(caller, "*"))
        if made is not None:
            key, secret = made
            self.model.keys[key.key_id] = caller.tenant
            self.minted[key.key_id] = secret, Caller(caller.tenant, PRINCIPALS[number % 5])
            assert self.app.gate.keys.caller(secret) == self.minted[key.key_id][1]

    async def _listapikeys(self, caller: Caller, bank: str, number: int) -> None:
        del bank, number
        keys = await self._decided(self.gate.list_api_keys(caller), passes=self.model.may_grant(caller, "*"))
        if keys is not None:
            own = {key_id for key_id, tenant in self.model.keys.items() if tenant == caller.tenant}
            assert {key.key_id for key in keys} == own

    async def _revokeapikey(self, caller: Caller, bank: str, number: int) -> None:
        del bank
        known = list(self.model.keys)
        key_id = known[number % len(known)] if known else "none"
        ended = await self._decided(self.gate.revoke_api_key(caller, key_id), passes=self.model.may_grant(caller, "*"))
        if ended is not None:
            assert self.model.keys[key_id] == caller.tenant
            self.revoked.add(key_id)

    async def _listbanktemplates(self, caller: Caller, bank: str, number: int) -> None:
        del bank, number
        passes = self.model.may_grant(caller, "*")
        assert await self._decided(self.gate.list_bank_templates(caller), passes=passes) in (None, [])

    async def _listbankgroups(self, caller: Caller, bank: str, number: int) -> None:
        del bank, number
        passes = self.model.may_grant(caller, "*")
        assert await self._decided(self.gate.list_bank_groups(caller), passes=passes) in (None, [])

    async def _listengines(self, caller: Caller, bank: str, number: int) -> None:
        del bank, number
        passes = self.model.may_grant(caller, "*")
        assert await self._decided(self.gate.list_engines(caller), passes=passes) in (None, [])

    async def _checkaccess(self, caller: Caller, bank: str, number: int) -> None:
        del number
        check = await self.gate.check_access(caller, bank)
        held = self.model.held(caller.tenant, caller.principal, bank)
        if caller.on_behalf_of is not None:
            held &= self.model.held(caller.tenant, caller.on_behalf_of, bank)
        assert check.permissions == held

    async def _placehold(self, caller: Caller, bank: str, number: int) -> None:
        del number
        work = self.gate.place_hold(caller, bank, reason="a case", tags=["t0"])
        hold = await self._held_to(caller, "PlaceHold", bank, work)
        if hold is not None:
            # What is held would not go, which is not what is looked at here.
            assert (await self.gate.list_holds(caller, bank_id=bank)).holds == (hold,)
            assert await self._held_to(caller, "ReleaseHold", bank, self.gate.release_hold(caller, bank, hold.hold_id))

    async def _releasehold(self, caller: Caller, bank: str, number: int) -> None:
        work = self.gate.release_hold(caller, bank, f"case-{number}")
        assert await self._held_to(caller, "ReleaseHold", bank, work) is None

    async def _listholds(self, caller: Caller, bank: str, number: int) -> None:
        work = self.gate.list_holds(caller, bank_id=bank, released=bool(number % 2))
        page = await self._held_to(caller, "ListHolds", bank, work)
        assert page is None or {hold.bank_id for hold in page.holds} <= {bank}

    async def _listauditevents(self, caller: Caller, bank: str, number: int) -> None:
        del number
        page = await self._held_to(caller, "ListAuditEvents", bank, self.gate.list_audit_events(caller, bank_id=bank))
        assert page is None or {event.tenant for event in page.events} <= {caller.tenant}

    # -- What must hold ----------------------------------------------------------------------------------------------

    async def _give(self, caller: Caller, pattern: str, principal: str, permissions: frozenset[Permission]) -> None:
        work = self.gate.grant(caller, pattern, principal, sorted(permissions))
        if await self._decided(work, passes=self.model.may_grant(caller, pattern)) is not None:
            key = (caller.tenant, pattern, principal)
            self.model.grants[key] = self.model.grants.get(key, NO_PERMISSIONS) | permissions

    async def _take(self, caller: Caller, pattern: str, principal: str, permissions: frozenset[Permission]) -> None:
        work = self.gate.revoke(caller, pattern, principal, sorted(permissions))
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
        allowed = REQUIRED[operation] if needed is None else needed
        passes = self.model.passes(caller, operation, bank, allowed)
        may_read = self.model.reads(caller, bank) or reads
        return await self._decided(
            work, passes=passes, places={(caller.tenant, bank)}, reads=may_read and passes, sent=sent
        )

    async def _decided(
        self,
        work: Coroutine[Any, Any, Any],
        *,
        passes: bool,
        places: Collection[Place] = (),
        reads: bool = False,
        sent: str = "",
    ) -> Any:
        before = set(self.model.memories)
        try:
            result = await work
        except AstrocyteError as error:
            refusal = error
        else:
            assert passes, "the model refuses what the gate let pass"
            self._search(repr(result), places, reads=reads, sent=sent, known=before)
            return result
        assert not isinstance(refusal, StoreError)
        assert isinstance(refusal, AccessDenied) is not passes, refusal
        self._search(f"{refusal} {refusal.metadata}", places, reads=reads, sent=sent)
        return None

    def _search(
        self, answer: str, places: Collection[Place], *, reads: bool, sent: str, known: set[str] | None = None
    ) -> None:
        """Look for canaries and ids of elsewhere. ``sent`` was in the request; an id not ``known`` is a new one."""
        for canary in CANARY.findall(answer):
            assert reads, f"{canary} in the answer to a caller who may not read"
            assert self.model.names.get(canary) in places, f"{canary} is of another place"
        for memory in MEMORY_ID.findall(answer):
            if memory != sent and (known is None or memory in known):
                assert self.model.memories[memory].place in places, f"{memory} is of another place"

    def _kept(self, caller: Caller, bank: str, memory: str, canary: str) -> None:
        place = (caller.tenant, bank)
        self.model.owners.setdefault(place, caller.principal)
        assert memory not in self.model.memories, "two memories of one id"
        self.model.memories[memory] = Kept(place, canary)

    def _any_memory(self, number: int) -> str:
        known = list(self.model.memories)
        return known[number % len(known)] if known else "mem_" + "0" * 32

    def _any_canary(self, number: int) -> str:
        known = list(self.model.names)
        return known[number % len(known)] if known else ""


def _text(canary: str) -> str:
    return f"Mara told us about sesame and tea: {canary}."


class Wired(Isolation):
    """The same through a server, its credentials and the generated stubs."""

    wire = True


class Unguarded(Isolation):
    """The same, with the database's last word taken away."""

    guarded = False


def _budget(examples: int, steps: int, **options: Any) -> budget:
    return budget(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        **options,
    )


def test_nobody_sees_what_is_not_theirs() -> None:
    run_state_machine_as_test(Isolation, settings=_budget(8, 100))


def test_nobody_sees_what_is_not_theirs_over_the_wire() -> None:
    run_state_machine_as_test(Wired, settings=_budget(3, 60))


@pytest.mark.slow
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("machine", [Isolation, Wired])
def test_nobody_sees_what_is_not_theirs_in_twenty_thousand_steps(machine: type[Isolation]) -> None:
    run_state_machine_as_test(machine, settings=_budget(40, 500))


def test_without_the_databases_last_word_the_machine_finds_leaks() -> None:
    # Found within 2,000 steps; nothing is gained from making it short.
    with pytest.raises(AssertionError, match=r"is of another place|may not read"):
        run_state_machine_as_test(Unguarded, settings=_budget(8, 250, phases=[Phase.generate], derandomize=True))
