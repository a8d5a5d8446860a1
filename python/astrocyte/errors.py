"""The exception tree: one class per way to fail, one wire reason per class.

    AstrocyteError
    ├── ConfigError                      settings that cannot be used
    ├── ValidationError                  the caller's value is wrong; nothing was changed
    │   └── DimensionMismatch            a vector of another size or model than the bank's
    ├── AuthorizationError               no valid credential
    ├── AccessDenied                     a credential without the grant
    ├── NotFound
    │   ├── BankNotFound
    │   └── MemoryNotFound
    ├── AlreadyExists
    ├── Conflict                         read again and retry
    │   └── RequestIdReused              the same request_id with another request
    ├── FailedPrecondition               the state forbids it
    │   └── LegalHoldActive              a hold covers what would go; ``hold_ids``
    ├── PiiRejected                      personal data or secrets that the bank does not take
    ├── RateLimited                      slow down; ``retry_after`` seconds
    │   └── LimitReached                 what was configured for the bank, or for all, is used up for now
    ├── QuotaExceeded                    what was configured for the bank is used up, until something is forgotten
    ├── MessageTooLarge                  a message beyond what the other side takes; send less at once
    ├── CapabilityNotSupported           not built, or not configured
    ├── ProviderUnavailable              an embedder or a model failed
    │   └── CircuitOpen                  it failed so often that it was not asked; ``retry_after`` seconds
    ├── DeadlineExceeded                 the call did not end in time; a write may still be committed
    ├── Unavailable                      the server stops, or cannot be reached; a write may still be committed
    └── StoreError                       ours
        ├── DiskFull                     nothing was changed; free space and retry
        ├── SchemaTooNew                 written by a newer version
        └── StoreLocked                  another process owns the data directory

Every exception carries ``reason`` (the name of its value in errors.proto) and ``metadata`` (each variable part of the
message, as strings), so that no caller has to parse a sentence.
"""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from typing import ClassVar

# Enough to go from a door of this package down to the line that failed.
SHOWN_FRAMES = 12
# Of the holds that stand in the way; one is enough to ask somebody.
SHOWN_HOLDS = 16


