"""Requests about banks and the server."""

from __future__ import annotations

from dataclasses import dataclass

from astrocyte.api.requests.base import Request
from astrocyte.model import (
    Bank,
    BankGroup,
    BankPage,
    BankStats,
    BankTemplate,
    EngineInfo,
    Operation,
    ServerInfo,
    SourceInfo,
)


@dataclass(slots=True)
class CreateBank(Request[Bank]):
    """Create a bank. The embedding space is the server's unless both its name and size are given.

    Raises:
        AlreadyExists: There is a bank of that id.
    """

    bank_id: str
    display_name: str = ""
    description: str = ""
    embedding_model: str | None = None
    dimensions: int | None = None
    request_id: str | None = None


@dataclass(slots=True)
class GetBank(Request[Bank]):
    """The bank with its current position."""

    bank_id: str


@dataclass(slots=True)
class ListBanks(Request[BankPage]):
    """A page of the banks that the caller may read, by id."""

    prefix: str = ""
    page_size: int = 0
    page_token: str = ""


@dataclass(slots=True)
class UpdateBank(Request[Bank]):
    """Change the fields that are not None.

    Raises:
        Conflict: ``etag`` is not the current one.
    """

    bank_id: str
    display_name: str | None = None
    description: str | None = None
    etag: str | None = None
    request_id: str | None = None


@dataclass(slots=True)
class DeleteBank(Request[int]):
    """Delete the bank and everything in it; returns how many memories were visible.

    A repeated request returns that count, and leaves alone a bank that was created with the same id since.
    """

    bank_id: str
    etag: str | None = None
    request_id: str | None = None


@dataclass(slots=True)
class GetBankStats(Request[BankStats]):
    """Counts of the bank, from the rows and from the index where it is loaded, and its health."""

    bank_id: str


@dataclass(slots=True)
class RunLifecycle(Request[Operation]):
    """Archive, expire and forget memories by the bank's settings, in the background; a dry run only counts.

    ``merge_duplicates`` merges near duplicates too, from the cosine ``similarity_threshold`` on; None takes the
    setting.

    Raises:
        FailedPrecondition: Another operation of the bank is not done.
    """

    bank_id: str
    dry_run: bool = False
    merge_duplicates: bool = False
    similarity_threshold: float | None = None
    request_id: str | None = None


@dataclass(slots=True)
class GetServerInfo(Request[ServerInfo]):
    """Versions, models and memory of the server."""


@dataclass(slots=True)
class ListBankTemplates(Request[list[BankTemplate]]):
    """The bank templates of the configuration, in its order."""


@dataclass(slots=True)
class ListBankGroups(Request[list[BankGroup]]):
    """The bank groups of the configuration, in its order."""


@dataclass(slots=True)
class ListEngines(Request[list[EngineInfo]]):
    """The configured engines, each asked for its health."""


@dataclass(slots=True)
class ListSources(Request[list[SourceInfo]]):
    """The configured ingest sources with their health and counts, in the order of the settings."""
