"""The HTTP gateway: the API as JSON under `/v1`, by the annotations `google.api.http` of the protocol.

One layer serves every RPC: `routes` reads the annotations, `reading` and `writing` convert JSON, `calls` admits and
runs a call, `listener` is the server. An RPC needs nothing here but its annotation.
"""

from astrocyte.gateway.calls import Shared
from astrocyte.gateway.ingest_app import create_ingest_webhook_app
from astrocyte.gateway.listener import Gateway

__all__ = ["Gateway", "Shared", "create_ingest_webhook_app"]
