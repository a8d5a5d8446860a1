"""The indexes of a document store in Elasticsearch: one of documents, and one of banks with their positions.

Their names have the language by which words are stemmed, so another one begins with empty indexes, which the change log
fills.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Self

import httpx
from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator

from astrocyte.errors import ConfigError, StoreError

_KEYWORD, _NUMBER = {"type": "keyword"}, {"type": "long"}
# The fields that filters name. Others are kept, and not searched.
_FIELDS: dict[str, Any] = {
    **dict.fromkeys(("bank_id", "item_id", "memory_id", "fact_type", "session_id", "tags", "pairs"), _KEYWORD),
    **dict.fromkeys(("retained_at", "happened_at", "known_from", "known_until", "valid_from", "valid_until"), _NUMBER),
}
_BANKS: dict[str, Any] = {"bank_id": _KEYWORD, "kind": _KEYWORD, "position": _NUMBER}


class ElasticsearchOptions(BaseModel):
    """The address of the server, and options of its use."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: str = Field(pattern=r"^https?://[^/?#@]+(/[^?#]*)?$", description="http://host:9200.")
    user: str | None = Field(None, min_length=1)
    password: SecretStr | None = None
    api_key: SecretStr | None = None
    tls_roots_file: Path | None = None
    index: str = Field("astrocyte", pattern=r"^[a-z][a-z0-9_-]{0,60}$")
    language: str = Field("english", pattern=r"^[a-z_]{1,63}$")
    replicas: int = Field(1, ge=0, le=16)
    refresh: Literal["wait_for", "true"] = "wait_for"
    timeout_seconds: float = Field(10.0, gt=0.0, le=300.0)

    @field_validator("tls_roots_file")
    @classmethod
    def _is_file(cls, path: Path | None) -> Path | None:
        if path is not None and not path.is_file():
            raise ValueError("the file does not exist")
        return path

    @model_validator(mode="after")
    def _check_credential(self) -> Self:
        if (self.user is None) != (self.password is None):
            raise ValueError("set both of user and password, or neither")
        if self.user is not None and self.api_key is not None:
            raise ValueError("user and api_key are both set; set one of them")
        return self


class Indexes:
    """The indexes of one store, created at the first use.

    Args:
        options: Where they are.

    Raises:
        ConfigError: The file of root certificates cannot be used.
    """

    def __init__(self, options: ElasticsearchOptions) -> None:
        self._options = options
        self.documents = f"{options.index}-documents-{options.language}"
        self.banks = f"{options.index}-banks-{options.language}"
        self.refresh: dict[str, str] = {"refresh": options.refresh}
        self._creating = asyncio.Lock()
        self._created = False
        headers = {"Authorization": f"ApiKey {options.api_key.get_secret_value()}"} if options.api_key else {}
        auth = (options.user, options.password.get_secret_value()) if options.user and options.password else None
        try:
            roots = ssl.create_default_context(cafile=options.tls_roots_file) if options.tls_roots_file else True
        except OSError as error:
            raise ConfigError(f"{options.tls_roots_file}: contains no certificate in PEM") from error
        self._client = httpx.AsyncClient(
            base_url=options.url, headers=headers, auth=auth, verify=roots, timeout=options.timeout_seconds
        )

    async def send(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        parameters: dict[str, str] | None = None,
        accepted: Sequence[int] = (),
    ) -> Any:  # noqa: ANN401 - JSON
        """The JSON of a response; None for an accepted status besides success.

        Args:
            method: Of HTTP.
            path: Below the address; parts of a caller's making are hashes.
            body: JSON; bytes are sent as they are, lines of JSON.
            parameters: Of the address.
            accepted: Statuses that are no failure.

        Raises:
            StoreError: Another status. Texts of the server are not repeated: they may have a query.
            httpx.HTTPError: There is no response.
        """
        await self._create()
        return await self._sent(method, path, body, parameters, accepted)

    async def close(self) -> None:
        """Release the connections."""
        await self._client.aclose()

    async def _sent(
        self, method: str, path: str, body: object, parameters: dict[str, str] | None, accepted: Sequence[int]
    ) -> Any:  # noqa: ANN401 - JSON
        content = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        kind = "application/x-ndjson" if isinstance(body, bytes) else "application/json"
        response = await self._client.request(
            method, path, content=content, params=parameters, headers={} if content is None else {"Content-Type": kind}
        )
        if response.status_code in accepted:
            return None
        if not response.is_success:
            raise StoreError(f"document store answered {response.status_code}")
        return response.json()

    async def _create(self) -> None:
        async with self._creating:
            if self._created:
                return
            analysed = {"words": {"type": "text", "analyzer": self._options.language}}
            for name, fields in ((self.documents, _FIELDS | analysed), (self.banks, _BANKS)):
                index = {
                    "settings": {"number_of_replicas": self._options.replicas},
                    "mappings": {"dynamic": False, "properties": fields},
                }
                if not await self._exists(name):
                    # 400 is what a second server gets that creates it at the same time.
                    await self._sent("PUT", f"/{name}", index, None, (400,))
                    if not await self._exists(name):
                        raise StoreError(f"document store did not create the index {name}")
            self._created = True

    async def _exists(self, name: str) -> bool:
        return await self._sent("GET", f"/{name}", None, None, (404,)) is not None
