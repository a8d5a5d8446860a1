"""A document store over Elasticsearch or OpenSearch: words are stemmed by the language of the options."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from astrocyte.errors import StoreError
from astrocyte.providers.storage.elasticsearch.conditions import condition, digest, of_bank, pair_digest
from astrocyte.providers.storage.elasticsearch.indexes import Indexes
from astrocyte.providers.storage.fields import attributes_of, fields_of
from astrocyte.providers.storage.protocols import SPI_VERSION, Document, StoreFilters, StoreHit

# Of one write. Servers refuse requests from 100 MB on, and answer smaller ones faster.
_BATCH_BYTES = 4_000_000
# Rows of one answer while all are read.
_PAGE = 1_000
# Of a query. Each character can be a word, and servers refuse queries of more than 1,024 words.
_QUERY_CHARS = 1_000


class ElasticsearchDocumentStore:
    """Implements `astrocyte.providers.storage.DocumentStore`.

    A bank with documents is registered before them, because a list of all values of a field would have to be bounded.

    Args:
        indexes: Where they are.
    """

    SPI_VERSION: ClassVar[int] = SPI_VERSION

    def __init__(self, indexes: Indexes) -> None:
        self._indexes = indexes

    async def position(self, bank_id: str) -> int:
        """The position in the bank's change log up to which the store is current."""
        path = f"/{self._indexes.banks}/_doc/{digest('position', bank_id)}"
        found = await self._indexes.send("GET", path, accepted=(404,))
        return 0 if found is None else int(found["_source"]["position"])

    async def advance(self, bank_id: str, position: int) -> None:
        """Set the position up to which the store is current."""
        await self._note("position", bank_id, {"position": position})

    async def store_documents(self, documents: Sequence[Document]) -> list[str]:
        """Store the documents, replacing those of the same id."""
        for bank_id in {document.bank_id for document in documents}:
            await self._note("bank", bank_id, {})
        for batch in _batches(documents):
            path = f"/{self._indexes.documents}/_bulk"
            answer = await self._indexes.send("POST", path, batch, parameters=self._indexes.refresh)
            if answer["errors"]:
                raise StoreError("document store refused a document")
        return [document.id for document in documents]

    async def search_fulltext(
        self, query: str, bank_id: str, limit: int = 10, filters: StoreFilters | None = None
    ) -> list[StoreHit]:
        """Documents with a word of the first 1,000 characters of the query, by BM25 over all banks of the index."""
        words = {"match": {"words": {"query": _words(query)[:_QUERY_CHARS], "operator": "or"}}}
        search = {
            "query": {"bool": {"must": [words], "filter": [condition(bank_id, filters)]}},
            "size": limit,
            "sort": [{"_score": "desc"}, {"item_id": "asc"}],
            "_source": ["item_id", "memory_id"],
            "track_total_hits": False,
        }
        found = await self._indexes.send("POST", f"/{self._indexes.documents}/_search", search)
        hits = [
            StoreHit(hit["_source"]["item_id"], hit["_source"]["memory_id"], _share(hit["_score"]))
            for hit in found["hits"]["hits"]
        ]
        return sorted(hits, key=lambda hit: (-hit.score, hit.id))

    async def get_document(self, document_id: str, bank_id: str) -> Document | None:
        """The document of that id."""
        path = f"/{self._indexes.documents}/_doc/{digest(bank_id, document_id)}"
        found = await self._indexes.send("GET", path, accepted=(404,))
        if found is None:
            return None
        fields = found["_source"]
        return Document(document_id, bank_id, fields["text"], attributes_of(fields))

    async def delete(self, ids: Sequence[str], bank_id: str) -> int:
        """Delete all documents of these memories in the bank."""
        if not ids:
            return 0
        going = of_bank(bank_id, {"terms": {"memory_id": list(ids)}})
        return await self._delete(self._indexes.documents, going)

    async def list_banks(self, prefix: str) -> list[str]:
        """Banks whose names have the prefix."""
        banks: set[str] = set()
        search: dict[str, Any] = {
            "query": {"prefix": {"bank_id": prefix}} if prefix else {"match_all": {}},
            "size": _PAGE,
            "sort": [{"bank_id": "asc"}, {"kind": "asc"}],
            "_source": ["bank_id"],
        }
        while True:
            found = await self._indexes.send("POST", f"/{self._indexes.banks}/_search", search)
            rows = found["hits"]["hits"]
            banks.update(row["_source"]["bank_id"] for row in rows)
            if len(rows) < _PAGE:
                return sorted(banks)
            search["search_after"] = rows[-1]["sort"]

    async def drop_bank(self, bank_id: str) -> None:
        """Delete the bank with everything in it; its registration last, so that a drop that fails is repeated."""
        await self._delete(self._indexes.documents, of_bank(bank_id))
        await self._delete(self._indexes.banks, of_bank(bank_id))

    async def health(self) -> bool:
        """True if all primary shards can be reached."""
        try:
            found = await self._indexes.send("GET", f"/_cluster/health/{self._indexes.documents}")
            return bool(found["status"] != "red")
        except Exception:  # noqa: BLE001 - whatever it is, the store cannot be used
            return False

    async def close(self) -> None:
        """Release the connections."""
        await self._indexes.close()

    async def _note(self, kind: str, bank_id: str, fields: dict[str, int]) -> None:
        path = f"/{self._indexes.banks}/_doc/{digest(kind, bank_id)}"
        row = {"bank_id": bank_id, "kind": kind, **fields}
        await self._indexes.send("PUT", path, row, parameters=self._indexes.refresh)

    async def _delete(self, index: str, going: dict[str, Any]) -> int:
        # A write that was not awaited, of another server before this one, may not be searchable yet.
        await self._indexes.send("POST", f"/{index}/_refresh")
        answer = await self._indexes.send(
            "POST", f"/{index}/_delete_by_query", {"query": going}, parameters={"refresh": "true"}
        )
        if answer["failures"] or answer["timed_out"]:
            raise StoreError("document store did not delete all documents")
        return int(answer["deleted"])


def _words(text: str) -> str:
    """A text whose words are apart: analysers join those with an underscore between them."""
    return text.replace("_", " ")


def _share(score: float) -> float:
    """A score of BM25, which has no upper bound, from 0 to 1 in the same order."""
    return score / (1.0 + score)


def _batches(documents: Sequence[Document]) -> Iterator[bytes]:
    """Lines of bulk requests."""
    lines = bytearray()
    for document in documents:
        fields = fields_of(document.attributes)
        row = {
            "bank_id": document.bank_id,
            "item_id": document.id,
            "text": document.text,
            "words": _words(document.text),
            "pairs": [pair_digest(pair) for pair in fields["metadata"]],
            **fields,
        }
        lines += json.dumps({"index": {"_id": digest(document.bank_id, document.id)}}).encode() + b"\n"
        lines += json.dumps(row).encode() + b"\n"
        if len(lines) > _BATCH_BYTES:
            yield bytes(lines)
            lines.clear()
    if lines:
        yield bytes(lines)
