"""The calls about banks and rights, as the isolation machine makes them."""

from __future__ import annotations

from fnmatch import fnmatchcase

from astrocyte.api.requests import (
    CheckAccess,
    CreateApiKey,
    CreateBank,
    DeleteBank,
    GetBankStats,
    GetServerInfo,
    ListApiKeys,
    ListAuditEvents,
    ListBankGroups,
    ListBanks,
    ListBankTemplates,
    ListEngines,
    ListGrants,
    ListHolds,
    ListOperations,
    ListSources,
    PlaceHold,
    ReleaseHold,
    RevokeApiKey,
    UpdateBank,
)
from astrocyte.model import ALL_PERMISSIONS, Caller, Permission
from oracles.isolation_checks import Checks
from oracles.isolation_model import BANKS, PRINCIPALS


class AdminCalls(Checks):
    """One method for each RPC of the service, by its name."""

    # Names of the engines that stand beside banks.
    engines: tuple[str, ...] = ()
    # Keys that were made by call, by their ids, and whom each stands for; and those that were revoked.
    minted: dict[str, tuple[str, Caller]]
    revoked: set[str]

    async def _createbank(self, caller: Caller, bank: str, number: int) -> None:
        del number
        canary = self.model.canary((caller.tenant, bank))
        work = self.gate.call(caller, CreateBank(bank, display_name=canary))
        made = await self._held_to(caller, "CreateBank", bank, work, reads=True)
        if made is not None:
            assert (caller.tenant, bank) not in self.model.owners
            self.model.owners[caller.tenant, bank] = caller.principal

    async def _listbanks(self, caller: Caller, bank: str, number: int) -> None:
        del bank
        page = await self.gate.call(caller, ListBanks(page_size=1 + number % 3))
        banks = list(page.banks)
        while page.next_page_token:
            page = await self.gate.call(caller, ListBanks(page_size=1 + number % 3, page_token=page.next_page_token))
            banks += page.banks
        expected = [
            name for name in BANKS if (caller.tenant, name) in self.model.owners and self.model.reads(caller, name)
        ]
        assert [found.bank_id for found in banks] == expected
        self._search(repr(banks), {(caller.tenant, name) for name in expected}, reads=True, sent="")

    async def _updatebank(self, caller: Caller, bank: str, number: int) -> None:
        del number
        canary = self.model.canary((caller.tenant, bank))
        await self._held_to(caller, "UpdateBank", bank, self.gate.call(caller, UpdateBank(bank, display_name=canary)))

    async def _deletebank(self, caller: Caller, bank: str, number: int) -> None:
        if number % 3:
            # Seldom enough for banks to fill.
            return
        place = (caller.tenant, bank)
        count = await self._held_to(caller, "DeleteBank", bank, self.gate.call(caller, DeleteBank(bank)))
        if count is not None:
            assert count == len(self.model.visible(place))
            self.model.delete(place)

    async def _getbankstats(self, caller: Caller, bank: str, number: int) -> None:
        del number
        stats = await self._held_to(caller, "GetBankStats", bank, self.gate.call(caller, GetBankStats(bank)))
        if stats is not None:
            assert stats.memory_count == len(self.model.visible((caller.tenant, bank)))

    async def _getserverinfo(self, caller: Caller, bank: str, number: int) -> None:
        del bank, number
        self._search(repr(await self.gate.call(caller, GetServerInfo())), set(), reads=False, sent="")

    async def _grant(self, caller: Caller, bank: str, number: int) -> None:
        await self._give(caller, bank, PRINCIPALS[number % 5], frozenset({list(Permission)[number % 4]}))

    async def _revoke(self, caller: Caller, bank: str, number: int) -> None:
        await self._take(caller, bank, PRINCIPALS[number % 5], ALL_PERMISSIONS)

    async def _listgrants(self, caller: Caller, bank: str, number: int) -> None:
        which = "" if number % 5 == 0 else bank
        passes = self.model.may_grant(caller, which or "*")
        page = await self._decided(self.gate.call(caller, ListGrants(bank_id=which, page_size=1_000)), passes=passes)
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
        work = self.gate.call(caller, CreateApiKey(f"key {number % 3}", PRINCIPALS[number % 5]))
        made = await self._decided(work, passes=self.model.may_grant(caller, "*"))
        if made is not None:
            key, secret = made
            self.model.keys[key.key_id] = caller.tenant
            self.minted[key.key_id] = secret, Caller(caller.tenant, PRINCIPALS[number % 5])
            assert self.app.gate.keys.caller(secret) == self.minted[key.key_id][1]

    async def _listapikeys(self, caller: Caller, bank: str, number: int) -> None:
        del bank, number
        keys = await self._decided(self.gate.call(caller, ListApiKeys()), passes=self.model.may_grant(caller, "*"))
        if keys is not None:
            own = {key_id for key_id, tenant in self.model.keys.items() if tenant == caller.tenant}
            assert {key.key_id for key in keys} == own

    async def _revokeapikey(self, caller: Caller, bank: str, number: int) -> None:
        del bank
        known = list(self.model.keys)
        key_id = known[number % len(known)] if known else "none"
        ended = await self._decided(
            self.gate.call(caller, RevokeApiKey(key_id)), passes=self.model.may_grant(caller, "*")
        )
        if ended is not None:
            assert self.model.keys[key_id] == caller.tenant
            self.revoked.add(key_id)

    async def _listbanktemplates(self, caller: Caller, bank: str, number: int) -> None:
        del bank, number
        passes = self.model.may_grant(caller, "*")
        assert await self._decided(self.gate.call(caller, ListBankTemplates()), passes=passes) in (None, [])

    async def _listbankgroups(self, caller: Caller, bank: str, number: int) -> None:
        del bank, number
        passes = self.model.may_grant(caller, "*")
        assert await self._decided(self.gate.call(caller, ListBankGroups()), passes=passes) in (None, [])

    async def _listengines(self, caller: Caller, bank: str, number: int) -> None:
        del bank, number
        passes = self.model.may_grant(caller, "*")
        found = await self._decided(self.gate.call(caller, ListEngines()), passes=passes)
        assert found is None or tuple(one.name for one in found) == self.engines

    async def _listsources(self, caller: Caller, bank: str, number: int) -> None:
        del bank, number
        passes = self.model.may_grant(caller, "*")
        assert await self._decided(self.gate.call(caller, ListSources()), passes=passes) in (None, [])

    async def _checkaccess(self, caller: Caller, bank: str, number: int) -> None:
        del number
        check = await self.gate.call(caller, CheckAccess(bank))
        held = self.model.held(caller.tenant, caller.principal, bank)
        if caller.on_behalf_of is not None:
            held &= self.model.held(caller.tenant, caller.on_behalf_of, bank)
        assert check.permissions == held

    async def _placehold(self, caller: Caller, bank: str, number: int) -> None:
        del number
        work = self.gate.call(caller, PlaceHold(bank, reason="a case", tags=["t0"]))
        hold = await self._held_to(caller, "PlaceHold", bank, work)
        if hold is not None:
            # What is held would not go, which is not what is looked at here.
            assert (await self.gate.call(caller, ListHolds(bank_id=bank))).holds == (hold,)
            assert await self._held_to(
                caller, "ReleaseHold", bank, self.gate.call(caller, ReleaseHold(bank, hold.hold_id))
            )

    async def _listholds(self, caller: Caller, bank: str, number: int) -> None:
        work = self.gate.call(caller, ListHolds(bank_id=bank, include_released=bool(number % 2)))
        page = await self._held_to(caller, "ListHolds", bank, work)
        assert page is None or {hold.bank_id for hold in page.holds} <= {bank}

    async def _listoperations(self, caller: Caller, bank: str, number: int) -> None:
        del number
        page = await self._held_to(caller, "ListOperations", bank, self.gate.call(caller, ListOperations(bank_id=bank)))
        assert page is None or page.operations == ()

    async def _listauditevents(self, caller: Caller, bank: str, number: int) -> None:
        del number
        page = await self._held_to(
            caller, "ListAuditEvents", bank, self.gate.call(caller, ListAuditEvents(bank_id=bank))
        )
        assert page is None or {event.tenant for event in page.events} <= {caller.tenant}
