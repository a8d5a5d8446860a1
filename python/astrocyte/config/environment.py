"""What the environment says under names that are not ours: secrets of providers, and where spans go."""

from __future__ import annotations

import os
from collections.abc import Mapping

from pydantic import SecretStr

from astrocyte.errors import ConfigError

# OpenTelemetry's names of its exporters, by what the protocol's variable may say.
OTLP = {"grpc": "otlp_proto_grpc", "http/protobuf": "otlp_proto_http"}


def secret(name: str) -> SecretStr | None:
    """The variable of that name, such as ``OPENAI_API_KEY``; None where it is missing or empty."""
    value = os.environ.get(name, "").strip()
    return SecretStr(value) if value else None


def span_exporters(environ: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Names of the exporters that spans go to, as ``OTEL_TRACES_EXPORTER`` lists them; empty for ``none``.

    It is ``otlp`` by default, which ``OTEL_EXPORTER_OTLP_TRACES_PROTOCOL`` or ``OTEL_EXPORTER_OTLP_PROTOCOL`` makes
    gRPC (the default) or HTTP.

    Args:
        environ: Variables to read instead of the process's.

    Raises:
        ConfigError: The protocol is another.
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
                f"{variable} is {protocol[:64]!r}; it is one of {', '.join(OTLP)}", metadata={"key": variable}
            )
    return OTLP["grpc"]
