"""The contract of external stores, run against those that ship with the package."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import pytest

from astrocyte.providers.storage import DocumentStore, GraphStore, VectorStore, in_memory, postgres
from astrocyte.providers.storage.postgres.database import Database
from astrocyte.testing import DocumentStoreContract, GraphStoreContract, VectorStoreContract
from core_stores import CoreDocumentStore, CoreGraphStore, CoreVectorStore
from postgres import address

# A schema for each test: an empty store.
_SCHEMAS = count()


class TestVectorsInMemory(VectorStoreContract):
    @asynccontextmanager
    async def open(self) -> AsyncIterator[VectorStore]:
        yield in_memory.create_vector_store({})


class TestDocumentsInMemory(DocumentStoreContract):
    @asynccontextmanager
    async def open(self) -> AsyncIterator[DocumentStore]:
        yield in_memory.create_document_store({})


class TestVectorsInPostgres(VectorStoreContract):
    @asynccontextmanager
    async def open(self) -> AsyncIterator[VectorStore]:
        store = postgres.create_vector_store({"dsn": address(), "schema_name": f"vectors_{next(_SCHEMAS)}"})
        yield store
        await store.close()


class TestDocumentsInPostgres(DocumentStoreContract):
    @asynccontextmanager
    async def open(self) -> AsyncIterator[DocumentStore]:
        store = postgres.create_document_store({"dsn": address(), "schema_name": f"documents_{next(_SCHEMAS)}"})
        yield store
        await store.close()


class TestGraphInMemory(GraphStoreContract):
    @asynccontextmanager
    async def open(self) -> AsyncIterator[GraphStore]:
        yield in_memory.create_graph_store({})


class TestGraphInPostgres(GraphStoreContract):
    @asynccontextmanager
    async def open(self) -> AsyncIterator[GraphStore]:
        store = postgres.create_graph_store({"dsn": address(), "schema_name": f"graphs_{next(_SCHEMAS)}"})
        yield store
        await store.close()


class TestVectorsInTheCore(VectorStoreContract):
    @asynccontextmanager
    async def open(self) -> AsyncIterator[VectorStore]:
        yield CoreVectorStore()


class TestDocumentsInTheCore(DocumentStoreContract):
    @asynccontextmanager
    async def open(self) -> AsyncIterator[DocumentStore]:
        yield CoreDocumentStore()


# What statements are held to, what stands there without it, and the clause that fails then.
TAKEN_OUT = [
    ("WHERE bank_id = %(bank_id)s AND", "WHERE", "test_what_is_put_is_found_in_its_bank_alone"),
    ("AND {where}", "", "test_filters_are_those_of_the_definition"),
    ("bank_id = %s AND memory_id", "%s <> '' AND memory_id", "test_deleting_goes_by_memory"),
    ("(bank_id, id) DO UPDATE SET", "(bank_id, id) DO UPDATE SET id = excluded.id --", "test_putting_again_replaces"),
    ("starts_with(bank_id, %(prefix)s)", "bank_id LIKE %(prefix)s || '%%'", "test_banks_are_listed_by_the_beginning"),
]


@pytest.mark.parametrize("contract", [TestVectorsInPostgres, TestDocumentsInPostgres, TestGraphInPostgres])
@pytest.mark.parametrize(("text", "instead", "clause"), TAKEN_OUT)
def test_without_what_a_statement_is_held_to_the_contract_fails(
    monkeypatch: pytest.MonkeyPatch, contract: Any, text: str, instead: str, clause: str
) -> None:
    """The control of the clauses above."""
    statement = Database.sql

    def without(self: Database, written: str, **parts: Any) -> Any:
        return statement(self, written.replace(text, instead), **parts)

    (name,) = [name for name in dir(contract) if name.startswith(clause)]
    monkeypatch.setattr(Database, "sql", without)
    with pytest.raises(AssertionError):
        getattr(contract(), name)()


class TestGraphInTheCore(GraphStoreContract):
    @asynccontextmanager
    async def open(self) -> AsyncIterator[GraphStore]:
        store = CoreGraphStore()
        yield store
        await store.close()
