"""A vector store in Qdrant. It needs the extra ``qdrant``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from astrocyte.providers.options import read_options
from astrocyte.providers.storage.qdrant.collections import Collections, QdrantOptions
from astrocyte.providers.storage.qdrant.vectors import QdrantVectorStore

__all__ = ["QdrantOptions", "QdrantVectorStore", "create_vector_store"]


def create_vector_store(options: Mapping[str, Any]) -> QdrantVectorStore:
    """A vector store over a server, which is reached at its first use.

    Raises:
        ConfigError: An option is wrong.
    """
    return QdrantVectorStore(Collections(read_options(QdrantOptions, options, "vector_store_config")))
