"""The order that the supervisor gives to a worker."""

from __future__ import annotations

from dataclasses import dataclass

from astrocyte.config import Settings

# Reads an order from its standard input.
MODULE = "astrocyte.cli.worker"


@dataclass(frozen=True, slots=True)
class Order:
    """The order of a worker.

    Attributes:
        number: From 1.
        settings: Those of the server, with the ports that the supervisor reserved.
    """

    number: int
    settings: Settings
