"""Secrets that providers are known to read from the environment under names of their own."""

from __future__ import annotations

import os

from pydantic import SecretStr


def secret(name: str) -> SecretStr | None:
    """The variable of that name, such as ``OPENAI_API_KEY``; None where it is missing or empty."""
    value = os.environ.get(name, "").strip()
    return SecretStr(value) if value else None
