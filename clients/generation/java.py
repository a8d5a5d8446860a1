"""The generated part of the Java client: methods of a client, classes of errors. Maven generates messages and stubs."""

from __future__ import annotations

from pathlib import Path

from generation.outputs import HEADER, camel, pascal, sentence
from generation.protocol import Method, Protocol

PACKAGE = "java/src/main/java/dev/astrocyte/client"


def generate(protocol: Protocol, folder: Path) -> None:
    """Write the files below ``folder``."""
    target = folder / PACKAGE
    target.mkdir(parents=True)
    (target / "Methods.java").write_text(_methods(protocol), encoding="utf-8")
    (target / "Reasons.java").write_text(_reasons(protocol), encoding="utf-8")
    for reason in protocol.reasons:
        name = f"{pascal(reason.name)}Exception"
        (target / f"{name}.java").write_text(_exception(name, sentence(reason.comment)), encoding="utf-8")


def _methods(protocol: Protocol) -> str:
    used = {name for method in protocol.methods for name in (method.input, method.output)}
    used |= {f"{service}Grpc" for service in protocol.services}
    lines = [
        f"// {HEADER}",
        "package dev.astrocyte.client;",
        "",
        *(f"import dev.astrocyte.v1.{name};" for name in sorted(used)),
        "import io.grpc.stub.StreamObserver;",
        "import java.util.Map;",
        "",
        "/** The methods of a client, one for each RPC. Each of them throws an {@link AstrocyteException}. */",
        "public abstract class Methods extends Calls {",
        "  Methods(Settings settings) {",
        "    super(settings);",
        "  }",
        "",
        "  /** The RPCs by full name. */",
        "  static final Map<String, Rpc> RPCS =",
        "      Map.ofEntries(",
    ]
    rows = [
        f'          Map.entry("astrocyte.v1.{method.service}/{method.name}", {_row(method)})'
        for method in protocol.methods
    ]
    lines += [f"{row}," for row in rows[:-1]] + [f"{rows[-1]});"]
    for method in protocol.methods:
        lines += ["", *_method(method)]
    return "\n".join([*lines, "}"]) + "\n"


def _row(method: Method) -> str:
    bank = f'"{".".join(method.bank)}"'
    flags = [str(flag).lower() for flag in (method.has_request_id, method.has_timeout)]
    return f"new Rpc({', '.join([bank, *flags, str(method.extra_seconds)])})"


def _method(method: Method) -> list[str]:
    name, grpc = camel(method.name), f"{method.service}Grpc.get{method.name}Method()"
    comment = ["  /**", *(f"   * {line}".rstrip() for line in method.comment), "   */"]
    if method.client_streaming:
        return [
            *comment,
            f"  public StreamObserver<{method.input}> {name}(StreamObserver<{method.output}> responses) {{",
            f"    return stream({grpc}, responses);",
            "  }",
        ]
    result, call = (
        (f"Responses<{method.output}>", "serverStream") if method.server_streaming else (method.output, "unary")
    )
    return [
        *comment,
        f"  public {result} {name}({method.input} request) {{",
        f"    return {call}({grpc}, request);",
        "  }",
    ]


def _reasons(protocol: Protocol) -> str:
    lines = [
        f"// {HEADER}",
        "package dev.astrocyte.client;",
        "",
        "/** The classes of errors by reason. */",
        "final class Reasons {",
        "  private Reasons() {}",
        "",
        "  static AstrocyteException exception(AstrocyteException.Parts parts) {",
        "    return switch (parts.reason()) {",
        *(f'      case "{reason.name}" -> new {pascal(reason.name)}Exception(parts);' for reason in protocol.reasons),
        "      default -> new AstrocyteException(parts);",
        "    };",
        "  }",
        "}",
    ]
    return "\n".join(lines) + "\n"


def _exception(name: str, comment: str) -> str:
    return f"""// {HEADER}
package dev.astrocyte.client;

/** {comment} */
public final class {name} extends AstrocyteException {{
  {name}(Parts parts) {{
    super(parts);
  }}
}}
"""
