"""The store over SQLite."""

from astrocyte.stores.sqlite.store import SqliteStore, open_store, system_clock

__all__ = ["SqliteStore", "open_store", "system_clock"]
