"""A document store in Elasticsearch or OpenSearch, over REST. It needs the extra ``elasticsearch``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from astrocyte.providers.options import read_options
from astrocyte.providers.storage.elasticsearch.documents import ElasticsearchDocumentStore
from astrocyte.providers.storage.elasticsearch.indexes import ElasticsearchOptions, Indexes

__all__ = ["ElasticsearchDocumentStore", "ElasticsearchOptions", "create_document_store"]


def create_document_store(options: Mapping[str, Any]) -> ElasticsearchDocumentStore:
    """A document store over a server, which is reached at its first use.

    Raises:
        ConfigError: An option is wrong.
    """
    return ElasticsearchDocumentStore(Indexes(read_options(ElasticsearchOptions, options, "document_store_config")))
