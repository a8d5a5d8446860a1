"""The services, methods and error reasons of the protocol, as the generators see them."""

from __future__ import annotations

import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import grpc_tools
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet
from grpc_tools import protoc

ROOT = Path(__file__).resolve().parents[2]
PROTOS = ROOT / "proto"
PACKAGE = "astrocyte.v1"
# Google's annotations, from the repository or the installed googleapis-common-protos, then the well-known types.
INCLUDES = (PROTOS, Path(sysconfig.get_paths()["purelib"]), Path(grpc_tools.__file__).parent / "_proto")
# Requests whose bank is in a message of theirs.
NESTED_BANK_FIELDS = ("recall", "reflect")
# Seconds that the server itself gives a Reflect, beyond which a client waits.
REFLECT_SECONDS = 60
# Seconds that WaitOperation waits unless the request says otherwise.
WAIT_SECONDS = 30
_LOCATION_OF_SERVICE = 6
_LOCATION_OF_ENUM = 5


@dataclass(frozen=True)
class Method:
    """One RPC.

    Attributes:
        name: Name in the protocol.
        service: Name of its service.
        input: Name of its request.
        output: Name of its response.
        client_streaming: True if requests are a stream.
        server_streaming: True if responses are a stream.
        comment: Its comment in the protocol.
        bank: Path of the field that names its bank; empty where there is none, or one for each item.
        has_request_id: True if the request has an idempotency key, which a client fills.
        has_timeout: True if the request says how long the server shall wait.
        extra_seconds: Added to the default deadline, because the server takes longer for this call.
    """

    name: str
    service: str
    input: str
    output: str
    client_streaming: bool
    server_streaming: bool
    comment: tuple[str, ...]
    bank: tuple[str, ...]
    has_request_id: bool
    has_timeout: bool
    extra_seconds: int

    @property
    def streams(self) -> bool:
        """True if either side is a stream."""
        return self.client_streaming or self.server_streaming


@dataclass(frozen=True)
class Reason:
    """A value of ErrorReason without its prefix, and its comment without the metadata."""

    name: str
    comment: str


class Protocol:
    """The files of the protocol, compiled."""

    @cached_property
    def files(self) -> list[str]:
        """Names of the files, as imports name them."""
        return sorted(file.relative_to(PROTOS).as_posix() for file in PROTOS.glob("astrocyte/v1/*.proto"))

    @cached_property
    def descriptors(self) -> FileDescriptorSet:
        """The files and their imports."""
        with tempfile.TemporaryDirectory() as folder:
            target = Path(folder) / "descriptors"
            compile_protos(f"--descriptor_set_out={target}", "--include_imports", "--include_source_info", *self.files)
            return FileDescriptorSet.FromString(target.read_bytes())

    @cached_property
    def own(self) -> list[FileDescriptorProto]:
        """The files of the package."""
        return [file for file in self.descriptors.file if file.package == PACKAGE]

    @cached_property
    def services(self) -> list[str]:
        """Names of all services, MemoryService first."""
        names = [service.name for file in self.own for service in file.service]
        return sorted(names, key=lambda name: (name != "MemoryService", name))

    @cached_property
    def methods(self) -> list[Method]:
        """All RPCs, by service and in the order of the protocol."""
        found = [method for file in self.own for method in self._of_file(file)]
        names = [method.name for method in found]
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            sys.exit(f"RPCs of several services are methods of one client, so each needs a name of its own: {repeated}")
        single = [method.name for method in found if method.client_streaming and not method.server_streaming]
        if single:
            sys.exit(f"the clients have no form for a stream of requests with one response: {single}")
        return sorted(found, key=lambda method: self.services.index(method.service))

    @cached_property
    def reasons(self) -> list[Reason]:
        """All error reasons."""
        prefix = "ERROR_REASON_"
        return [
            Reason(value.name.removeprefix(prefix), " ".join(comment).partition(" Metadata: ")[0])
            for file in self.own
            for index, enum in enumerate(file.enum_type)
            if enum.name == "ErrorReason"
            for number, value in enumerate(enum.value)
            if value.number
            for comment in [_comment(file, (_LOCATION_OF_ENUM, index, 2, number))]
        ]

    @cached_property
    def _messages(self) -> dict[str, DescriptorProto]:
        return {message.name: message for file in self.own for message in file.message_type}

    def _of_file(self, file: FileDescriptorProto) -> list[Method]:
        return [
            self._method(file, index, number)
            for index, service in enumerate(file.service)
            for number in range(len(service.method))
        ]

    def _method(self, file: FileDescriptorProto, index: int, number: int) -> Method:
        service = file.service[index]
        method = service.method[number]
        request = method.input_type.rpartition(".")[2]
        fields = {field.name: field for field in self._messages[request].field}
        return Method(
            name=method.name,
            service=service.name,
            input=request,
            output=method.output_type.rpartition(".")[2],
            client_streaming=method.client_streaming,
            server_streaming=method.server_streaming,
            comment=_comment(file, (_LOCATION_OF_SERVICE, index, 2, number)),
            bank=() if method.client_streaming else self._bank(fields),
            has_request_id="request_id" in fields and not method.client_streaming,
            has_timeout="timeout" in fields,
            extra_seconds={"Reflect": REFLECT_SECONDS, "WaitOperation": WAIT_SECONDS}.get(method.name, 0),
        )

    def _bank(self, fields: dict[str, FieldDescriptorProto]) -> tuple[str, ...]:
        if "bank_id" in fields:
            return ("bank_id",)
        for name in NESTED_BANK_FIELDS:
            if name in fields and any(
                field.name == "bank_id" for field in self._messages[fields[name].type_name.rpartition(".")[2]].field
            ):
                return (name, "bank_id")
        return ()


def _comment(file: FileDescriptorProto, path: Sequence[int]) -> tuple[str, ...]:
    """The lines of the comment above a declaration."""
    for location in file.source_code_info.location:
        if list(location.path) == list(path):
            return tuple(line.strip() for line in location.leading_comments.strip().splitlines())
    return ()


def compile_protos(*arguments: str) -> None:
    """Run protoc with all includes; the process ends if it fails."""
    if protoc.main(["protoc", *(f"-I{path}" for path in INCLUDES), *arguments]) != 0:
        sys.exit("protoc failed")
