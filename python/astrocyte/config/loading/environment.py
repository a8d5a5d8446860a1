"""Values of the environment beside the settings: secrets, exporters of spans, the memory limit, and the version."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path

from pydantic import SecretStr

from astrocyte.errors import ConfigError

# Exporter names of OpenTelemetry by protocol.
OTLP = {"grpc": "otlp_proto_grpc", "http/protobuf": "otlp_proto_http"}


def secret(name: str) -> SecretStr | None:
    """Return the environment variable ``name``, such as ``OPENAI_API_KEY``; None if missing or empty."""
    value = os.environ.get(name, "").strip()
    return SecretStr(value) if value else None


@cache
def package_version() -> str:
    """Return the version of this package, as it is installed. It is read from a file once."""
    return version("astrocyte-grpc")


def span_exporters(environ: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Return the span exporters in ``OTEL_TRACES_EXPORTER``; empty for ``none``.

    The default is ``otlp``. ``OTEL_EXPORTER_OTLP_TRACES_PROTOCOL`` or ``OTEL_EXPORTER_OTLP_PROTOCOL`` selects gRPC (the
    default) or HTTP.

    Args:
        environ: Variables to read instead of the process's.

    Raises:
        ConfigError: The protocol is unknown.
    """
    variables = os.environ if environ is None else environ
    named = variables.get("OTEL_TRACES_EXPORTER", "").strip() or "otlp"
    names = [name.strip() for name in named.split(",")]
    return tuple(_otlp(variables) if name == "otlp" else name for name in names if name and name != "none")


def _otlp(variables: Mapping[str, str]) -> str:
    for variable in ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"):
        protocol = variables.get(variable, "").strip()
        if protocol in OTLP:
            return OTLP[protocol]
        if protocol:
            raise ConfigError(
                f"{variable}: expected one of {', '.join(OTLP)}, got {protocol[:64]!r}", metadata={"key": variable}
            )
    return OTLP["grpc"]


# Memory limit of the control group, version 2 and 1; "max" or a huge number for none.
CGROUP_FILES = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def memory_limit(cgroup_files: tuple[Path, ...] = CGROUP_FILES) -> int:
    """Return the memory limit of this process: that of the machine or its control group."""
    limit = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for file in cgroup_files:
        try:
            text = file.read_text(encoding="ascii").strip()
        except OSError:
            continue
        if text.isdecimal():
            limit = min(limit, int(text))
    return limit
