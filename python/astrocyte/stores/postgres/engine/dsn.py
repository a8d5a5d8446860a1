"""Connection strings of PostgreSQL in settings."""

from __future__ import annotations

import psycopg
from psycopg.conninfo import conninfo_to_dict

from astrocyte.errors import ConfigError


def checked_dsn(dsn: str, key: str) -> dict[str, str]:
    """The parameters of a connection string.

    Args:
        dsn: A URI, or ``name=value`` pairs, as libpq takes them.
        key: The setting that has it, for the error.

    Raises:
        ConfigError: It is neither.
    """
    try:
        return {name: str(value) for name, value in conninfo_to_dict(dsn).items() if value is not None}
    except psycopg.Error:
        # Its message may quote a password.
        raise ConfigError(
            f"{key} is no connection string of PostgreSQL, such as postgresql://user:password@host/database",
            metadata={"key": key},
        ) from None
