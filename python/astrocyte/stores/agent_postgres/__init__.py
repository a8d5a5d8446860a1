"""Agents' private memories in a PostgreSQL database of their own. Needs the extra ``postgres``."""

from astrocyte.stores.agent_postgres.copying import copy_file
from astrocyte.stores.agent_postgres.store import PostgresAgentMemory

__all__ = ["PostgresAgentMemory", "copy_file"]