class AstrocyteError(Exception):
    """Root of the tree.

    Args:
        message: What was expected, what came, what to do.
        metadata: Each variable part of the message, by name.
    """

    reason: ClassVar[str] = "INTERNAL"

    def __init__(self, message: str, *, metadata: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.metadata: dict[str, str] = dict(metadata or {})

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle by state, so that subclasses with other signatures survive a process border."""
        return (_rebuild, (type(self), self.args, self.__dict__))


def _rebuild(kind: type[AstrocyteError], args: tuple[object, ...], state: dict[str, object]) -> AstrocyteError:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(state)
    return error


class ConfigError(AstrocyteError):
    """A setting is unknown, missing or out of range."""

    reason = "CONFIG_INVALID"


class ValidationError(AstrocyteError):
    """A value from the caller is wrong. ``field`` is its path in the request, such as ``items[3].content``."""

    reason = "INVALID_ARGUMENT"

    def __init__(self, message: str, *, field: str, metadata: dict[str, str] | None = None) -> None:
        super().__init__(f"{field}: {message}", metadata={"field": field, **(metadata or {})})
        self.field = field
        self.description = message


class DimensionMismatch(ValidationError):
    """A vector has another size, or names another model, than the bank's."""

    reason = "EMBEDDING_MISMATCH"


class AuthorizationError(AstrocyteError):
    """No credential came, or one that is not valid."""

    reason = "UNAUTHENTICATED"


class AccessDenied(AstrocyteError):
    """The principal lacks a permission on the bank, or on what else ``holder`` names."""

    reason = "ACCESS_DENIED"

    def __init__(self, principal: str, bank_id: str, permission: str, *, holder: str = "bank") -> None:
        super().__init__(
            f"principal {principal!r} lacks {permission} access to {holder} {bank_id!r}",
            metadata={"principal": principal, "bank_id": bank_id, "permission": permission},
        )
        self.principal, self.bank_id, self.permission = principal, bank_id, permission


class NotFound(AstrocyteError):
    """A named resource does not exist, or the caller may not know that it does."""

    reason = "NOT_FOUND"


class BankNotFound(NotFound):
    """There is no such bank."""

    reason = "BANK_NOT_FOUND"

    def __init__(self, bank_id: str) -> None:
        super().__init__(
            f"bank {bank_id!r} does not exist; create it with CreateBank, or retain into it",
            metadata={"bank_id": bank_id},
        )
        self.bank_id = bank_id


class MemoryNotFound(NotFound):
    """There is no such memory in the bank, or it was forgotten."""

    reason = "MEMORY_NOT_FOUND"

    def __init__(self, memory_id: str, bank_id: str) -> None:
        super().__init__(
            f"memory {memory_id!r} does not exist in bank {bank_id!r}, or was forgotten",
            metadata={"memory_id": memory_id, "bank_id": bank_id},
        )
        self.memory_id, self.bank_id = memory_id, bank_id


class AlreadyExists(AstrocyteError):
    """A resource of that name exists."""

    reason = "ALREADY_EXISTS"


class Conflict(AstrocyteError):
    """The resource changed since it was read (an etag did not match): read it again and retry."""

    reason = "ETAG_MISMATCH"


class RequestIdReused(Conflict):
    """The same request_id came before with another request."""

    reason = "REQUEST_ID_REUSED"


class FailedPrecondition(AstrocyteError):
    """The state of the system forbids the call; retrying alone does not help."""

    reason = "FAILED_PRECONDITION"


class LegalHoldActive(FailedPrecondition):
    """A legal hold covers something that would be forgotten, erased or changed; nothing was.

    ``hold_ids`` are the holds that do, the first 16 of them.
    """

    reason = "LEGAL_HOLD_ACTIVE"

    def __init__(self, bank_id: str, hold_ids: Sequence[str]) -> None:
        self.bank_id, self.hold_ids = bank_id, tuple(hold_ids[:SHOWN_HOLDS])
        named = ",".join(self.hold_ids)
        super().__init__(
            f"a legal hold on bank {bank_id!r} covers what the call would take away ({named}); nothing was changed; "
            "release it first, or leave out what it covers",
            metadata={"bank_id": bank_id, "hold_ids": named},
        )


class PiiRejected(AstrocyteError):
    """The call holds personal data or secrets that the bank's barrier refuses; nothing was changed.

    The metadata has ``field``, and ``types`` with commas between; what was found is nowhere.
    """

    reason = "PII_REJECTED"

    @property
    def pii_types(self) -> tuple[str, ...]:
        """The types that were found, sorted."""
        return tuple(filter(None, self.metadata.get("types", "").split(",")))


class RateLimited(AstrocyteError):
    """Too much at once. ``retry_after`` is in seconds."""

    reason = "OVERLOADED"

    def __init__(self, message: str, *, retry_after: float, metadata: dict[str, str] | None = None) -> None:
        super().__init__(message, metadata={"retry_after_seconds": f"{retry_after:.3f}", **(metadata or {})})
        self.retry_after = retry_after


class LimitReached(RateLimited):
    """A configured rate, or a day's quota, is used up; nothing was changed."""

    reason = "LIMIT_REACHED"


class QuotaExceeded(AstrocyteError):
    """A bank holds as much as it may; nothing was changed. Forget something, or ask for more."""

    reason = "QUOTA_EXCEEDED"


class MessageTooLarge(AstrocyteError):
    """A message is larger than its receiver takes; the same again will not do."""

    reason = "MESSAGE_TOO_LARGE"


class CapabilityNotSupported(AstrocyteError):
    """The call asks for something that this server does not do."""

    reason = "NOT_SUPPORTED"


class ProviderUnavailable(AstrocyteError):
    """A provider (an embedder, a model) failed, refused or did not answer in time."""

    reason = "PROVIDER_UNAVAILABLE"


class CircuitOpen(ProviderUnavailable):
    """A provider failed so often that it is left alone for a while. ``retry_after`` is in seconds."""

    reason = "CIRCUIT_OPEN"

    def __init__(self, provider: str, retry_after: float) -> None:
        super().__init__(
            f"provider {provider!r} failed again and again and is left alone; try again in {retry_after:.3f} s",
            metadata={"provider": provider, "retry_after_seconds": f"{retry_after:.3f}"},
        )
        self.provider, self.retry_after = provider, retry_after


class DeadlineExceeded(AstrocyteError):
    """The call did not end in time. A write may still be committed: retry it with the same request id."""

    reason = "DEADLINE_EXCEEDED"


class Unavailable(AstrocyteError):
    """The server is stopping, or cannot be reached. A write may be committed: retry it with the same request id."""

    reason = "UNAVAILABLE"


class StoreError(AstrocyteError):
    """The store failed; whether a write was committed is said in the message."""

    reason = "STORE_FAILED"


class DiskFull(StoreError):
    """There is no space left; the write was not committed."""

    reason = "DISK_FULL"


class SchemaTooNew(StoreError):
    """The data directory was written by a newer version of Astrocyte."""

    reason = "SCHEMA_TOO_NEW"


class StoreLocked(StoreError):
    """Another process owns the data directory."""

    reason = "STORE_LOCKED"


def frames(error: BaseException) -> list[str]:
    """Where an error came from, innermost last: places only, since messages and locals may hold a caller's content."""
    places = traceback.extract_tb(error.__traceback__)[-SHOWN_FRAMES:]
    return [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in places]
