"""Messages out, answers and errors in: what both halves of the remote backend share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TypeVar

import grpc

from astrocyte.errors import AstrocyteError, ConfigError, Unavailable, ValidationError
from astrocyte.model import (
    DEFAULT_PRINCIPAL,
    DEFAULT_TENANT,
    Caller,
    RecallQuery,
    RetainItem,
    RetainResult,
)
from astrocyte.services import convert
from astrocyte.services.authentication import BEHALF_HEADER, HOPS_HEADER, PRINCIPAL_HEADER, TENANT_HEADER
from astrocyte.services.propagation import trace_headers
from astrocyte.services.status import details_in, from_details, from_status
from astrocyte.v1 import admin_pb2, memory_pb2

# What grpc says, as INTERNAL, when a stream ends under its writer.
BROKEN_WRITE = "Internal error from Core"

T = TypeVar("T")


def roots(tls: Path | str | Literal[True]) -> bytes | None:
    """The PEM roots to trust; None for the system's."""
    if tls is True:
        return None
    path = Path(tls)
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}", metadata={"file": str(path)}) from error


def claims(caller: Caller) -> tuple[tuple[str, str], ...]:
    """What the caller says of itself, as metadata, which the server holds against the credential; and its trace."""
    if caller == Caller():
        return trace_headers()
    said = (
        (TENANT_HEADER, caller.tenant, DEFAULT_TENANT),
        (PRINCIPAL_HEADER, caller.principal, DEFAULT_PRINCIPAL),
        (BEHALF_HEADER, caller.on_behalf_of, None),
        (HOPS_HEADER, str(caller.hops), "0"),
    )
    claims = tuple((header, value) for header, value, usual in said if value is not None and value != usual)
    for header, value in claims:
        if not value.isascii() or not value.isprintable():
            raise ValidationError("expected printable ASCII, for metadata carries no other", field=header)
    return (*claims, *trace_headers())


def translate(error: grpc.aio.AioRpcError) -> AstrocyteError:
    """The exception that a failed call stands for; for callers of generated stubs as well."""
    if error.details() == BROKEN_WRITE:
        return Unavailable("the connection ended while sending; call again, with the same request id where it writes")
    return from_details(error.code().value[0], error.details() or "", details_in(error.trailing_metadata()))


def outcome(response: memory_pb2.StreamRetainResponse) -> RetainResult | AstrocyteError:
    """What became of one item of a stream."""
    if response.HasField("error"):
        return from_status(response.error)
    return convert.decode_retain_result(response.result)


@contextmanager
def encoding(values: Mapping[str, object], path: str = "") -> Iterator[None]:
    """Turn whatever goes wrong in making a message into a ValidationError that names the value."""
    try:
        yield
    except AstrocyteError:
        raise
    except (TypeError, ValueError, AttributeError, OverflowError) as error:
        raise convert.refuse(error, values, path) from error


def encode_item(item: RetainItem, path: str) -> memory_pb2.RetainItem:
    """An item as a message."""
    with encoding({"": item}, path):
        return convert.encode_item(item)


def encode_query(query: RecallQuery, path: str) -> memory_pb2.RecallRequest:
    """A query as a message."""
    with encoding({"": query}, path):
        return convert.encode_query(query)


def encode_permissions(names: Sequence[str], path: str) -> list[admin_pb2.Permission.ValueType]:
    """Permissions as numbers of the enumeration."""
    with encoding({path: names}):
        return convert.encode_permissions(names)


def message(kind: type[T], **fields: Any) -> T:  # noqa: ANN401 - whatever the message holds
    """A message of these fields; None leaves a field unset."""
    with encoding(fields):
        return kind(**fields)
