"""Prepared statuses that the network thread sends itself: for calls beyond the limit, and for late ones."""

from __future__ import annotations

from astrocyte.errors import AstrocyteError
from astrocyte.services.admission import Admission
from astrocyte.services.status import code_of, to_status, trailers
from astrocyte.services.transport import Refusal

# Ready answers, each with its own time to retry after: making one costs as much as all the rest of a refusal.
REFUSALS = 64


def refusals(admission: Admission) -> list[Refusal]:
    """The statuses, in turn, of calls beyond the limit of ``admission``."""
    return [refusal(admission.refusal()) for _ in range(REFUSALS)]


def refusal(error: AstrocyteError) -> Refusal:
    """The status of a call that fails with ``error``."""
    status = to_status(error)
    return code_of(error).value[0], status.message, trailers(error, status)
