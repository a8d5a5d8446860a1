"""Folders in which files of archives may be, from the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping

ROOTS_VARIABLE = "ASTROCYTE_PORTABILITY_ROOTS"


def portability_roots(environ: Mapping[str, str] | None = None) -> list[str]:
    """The folders of ``ASTROCYTE_PORTABILITY_ROOTS``, separated as in PATH; none without the variable."""
    value = (os.environ if environ is None else environ).get(ROOTS_VARIABLE, "")
    return [root for root in value.split(os.pathsep) if root]
