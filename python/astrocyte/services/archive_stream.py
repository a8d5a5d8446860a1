"""ImportBank: an archive that arrives as a stream of messages."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing

from astrocyte.api import Backend
from astrocyte.api.requests import OPTIONAL_PARTS, ImportBank
from astrocyte.errors import ValidationError
from astrocyte.model import Caller, ImportProgress, OnConflict
from astrocyte.services.convert import Refused, codec_of
from astrocyte.services.convert.codec import choices_of
from astrocyte.services.draining import Draining
from astrocyte.v1 import admin_pb2

STATES = codec_of(ImportProgress, admin_pb2.ImportBankResponse)
ACTIONS = choices_of(admin_pb2.OnConflict.DESCRIPTOR)

Messages = AsyncIterator[admin_pb2.ImportBankRequest]


async def archive_stream(
    backend: Backend, caller: Caller, messages: Messages, draining: Draining
) -> AsyncIterator[admin_pb2.ImportBankResponse]:
    """Import the archive of a stream, and report on it.

    Raises:
        Unavailable: The server stops; what was stored stays, and the archive can be sent again.
        ValidationError: There is no message, or the first one is wrong.
    """
    with draining.interrupting():
        first = await anext(messages, None)
        if first is None:
            raise ValidationError("is empty; the first message of a stream must name a bank", field="bank_id")
        wanted = {f"include_{part}": getattr(first, f"include_{part}") for part in OPTIONAL_PARTS}
        request = ImportBank(first.bank_id, _archive(first, messages), _action(first), **wanted)
        async with aclosing(backend.stream(caller, request)) as states:  # type: ignore[type-var]  # a generator
            async for state in states:
                yield STATES.encode(state)


async def _archive(first: admin_pb2.ImportBankRequest, messages: Messages) -> AsyncIterator[bytes]:
    yield first.data
    async for message in messages:
        yield message.data


def _action(message: admin_pb2.ImportBankRequest) -> OnConflict:
    if not message.on_conflict:
        return OnConflict.SKIP
    try:
        return OnConflict(ACTIONS.decode(message.on_conflict))
    except Refused as error:
        raise ValidationError(error.description, field="on_conflict") from None
