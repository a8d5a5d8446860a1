"""The columns of the schema: which are sealed in a sealed bank, which refuse its content, and which stay readable.

A test requires that every TEXT and BLOB column of the schema is in one of these lists.
"""

from __future__ import annotations

from dataclasses import dataclass

# Of `astrocyte.model.ALSO_RELEVANT_TO`: the names of other banks, by which SQL finds references.
_REFERENCES = ("also_relevant_to",)


@dataclass(frozen=True, slots=True)
class Column:
    """A column that holds content.

    Attributes:
        number: Written into every value; never given to another column.
        table: Name of the table.
        name: Name of the column.
        readable: Keys of its JSON that SQL reads, and that therefore stay readable.
        is_digest: True if SQL compares its values: equal values of a bank have equal sealed ones.
    """

    number: int
    table: str
    name: str
    readable: tuple[str, ...] = ()
    is_digest: bool = False

    @property
    def label(self) -> bytes:
        """The name that values are bound to."""
        return f"{self.table}.{self.name}".encode()


COLUMNS = (
    Column(1, "contents", "content"),
    Column(2, "contents", "metadata", _REFERENCES),
    Column(3, "contents", "source"),
    Column(4, "contents", "speaker"),
    Column(5, "contents", "entities"),
    Column(6, "chunks", "text"),
    Column(7, "embeddings", "vector"),
    Column(8, "second_embeddings", "vector"),
    # By its tags a selection or a hold finds an item that waits.
    Column(9, "queued_retains", "item", ("tags",)),
    Column(10, "requests", "fingerprint"),
    Column(11, "requests", "response"),
    # A digest of row keys.
    Column(12, "knowledge_revisions", "body", ("fingerprint",)),
    Column(13, "memories", "content_hash", is_digest=True),
    Column(14, "knowledge_items", "topic", is_digest=True),
    Column(15, "unanswered_queries", "query", is_digest=True),
)
BY_NAME = {(column.table, column.name): column for column in COLUMNS}
BY_NUMBER = {column.number: column for column in COLUMNS}

# What tells the rows of a table apart, for values that are bound to their row. A digest is bound to no row.
ROWS = {
    "contents": ("row_key",),
    "chunks": ("passage_key",),
    "embeddings": ("passage_key",),
    "second_embeddings": ("passage_key",),
    "queued_retains": ("memory_id",),
    "requests": ("tenant", "request_id"),
    "knowledge_revisions": ("item_key", "revision"),
}
# Rows per key of a table are two to the power of this; see `astrocyte.stores.sealing.cipher`.
PASSAGES = frozenset({"chunks", "embeddings", "second_embeddings"})

# Names of the entity graph are searched and compared by SQL in parts: a sealed bank has none.
REFUSED = {
    "entities": ("folded",),
    "entity_links": ("evidence", "metadata"),
    "entity_mentions": ("name",),
    "entity_words": ("word",),
    "graph_entities": ("entity_id", "given_name", "aliases", "metadata"),
    "graph_readings": ("found",),
}

OF_TENANT = "of a tenant, not of a bank"
OF_PROGRAM = "written by the program"
_IDS = "ids"
_LABELS = "tags, sessions, types and principals, which SQL filters by"
_ADMINISTRATION = "said by administrators, not by memories"
OF_SOURCES = "of sources, by digests"
OF_REFUSED = "refused with the rest of its row"
# The others, by table, with what they hold. Names of columns; no name stands for all that the lists above leave out.
READABLE: dict[str, tuple[str, tuple[str, ...]]] = {
    "absences": (_IDS, ()),
    "access_epochs": (OF_TENANT, ()),
    "api_keys": (OF_TENANT, ()),
    "audit_events": (OF_PROGRAM, ()),
    "audit_heads": (OF_PROGRAM, ()),
    "banks": ("names and description of the bank, its model, and who made it", ()),
    "changes": (_IDS, ()),
    "consolidations": (_LABELS, ()),
    "contents": (_LABELS, ("tags",)),
    "embeddings": ("name of the model", ("model",)),
    "entity_links": (OF_REFUSED, ("link_type", "origin")),
    "erasures": ("ids, reason and principal of an erasure, and digests of its selection", ()),
    "grants": (OF_TENANT, ()),
    "graph_changes": (_IDS, ()),
    "graph_entities": (OF_REFUSED, ("entity_type",)),
    "graph_readings": (OF_REFUSED, ("model",)),
    "holds": (_ADMINISTRATION, ()),
    "installation": (OF_PROGRAM, ()),
    "knowledge_items": ("ids, scope and principal of an item", ("kind", "item_id", "scope", "created_by")),
    "knowledge_revisions": (OF_PROGRAM, ("cause", "changed_by")),
    "knowledge_sources": (_IDS, ()),
    "leases": (OF_PROGRAM, ()),
    "memories": (
        "ids, types, session and principal of a memory, and the reason of forgetting",
        (
            "memory_id", "content_type", "fact_type", "memory_layer", "session_id", "principal", "forget_reason",
            "forgotten_by", "archive_reason", "merged_into",
        ),
    ),
    "model_budgets": (OF_PROGRAM, ()),
    "operations": (OF_PROGRAM, ()),
    "outboxes": (OF_PROGRAM, ()),
    "poll_cursors": (OF_SOURCES, ()),
    "poll_items": (OF_SOURCES, ()),
    "queued_retains": (_LABELS, ("memory_id", "principal", "behalf")),
    "requests": ("ids of requests, and names of their calls", ("tenant", "request_id", "operation")),
    "schema_migrations": (OF_PROGRAM, ()),
    "sealed_banks": (_IDS, ()),
    "second_embeddings": ("name of the model", ("model",)),
    "spare_sets": (OF_PROGRAM, ()),
    "store_values": (OF_PROGRAM, ()),
    "tags": (_LABELS, ()),
    "term_epochs": (OF_TENANT, ()),
    "terms": (OF_TENANT, ()),
    "told": (OF_PROGRAM, ()),
    "waiting_copies": (_IDS, ()),
    "webhook_receipts": (OF_SOURCES, ()),
}  # fmt: skip
