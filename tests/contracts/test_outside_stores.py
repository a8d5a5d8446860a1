"""What every store from outside promises, by those that ship with the package."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count

from astrocyte.providers.storage import DocumentStore, GraphStore, VectorStore, in_memory, postgres
from astrocyte.testing import DocumentStoreContract, GraphStoreContract, VectorStoreContract
from core_stores import CoreDocumentStore, CoreVectorStore
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
