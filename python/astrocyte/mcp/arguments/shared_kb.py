"""Arguments of the tools on shared documents."""

from __future__ import annotations

from pydantic import Field

from astrocyte.mcp.arguments.common import Arguments, OneBank, Paged, Sized


class SharedBank(OneBank):
    """The bank of a search, where the session has no fixed bank."""

    bank_id: str | None = Field(
        None, description="Bank to search. Without it, the default bank of the server, else all shared banks."
    )


class KbFilter(Arguments):
    """A filter of documents."""

    type: str = Field(
        "", description="Only documents of this type, such as spec, adr, architecture, glossary or component."
    )
    status: str = Field("", description="Only documents of this status, such as approved or accepted.")


class KbSearchArguments(KbFilter, Sized):
    """Arguments of shared_kb_search."""

    query: str = Field(description="Question or keywords.")


class KbListArguments(KbFilter, Paged):
    """Arguments of shared_kb_list."""


class KbIndexArguments(KbFilter):
    """Arguments of shared_kb_index."""
