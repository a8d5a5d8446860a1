"""The generated part of the TypeScript client: messages and services, methods of a client, classes of errors."""

from __future__ import annotations

import subprocess
from pathlib import Path

from generation.outputs import HEADER, camel, pascal, sentence
from generation.protocol import Method, Protocol, compile_protos

CLIENT = Path(__file__).resolve().parents[1] / "typescript"
PLUGIN = CLIENT / "node_modules/.bin/protoc-gen-ts_proto"
OPTIONS = (
    "emitImportedFiles=false",
    "env=node",
    "esModuleInterop=true",
    "forceLong=number",
    "importSuffix=.js",
    "oneof=unions-value",
    "outputJsonMethods=false",
    "outputServices=grpc-js",
    "removeEnumPrefix=true",
    "useDate=true",
    "useExactTypes=false",
)
# Messages of Google's that the client or its callers use; the annotations are not among them.
IMPORTS = (
    "google/protobuf/any.proto",
    "google/protobuf/duration.proto",
    "google/protobuf/field_mask.proto",
    "google/protobuf/struct.proto",
    "google/protobuf/timestamp.proto",
    "google/rpc/error_details.proto",
    "google/rpc/status.proto",
)


def generate(protocol: Protocol, folder: Path) -> None:
    """Write the files below ``folder``."""
    if not PLUGIN.exists():
        subprocess.run(["npm", "ci", "--no-audit", "--no-fund"], cwd=CLIENT, check=True)
    target = folder / "typescript/src"
    generated = target / "generated"
    generated.mkdir(parents=True)
    compile_protos(
        f"--plugin=protoc-gen-ts_proto={PLUGIN}",
        f"--ts_proto_out={generated}",
        f"--ts_proto_opt={','.join(OPTIONS)}",
        *protocol.files,
        *IMPORTS,
    )
    (target / "v1.ts").write_text(_exports(protocol), encoding="utf-8")
    (target / "methods.ts").write_text(_methods(protocol), encoding="utf-8")
    (target / "reasons.ts").write_text(_reasons(protocol), encoding="utf-8")


def _modules(protocol: Protocol) -> dict[str, list[str]]:
    """Names that each generated module declares: messages, enums and services."""
    return {
        Path(file.name).stem: sorted(
            [
                *(message.name for message in file.message_type),
                *(enum.name for enum in file.enum_type),
                *(f"{service.name}Service" for service in file.service),
            ]
        )
        for file in protocol.own
    }


def _exports(protocol: Protocol) -> str:
    """The messages, enums and service definitions of the protocol, without the helpers of each module."""
    lines = [f"// {HEADER}", ""]
    for module, names in _modules(protocol).items():
        lines += ["export {", *(f"  {name}," for name in names), f'}} from "./generated/astrocyte/v1/{module}.js";']
    return "\n".join(lines) + "\n"


def _methods(protocol: Protocol) -> str:
    used = {name for method in protocol.methods for name in (method.input, method.output)}
    used |= {f"{service}Service" for service in protocol.services}
    lines = [f"// {HEADER}", "", 'import { Calls, type CallOptions } from "./calls.js";']
    lines.append('import type { DeepPartial } from "./generated/astrocyte/v1/memory.js";')
    for module, names in _modules(protocol).items():
        wanted = [name for name in names if name in used]
        if wanted:
            lines += [
                "import {",
                *(f"  {name}," for name in wanted),
                f'}} from "./generated/astrocyte/v1/{module}.js";',
            ]
    lines += ["", "/** The methods of a client, one for each RPC. Each of them fails with an AstrocyteError. */"]
    lines += ["export abstract class Methods extends Calls {"]
    for index, method in enumerate(protocol.methods):
        lines += [*([""] if index else []), *_method(method)]
    return "\n".join([*lines, "}"]) + "\n"


def _method(method: Method) -> list[str]:
    name = camel(method.name)
    definition = f"{method.service}Service.{name}"
    facts = []
    if method.bank:
        path = "?.".join(camel(_camel(part)) for part in method.bank)
        facts.append(f"bank: message.{path}")
    if method.has_request_id:
        facts.append("idempotent: true")
    if method.has_timeout:
        facts.append("waits: message.timeout")
    if method.extra_seconds:
        facts.append(f"extraSeconds: {method.extra_seconds}")
    comment = [f"   * {line}".rstrip() for line in method.comment]
    lines = ["  /**", *comment, "   */"]
    if method.client_streaming:
        return [
            *lines,
            f"  {name}(",
            f"    requests: Iterable<DeepPartial<{method.input}>> | AsyncIterable<DeepPartial<{method.input}>>,",
            "    options: CallOptions = {},",
            f"  ): AsyncIterable<{method.output}> {{",
            f"    return this.stream({definition}, requests, {method.input}.fromPartial, options);",
            "  }",
        ]
    result, call = f"Promise<{method.output}>", "unary"
    if method.server_streaming:
        result, call = f"AsyncIterable<{method.output}>", "serverStream"
    return [
        *lines,
        f"  {name}(request: DeepPartial<{method.input}>, options: CallOptions = {{}}): {result} {{",
        f"    const message = {method.input}.fromPartial(request);",
        f"    return this.{call}({definition}, message, {{ {', '.join(facts)} }}, options);"
        if facts
        else f"    return this.{call}({definition}, message, {{}}, options);",
        "  }",
    ]


def _camel(name: str) -> str:
    """``bank_id`` as ``BankId``."""
    return "".join(part.capitalize() for part in name.split("_"))


def _reasons(protocol: Protocol) -> str:
    lines = [f"// {HEADER}", "", 'import { AstrocyteError } from "./astrocyte_error.js";']
    for reason in protocol.reasons:
        lines += [
            "",
            f"/** {sentence(reason.comment)} */",
            f"export class {pascal(reason.name)}Error extends AstrocyteError {{}}",
        ]
    lines += ["", "/** The classes by reason. */", "export const byReason: Record<string, typeof AstrocyteError> = {"]
    lines += [f"  {reason.name}: {pascal(reason.name)}Error," for reason in protocol.reasons]
    return "\n".join([*lines, "};"]) + "\n"
