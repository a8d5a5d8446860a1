"""The place where sources store memories: an `Astrocyte` of this process, with its receipts and cursors."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypedDict, Unpack

from astrocyte.api import Backend
from astrocyte.api.requests import Retain
from astrocyte.ingest.versions import Complete
from astrocyte.model import Caller, Metadata, RetainItem, RetainResult
from astrocyte.stores.ingest import IngestStore


class IngestFields(TypedDict, total=False):
    """Fields of a `RetainItem` that sources fill."""

    metadata: Metadata
    tags: tuple[str, ...]
    content_type: str
    extraction_profile: str | None
    occurred_at: datetime | None


@dataclass(frozen=True, slots=True)
class IngestTarget:
    """All that a source needs of an application. A call retains one content.

    Attributes:
        backend: Answers requests; every retain passes its gate.
        store: Receipts of webhooks, cursors of polls.
        complete: Adds to an item that is updated what a retain adds by itself.
        writes: False where nothing may be stored, so that no source is read.
    """

    backend: Backend
    store: IngestStore
    complete: Complete = lambda _, item: item
    writes: bool = True

    async def __call__(
        self, content: str, bank_id: str, *, caller: Caller | None = None, **fields: Unpack[IngestFields]
    ) -> RetainResult:
        """Retain a content that a source of its own reads, as ``caller`` or else the local user.

        Raises:
            AstrocyteError: As `Retain` raises it.
        """
        return await self.backend.call(caller or Caller(), Retain(bank_id, RetainItem(content, **fields)))


class HasTarget(Protocol):
    """An `Astrocyte`."""

    def ingest_target(self) -> IngestTarget:
        """The target of this process; raises `CapabilityNotSupported` for a connection to a server."""


def retain_callable_for_astrocyte(brain: HasTarget) -> IngestTarget:
    """The target of an `Astrocyte`, for `SourceRegistry.from_sources_config` and `handle_webhook_ingest`.

    Raises:
        CapabilityNotSupported: It is a connection to a server, which runs the sources of its own configuration.
    """
    return brain.ingest_target()


def target_of(retain: HasTarget | IngestTarget) -> IngestTarget:
    """The target itself, or that of an `Astrocyte`."""
    return retain if isinstance(retain, IngestTarget) else retain.ingest_target()
