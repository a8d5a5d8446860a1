"""The counts and the health of each source, written by the event loop and read by any thread."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime

from astrocyte.config.sources.kinds import IngestSource, StoringSource, WebhookSource, storing
from astrocyte.errors import AstrocyteError
from astrocyte.model import SourceInfo, SourceState


class SourceBoard:
    """Holds a `SourceInfo` for each configured source.

    Args:
        sources: The sources by id.
    """

    def __init__(self, sources: Mapping[str, IngestSource]) -> None:
        self._lock = threading.Lock()
        self._tenants = {source_id: source.tenant for source_id, source in storing(sources).items()}
        self._infos = {source_id: _first(source_id, source) for source_id, source in storing(sources).items()}

    def listed(self, tenant: str | None = None) -> list[SourceInfo]:
        """The sources in the order of the settings; of one tenant, or of all."""
        with self._lock:
            infos = list(self._infos.values())
        return [info for info in infos if tenant is None or self._tenants[info.source_id] == tenant]

    def stored(self, source_id: str, *, count: int = 1, duplicates: int = 0) -> None:
        """Count messages of which each is durable now; ``duplicates`` others were before."""
        with self._lock:
            info = self._infos[source_id]
            self._infos[source_id] = replace(
                info,
                stored=info.stored + count,
                duplicates=info.duplicates + duplicates,
                healthy=True,
                detail="",
                last_stored_at=datetime.now(UTC) if count else info.last_stored_at,
            )

    def refused(self, source_id: str, count: int = 1) -> None:
        """Count messages that are refused for what they are; the source stays as healthy as it is."""
        with self._lock:
            info = self._infos[source_id]
            self._infos[source_id] = replace(info, refused=info.refused + count)

    def failed(self, source_id: str, error: Exception, *, count: int = 1) -> None:
        """Count messages that were not stored for a reason of the server, or of the source as a whole."""
        detail = error.reason if isinstance(error, AstrocyteError) else type(error).__name__
        with self._lock:
            info = self._infos[source_id]
            self._infos[source_id] = replace(info, failed=info.failed + count, healthy=False, detail=detail)

    def now(self, source_id: str, state: SourceState, *, lag: int | None = None) -> None:
        """Note the state of a source, and its lag where it is known."""
        with self._lock:
            info = self._infos[source_id]
            self._infos[source_id] = replace(info, state=state, lag=info.lag if lag is None else lag)

    def reached(self, source_id: str) -> None:
        """Note that the source answers after a failure."""
        with self._lock:
            info = self._infos[source_id]
            self._infos[source_id] = replace(info, healthy=True, detail="")

    @property
    def healthy(self) -> bool:
        """True if no source has failed since its last message."""
        return all(info.healthy for info in self.listed())


def _first(source_id: str, source: StoringSource) -> SourceInfo:
    if isinstance(source, WebhookSource):
        # It waits whenever the gateway listens.
        driver, state = "", SourceState.WAITING
    else:
        driver, state = source.driver, SourceState.STOPPED
    return SourceInfo(source_id, source.type, driver, source.target, state, healthy=True)


def as_json(infos: Iterable[SourceInfo]) -> list[dict[str, object]]:
    """The state of sources as anybody may see it: ids, types and health."""
    return [{"id": one.source_id, "type": one.type, "state": str(one.state), "healthy": one.healthy} for one in infos]
