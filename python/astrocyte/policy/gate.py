"""The one door to the pipelines. Being filled in: `Gate` implements `astrocyte.policy.backend.Backend` exactly."""

from __future__ import annotations

from astrocyte.policy.backend import Backend as Gate

__all__ = ["Gate"]
