"""The sections of an archive beside its memories, as one import stores them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass

from astrocyte.api.requests import ImportBank
from astrocyte.errors import AlreadyExists, AstrocyteError, PiiRejected, ValidationError
from astrocyte.model import Bank, OnConflict
from astrocyte.pipelines.portability.graph_lines import ArchivedGraphRow
from astrocyte.pipelines.portability.reading import ArchivedGrant
from astrocyte.pipelines.portability.staging import ArchivedItem
from astrocyte.policy.operations.parts import OperationParts
from astrocyte.policy.operations.portability.archive_rows import GraphRows, KnowledgeRows, words_by_name
from astrocyte.stores.graph.entity_graph import ArchivedEntity
from astrocyte.stores.knowledge.items import ItemHistory, ItemKind, Standing

# An import waits for the entities of its memories, which a graph derives in the background, before it stores links.
GRAPH_SECONDS = 600.0

_COUNTED = {
    ItemKind.OBSERVATION: "observations",
    ItemKind.MENTAL_MODEL: "mental_models",
    ItemKind.DIRECTIVE: "directives",
    ItemKind.WIKI_PAGE: "wiki_pages",
}
Row = ArchivedItem | ArchivedGraphRow


@dataclass(frozen=True, slots=True)
class Reporting:
    """The counters of an import: rows by name, failures by line, and each row that is to be stored as a retain."""

    count: Callable[..., None]
    fail: Callable[[int, str, str], None]
    admitted: Callable[[], Awaitable[None]]


class ArchiveSections:
    """The sections of one import.

    Args:
        parts: What the operations share.
        by: Who imports.
        request: How.
        report: What the import counts.
    """

    def __init__(self, parts: OperationParts, by: str, request: ImportBank, report: Reporting) -> None:
        self._knowledge = parts.knowledge
        self._graph = parts.pipelines.graph
        self._items = KnowledgeRows(parts)
        self._rows = GraphRows(parts)
        self._by = by
        self._request = request
        self._report = report
        self._overwrite = request.on_conflict is OnConflict.OVERWRITE
        self._caught_up = False
        # The lines of the entities of the archive, by id; True for those that are counted.
        self._entities: dict[str, tuple[int, bool]] = {}

    def wants(self, record: object) -> bool:
        """True if the request includes the section of a record."""
        if isinstance(record, ArchivedGrant):
            return self._request.include_grants
        if isinstance(record, ArchivedGraphRow):
            return self._request.include_graph
        if isinstance(record, ArchivedItem):
            return bool(getattr(self._request, f"include_{_COUNTED[record.history.kind]}"))
        return True

    def check(self, bank: Bank, records: Sequence[object]) -> None:
        """Look for what makes the whole import impossible.

        Raises:
            AlreadyExists: Rows are there already, and that is to be an error.
            LegalHoldActive: A hold covers what would be overwritten.
        """
        items = [one.history for one in records if isinstance(one, ArchivedItem) and self.wants(one)]
        found = [
            *zip((item.item_id for item in items), self._standings(bank, items), strict=True),
            *self._graph_standings(bank, [one for one in records if isinstance(one, ArchivedGraphRow)]),
        ]
        taken = next((name for name, standing in found if standing is not Standing.ABSENT), None)
        if taken is not None and self._request.on_conflict is OnConflict.ERROR:
            raise AlreadyExists(
                f"bank {bank.bank_id!r} has rows of the archive, such as {taken!a:.80}; nothing was stored; use "
                "on_conflict skip or overwrite",
                metadata={"bank_id": bank.bank_id, "id": ascii(taken)[1:81]},
            )

    def _standings(self, bank: Bank, items: Sequence[ItemHistory]) -> list[Standing]:
        return self._knowledge.standings(bank, items, overwrite=self._overwrite) if items else []

    def _graph_standings(self, bank: Bank, rows: Sequence[ArchivedGraphRow]) -> Iterator[tuple[str, Standing]]:
        # An entity without fields is there for the links at it.
        wanted = [one for one in rows if self.wants(one) and not _is_bare(one)]
        if wanted:
            standings = self._graph.store.standings(bank, [one.row for one in wanted], overwrite=self._overwrite)
            yield from zip((one.name for one in wanted), standings, strict=True)

    async def store(self, bank: Bank, records: Sequence[object]) -> None:
        """Store the rows of a group, those of each kind in one transaction.

        Raises:
            LimitReached: The quota of the day is used up.
            LegalHoldActive: A hold came that covers a row; what was stored stays.
        """
        wanted = [one for one in records if isinstance(one, ArchivedItem | ArchivedGraphRow) and self.wants(one)]
        rows = [one for one in wanted if isinstance(one, ArchivedGraphRow)]
        if rows:
            await self._store_graph(bank, rows)
        items = [one for one in wanted if isinstance(one, ArchivedItem)]
        if items:
            await self._store_items(bank, items)

    async def finish(self, bank: Bank) -> None:
        """Delete the entities that neither a memory nor a link of a caller names, at the end of the import."""
        if not self._entities:
            return
        for entity_id in await self._graph.store.clear(bank):
            line, is_counted = self._entities.get(entity_id, (0, False))
            if is_counted:
                self._report.count(entities=-1)
            if line:
                self._report.fail(line, entity_id, "neither a memory of the bank nor a link of the archive names it")

    async def _store_items(self, bank: Bank, items: Sequence[ArchivedItem]) -> None:
        screened: list[tuple[ArchivedItem, ItemHistory]] = []
        for one in items:
            try:
                history = await self._items.screened(bank, one.history)
            except (ValidationError, PiiRejected) as error:
                self._report.fail(one.line, one.history.item_id, _told(error))
                continue
            await self._report.admitted()
            screened.append((one, history))
        wanted = [(history, self._items.most[history.kind]) for _, history in screened]
        results = await self._knowledge.restore(bank, wanted, by=self._by, overwrite=self._overwrite)
        counts: Counter[str] = Counter()
        for (one, history), result in zip(screened, results, strict=True):
            if isinstance(result, AstrocyteError):
                self._report.fail(one.line, history.item_id, result.message)
            else:
                counts[_COUNTED[history.kind] if result else "kept"] += 1
        self._report.count(**counts)

    async def _store_graph(self, bank: Bank, rows: Sequence[ArchivedGraphRow]) -> None:
        if not self._caught_up:
            await self._graph.follower.caught_up(GRAPH_SECONDS)
            self._caught_up = True
        screened: list[ArchivedGraphRow] = []
        for one in rows:
            try:
                row = await self._rows.screened(bank, one)
            except (ValidationError, PiiRejected) as error:
                self._report.fail(one.line, one.name, _told(error))
                continue
            await self._report.admitted()
            screened.append(row)
        plain = [one.row for one in screened]
        results = await self._graph.store.restore(
            bank, plain, words_by_name(plain), by=self._by, overwrite=self._overwrite
        )
        counts: Counter[str] = Counter()
        for one, result in zip(screened, results, strict=True):
            if isinstance(result, AstrocyteError):
                self._report.fail(one.line, one.name, result.message)
            elif result:
                counts["entities" if isinstance(one.row, ArchivedEntity) else "links"] += 1
            elif not _is_bare(one):
                counts["kept"] += 1
            if isinstance(one.row, ArchivedEntity):
                self._entities[one.row.entity_id] = (one.line, result is True)
        self._report.count(**counts)
        self._graph.follower.notify()


def _is_bare(one: ArchivedGraphRow) -> bool:
    """True for an entity without fields of callers."""
    return isinstance(one.row, ArchivedEntity) and not one.row.is_changed


def _told(error: ValidationError | PiiRejected) -> str:
    """The message of an error, with the key that it is about."""
    field = getattr(error, "field", "")
    return f"{field}: {error.message}" if field and not error.message.startswith(field) else error.message
