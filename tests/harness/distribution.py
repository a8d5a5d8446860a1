"""Distribution of tests over processes: by modules, and by servers that take long to start."""

from __future__ import annotations

# Each process that needs one starts it for itself, and spends half a minute on that. The words tell by its id that a
# test uses it.
SLOW_SERVERS = {"neo4j": ("neo4j",), "opensearch": ("opensearch", "elasticsearch")}


def group(test_id: str) -> str:
    """The name of the tests that run in the process of this one: a server, or else a module."""
    words = test_id.lower()
    for server, telling in SLOW_SERVERS.items():
        if any(word in words for word in telling):
            return server
    return test_id.partition("::")[0]
