"""Another Astrocyte server as an engine: `engines.<name>.provider: astrocyte`.

It is called as any client calls it. The credential is this server's; for whom the call is made goes along as the one on
whose behalf it is, so that the other server lets it do no more than both may. A bank has the same id there unless the
options say otherwise. A memory that is copied there carries a label with its id here, by which it is found again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from astrocyte.api.requests import (
    BatchRetain,
    Forget,
    GetServerInfo,
    ListMemories,
    Recall,
    Reflect,
    Retain,
    StreamRetain,
)
from astrocyte.client import RemoteBackend
from astrocyte.errors import AstrocyteError, BankNotFound, ConfigError, ValidationError
from astrocyte.model import (
    Caller,
    ForgetResult,
    ForgetSelector,
    MemoryHit,
    RecallQuery,
    ReflectQuery,
    RetainResult,
)
from astrocyte.providers.engines import (
    EngineAnswer,
    EngineCall,
    EngineCapabilities,
    EngineHealth,
    EngineItem,
    EngineProvider,
    EngineReflection,
)
from astrocyte.providers.options import read_options
from astrocyte.server import UNIX_PREFIX, is_local

# Before the id of a memory in another server, as a label.
ORIGIN = "astrocyte-origin:"
# Of one listing of labelled memories, and labels in one filter.
PAGE, LABELS = 1_000, 64
BankId = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:@-]{0,254}$")]


class FederationOptions(BaseModel):
    """Options of the provider ``astrocyte``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    address: str = Field(min_length=1, description="host:port of the other server, or unix:PATH.")
    api_key: str | None = Field(None, repr=False, min_length=1, description="What this server shows there.")
    api_key_file: Path | None = Field(None, description="A file that holds the key, instead of api_key.")
    tls: bool = Field(False, description="Speak TLS, and trust the roots of this system.")
    tls_roots_file: Path | None = Field(None, description="Speak TLS, and trust these PEM roots.")
    bank_map: dict[BankId, BankId] = Field(default_factory=dict, description="Bank here to bank there.")
    bank_prefix: Annotated[str, Field(pattern=r"^([A-Za-z0-9][A-Za-z0-9._:@-]{0,127})?$")] = Field(
        "", description="Goes before the ids of the other banks there."
    )
    forward_principal: bool = Field(True, description="Say there for whom a call is made, which narrows what it may.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if len(set(self.bank_map.values())) != len(self.bank_map):
            raise ValueError(
                "bank_map maps two banks to the same remote bank; a forget in one would delete memories of the other; "
                "map each bank to its own"
            )
        if self.api_key is not None and self.api_key_file is not None:
            raise ValueError("api_key and api_key_file are both set; set one of them")
        host = self.address if self.address.startswith(UNIX_PREFIX) else self.address.rpartition(":")[0]
        keyed = self.api_key is not None or self.api_key_file is not None
        if keyed and not (self.tls or self.tls_roots_file) and not is_local(host.strip("[]")):
            raise ValueError("an API key must not be sent unencrypted; set tls or tls_roots_file")
        return self


def create(options: Mapping[str, Any]) -> EngineProvider:
    """The engine with these options; nothing is sent before the first call.

    Raises:
        ConfigError: An option is wrong, or a file cannot be read.
    """
    return Federation(read_options(FederationOptions, options, "options"))


class Federation:
    """`EngineProvider` by another server."""

    def __init__(self, options: FederationOptions) -> None:
        self._options = options
        self._key = options.api_key if options.api_key_file is None else _read(options.api_key_file)
        if options.tls_roots_file is not None:
            _read(options.tls_roots_file)
        # Made at the first call, on the loop that makes it.
        self._backend: RemoteBackend | None = None

    def capabilities(self) -> EngineCapabilities:
        """All; its pipeline is this one, and no better at names."""
        return EngineCapabilities(reflect=True, time_travel=True, temporal_search=True)

    async def health(self) -> EngineHealth:
        """The availability of the remote server, which must accept the credential."""
        try:
            info = await self._server.call(Caller(), GetServerInfo())
        except AstrocyteError as error:
            return EngineHealth(healthy=False, detail=error.reason)
        return EngineHealth(healthy=True, detail=f"Astrocyte {info.version}")

    async def retain(self, call: EngineCall, items: Sequence[EngineItem]) -> Sequence[RetainResult]:
        """Store all items in one transaction; copies each by itself, as the outbox puts them together as they come."""
        caller, bank_id = self._caller(call), self._bank(call)
        given = [
            one.item if one.origin is None else replace(one.item, tags=(*one.item.tags, f"{ORIGIN}{one.origin}"))
            for one in items
        ]
        request_id = items[0].request_id
        if len(given) == 1:
            return [await self._server.call(caller, Retain(bank_id, given[0], request_id=request_id))]
        if all(one.origin is not None for one in items):
            outcomes = await self._server.call(
                caller, StreamRetain(bank_id, given, request_ids=[one.request_id for one in items])
            )
            for outcome in outcomes:
                if isinstance(outcome, AstrocyteError):
                    raise outcome
            return [outcome for outcome in outcomes if isinstance(outcome, RetainResult)]
        return await self._server.call(caller, BatchRetain(bank_id, given, request_id=request_id))

    async def recall(self, call: EngineCall, query: RecallQuery) -> EngineAnswer:
        """The hits of the remote bank; none if there is no such bank."""
        asked = replace(query, bank_id=self._bank(call))
        try:
            result = await self._server.call(self._caller(call), Recall(asked))
        except BankNotFound:
            return EngineAnswer(())
        return EngineAnswer(*_own_origins(result.hits))

    async def reflect(self, call: EngineCall, query: ReflectQuery) -> EngineReflection:
        """The answer of its bank."""
        result = await self._server.call(self._caller(call), Reflect(replace(query, bank_id=self._bank(call))))
        sources, origins = _own_origins(result.sources or ())
        return EngineReflection(replace(result, sources=None if result.sources is None else sources), origins)

    async def forget(
        self, call: EngineCall, selector: ForgetSelector, *, compliance: bool, reason: str | None
    ) -> ForgetResult:
        """Forget there what the selector meets, copies by their labels included."""
        caller, bank_id = self._caller(call), self._bank(call)
        try:
            if selector.memory_ids:
                copies = await self._copies(caller, bank_id, selector.memory_ids)
                selector = replace(selector, memory_ids=tuple(dict.fromkeys((*selector.memory_ids, *copies))))
            return await self._server.call(caller, Forget(bank_id, selector, compliance=compliance, reason=reason))
        except BankNotFound:
            return ForgetResult(0)

    async def close(self) -> None:
        """Close the connection."""
        if self._backend is not None:
            await self._backend.close()

    async def _copies(self, caller: Caller, bank_id: str, origins: Sequence[str]) -> list[str]:
        """Ids there of memories that were copied from these."""
        found: list[str] = []
        labels = [f"{ORIGIN}{one}" for one in origins]
        for first in range(0, len(labels), LABELS):
            token = ""
            while True:
                page = await self._server.call(
                    caller, ListMemories(bank_id, tags=labels[first : first + LABELS], page_size=PAGE, page_token=token)
                )
                found += [memory.memory_id for memory in page.memories]
                token = page.next_page_token
                if not token:
                    break
        return found

    @property
    def _server(self) -> RemoteBackend:
        if self._backend is None:
            options = self._options
            tls: bool | Path = options.tls_roots_file or options.tls
            # The engine's own deadline is the one that counts.
            self._backend = RemoteBackend(options.address, api_key=self._key, tls=tls, timeout=None)
        return self._backend

    def _bank(self, call: EngineCall) -> str:
        """The bank there."""
        mapped = self._options.bank_map.get(call.bank_id)
        if mapped is not None:
            return mapped
        name = f"{self._options.bank_prefix}{call.bank_id}"
        if name in self._options.bank_map.values():
            # Another bank's, by the map.
            raise ValidationError(
                "names a remote bank that bank_map assigns to another bank; use the bank id that bank_map maps to it",
                field="bank_id",
            )
        return name

    def _caller(self, call: EngineCall) -> Caller:
        """The caller to send: this server, on behalf of the caller here."""
        behalf = call.principal if self._options.forward_principal and call.principal else None
        return Caller(on_behalf_of=behalf, hops=call.hops)


def _own_origins(hits: Sequence[MemoryHit]) -> tuple[tuple[MemoryHit, ...], dict[str, str]]:
    """Hits without the labels of copies, and what these say, by the id of the hit."""
    told = [_without_origin(hit) for hit in hits]
    origins = {hit.memory_id: origin for hit, origin in told if origin is not None and hit.memory_id is not None}
    return tuple(hit for hit, _ in told), origins


def _without_origin(hit: MemoryHit) -> tuple[MemoryHit, str | None]:
    """A hit without the label of a copy, and the id that it says."""
    labels = [tag for tag in hit.tags or () if tag.startswith(ORIGIN)]
    if not labels:
        return hit, None
    tags = tuple(tag for tag in hit.tags or () if tag not in labels)
    return replace(hit, tags=tags), labels[0].removeprefix(ORIGIN)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {type(error).__name__}", metadata={"file": str(path)}) from error
