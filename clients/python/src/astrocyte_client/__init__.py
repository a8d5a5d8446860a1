"""Client for Astrocyte, a memory server for AI agents.

from astrocyte_client import connect

with connect("localhost:50051") as client:
    client.retain(bank_id="family", content="Mara is allergic to sesame.")
    print(client.recall(bank_id="family", query="what can Mara not eat?").hits[0].text)
"""

from __future__ import annotations

from astrocyte_client.aio import AsyncClient, connect_async
from astrocyte_client.client import Client, connect
from astrocyte_client.errors import AstrocyteError, error_from_status
from astrocyte_client.reasons import *  # noqa: F403 - one class for each reason

__all__ = ["AstrocyteError", "AsyncClient", "Client", "connect", "connect_async", "error_from_status"]
