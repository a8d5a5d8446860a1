"""The retry policy that all clients share, in the form that each of them reads."""

from __future__ import annotations

import json
from pathlib import Path

from generation.outputs import HEADER

# Where a client reads JSON, the file is copied.
COPIES = {
    "python": "python/src/astrocyte_client/service_config.json",
    "go": "go/service_config.json",
}


def copy(clients: Path, folder: Path, language: str) -> None:
    """Write the policy for a language below ``folder``."""
    text = (clients / "service_config.json").read_text(encoding="utf-8")
    if language in COPIES:
        target, content = COPIES[language], text
    elif language == "typescript":
        config = json.dumps(json.loads(text), indent=2)
        target, content = "typescript/src/service_config.ts", f"// {HEADER}\n\nexport const serviceConfig = {config};\n"
    elif language == "java":
        target, content = "java/src/main/java/dev/astrocyte/client/ServiceConfig.java", _java(json.loads(text))
    else:
        target, content = "rust/src/retry_policy.rs", _rust(json.loads(text)["methodConfig"][0]["retryPolicy"])
    (folder / target).parent.mkdir(parents=True, exist_ok=True)
    (folder / target).write_text(content, encoding="utf-8")


def _java(config: object) -> str:
    """A map, because gRPC takes maps and the client has no parser of JSON."""
    return f"""// {HEADER}
package dev.astrocyte.client;

import java.util.List;
import java.util.Map;

/** The retry policy of service_config.json; numbers are doubles, as gRPC takes them. */
final class ServiceConfig {{
  static final Map<String, ?> VALUE =
      {_java_value(config)};

  private ServiceConfig() {{}}
}}
"""


def _java_value(value: object) -> str:
    if isinstance(value, dict):
        return f"Map.of({', '.join(f'{json.dumps(key)}, {_java_value(item)}' for key, item in value.items())})"
    if isinstance(value, list):
        return f"List.of({', '.join(_java_value(item) for item in value)})"
    return json.dumps(float(value)) if isinstance(value, int) else json.dumps(value)


def _rust(policy: dict[str, object]) -> str:
    """Constants, because tonic has no service config."""
    codes = [str(code) for code in policy["retryableStatusCodes"]]  # type: ignore[attr-defined] # a list
    names = ", ".join("Code::" + "".join(part.capitalize() for part in code.split("_")) for code in codes)
    seconds = {key: round(1_000 * float(str(policy[key]).rstrip("s"))) for key in ("initialBackoff", "maxBackoff")}
    return f"""// {HEADER}
//! The retry policy of `service_config.json`.

use std::time::Duration;

use tonic::Code;

/// Tries of a call, the first one included.
pub const MAX_ATTEMPTS: u32 = {policy["maxAttempts"]};
/// Longest pause before the second try.
pub const INITIAL_BACKOFF: Duration = Duration::from_millis({seconds["initialBackoff"]});
/// Longest pause before any try.
pub const MAX_BACKOFF: Duration = Duration::from_millis({seconds["maxBackoff"]});
/// Growth of the longest pause.
pub const BACKOFF_MULTIPLIER: u32 = {policy["backoffMultiplier"]};
/// Codes of calls that are tried again.
pub const RETRYABLE_CODES: [Code; {len(codes)}] = [{names}];
"""
