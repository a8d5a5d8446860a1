"""The database of a Neo4j store: the driver, the labels, the constraints, and transactions that are tried again."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from neo4j import AsyncDriver, AsyncGraphDatabase, AsyncManagedTransaction, NotificationMinimumSeverity
from neo4j.exceptions import DriverError, Neo4jError
from pydantic import BaseModel, ConfigDict, Field, SecretStr

from astrocyte.errors import StoreError
from astrocyte.providers.storage.graph_protocol import AHEAD

Record = dict[str, Any]
Statement = tuple[str, Mapping[str, Any]]

# Of the constraints and of what a node holds. A later version migrates, and is refused by this one. Version 1 had
# mentions alone, whose entities had other ids than in the entity graph.
VERSION = 2

# In order; ``IF NOT EXISTS`` makes each of them repeatable.
_CONSTRAINTS = (
    "CREATE CONSTRAINT {prefix}_bank IF NOT EXISTS FOR (b:{prefix}Bank) REQUIRE b.bank_id IS UNIQUE",
    (
        "CREATE CONSTRAINT {prefix}_memory IF NOT EXISTS FOR (x:{prefix}Memory)"
        " REQUIRE (x.bank_id, x.memory_id) IS UNIQUE"
    ),
    (
        "CREATE CONSTRAINT {prefix}_entity IF NOT EXISTS FOR (e:{prefix}Entity)"
        " REQUIRE (e.bank_id, e.entity_id) IS UNIQUE"
    ),
    (
        "CREATE CONSTRAINT {prefix}_mention IF NOT EXISTS FOR ()-[m:{prefix}_MENTIONS]-()"
        " REQUIRE (m.bank_id, m.id) IS UNIQUE"
    ),
    ("CREATE INDEX {prefix}_mention_by_name IF NOT EXISTS FOR ()-[m:{prefix}_MENTIONS]-() ON (m.bank_id, m.folded)"),
    (
        "CREATE CONSTRAINT {prefix}_record IF NOT EXISTS FOR (e:{prefix}Entity)"
        " REQUIRE (e.bank_id, e.record_id) IS UNIQUE"
    ),
    ("CREATE CONSTRAINT {prefix}_link IF NOT EXISTS FOR ()-[l:{prefix}_LINKS]-() REQUIRE (l.bank_id, l.id) IS UNIQUE"),
    "CALL db.awaitIndexes()",
)


# A store that is ahead of the truth begins anew: what an earlier version wrote has other ids.
_OUTDATED = "MATCH (b:{prefix}Bank) SET b.position = $position"


class Neo4jOptions(BaseModel):
    """The address of the server, and options of its use."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    uri: str = Field(
        pattern=r"^(neo4j|bolt)(\+s|\+ssc)?://[^\s@]{1,500}$",
        description="Address of the server: bolt://host:7687, or neo4j+s://host for a cluster with TLS.",
    )
    user: str = Field("neo4j", min_length=1, max_length=256)
    password: SecretStr = Field(description="Password of the user.")
    database: str | None = Field(None, pattern=r"^[A-Za-z][A-Za-z0-9.-]{2,62}$")
    label_prefix: str = Field("Astrocyte", pattern=r"^[A-Z][A-Za-z0-9]{0,31}$")
    connections: int = Field(4, ge=1, le=64)
    connect_seconds: float = Field(5.0, gt=0.0, le=300.0)


class Database:
    """One database of a server, whose constraints are made at the first use.

    Args:
        options: Where it is.
    """

    def __init__(self, options: Neo4jOptions) -> None:
        self._options = options
        self._driver: AsyncDriver | None = None
        self._opening = asyncio.Lock()

    def cypher(self, text: str) -> str:
        """A statement of this package's own with ``{prefix}`` filled in, which is validated to be a plain word."""
        return text.replace("{prefix}", self._options.label_prefix)

    async def run(self, *statements: Statement) -> list[Record]:
        """Run statements in one transaction, again where the server says that another one stood in the way.

        Returns:
            The records of the last statement.

        Raises:
            StoreError: A newer version made what is there.
            neo4j.exceptions.Neo4jError: The server refused.
            neo4j.exceptions.DriverError: The server cannot be reached.
        """
        driver = await self._opened()
        async with driver.session(database=self._options.database) as session:
            asked = [(self.cypher(text), values) for text, values in statements]
            records: list[Record] = await session.execute_write(_all, asked)
            return records

    async def read(self, text: str, values: Mapping[str, Any]) -> list[Record]:
        """The records of a statement that changes nothing; a cluster may answer it from any of its members."""
        driver = await self._opened()
        async with driver.session(database=self._options.database) as session:
            records: list[Record] = await session.execute_read(_all, [(self.cypher(text), values)])
            return records

    async def healthy(self) -> bool:
        """True if the server answers."""
        try:
            await self.read("RETURN 1", {})
        except (Neo4jError, DriverError, StoreError, OSError):
            return False
        return True

    async def close(self) -> None:
        """Release the connections."""
        if self._driver is not None:
            await self._driver.close()

    async def _opened(self) -> AsyncDriver:
        async with self._opening:
            if self._driver is None:
                driver = self._connect()
                try:
                    await self._make(driver)
                except BaseException:
                    await driver.close()
                    raise
                self._driver = driver
            return self._driver

    def _connect(self) -> AsyncDriver:
        options = self._options
        return AsyncGraphDatabase.driver(
            options.uri,
            auth=(options.user, options.password.get_secret_value()),
            user_agent="astrocyte",
            max_connection_pool_size=options.connections,
            connection_timeout=options.connect_seconds,
            connection_acquisition_timeout=options.connect_seconds,
            # How long a transaction is tried again; the callers of a store have shorter deadlines of their own.
            max_transaction_retry_time=options.connect_seconds,
            # Remarks of the server about statements would be logged with the statements.
            notifications_min_severity=NotificationMinimumSeverity.OFF,
            telemetry_disabled=True,
        )

    async def _make(self, driver: AsyncDriver) -> None:
        """Create the constraints, unless a newer version has."""
        there = self.cypher("MATCH (s:{prefix}Schema {name: 'schema'}) RETURN s.version AS version")
        async with driver.session(database=self._options.database) as session:
            versions = [record["version"] for record in await session.execute_read(_all, [(there, {})])]
            if versions and versions[0] > VERSION:
                raise StoreError(
                    f"the nodes of the label prefix {self._options.label_prefix!r} were created by a newer version; "
                    "upgrade Astrocyte",
                    metadata={"version": str(versions[0])},
                )
            if versions and versions[0] < VERSION:
                await session.execute_write(_all, [(self.cypher(_OUTDATED), {"position": AHEAD})])
            for statement in _CONSTRAINTS:
                # Alone: Neo4j changes constraints and data in different transactions.
                await session.execute_write(_all, [(self.cypher(statement), {})])
            noted = self.cypher("MERGE (s:{prefix}Schema {name: 'schema'}) SET s.version = $version")
            await session.execute_write(_all, [(noted, {"version": VERSION})])


async def _all(transaction: AsyncManagedTransaction, statements: Sequence[Statement]) -> list[Record]:
    records: list[Record] = []
    for text, values in statements:
        # The statements are this package's own; values are always bound.
        result = await transaction.run(text, dict(values))
        records = await result.data()
    return records
