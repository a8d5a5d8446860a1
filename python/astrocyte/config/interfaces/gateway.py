"""Settings of the HTTP gateway."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from astrocyte.config.loading.section import Count, Seconds, Section

# As browsers send it: scheme, host and port, without a path; or any.
Origin = Annotated[str, Field(pattern=r"^(?:\*|https?://[^/\s]+)$")]


class GatewaySettings(Section):
    """HTTP gateway: REST under /v1, health, /console and /docs. Off without a port; needs the extra gateway.

    TLS is that of `server`, and so are the limits of bodies, answers, calls and deadlines.
    """

    port: int | None = Field(None, ge=0, le=65535, description="Port; 0 selects a free port. None: no gateway.")
    host: str = Field(
        "127.0.0.1",
        min_length=1,
        # No unix:PATH: browsers and most clients of HTTP cannot reach one.
        pattern=r"^[^/]+$",
        description="Address to bind. Non-loopback addresses need TLS and credentials.",
    )
    console: bool = Field(True, description="Serve the console, a page for people, at /console.")
    docs: bool = Field(True, description="Serve the page /docs, which shows and tries the calls.")
    cors_origins: list[Origin] = Field(
        default_factory=list,
        description="Origins whose pages may call the server, such as https://app.example.com; `*` for all, only with "
        "credentials.",
    )
    # Half of the descriptors that a process usually has.
    max_connections: Count = Field(512, description="Open connections; further ones are refused.")
    # That of nginx and most servers; a JWT with many claims takes a quarter.
    max_header_bytes: int = Field(32_768, ge=1024, description="Maximum size of the URL and headers of a request.")
    header_timeout_seconds: Seconds = Field(
        10.0, description="Time for the URL and headers of a request. Bodies have the deadline of the call."
    )
    keep_alive_seconds: Count = Field(60, description="Time after which an idle connection is closed.")
