"""The protocol of the audit trail. The SQLite store implements it, and writes rows with the recorded changes."""

from __future__ import annotations

from typing import Protocol

from astrocyte.model import AuditEvent


class AuditStore(Protocol):
    """Audit trails by tenant. A row is written in the transaction of the recorded change, or both fail."""

    def read(self, tenant: str, *, bank_key: int | None, after: int, limit: int) -> tuple[list[AuditEvent], int, bytes]:
        """Rows with a sequence above ``after``, in order, of one bank or all; and the end of the trail at that time.

        The end is the sequence and the hash of the last row that was written, 0 and `GENESIS` where there is none.
        """
