"""Settings of the SQLite store, of external stores and of forgetting."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import Field, SecretStr

from astrocyte.config.loading.section import Count, Seconds, Section, Weight


class EncryptionSettings(Section):
    """Encryption of new banks by a key each, which the deletion of the bank destroys; for PostgreSQL."""

    enabled: bool = Field(False, description="Encrypt the content of banks that are made from now on.")
    keys: Literal["directory", "postgres"] = Field(
        "directory",
        description="Where keys are kept: directory, a file each; or postgres, a database on another server than "
        "`store.dsn`.",
    )
    directory: Path | None = Field(None, description="Directory of the keys, the same one for all servers.")
    dsn: SecretStr | None = Field(None, description="Connection string of the database of the keys.")
    master_key_file: Path | None = Field(
        None, description="File with 64 hexadecimal digits, by which the kept keys are encrypted."
    )
    master_key: SecretStr | None = Field(
        None, description="The same in place of a file, for a variable of the environment."
    )


class StoreSettings(Section):
    """Store of the memories: SQLite, or PostgreSQL for several servers."""

    backend: Literal["sqlite", "postgres"] = Field(
        "sqlite",
        description="sqlite, in `data_dir`; or postgres, a database that several servers share (extra `postgres`).",
    )
    dsn: SecretStr | None = Field(
        None,
        description="Connection string of the PostgreSQL database: postgresql://user:password@host/database. With "
        "several hosts, the one that accepts writes is used.",
    )
    schema_name: str = Field(
        "astrocyte", pattern=r"^[a-z_][a-z0-9_]{0,62}$", description="Schema of the tables in PostgreSQL."
    )

    encryption: EncryptionSettings = EncryptionSettings()

    # Enough log for forgetting a large bank in one transaction on a full disk. Erasure works in slices and needs less.
    ballast_bytes: int = Field(
        64 << 20, ge=0, description="Reserved disk space, so that forgetting works on a full disk; 0 for none."
    )
    # About half a second of work on a fast disk; longer queues are refused immediately.
    waiting_limit: Count = Field(
        4_096, description="Maximum number of waiting writes; further writes are refused with a retry delay."
    )
    busy_seconds: Seconds = Field(5.0, description="Timeout of the database lock of another process.")
    connect_seconds: Seconds = Field(
        5.0,
        description="Timeout of a connection to PostgreSQL, and of the question what others committed, with which each "
        "call begins. A host that acknowledges no packets is given up after one to two times this. Reads and writes "
        "that have begun are given up so long after their own limits (docs/scaling.md).",
    )
    # Longer than clients retry.
    request_keep_hours: float = Field(
        24.0, gt=0.0, le=876_000.0, description="Hours for which results of request ids are kept for retries."
    )

    @property
    def sqlite(self) -> dict[str, Any]:
        """The options of the SQLite store."""
        return self.model_dump(include={"ballast_bytes", "waiting_limit", "busy_seconds", "request_keep_hours"})

    @property
    def postgres(self) -> dict[str, Any]:
        """The options of the PostgreSQL store, without its address."""
        options = self.model_dump(include={"waiting_limit", "busy_seconds", "connect_seconds", "request_keep_hours"})
        return {"schema": self.schema_name, **options}


class OutsideStoreSettings(Section):
    """External stores named by `vector_store`, `document_store` and `graph_store`."""

    vector_weight: Weight = Field(
        0.5, description="Fusion weight of the vector store's list, on the scale of `recall.weights`."
    )
    document_weight: Weight = Field(0.5, description="Fusion weight of the document store's list.")
    graph_weight: Weight = Field(0.5, description="Fusion weight of the graph store's list.")
    recall_seconds: Seconds = Field(
        0.5, description="Timeout of a recall's query. On timeout, the recall continues without the store."
    )
    write_seconds: Seconds = Field(30.0, description="Timeout of one write, after which it is retried.")
    erase_seconds: Seconds = Field(
        10.0,
        description="Timeout of the confirmation of an erasure. On timeout, the call fails with "
        "`PROVIDER_UNAVAILABLE`.",
    )
    compare_seconds: Seconds = Field(
        60.0,
        description="Interval of the full comparison that removes deleted banks. Changes are replicated immediately.",
    )


class ForgetSettings(Section):
    """Retention of forgotten memories."""

    purge_after_days: float = Field(
        30.0, ge=0.0, le=36_500.0, description="Days for which a forgotten memory can be undeleted."
    )
    purge_interval_seconds: Seconds = Field(3_600.0, description="Interval of the purge.")
