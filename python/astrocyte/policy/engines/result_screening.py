"""Screening of engine answers, which are untrusted input.

Each hit must be as valid as a memory, meet the query's filter by its own fields, and pass the bank's
barriers by patterns, as if it were to be stored. A hit of a memory that this server keeps as well is shown as the
database knows it now, or, where that has forgotten, archived or changed it, not at all: so an engine that lags behind
can bring nothing back.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from astrocyte.core import content_hash, count_tokens
from astrocyte.errors import AstrocyteError, ProviderUnavailable
from astrocyte.model import Bank, DetailLevel, Memory, MemoryHit, RecallQuery, RecallResult
from astrocyte.pipelines.recall.external_context import ID_PREFIX, passing, row_of
from astrocyte.pipelines.text import detail_levels
from astrocyte.policy.privacy.barriers import Barriers
from astrocyte.policy.requests.validation import Validator
from astrocyte.providers.engines import EngineAnswer
from astrocyte.stores.protocols import MemoryStore


@dataclass(frozen=True, slots=True)
class Judged:
    """The hits that passed, best first, the number of dropped ones, and warnings for the caller.

    Attributes:
        outdated: Of the dropped ones, those of memories that this server has forgotten, archived or changed.
    """

    hits: tuple[MemoryHit, ...]
    found: int
    dropped: int
    warnings: tuple[str, ...] = ()
    outdated: int = 0


class _OutdatedError(Exception):
    """The hit shows a memory that this server has forgotten, archived or changed."""


class ResultScreening:
    """Screens the answers of engines: bounds, filters, and the privacy barriers of the bank.

    Args:
        store: Tells which hits are memories of this server.
        barriers: The privacy barriers of all banks.
        check: The limits on input.
    """

    def __init__(self, store: MemoryStore, barriers: Barriers, check: Validator) -> None:
        self._store = store
        self._barriers = barriers
        self._check = check

    def judge(self, engine: str, bank: Bank, operation: str, query: RecallQuery, answer: object) -> Judged:
        """The hits of an engine's answer that the caller may see.

        Raises:
            ProviderUnavailable: The answer has the wrong type.
        """
        if not isinstance(answer, EngineAnswer) or isinstance(answer.hits, (str, bytes)):
            raise ProviderUnavailable(
                f"engine {engine!r} did not return valid hits",
                metadata={"engine": engine, "cause": "not_an_answer"},
            )
        offered = list(answer.hits)[: query.max_results]
        right, outdated = [], 0
        for one in offered:
            try:
                hit = self._hit(engine, bank, query, one, answer)
            except _OutdatedError:
                outdated += 1
            else:
                right += [] if hit is None else [hit]
        meeting = passing(replace(query, external_context=tuple(right)))
        shown = [_shown(query, hit) for hit in meeting]
        screened = self._barriers.screen_engine_result(
            bank.bank_id, operation, RecallResult(tuple(shown), 0, truncated=False)
        )
        hits = tuple(_counted(hit) for hit in screened.hits)
        return Judged(hits, len(offered), len(offered) - len(hits), screened.warnings, outdated)

    def _hit(self, engine: str, bank: Bank, query: RecallQuery, hit: object, answer: EngineAnswer) -> MemoryHit | None:
        """The hit with the fields that an engine may set, or None if the hit is invalid; raises as `_own`."""
        if not isinstance(hit, MemoryHit):
            return None
        try:
            self._check.external_hit(hit)
            metadata = self._barriers.metadata(bank.bank_id, hit.metadata or {})
        except AstrocyteError:
            return None
        kept = MemoryHit(
            text=hit.text,
            score=hit.score,
            memory_id=hit.memory_id or f"{ID_PREFIX}{content_hash(hit.text).hex()}",
            bank_id=bank.bank_id,
            metadata=metadata,
            tags=tuple(hit.tags or ()),
            occurred_at=hit.occurred_at,
            retained_at=hit.retained_at,
            source=hit.source if query.include_sources else None,
            memory_layer=hit.memory_layer,
            fact_type=hit.fact_type,
            session_id=hit.session_id,
            speaker=hit.speaker,
            engine=engine,
        )
        return self._own(bank, query, kept, answer)

    def _own(self, bank: Bank, query: RecallQuery, hit: MemoryHit, answer: EngineAnswer) -> MemoryHit | None:
        """The hit as the database has it, if it is a memory of the bank; None for another time than now.

        Raises:
            _OutdatedError: The bank does not have the memory as the hit says any more.
        """
        origin = answer.origins.get(hit.memory_id or "")
        memory = self._store.memory(bank, str(origin or hit.memory_id), include_forgotten=True)
        if memory is None:
            if origin is None:
                # Never was here: it is the engine's own.
                return hit
            raise _OutdatedError
        if query.as_of is not None or query.valid_at is not None:
            return None
        if not is_seen(query, memory) or hit.text not in memory.content:
            raise _OutdatedError
        return _of_memory(query, hit, memory)


def is_seen(query: RecallQuery, memory: Memory) -> bool:
    """True if a recall of now may show the latest version of a memory."""
    past = query.as_of is not None or query.valid_at is not None
    archived = memory.archived_at is not None and not query.include_archived
    return not (past or archived or memory.forgotten_at is not None)


def _of_memory(query: RecallQuery, hit: MemoryHit, memory: Memory) -> MemoryHit:
    return replace(
        hit,
        memory_id=memory.memory_id,
        metadata=memory.metadata,
        tags=memory.tags,
        occurred_at=memory.occurred_at,
        retained_at=memory.retained_at,
        source=memory.source if query.include_sources else None,
        memory_layer=memory.memory_layer,
        fact_type=memory.fact_type,
        session_id=memory.session_id,
        speaker=memory.speaker,
        version=memory.version,
        chunk_count=memory.chunk_count,
    )


def _shown(query: RecallQuery, hit: MemoryHit) -> MemoryHit:
    if query.detail_level is not DetailLevel.TITLES:
        return hit
    return replace(hit, text=detail_levels.title(row_of(hit)))


def _counted(hit: MemoryHit) -> MemoryHit:
    """The hit with its tokens, counted when its text is final."""
    return replace(hit, token_count=count_tokens(hit.text))
