"""Exceptions of failed calls."""

from __future__ import annotations

import grpc

from astrocyte.errors import AstrocyteError, Unavailable
from astrocyte.services.status import details_in, from_details

# The message of grpc, as INTERNAL, when a stream ends under its writer.
BROKEN_WRITE = "Internal error from Core"


def translate(error: grpc.aio.AioRpcError) -> AstrocyteError:
    """The exception of a failed call; for callers of generated stubs as well."""
    if error.details() == BROKEN_WRITE:
        return Unavailable("the connection ended while sending; call again, with the same request id where it writes")
    return from_details(error.code().value[0], error.details() or "", details_in(error.trailing_metadata()))
