"""Checks of a diagnosis that read rows: each returns its findings, and how much it examined."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from astrocyte.model import Bank, Caller, Check, Finding, Memory, Severity
from astrocyte.pipelines.knowledge import diagnosis
from astrocyte.policy.privacy.barriers import Barriers
from astrocyte.stores.knowledge.diagnosis import DiagnosisStore
from astrocyte.stores.knowledge.items import ItemKind

# Findings of one check, and ids of one finding.
MOST_FINDINGS, MOST_IDS = 20, 10
# Tokens above which a memory says too many things for one vector, and takes too large a part of an answer.
MOST_TOKENS = 4_000
# Share of one source above which a bank is one-sided, if it has so many memories.
MOST_SHARE, LEAST_MEMORIES = 0.9, 20
_REMEDIES = {
    ItemKind.OBSERVATION: "ConsolidateBank, or UpdateObservation",
    ItemKind.MENTAL_MODEL: "RefreshMentalModel",
    ItemKind.WIKI_PAGE: "CompileBank",
}


@dataclass(frozen=True, slots=True)
class Found:
    """The findings of a check, with its extent; ``count`` is that of all findings."""

    findings: list[Finding]
    examined: int
    total: int
    count: int


@dataclass(frozen=True, slots=True)
class Case:
    """A bank under examination, with its newest memories."""

    caller: Caller
    bank: Bank
    memories: list[Memory]
    total: int


class RowChecks:
    """The checks by name, in ``all``.

    Args:
        store: Reads.
        barriers: Find personal data.
        clock: Milliseconds since the epoch.
    """

    def __init__(self, store: DiagnosisStore, barriers: Barriers, clock: Callable[[], int]) -> None:
        self._store = store
        self._barriers = barriers
        self._clock = clock
        self.all: dict[Check, Callable[[Case], Found]] = {
            Check.ORPHANED_ROWS: self._orphaned_rows,
            Check.MISSING_EMBEDDINGS: self._missing_embeddings,
            Check.CONTRADICTIONS: self._contradictions,
            Check.DUPLICATES: self._duplicates,
            Check.STALE_KNOWLEDGE: self._stale_knowledge,
            Check.EXPIRED: self._expired,
            Check.PERSONAL_DATA: self._personal_data,
            Check.OVERSIZE: self._oversize,
            Check.ONE_SIDED: self._one_sided,
            Check.EXPIRED_HOLDS: self._expired_holds,
        }

    def _duplicates(self, case: Case) -> Found:
        groups = diagnosis.copies(case.memories)
        findings = [
            Finding(
                Check.DUPLICATES,
                Severity.LOW,
                f"{len(ids)} memories have the same words",
                tuple(ids[:MOST_IDS]),
                "Forget all but one",
            )
            for ids in groups[:MOST_FINDINGS]
        ]
        return Found(findings, len(case.memories), case.total, len(groups))

    def _contradictions(self, case: Case) -> Found:
        pairs = diagnosis.contradictions(case.memories)
        findings = [
            Finding(
                Check.CONTRADICTIONS,
                Severity.MEDIUM,
                "the second memory contradicts the first",
                pair,
                "UpdateMemory with valid_until, or Forget the one that is wrong",
            )
            for pair in pairs[:MOST_FINDINGS]
        ]
        return Found(findings, len(case.memories), case.total, len(pairs))

    def _expired(self, case: Case) -> Found:
        ids, count = self._store.expired(case.bank, self._clock(), MOST_IDS)
        detail = f"the validity of {count} memories has ended"
        return self._one(case, Check.EXPIRED, Severity.LOW, detail, ids, count, "Forget, or UpdateMemory")

    def _oversize(self, case: Case) -> Found:
        ids, count = self._store.oversize(case.bank, MOST_TOKENS, MOST_IDS)
        detail = f"{count} memories have more than {MOST_TOKENS:,} tokens"
        remedy = "Retain them in parts, and Forget the whole"
        return self._one(case, Check.OVERSIZE, Severity.LOW, detail, ids, count, remedy)

    def _missing_embeddings(self, case: Case) -> Found:
        ids, count = self._store.without_vectors(case.bank, MOST_IDS)
        detail = f"{count} memories have no vector, and are found by their words alone"
        remedy = "UpdateMemory with the content, or StartReindex"
        return self._one(case, Check.MISSING_EMBEDDINGS, Severity.HIGH, detail, ids, count, remedy)

    def _one(  # noqa: PLR0913, PLR0917 - the parts of a finding
        self, case: Case, check: Check, severity: Severity, detail: str, ids: Sequence[str], count: int, remedy: str
    ) -> Found:
        """One finding about all memories of a kind, of which the whole bank was looked at."""
        findings = [Finding(check, severity, detail, tuple(ids), remedy)] if count else []
        return Found(findings, case.total, case.total, count)

    def _stale_knowledge(self, case: Case) -> Found:
        stale, count, total = self._store.stale(case.bank, MOST_FINDINGS)
        findings = [
            Finding(
                Check.STALE_KNOWLEDGE,
                Severity.MEDIUM,
                f"{ItemKind(one.kind).replace('_', ' ')}: {one.changed} sources changed and {one.gone} are gone",
                (one.item_id,),
                _REMEDIES[ItemKind(one.kind)],
                is_repairable=one.kind == ItemKind.WIKI_PAGE,
            )
            for one in stale
        ]
        return Found(findings, total, total, count)

    def _orphaned_rows(self, case: Case) -> Found:
        rows = {table: count for table, count in self._store.orphans(case.bank).items() if count}
        findings = [
            Finding(
                Check.ORPHANED_ROWS,
                Severity.MEDIUM,
                f"{count} rows of {table} belong to nothing",
                (),
                "RepairBank",
                is_repairable=True,
            )
            for table, count in rows.items()
        ]
        return Found(findings, case.total, case.total, len(rows))

    def _personal_data(self, case: Case) -> Found:
        found = self._barriers.types_in(case.bank.bank_id, case.memories)
        findings = [
            Finding(
                Check.PERSONAL_DATA,
                Severity.HIGH,
                ", ".join(sorted(types)),
                (case.memories[place].memory_id,),
                "Forget with compliance, or UpdateMemory",
            )
            for place, types in sorted(found.items())[:MOST_FINDINGS]
        ]
        return Found(findings, len(case.memories), case.total, len(found))

    def _one_sided(self, case: Case) -> Found:
        shares = self._store.sources(case.bank)
        if case.total < LEAST_MEMORIES or not shares or shares[0][0] == "":
            return Found([], case.total, case.total, 0)
        count = shares[0][1]
        if count < MOST_SHARE * case.total:
            return Found([], case.total, case.total, 0)
        detail = f"{count} of {case.total} memories come from one source"
        finding = Finding(Check.ONE_SIDED, Severity.LOW, detail, (), "Retain from other sources")
        return Found([finding], case.total, case.total, 1)

    def _expired_holds(self, case: Case) -> Found:
        held, total = self._store.expired_holds(case.bank, self._clock())
        findings = [
            Finding(
                Check.EXPIRED_HOLDS,
                Severity.MEDIUM,
                "the hold stands, and its expires_at is past",
                (hold_id,),
                "ReleaseHold",
            )
            for hold_id in held[:MOST_FINDINGS]
        ]
        return Found(findings, total, total, len(held))
