"""A graph store in Neo4j, over its own driver. It needs the extra ``neo4j``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from astrocyte.providers.options import read_options
from astrocyte.providers.storage.neo4j.database import Database, Neo4jOptions
from astrocyte.providers.storage.neo4j.graph import Neo4jGraphStore

__all__ = ["Neo4jGraphStore", "Neo4jOptions", "create_graph_store"]


def create_graph_store(options: Mapping[str, Any]) -> Neo4jGraphStore:
    """A graph store over a database, which is reached at its first use.

    Raises:
        ConfigError: An option is wrong.
    """
    return Neo4jGraphStore(Database(read_options(Neo4jOptions, options, "graph_store_config")))
