"""Requests about long-running operations."""

from __future__ import annotations

from dataclasses import dataclass

from astrocyte.api.requests.base import Request
from astrocyte.model import Operation, OperationPage

# Of `WaitOperation`, where the caller does not say.
USUAL_WAIT_SECONDS = 30.0


@dataclass(slots=True)
class StartReindex(Request[Operation]):
    """Move a bank to another embedding model of this server, in the background, while it answers.

    With ``rollback`` in place of a model it returns to the previous one, whose vectors are kept for a time: only newer
    memories are embedded. Before the move both models are queried for ``sample_size`` memories; where their answers
    share less than ``min_overlap`` of the first ten memories, the bank stays as it is. None takes the settings.

    Raises:
        ValidationError: The server has no embedder of the model.
        FailedPrecondition: Another operation on the bank is not done, the bank has the model already, there is nothing
            to return to, or a setting makes copies of vectors that would not move.
    """

    bank_id: str
    embedding_model: str | None = None
    rollback: bool = False
    min_overlap: float | None = None
    sample_size: int | None = None
    request_id: str | None = None


@dataclass(slots=True)
class GetOperation(Request[Operation]):
    """An operation on a bank as it is now.

    Raises:
        NotFound: The bank has no such operation.
    """

    bank_id: str
    operation_id: str


@dataclass(slots=True)
class ListOperations(Request[OperationPage]):
    """A page of the operations of a bank, or of all of the tenant's, by age, oldest first unless ``newest_first``.

    Those that are done are listed too.

    Without ``bank_id`` the caller needs admin in all banks.
    """

    bank_id: str = ""
    page_size: int = 0
    page_token: str = ""
    newest_first: bool = False


@dataclass(slots=True)
class WaitOperation(Request[Operation]):
    """An operation as soon as it is done, or as it is after ``timeout`` seconds: 30 for None, and at most 300.

    Raises:
        NotFound: The bank has no such operation.
    """

    bank_id: str
    operation_id: str
    timeout: float | None = None


@dataclass(slots=True)
class CancelOperation(Request[Operation]):
    """End an operation that is not done: it has no effect from then on, and its intermediate results are dropped.

    One that is done stays as it is; ``rollback`` reverses a reindex that is done.

    Raises:
        NotFound: The bank has no such operation.
    """

    bank_id: str
    operation_id: str
    request_id: str | None = None
