"""The contract of external stores, run against those that ship with the package."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import pytest

from astrocyte.core import vector_values
from astrocyte.providers.storage import (
    DocumentStore,
    GraphStore,
    VectorStore,
    elasticsearch,
    in_memory,
    neo4j,
    postgres,
    qdrant,
)
from astrocyte.providers.storage.elasticsearch import conditions as es
from astrocyte.providers.storage.neo4j.database import Database as Neo4jDatabase
from astrocyte.providers.storage.postgres.database import Database
from astrocyte.providers.storage.qdrant.points import condition, of_bank, point_id
from astrocyte.testing import DocumentStoreContract, GraphStoreContract, VectorStoreContract
from astrocyte.testing.contract import OTHER
from doubles.core_stores import CoreDocumentStore, CoreGraphStore, CoreVectorStore
from external import neo4j_server, opensearch_server
from external.postgres import address

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


class TestVectorsInQdrant(VectorStoreContract):
    """In the Qdrant that the client has in itself; a server is not at hand here."""

    @asynccontextmanager
    async def open(self) -> AsyncIterator[VectorStore]:
        store = qdrant.create_vector_store({"url": ":memory:"})
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


@pytest.mark.timeout(600)
class TestDocumentsInOpenSearch(DocumentStoreContract):
    @asynccontextmanager
    async def open(self) -> AsyncIterator[DocumentStore]:
        store = elasticsearch.create_document_store(opensearch_server.options(f"documents-{next(_SCHEMAS)}"))
        try:
            yield store
        finally:
            await store.close()


@pytest.mark.timeout(600)
class TestGraphInNeo4j(GraphStoreContract):
    @asynccontextmanager
    async def open(self) -> AsyncIterator[GraphStore]:
        store = neo4j.create_graph_store(neo4j_server.options(f"Graphs{next(_SCHEMAS)}"))
        try:
            yield store
        finally:
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


# As above, of records and links.
TAKEN_OUT_OF_GRAPHS = [
    (" AND walked", "", "test_a_walk_goes_along_links"),
    (" OR target_id = ANY(%(frontier)s)", "", "test_a_walk_goes_along_links"),
    ("created_at <= %(as_of)s", "true", "test_links_pass_as_their_definition_says"),
    ("coalesce(valid_until, %(valid_at)s) >= %(valid_at)s", "true", "test_links_pass_as_their_definition_says"),
    ("alias_of && %(fresh)s::text[]", "false", "test_aliases_are_one_entity"),
    ("folded && %(names)s::text[]", "false", "test_names_of_records_are_found"),
    ("bank_id = %s AND id = ANY", "%s <> '' AND id = ANY", "test_records_and_links_are_listed"),
    (
        " UNION SELECT bank_id FROM {schema}.link_records",
        " UNION SELECT '' FROM {schema}.link_records",
        "test_records_and_links_are_of",
    ),
]


@pytest.mark.parametrize(("text", "instead", "clause"), TAKEN_OUT_OF_GRAPHS)
def test_without_what_a_statement_of_graphs_is_held_to_the_contract_fails(
    monkeypatch: pytest.MonkeyPatch, text: str, instead: str, clause: str
) -> None:
    statement = Database.sql
    changed: list[str] = []

    def without(self: Database, written: str, **parts: Any) -> Any:
        changed.extend([written] if text in written else [])
        return statement(self, written.replace(text, instead), **parts)

    monkeypatch.setattr(Database, "sql", without)
    (name,) = [name for name in dir(TestGraphInPostgres) if name.startswith(clause)]
    with pytest.raises(AssertionError):
        getattr(TestGraphInPostgres(), name)()
    assert changed


# As above, for the store in Qdrant.
REPLACED: list[tuple[str, Callable[..., Any], str]] = [
    ("condition", lambda _, filters: condition(OTHER, filters), "test_what_is_put_is_found_in_its_bank_alone"),
    ("condition", lambda bank_id, _: of_bank(bank_id), "test_filters_are_those_of_the_definition"),
    ("of_bank", lambda bank_id, *_: of_bank(bank_id), "test_deleting_goes_by_memory"),
    ("point_id", lambda *parts: point_id(*parts, str(next(_SCHEMAS))), "test_positions_are_kept_by_bank"),
    ("direction", lambda vector: list(vector_values(vector)), "test_scores_are_half_of_one_plus_the_cosine"),
]


@pytest.mark.parametrize(("name", "instead", "clause"), REPLACED)
def test_without_a_part_of_the_store_in_qdrant_the_contract_fails(
    monkeypatch: pytest.MonkeyPatch, name: str, instead: Any, clause: str
) -> None:
    monkeypatch.setattr(qdrant.vectors, name, instead)
    with pytest.raises(AssertionError):
        getattr(TestVectorsInQdrant(), clause)()


# The same for Elasticsearch and OpenSearch.
REPLACED_IN_ELASTICSEARCH: list[tuple[str, Callable[..., Any], str]] = [
    ("condition", lambda _, filters: es.condition(OTHER, filters), "test_what_is_put_is_found_in_its_bank_alone"),
    ("condition", lambda bank_id, _: es.of_bank(bank_id), "test_filters_are_those_of_the_definition"),
    ("of_bank", lambda bank_id, *_: es.of_bank(bank_id), "test_deleting_goes_by_memory"),
    ("digest", lambda *parts: es.digest(*parts, str(next(_SCHEMAS))), "test_putting_again_replaces"),
    ("_words", str, "test_queries_are_text"),
]


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("name", "instead", "clause"), REPLACED_IN_ELASTICSEARCH)
def test_without_a_part_of_the_store_in_elasticsearch_the_contract_fails(
    monkeypatch: pytest.MonkeyPatch, name: str, instead: Any, clause: str
) -> None:
    opensearch_server.options("any")
    monkeypatch.setattr(elasticsearch.documents, name, instead)
    with pytest.raises(AssertionError):
        getattr(TestDocumentsInOpenSearch(), clause)()


# The same for Neo4j, whose statements are others.
TAKEN_OUT_OF_NEO4J = [
    ("e.bank_id = $bank_id AND", "", "test_what_is_put_is_found_in_its_bank_alone"),
    ("m.bank_id = $bank_id AND", "", "test_entities_are_found_by_their_names"),
    ("SET m = link", "ON CREATE SET m = link", "test_putting_again_replaces"),
    ("x.bank_id = $bank_id AND x.memory_id IN $ids", "x.memory_id IN $ids", "test_deleting_goes_by_memory"),
    ("n.bank_id = $bank_id", "true", "test_a_bank_is_dropped_whole"),
    ("STARTS WITH", ">=", "test_banks_are_listed_by_the_beginning"),
    ("m.known_until IS NULL OR ", "", "test_filters_are_those_of_the_definition"),
    ("x.memory_id IN $reached AND", "x.memory_id IN $reached OR", "test_a_walk_does_not_pass_through"),
    ("AND l.walked", "", "test_a_walk_goes_along_links"),
    ("l.created_at <= $as_of", "true", "test_links_pass_as_their_definition_says"),
    ("coalesce(l.valid_until, $valid_at) >= $valid_at", "true", "test_links_pass_as_their_definition_says"),
    ("DELETE a", "SET a.old = true", "test_aliases_are_one_entity"),
    ("any(name IN e.folded WHERE name IN $names)", "false", "test_names_of_records_are_found"),
    ("AND e.record_id IS NULL", "", "test_mentions_and_records_do_not_depend"),
    ("l.bank_id = $bank_id AND l.id IN $ids", "l.id IN $ids", "test_records_and_links_are_listed"),
]


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("text", "instead", "clause"), TAKEN_OUT_OF_NEO4J)
def test_without_what_a_statement_of_neo4j_is_held_to_the_contract_fails(
    monkeypatch: pytest.MonkeyPatch, text: str, instead: str, clause: str
) -> None:
    """The control of the clauses above."""
    statement = Neo4jDatabase.cypher
    changed: list[str] = []

    def without(self: Neo4jDatabase, written: str) -> str:
        changed.extend([written] if text in written else [])
        return statement(self, written.replace(text, instead))

    (name,) = [name for name in dir(TestGraphInNeo4j) if name.startswith(clause)]
    monkeypatch.setattr(Neo4jDatabase, "cypher", without)
    with pytest.raises(AssertionError):
        getattr(TestGraphInNeo4j(), name)()
    assert changed


class TestGraphInTheCore(GraphStoreContract):
    @asynccontextmanager
    async def open(self) -> AsyncIterator[GraphStore]:
        store = CoreGraphStore()
        yield store
        await store.close()
