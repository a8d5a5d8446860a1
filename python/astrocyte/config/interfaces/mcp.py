"""Settings of the MCP server."""

from __future__ import annotations

from pydantic import Field

from astrocyte.config.loading.section import Count, Seconds, Section


class McpSettings(Section):
    """MCP server (`astrocyte mcp`). Deadlines and concurrency are those of `server`."""

    default_bank_id: str | None = Field(
        None, min_length=1, description="Bank of a tool call that names none. Without it, such a call is refused."
    )
    principal: str | None = Field(
        None,
        min_length=1,
        description="Principal of calls without a credential: over stdio, and over HTTP on loopback. Without it, stdio "
        "acts for whoever holds the data directory.",
    )
    expose_reflect: bool = Field(True, description="Offer the tool memory_reflect.")
    expose_forget: bool = Field(
        False, description="Offer memory_forget, and the tools that forget or delete in the groups that are offered."
    )
    expose_agent_memory: bool = Field(
        True,
        description="Offer the tools on the agent's private memory and on canonical terms, where no bank is fixed.",
    )
    expose_knowledge: bool = Field(
        True, description="Offer the tools on observations, mental models, wiki pages, coverage and the entity graph."
    )
    # A memory can hold text that makes a model call a tool, and a directive is an instruction to all readers.
    expose_directives: bool = Field(False, description="Offer the tools that create and delete directives.")
    # A memory can hold text that makes a model call a tool.
    expose_admin: bool = Field(
        False, description="Offer the tools on the health of banks, on the lifecycle, and on legal holds."
    )
    max_results_limit: Count = Field(50, description="Maximum of max_results, k and page_size of a tool call.")
    host: str = Field(
        "127.0.0.1",
        min_length=1,
        description="Address of the HTTP transport. Non-loopback addresses need TLS and credentials, as in `server`.",
    )
    port: int = Field(50052, ge=0, le=65535, description="Port of the HTTP transport; 0 selects a free port.")
    public_url: str | None = Field(
        None,
        pattern=r"^https?://[^\s\"/]+$",
        description="URL of the HTTP transport as clients see it, without a path, such as https://memory.example.com. "
        "It is in the metadata for OAuth. Without it, that of the request.",
    )
    allowed_hosts: tuple[str, ...] = Field(
        (),
        description="Accepted Host headers, such as memory.example.com or memory.example.com:*. On loopback, its names "
        "are accepted as well.",
    )
    allowed_origins: tuple[str, ...] = Field(
        (), description="Accepted Origin headers, such as https://app.example.com; browsers send one."
    )
    max_connections: Count = Field(256, description="Concurrent HTTP connections; further ones are answered with 503.")
    # As in the gateway.
    max_header_bytes: int = Field(32_768, ge=1024, description="Maximum size of the URL and headers of a request.")
    header_timeout_seconds: Seconds = Field(10.0, description="Time for the URL and headers of a request.")
