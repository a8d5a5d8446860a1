"""The generated part of the Python client: messages and stubs, methods of both clients, classes of errors."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from generation.outputs import HEADER, pascal, sentence, snake
from generation.protocol import Method, Protocol, compile_protos

PACKAGE = "python/src/astrocyte_client"
# Generated messages are imported from here, so that the package does not clash with the server's `astrocyte`.
MODULE = "astrocyte_client.v1"


def generate(protocol: Protocol, folder: Path) -> None:
    """Write the files below ``folder``."""
    target = folder / PACKAGE
    _messages(protocol, folder, target / "v1")
    (target / "methods.py").write_text(_methods(protocol), encoding="utf-8")
    (target / "reasons.py").write_text(_reasons(protocol), encoding="utf-8")


def _messages(protocol: Protocol, folder: Path, target: Path) -> None:
    """Messages and stubs, moved into the package of the client."""
    raw = folder / "raw"
    raw.mkdir(parents=True)
    programs = Path(sys.executable).parent
    plugins = [f"--plugin={programs / name}" for name in ("protoc-gen-mypy", "protoc-gen-mypy_grpc")]
    services = [file.name for file in protocol.own if file.service]
    compile_protos(*plugins, f"--python_out={raw}", f"--mypy_out=quiet:{raw}", *protocol.files)
    compile_protos(*plugins, f"--grpc_python_out={raw}", f"--mypy_grpc_out=quiet:{raw}", *services)
    target.mkdir(parents=True)
    (target / "__init__.py").write_text('"""Messages and stubs of the protocol."""\n', encoding="utf-8")
    for file in sorted((raw / "astrocyte/v1").iterdir()):
        text = file.read_text(encoding="utf-8")
        # Imports and type annotations; the names of protocol files and methods stay.
        text = re.sub(r"\b(from|import) astrocyte\.v1\b", rf"\1 {MODULE}", text)
        (target / file.name).write_text(text, encoding="utf-8")


def _methods(protocol: Protocol) -> str:
    modules = {
        message: _module(protocol, message) for method in protocol.methods for message in (method.input, method.output)
    }
    services = {service: _module_of_service(protocol, service) for service in protocol.services}
    used = sorted({*modules.values(), *(f"{module}_grpc" for module in services.values())})
    lines = [
        f"# {HEADER}",
        '"""The methods of both clients, one for each RPC."""',
        "",
        "from __future__ import annotations",
        "",
        "from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Mapping",
        "from typing import Any",
        "",
        "from astrocyte_client.connection import UNSET, Deadline, Rpc",
        f"from {MODULE} import {', '.join(used)}",
        "",
        "RPCS: dict[str, Rpc] = {",
        "    rpc.name: rpc",
        "    for rpc in (",
    ]
    for method in protocol.methods:
        options = [f"bank={method.bank!r}"] if method.bank else []
        options += ["has_request_id=True"] if method.has_request_id else []
        options += ["has_timeout=True"] if method.has_timeout else []
        options += [f"extra_seconds={method.extra_seconds}.0"] if method.extra_seconds else []
        stub = f"{services[method.service]}_grpc.{method.service}Stub"
        lines.append(
            f"        Rpc({', '.join([repr(method.name), stub, f'{modules[method.input]}.{method.input}', *options])}),"
        )
    lines += ["    )", "}", "", ""]
    lines += _class(protocol, modules, asynchronous=False)
    lines += ["", ""]
    lines += _class(protocol, modules, asynchronous=True)
    return "\n".join(lines) + "\n"


def _class(protocol: Protocol, modules: dict[str, str], *, asynchronous: bool) -> list[str]:
    name, kind = ("AsyncMethods", "asyncio") if asynchronous else ("Methods", "synchronous")
    lines = [
        f"class {name}:",
        f'    """The methods of the {kind} client.',
        "",
        "    A request is a message or its fields by name. ``deadline`` is in seconds and replaces the client's",
        "    timeout; ``headers`` are sent as metadata. Each method raises `AstrocyteError`.",
        '    """',
        "",
        "    _unary: Any",
        "    _server_stream: Any",
        "    _stream: Any",
    ]
    for method in protocol.methods:
        lines += ["", *_method(method, modules, asynchronous=asynchronous)]
    return lines


def _method(method: Method, modules: dict[str, str], *, asynchronous: bool) -> list[str]:
    request, response = f"{modules[method.input]}.{method.input}", f"{modules[method.output]}.{method.output}"
    iterator = "AsyncIterator" if asynchronous else "Iterator"
    definition, result, call = "def", f"{iterator}[{response}]", "self._server_stream"
    if not method.streams:
        definition, result, call = ("async def" if asynchronous else "def"), response, "self._unary"
    parameters = [f"request: {request} | None = None,", "/,"]
    arguments = f'RPCS["{method.name}"], request, fields, deadline, headers'
    rest = ["**fields: Any,"]
    if method.client_streaming:
        iterable = f"Iterable[{request}] | AsyncIterable[{request}]" if asynchronous else f"Iterable[{request}]"
        parameters, rest, call = [f"requests: {iterable},", "/,"], [], "self._stream"
        arguments = f'RPCS["{method.name}"], requests, deadline, headers'
    wait = "await " if asynchronous and not method.streams else ""
    return [
        f"    {definition} {snake(method.name)}(",
        "        self,",
        *(f"        {line}" for line in parameters),
        "        *,",
        "        deadline: Deadline = UNSET,",
        "        headers: Mapping[str, str] | None = None,",
        *(f"        {line}" for line in rest),
        f"    ) -> {result}:",
        *_docstring(method.comment),
        f"        answer: {result} = {wait}{call}({arguments})",
        "        return answer",
    ]


def _docstring(comment: tuple[str, ...]) -> list[str]:
    if len(comment) == 1:
        return [f'        """{comment[0]}"""']
    return [f'        """{comment[0]}', *(f"        {line}".rstrip() for line in comment[1:]), '        """']


def _reasons(protocol: Protocol) -> str:
    names = [f"{pascal(reason.name)}Error" for reason in protocol.reasons]
    lines = [
        f"# {HEADER}",
        '"""The classes of errors, one for each reason of the protocol."""',
        "",
        "from __future__ import annotations",
        "",
        "from astrocyte_client.errors import AstrocyteError",
        "",
        "__all__ = [",
        *(f'    "{name}",' for name in sorted(names)),
        "]",
    ]
    for name, reason in zip(names, protocol.reasons, strict=True):
        lines += ["", "", f"class {name}(AstrocyteError):", f'    """{sentence(reason.comment)}"""']
    lines += ["", "", "BY_REASON: dict[str, type[AstrocyteError]] = {"]
    lines += [f'    "{reason.name}": {name},' for name, reason in zip(names, protocol.reasons, strict=True)]
    lines += ["}"]
    return "\n".join(lines) + "\n"


def _module(protocol: Protocol, message: str) -> str:
    """The module of a message."""
    for file in protocol.own:
        if any(declared.name == message for declared in file.message_type):
            return f"{Path(file.name).stem}_pb2"
    raise LookupError(message)


def _module_of_service(protocol: Protocol, service: str) -> str:
    for file in protocol.own:
        if any(declared.name == service for declared in file.service):
            return f"{Path(file.name).stem}_pb2"
    raise LookupError(service)
