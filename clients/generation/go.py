"""The generated part of the Go client: messages and stubs, the services of a client, reasons of errors."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from generation.outputs import HEADER, pascal, sentence
from generation.protocol import Protocol, compile_protos

MODULE = "astrocyte.dev/go"
TOOLS = Path(__file__).resolve().parents[1] / ".tools"
PLUGINS = (
    "google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.12",
    "google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.2",
)


def generate(protocol: Protocol, folder: Path) -> None:
    """Write the files below ``folder``."""
    target = folder / "go"
    target.mkdir()
    for plugin in PLUGINS:
        subprocess.run(["go", "install", plugin], check=True, env={**os.environ, "GOBIN": str(TOOLS)})
    options = [f"--go_opt=module={MODULE}", f"--go-grpc_opt=module={MODULE}"]
    programs = [f"--plugin={TOOLS / name}" for name in ("protoc-gen-go", "protoc-gen-go-grpc")]
    compile_protos(*programs, f"--go_out={target}", f"--go-grpc_out={target}", *options, *protocol.files)
    (target / "services.go").write_text(_formatted(_services(protocol)), encoding="utf-8")
    (target / "reasons.go").write_text(_formatted(_reasons(protocol)), encoding="utf-8")


def _formatted(source: str) -> str:
    done = subprocess.run(["gofmt"], input=source, check=True, capture_output=True, text=True)
    return done.stdout


def _services(protocol: Protocol) -> str:
    lines = [
        f"// {HEADER}",
        "",
        "package astrocyte",
        "",
        "import (",
        '"google.golang.org/grpc"',
        "",
        f'pb "{MODULE}/astrocytev1"',
        ")",
        "",
        "// Services are the methods of all services of the protocol.",
        "type Services struct {",
        *(f"pb.{service}Client" for service in protocol.services),
        "}",
        "",
        "func newServices(conn grpc.ClientConnInterface) Services {",
        "return Services{",
        *(f"pb.New{service}Client(conn)," for service in protocol.services),
        "}",
        "}",
        "",
        "// The RPCs by full name.",
        "var rpcs = map[string]rpc{",
    ]
    for method in protocol.methods:
        fields = (
            [f"bank: []string{{{', '.join(f'{chr(34)}{name}{chr(34)}' for name in method.bank)}}}"]
            if method.bank
            else []
        )
        fields += ["hasRequestID: true"] if method.has_request_id else []
        fields += ["hasTimeout: true"] if method.has_timeout else []
        fields += [f"extraSeconds: {method.extra_seconds}"] if method.extra_seconds else []
        lines.append(f"pb.{method.service}_{method.name}_FullMethodName: {{{', '.join(fields)}}},")
    return "\n".join([*lines, "}"]) + "\n"


def _reasons(protocol: Protocol) -> str:
    lines = [f"// {HEADER}", "", "package astrocyte", "", "// Reasons of errors, for errors.Is.", "const ("]
    for reason in protocol.reasons:
        name = f"Err{pascal(reason.name)}"
        lines += [f"// {name}: {sentence(reason.comment)}", f'{name} Reason = "{reason.name}"']
    return "\n".join([*lines, ")"]) + "\n"
