"""What calls are told for which there is no room, made ahead: the network's thread says it."""

from __future__ import annotations

from astrocyte.services.admission import Admission
from astrocyte.services.status import code_of, to_status, trailers
from astrocyte.services.transport import Refusal

# Ready answers, each with its own time to retry after: making one costs as much as all the rest of a refusal.
REFUSALS = 64


def refusals(admission: Admission) -> list[Refusal]:
    """What calls are told in turn for which ``admission`` has no room."""
    errors = [admission.refusal() for _ in range(REFUSALS)]
    return [
        (code_of(error).value[0], status.message, trailers(error, status))
        for error, status in ((error, to_status(error)) for error in errors)
    ]
