"""The Python API over the wire: `connect` gives the same methods that `Astrocyte` has in process.

brain = connect("localhost:50051")
await brain.retain("Mara cannot eat nuts.", bank_id="family")
await brain.close()
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, TypeVar

import grpc

from astrocyte.astrocyte import Astrocyte
from astrocyte.errors import AstrocyteError, CapabilityNotSupported, ConfigError, Unavailable, ValidationError
from astrocyte.model import (
    DEFAULT_PRINCIPAL,
    DEFAULT_TENANT,
    AccessCheck,
    AuditPage,
    Bank,
    BankGroup,
    BankPage,
    BankStats,
    BankTemplate,
    Caller,
    Change,
    ForgetResult,
    ForgetSelector,
    Grant,
    GrantPage,
    HistoryResult,
    Hold,
    HoldPage,
    KeyInfo,
    Memory,
    MemoryPage,
    MemoryUpdate,
    Permission,
    RecallQuery,
    RecallResult,
    ReflectQuery,
    ReflectResult,
    RetainItem,
    RetainResult,
    ServerInfo,
)
from astrocyte.services import convert
from astrocyte.services.authentication import BEHALF_HEADER, PRINCIPAL_HEADER, TENANT_HEADER
from astrocyte.services.status import details_in, from_details, from_status
from astrocyte.v1 import admin_pb2, admin_pb2_grpc, memory_pb2, memory_pb2_grpc

# Longer than any deadline that the server imposes by itself, so that its own answer comes first.
DEFAULT_TIMEOUT_SECONDS = 30.0
# Answers can be much larger than requests: 200 hits of 100 KiB each, and some air.
MAX_ANSWER_BYTES = 64 * 1_024 * 1_024
# A server that was down is tried again at least this often; the default grows to two minutes.
MAX_RECONNECT_MS = 5_000

# What grpc says, as INTERNAL, when a stream ends under its writer.
BROKEN_WRITE = "Internal error from Core"

T = TypeVar("T")


def connect(
    address: str,
    *,
    api_key: str | None = None,
    tls: bool | Path | str = False,
    timeout: float | None = DEFAULT_TIMEOUT_SECONDS,
) -> Astrocyte:
    """The API of a server. Nothing is sent before the first call; ``await close()`` at the end.

    Args:
        address: ``host:port``, or ``unix:PATH``.
        api_key: Sent with every call; over the network only together with TLS.
        tls: True trusts the system's roots, a path names a file of PEM roots, False speaks plain text.
        timeout: Seconds for each call that is not a stream; None leaves it to the server.

    Raises:
        ConfigError: The file of roots cannot be read.
    """
    return Astrocyte(RemoteBackend(address, api_key=api_key, tls=tls, timeout=timeout))


class RemoteBackend:
    """Implements `astrocyte.policy.backend.Backend` by calling a server. Arguments are those of `connect`.

    Who calls is decided by the credential: a ``caller`` that says otherwise is refused by the server. Whatever fails is
    raised from the exception tree, whether this side or the server found it.
    """

    def __init__(
        self,
        address: str,
        *,
        api_key: str | None = None,
        tls: bool | Path | str = False,
        timeout: float | None = DEFAULT_TIMEOUT_SECONDS,
    ) -> None:
        options = [
            ("grpc.max_receive_message_length", MAX_ANSWER_BYTES),
            ("grpc.max_reconnect_backoff_ms", MAX_RECONNECT_MS),
        ]
        if tls:
            credentials = grpc.ssl_channel_credentials(_roots(tls))
            self._channel = grpc.aio.secure_channel(address, credentials, options=options)
        else:
            self._channel = grpc.aio.insecure_channel(address, options=options)
        self._metadata = (("authorization", f"Bearer {api_key}"),) if api_key else ()
        self._timeout = timeout
        self._memory = memory_pb2_grpc.MemoryServiceStub(self._channel)
        self._admin = admin_pb2_grpc.AdminServiceStub(self._channel)

    async def _call(self, caller: Caller, method: Any, request: Any) -> Any:  # noqa: ANN401 - generated stubs and messages
        metadata = (*self._metadata, *_claims(caller))
        try:
            return await method(request, timeout=self._timeout, metadata=metadata)
        except grpc.aio.AioRpcError as error:
            raise translate(error) from None

    async def retain(
        self,
        caller: Caller,
        bank_id: str,
        item: RetainItem,
        *,
        request_id: str | None = None,
        validate_only: bool = False,
    ) -> RetainResult:
        """Store one memory."""
        with _encoding({"bank_id": bank_id, "": item, "request_id": request_id}):
            request = convert.encode_retain_request(bank_id, item, request_id, validate_only=validate_only)
        return convert.decode_retain_result(await self._call(caller, self._memory.Retain, request))

    async def retain_batch(
        self,
        caller: Caller,
        bank_id: str,
        items: Sequence[RetainItem],
        *,
        request_id: str | None = None,
        validate_only: bool = False,
    ) -> list[RetainResult]:
        """Store all items in one transaction, or none."""
        encoded = [_encode_item(item, f"items[{index}].") for index, item in enumerate(items)]
        with _encoding({"bank_id": bank_id, "request_id": request_id}):
            request = memory_pb2.BatchRetainRequest(
                bank_id=bank_id, items=encoded, request_id=request_id or "", validate_only=validate_only
            )
        response = await self._call(caller, self._memory.BatchRetain, request)
        return [convert.decode_retain_result(result) for result in response.results]

    async def retain_many(
        self,
        caller: Caller,
        bank_id: str,
        items: Sequence[RetainItem],
        *,
        request_ids: Sequence[str | None] = (),
    ) -> list[RetainResult | AstrocyteError]:
        """Store what can be stored, over one stream; an item's own failure stands in its place."""
        metadata = (*self._metadata, *_claims(caller))
        if request_ids and len(request_ids) != len(items):
            raise ValidationError(f"expected {len(items)} or none, got {len(request_ids)}", field="request_ids")
        outcomes: dict[int, RetainResult | AstrocyteError] = {}
        requests = []
        for index, item in enumerate(items):
            request_id = request_ids[index] if request_ids else None
            try:
                with _encoding({"bank_id": bank_id, "request_id": request_id}):
                    request = memory_pb2.StreamRetainRequest(
                        sequence=index, bank_id=bank_id, item=_encode_item(item, ""), request_id=request_id or ""
                    )
                requests.append(request)
            except ValidationError as error:
                outcomes[index] = error
        try:
            async for response in self._memory.StreamRetain(iter(requests), metadata=metadata):
                outcomes[response.sequence] = _outcome(response)
        except grpc.aio.AioRpcError as error:
            raise translate(error) from None
        return [outcomes[index] for index in range(len(items))]

    async def recall(self, caller: Caller, query: RecallQuery) -> RecallResult:
        """Rank the bank's memories for a query."""
        request = _encode_query(query, "")
        response = await self._call(caller, self._memory.Recall, request)
        return convert.decode_recall_result(response)

    async def recall_batch(self, caller: Caller, queries: Sequence[RecallQuery]) -> list[RecallResult]:
        """Answer all queries."""
        encoded = [_encode_query(query, f"queries[{index}].") for index, query in enumerate(queries)]
        request = memory_pb2.BatchRecallRequest(queries=encoded)
        response = await self._call(caller, self._memory.BatchRecall, request)
        return [convert.decode_recall_result(result) for query, result in zip(queries, response.results, strict=True)]

    async def history(self, caller: Caller, query: RecallQuery) -> HistoryResult:
        """Recall on the bank as it was known at ``query.as_of``."""
        if query.as_of is None:
            raise ValidationError("is required: the instant to look from", field="as_of")
        carried = {name: getattr(query, name) for name in ("max_results", "max_tokens", "tags", "as_of")}
        if query != RecallQuery(query.query, query.bank_id, **carried):
            raise CapabilityNotSupported(
                "history takes query, as_of, limits and tags only; use recall with as_of instead"
            )
        with _encoding({"": query}):
            request = convert.encode_history_request(query)
        return convert.decode_history_result(await self._call(caller, self._memory.History, request))

    async def reflect(self, caller: Caller, query: ReflectQuery) -> ReflectResult:
        """Answer a question from the bank's memories."""
        with _encoding({"": query}):
            request = convert.encode_reflect_query(query)
        response = await self._call(caller, self._memory.Reflect, request)
        return convert.decode_reflect_result(response, include_sources=query.include_sources)

    async def reflect_stream(self, caller: Caller, query: ReflectQuery) -> AsyncIterator[str | ReflectResult]:
        """As `reflect`: the pieces of the answer, and last of all the whole result."""
        with _encoding({"": query}):
            request = memory_pb2.StreamReflectRequest(reflect=convert.encode_reflect_query(query))
        call = self._memory.StreamReflect(request, metadata=(*self._metadata, *_claims(caller)))
        try:
            async for response in call:
                if response.HasField("result"):
                    yield convert.decode_reflect_result(response.result, include_sources=query.include_sources)
                else:
                    yield response.text
        except grpc.aio.AioRpcError as error:
            raise translate(error) from None
        finally:
            call.cancel()

    async def forget(  # noqa: PLR0913 - the signature of Backend
        self,
        caller: Caller,
        bank_id: str,
        selector: ForgetSelector,
        *,
        compliance: bool = False,
        reason: str | None = None,
        dry_run: bool = False,
        request_id: str | None = None,
    ) -> ForgetResult:
        """Forget what the selector meets."""
        with _encoding({"bank_id": bank_id, "": selector, "reason": reason, "request_id": request_id}):
            request = convert.encode_forget_request(
                bank_id, selector, compliance=compliance, reason=reason, dry_run=dry_run, request_id=request_id
            )
        return convert.decode_forget_result(await self._call(caller, self._memory.Forget, request))

    async def undelete(self, caller: Caller, bank_id: str, memory_id: str, *, request_id: str | None = None) -> Memory:
        """Bring a forgotten memory back."""
        request = _message(
            memory_pb2.UndeleteMemoryRequest, bank_id=bank_id, memory_id=memory_id, request_id=request_id
        )
        response = await self._call(caller, self._memory.UndeleteMemory, request)
        return convert.decode_memory(response.memory)

    async def get_memory(self, caller: Caller, bank_id: str, memory_id: str) -> Memory:
        """The current version of a memory."""
        request = _message(memory_pb2.GetMemoryRequest, bank_id=bank_id, memory_id=memory_id)
        response = await self._call(caller, self._memory.GetMemory, request)
        return convert.decode_memory(response.memory)

    async def list_memories(
        self,
        caller: Caller,
        bank_id: str,
        *,
        tags: Sequence[str] = (),
        session_id: str | None = None,
        page_size: int = 0,
        page_token: str = "",
    ) -> MemoryPage:
        """A page of the bank's memories in order of arrival."""
        request = _message(
            memory_pb2.ListMemoriesRequest,
            bank_id=bank_id,
            tags=tags,
            session_id=session_id,
            page_size=page_size,
            page_token=page_token,
        )
        response = await self._call(caller, self._memory.ListMemories, request)
        return MemoryPage(
            memories=tuple(convert.decode_memory(memory) for memory in response.memories),
            next_page_token=response.next_page_token,
            position=response.position,
            total_size=response.total_size,
        )

    async def update_memory(
        self,
        caller: Caller,
        bank_id: str,
        update: MemoryUpdate,
        *,
        request_id: str | None = None,
        validate_only: bool = False,
    ) -> Memory:
        """Make a new version of a memory."""
        with _encoding({"bank_id": bank_id, "": update, "request_id": request_id}):
            request = convert.encode_update_request(bank_id, update, request_id, validate_only=validate_only)
        response = await self._call(caller, self._memory.UpdateMemory, request)
        return convert.decode_memory(response.memory)

    async def watch(self, caller: Caller, bank_id: str, *, after: int | None = None) -> AsyncIterator[Change]:
        """The bank's changes after a position (None: from now on), then each as it is committed, without end."""
        request = _message(memory_pb2.WatchRequest, bank_id=bank_id, after_position=after)
        call = self._memory.Watch(request, metadata=(*self._metadata, *_claims(caller)))
        try:
            async for response in call:
                yield convert.decode_change(response.change)
        except grpc.aio.AioRpcError as error:
            raise translate(error) from None
        finally:
            call.cancel()

    async def create_bank(  # noqa: PLR0913 - the signature of Backend
        self,
        caller: Caller,
        bank_id: str,
        *,
        display_name: str = "",
        description: str = "",
        embedding_model: str | None = None,
        dimensions: int | None = None,
        request_id: str | None = None,
    ) -> Bank:
        """Create a bank."""
        request = _message(
            admin_pb2.CreateBankRequest,
            bank_id=bank_id,
            display_name=display_name,
            description=description,
            embedding_model=embedding_model,
            dimensions=dimensions,
            request_id=request_id,
        )
        return convert.decode_bank((await self._call(caller, self._admin.CreateBank, request)).bank)

    async def get_bank(self, caller: Caller, bank_id: str) -> Bank:
        """The bank with its current position."""
        request = _message(admin_pb2.GetBankRequest, bank_id=bank_id)
        return convert.decode_bank((await self._call(caller, self._admin.GetBank, request)).bank)

    async def list_banks(
        self, caller: Caller, *, prefix: str = "", page_size: int = 0, page_token: str = ""
    ) -> BankPage:
        """A page of the caller's banks by id."""
        request = _message(admin_pb2.ListBanksRequest, prefix=prefix, page_size=page_size, page_token=page_token)
        response = await self._call(caller, self._admin.ListBanks, request)
        return BankPage(tuple(convert.decode_bank(bank) for bank in response.banks), response.next_page_token)

    async def update_bank(
        self,
        caller: Caller,
        bank_id: str,
        *,
        display_name: str | None = None,
        description: str | None = None,
        etag: str | None = None,
        request_id: str | None = None,
    ) -> Bank:
        """Change what is not None."""
        changes = {"display_name": display_name, "description": description}
        mask = {"paths": [name for name, value in changes.items() if value is not None]}
        request = _message(
            admin_pb2.UpdateBankRequest,
            bank_id=bank_id,
            update_mask=mask,
            etag=etag,
            request_id=request_id,
            **changes,
        )
        return convert.decode_bank((await self._call(caller, self._admin.UpdateBank, request)).bank)

    async def delete_bank(
        self, caller: Caller, bank_id: str, *, etag: str | None = None, request_id: str | None = None
    ) -> int:
        """Delete the bank and everything in it; returns how many memories were visible."""
        request = _message(admin_pb2.DeleteBankRequest, bank_id=bank_id, etag=etag, request_id=request_id)
        count: int = (await self._call(caller, self._admin.DeleteBank, request)).deleted_count
        return count

    async def bank_stats(self, caller: Caller, bank_id: str) -> BankStats:
        """Counts of the bank."""
        request = _message(admin_pb2.GetBankStatsRequest, bank_id=bank_id)
        return convert.decode_bank_stats((await self._call(caller, self._admin.GetBankStats, request)).stats)

    async def server_info(self, caller: Caller) -> ServerInfo:
        """What runs at the other end."""
        response = await self._call(caller, self._admin.GetServerInfo, admin_pb2.GetServerInfoRequest())
        return convert.decode_server_info(response.server_info)

    async def grant(
        self, caller: Caller, bank_id: str, principal: str, permissions: Sequence[str], *, request_id: str | None = None
    ) -> Grant:
        """Give permissions."""
        request = _message(
            admin_pb2.GrantRequest,
            bank_id=bank_id,
            principal=principal,
            permissions=_permissions(permissions, "permissions"),
            request_id=request_id,
        )
        return convert.decode_grant((await self._call(caller, self._admin.Grant, request)).grant)

    async def revoke(
        self,
        caller: Caller,
        bank_id: str,
        principal: str,
        permissions: Sequence[str] = (),
        *,
        request_id: str | None = None,
    ) -> frozenset[Permission]:
        """Take permissions."""
        request = _message(
            admin_pb2.RevokeRequest,
            bank_id=bank_id,
            principal=principal,
            permissions=_permissions(permissions, "permissions"),
            request_id=request_id,
        )
        response = await self._call(caller, self._admin.Revoke, request)
        return frozenset(convert.decode_permissions(response.permissions))

    async def list_grants(
        self,
        caller: Caller,
        *,
        bank_id: str = "",
        principal: str = "",
        revoked: bool = False,
        page_size: int = 0,
        page_token: str = "",
    ) -> GrantPage:
        """A page of the tenant's grants."""
        request = _message(
            admin_pb2.ListGrantsRequest,
            bank_id=bank_id,
            principal=principal,
            include_revoked=revoked,
            page_size=page_size,
            page_token=page_token,
        )
        response = await self._call(caller, self._admin.ListGrants, request)
        return GrantPage(tuple(map(convert.decode_grant, response.grants)), response.next_page_token)

    async def create_api_key(
        self,
        caller: Caller,
        name: str,
        principal: str,
        *,
        expires_at: datetime | None = None,
        request_id: str | None = None,
    ) -> tuple[KeyInfo, str]:
        """Make a key."""
        with _encoding({"name": name, "principal": principal, "expires_at": expires_at, "request_id": request_id}):
            request = convert.encode_create_api_key(name, principal, expires_at, request_id)
        response = await self._call(caller, self._admin.CreateApiKey, request)
        return convert.decode_api_key(response.api_key), response.secret

    async def list_bank_templates(self, caller: Caller) -> list[BankTemplate]:
        """The templates of the configuration."""
        response = await self._call(caller, self._admin.ListBankTemplates, admin_pb2.ListBankTemplatesRequest())
        return [convert.decode_bank_template(template) for template in response.bank_templates]

    async def list_bank_groups(self, caller: Caller) -> list[BankGroup]:
        """The groups of the configuration."""
        response = await self._call(caller, self._admin.ListBankGroups, admin_pb2.ListBankGroupsRequest())
        return [convert.decode_bank_group(group) for group in response.bank_groups]

    async def list_api_keys(self, caller: Caller) -> list[KeyInfo]:
        """All keys of the tenant."""
        response = await self._call(caller, self._admin.ListApiKeys, admin_pb2.ListApiKeysRequest())
        return [convert.decode_api_key(key) for key in response.api_keys]

    async def revoke_api_key(self, caller: Caller, key_id: str, *, request_id: str | None = None) -> KeyInfo:
        """End a key."""
        request = _message(admin_pb2.RevokeApiKeyRequest, key_id=key_id, request_id=request_id)
        return convert.decode_api_key((await self._call(caller, self._admin.RevokeApiKey, request)).api_key)

    async def check_access(
        self, caller: Caller, bank_id: str, *, principal: str | None = None, permission: str | None = None
    ) -> AccessCheck:
        """What a principal may do in a bank."""
        asked = _permissions([permission], "permission")[0] if permission else None
        request = _message(admin_pb2.CheckAccessRequest, bank_id=bank_id, principal=principal, permission=asked)
        return convert.decode_access_check(await self._call(caller, self._admin.CheckAccess, request))

    async def place_hold(  # noqa: PLR0913 - the parts of a hold, and the request's key
        self,
        caller: Caller,
        bank_id: str,
        *,
        reason: str,
        memory_ids: Sequence[str] = (),
        tags: Sequence[str] = (),
        hold_id: str | None = None,
        request_id: str | None = None,
    ) -> Hold:
        """Place a hold."""
        request = _message(
            admin_pb2.PlaceHoldRequest,
            bank_id=bank_id,
            hold_id=hold_id,
            memory_ids=memory_ids,
            tags=tags,
            reason=reason,
            request_id=request_id,
        )
        return convert.decode_hold((await self._call(caller, self._admin.PlaceHold, request)).hold)

    async def release_hold(self, caller: Caller, bank_id: str, hold_id: str, *, request_id: str | None = None) -> Hold:
        """Release a hold."""
        request = _message(admin_pb2.ReleaseHoldRequest, bank_id=bank_id, hold_id=hold_id, request_id=request_id)
        return convert.decode_hold((await self._call(caller, self._admin.ReleaseHold, request)).hold)

    async def list_holds(
        self, caller: Caller, *, bank_id: str = "", released: bool = False, page_size: int = 0, page_token: str = ""
    ) -> HoldPage:
        """A page of holds."""
        request = _message(
            admin_pb2.ListHoldsRequest,
            bank_id=bank_id,
            include_released=released,
            page_size=page_size,
            page_token=page_token,
        )
        response = await self._call(caller, self._admin.ListHolds, request)
        return HoldPage(tuple(map(convert.decode_hold, response.holds)), response.next_page_token)

    async def list_audit_events(
        self, caller: Caller, *, bank_id: str = "", page_size: int = 0, page_token: str = ""
    ) -> AuditPage:
        """A page of the trail."""
        request = _message(
            admin_pb2.ListAuditEventsRequest, bank_id=bank_id, page_size=page_size, page_token=page_token
        )
        return convert.decode_audit_page(await self._call(caller, self._admin.ListAuditEvents, request))

    async def close(self) -> None:
        """Close the connection; calls in progress are cancelled."""
        await self._channel.close()


