"""Stores in PostgreSQL: vectors by pgvector, texts by full-text search, names. They need the extra ``postgres``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from astrocyte.providers.options import read_options
from astrocyte.providers.storage.postgres.database import Database, PostgresOptions
from astrocyte.providers.storage.postgres.documents import PostgresDocumentStore
from astrocyte.providers.storage.postgres.graph import PostgresGraphStore
from astrocyte.providers.storage.postgres.vectors import PostgresVectorStore

__all__ = [
    "PostgresDocumentStore",
    "PostgresGraphStore",
    "PostgresOptions",
    "PostgresVectorStore",
    "create_document_store",
    "create_graph_store",
    "create_vector_store",
]


def create_vector_store(options: Mapping[str, Any]) -> PostgresVectorStore:
    """A vector store over a database, which is reached at its first use.

    Raises:
        ConfigError: An option is wrong.
    """
    return PostgresVectorStore(Database(read_options(PostgresOptions, options, "vector_store_config")))


def create_document_store(options: Mapping[str, Any]) -> PostgresDocumentStore:
    """A document store over a database, which is reached at its first use.

    Raises:
        ConfigError: An option is wrong.
    """
    return PostgresDocumentStore(Database(read_options(PostgresOptions, options, "document_store_config")))


def create_graph_store(options: Mapping[str, Any]) -> PostgresGraphStore:
    """A graph store over a database, which is reached at its first use.

    Raises:
        ConfigError: An option is wrong.
    """
    return PostgresGraphStore(Database(read_options(PostgresOptions, options, "graph_store_config")))
