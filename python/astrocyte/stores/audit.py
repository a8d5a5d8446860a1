"""The protocol of the audit trail. The SQLite store implements it, and writes rows with the recorded changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from astrocyte.model import AuditEvent, AuditEventKind


class AuditStore(Protocol):
    """Audit trails by tenant. A row is written in the transaction of the recorded change, or both fail."""

    def read(
        self, tenant: str, *, bank_key: int | None, after: int, limit: int, newest_first: bool = False
    ) -> tuple[list[AuditEvent], int, bytes]:
        """Rows with a sequence above ``after``, in order, of one bank or all; and the end of the trail at that time.

        With ``newest_first``, rows with a sequence below ``after``, in reverse order.

        The end is the sequence and the hash of the last row that was written, 0 and `GENESIS` where there is none.
        """

    async def append(
        self, tenant: str, event: AuditEventKind, by: str, *, bank_key: int = 0, details: Mapping[str, str | int]
    ) -> None:
        """Record an act whose rows are not in this store, or in several transactions, or that only reads.

        Args:
            tenant: Whose trail it is.
            event: What is done.
            by: The principal that does it.
            bank_key: The store's number of the bank, 0 for none.
            details: Numbers, words of ours and hashes; no text of a caller.
        """
