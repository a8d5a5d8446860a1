"""The collections of a Qdrant store: one for each length of vectors, and one of banks with their positions."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator
from qdrant_client import AsyncQdrantClient, models

from astrocyte.providers.storage.qdrant.points import INDEXES

# Rows of one answer while all are read.
_PAGE = 1_000
# The address of a Qdrant in this process, for tests: nothing outlives it.
IN_MEMORY = ":memory:"


class QdrantOptions(BaseModel):
    """The address of the server, and options of its use."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: str = Field(description="http://host:6333, or :memory: for tests.")
    api_key: SecretStr | None = None
    api_key_file: Path | None = None
    collection: str = Field("astrocyte", pattern=r"^[A-Za-z0-9_-]{1,60}$")
    exact: bool = Field(default=True, description="Read every vector of the bank that passes the filter.")
    replication_factor: int = Field(1, ge=1, le=16)
    timeout_seconds: float = Field(10.0, gt=0.0, le=300.0)

    @field_validator("url")
    @classmethod
    def _is_address(cls, url: str) -> str:
        if url != IN_MEMORY and not url.startswith(("http://", "https://")):
            raise ValueError("expected http://host:port, https://host:port, or :memory:")
        return url

    @field_validator("api_key_file")
    @classmethod
    def _is_file(cls, path: Path | None) -> Path | None:
        if path is not None and not path.is_file():
            raise ValueError("the file does not exist")
        return path

    def key(self) -> str | None:
        """The API key, of the file if there is one."""
        if self.api_key_file is not None:
            return self.api_key_file.read_text(encoding="utf-8").strip()
        return self.api_key.get_secret_value() if self.api_key else None


class Collections:
    """The collections of one store, created at the first use.

    Args:
        options: Where they are.
    """

    def __init__(self, options: QdrantOptions) -> None:
        # The one in this process knows no other search.
        in_memory = options.url == IN_MEMORY
        self.search_params = None if in_memory else models.SearchParams(exact=options.exact)
        self._options = options
        self._client: AsyncQdrantClient | None = None
        self._creating = asyncio.Lock()
        self._created: set[str] = set()

    @property
    def client(self) -> AsyncQdrantClient:
        """The connection, made without reaching the server."""
        if self._client is None:
            self._client = self._connected()
        return self._client

    async def close(self) -> None:
        """Release the connections."""
        if self._client is not None:
            await self._client.close()

    async def banks(self) -> str:
        """The collection of banks and positions."""
        name = f"{self._options.collection}-banks"
        await self._create(name, 1, ["bank_id"])
        return name

    async def of_length(self, length: int) -> str:
        """The collection of vectors of that length, created if it does not exist."""
        name = f"{self._prefix}{length}"
        await self._create(name, length, list(INDEXES))
        return name

    async def of_vectors(self) -> list[str]:
        """The collections of vectors of any length that exist, by name."""
        found = await self.client.get_collections()
        return sorted(
            collection.name
            for collection in found.collections
            if collection.name.startswith(self._prefix) and collection.name[len(self._prefix) :].isdigit()
        )

    async def payloads(
        self, collection: str, condition: models.Filter | None, fields: list[str]
    ) -> AsyncIterator[tuple[str, models.Payload]]:
        """Ids and the named fields of all points that meet the condition, in no order that means anything."""
        offset: models.ExtendedPointId | None = None
        while True:
            points, following = await self.client.scroll(
                collection, condition, limit=_PAGE, offset=offset, with_payload=fields
            )
            for point in points:
                yield str(point.id), point.payload or {}
            if following is None:
                return
            offset = str(following)

    @property
    def _prefix(self) -> str:
        return f"{self._options.collection}-vectors-"

    def _connected(self) -> AsyncQdrantClient:
        if self._options.url == IN_MEMORY:
            return AsyncQdrantClient(location=IN_MEMORY)
        return AsyncQdrantClient(
            url=self._options.url,
            api_key=self._options.key(),
            timeout=math.ceil(self._options.timeout_seconds),
            # It would ask the server for its version here, on this thread.
            check_compatibility=False,
        )

    async def _create(self, name: str, length: int, indexed: list[str]) -> None:
        async with self._creating:
            if name in self._created:
                return
            if not await self.client.collection_exists(name):
                await self._create_collection(name, length)
            if self._options.url != IN_MEMORY:
                # Doing it again changes nothing, so a creation that stopped half-way is completed.
                for field in indexed:
                    await self.client.create_payload_index(name, field, INDEXES[field])
            self._created.add(name)

    async def _create_collection(self, name: str, length: int) -> None:
        try:
            await self.client.create_collection(
                name,
                # Of vectors of length 1 the product is the cosine, and zeros are near nothing.
                vectors_config=models.VectorParams(size=length, distance=models.Distance.DOT),
                replication_factor=self._options.replication_factor,
                # Every replica has a write before it is acknowledged: a position is as durable as what precedes it.
                write_consistency_factor=self._options.replication_factor,
            )
        except Exception:
            # Another server may have created it at the same time.
            if not await self.client.collection_exists(name):
                raise
