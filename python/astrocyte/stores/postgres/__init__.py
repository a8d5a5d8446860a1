"""PostgreSQL as the truth: one database for several servers. Needs the extra ``postgres``."""

from astrocyte.stores.postgres.store import PostgresStore, open_postgres_store

__all__ = ["PostgresStore", "open_postgres_store"]