def _roots(tls: Path | str | Literal[True]) -> bytes | None:
    if tls is True:
        return None
    path = Path(tls)
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}", metadata={"file": str(path)}) from error


def _claims(caller: Caller) -> tuple[tuple[str, str], ...]:
    """What the caller says of itself, as metadata, which the server holds against the credential."""
    if caller == Caller():
        return ()
    said = (
        (TENANT_HEADER, caller.tenant, DEFAULT_TENANT),
        (PRINCIPAL_HEADER, caller.principal, DEFAULT_PRINCIPAL),
        (BEHALF_HEADER, caller.on_behalf_of, None),
    )
    claims = tuple((header, value) for header, value, usual in said if value is not None and value != usual)
    for header, value in claims:
        if not value.isascii() or not value.isprintable():
            raise ValidationError("expected printable ASCII, for metadata carries no other", field=header)
    return claims


def translate(error: grpc.aio.AioRpcError) -> AstrocyteError:
    """The exception that a failed call stands for; for callers of generated stubs as well."""
    if error.details() == BROKEN_WRITE:
        return Unavailable("the connection ended while sending; call again, with the same request id where it writes")
    return from_details(error.code().value[0], error.details() or "", details_in(error.trailing_metadata()))


def _outcome(response: memory_pb2.StreamRetainResponse) -> RetainResult | AstrocyteError:
    if response.HasField("error"):
        return from_status(response.error)
    return convert.decode_retain_result(response.result)


@contextmanager
def _encoding(values: Mapping[str, object], path: str = "") -> Iterator[None]:
    """Turn whatever goes wrong in making a message into a ValidationError that names the value."""
    try:
        yield
    except AstrocyteError:
        raise
    except (TypeError, ValueError, AttributeError, OverflowError) as error:
        raise convert.refuse(error, values, path) from error


def _encode_item(item: RetainItem, path: str) -> memory_pb2.RetainItem:
    with _encoding({"": item}, path):
        return convert.encode_item(item)


def _encode_query(query: RecallQuery, path: str) -> memory_pb2.RecallRequest:
    with _encoding({"": query}, path):
        return convert.encode_query(query)


def _permissions(names: Sequence[str], path: str) -> list[admin_pb2.Permission.ValueType]:
    with _encoding({path: names}):
        return convert.encode_permissions(names)


def _message(kind: type[T], **fields: Any) -> T:  # noqa: ANN401 - whatever the message holds
    """A message of these fields; None leaves a field unset."""
    with _encoding(fields):
        return kind(**fields)
