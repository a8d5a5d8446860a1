"""gRPC reflection in both versions that tools ask for.

grpcio-reflection answers the older one, v1alpha. The two differ in the package name alone, so the same servicer answers
v1, with v1alpha's descriptors under the new name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FileDescriptor
from grpc_reflection.v1alpha import reflection_pb2
from grpc_reflection.v1alpha.reflection import SERVICE_NAME as V1ALPHA
from grpc_reflection.v1alpha.reflection import aio

from astrocyte.v1 import errors_pb2

V1 = "grpc.reflection.v1.ServerReflection"
V1_FILE = "grpc/reflection/v1/reflection.proto"


class SymbolPool:
    """The default descriptor pool, which also finds the file of a method, an enum value or a oneof.

    Args:
        files: Files whose symbols are found, with those that they import.
    """

    def __init__(self, files: Iterable[FileDescriptor]) -> None:
        self._pool = descriptor_pool.Default()
        self._files: dict[str, FileDescriptor] = {}
        for file in _with_imports(files):
            self._files |= dict.fromkeys(_symbols(file), file)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - a method of the pool
        return getattr(self._pool, name)

    def FindFileContainingSymbol(self, symbol: str) -> FileDescriptor:  # noqa: N802 - a name of protobuf
        """The file that declares a symbol.

        Raises:
            KeyError: No file declares it.
        """
        found = self._files.get(symbol)
        if found is None:
            found = self._pool.FindFileContainingSymbol(symbol)
        return found


def reflection_handlers(services: list[str]) -> list[grpc.GenericRpcHandler]:
    """Answer reflection about ``services``, by full name, about the reasons of errors, and about itself."""
    _describe_v1()
    names = [*services, V1ALPHA, V1]
    find = descriptor_pool.Default().FindServiceByName
    # No service uses the reasons: they are texts in the details of a status.
    pool: Any = SymbolPool([*(find(name).file for name in names), errors_pb2.DESCRIPTOR])
    servicer = aio.ReflectionServicer(names, pool=pool)
    handler = grpc.stream_stream_rpc_method_handler(
        servicer.ServerReflectionInfo,
        request_deserializer=reflection_pb2.ServerReflectionRequest.FromString,
        response_serializer=reflection_pb2.ServerReflectionResponse.SerializeToString,
    )
    return [grpc.method_handlers_generic_handler(name, {"ServerReflectionInfo": handler}) for name in (V1ALPHA, V1)]


def _describe_v1() -> None:
    """Put v1's descriptors into the pool that reflection reads: a copy of v1alpha's under the other name."""
    pool = descriptor_pool.Default()
    try:
        pool.FindFileByName(V1_FILE)
    except KeyError:
        file = descriptor_pb2.FileDescriptorProto()
        reflection_pb2.DESCRIPTOR.CopyToProto(file)
        old, new = f".{file.package}.", ".grpc.reflection.v1."
        file.name, file.package = V1_FILE, "grpc.reflection.v1"
        for message in file.message_type:
            for field in message.field:
                if field.type_name:
                    field.type_name = field.type_name.replace(old, new)
        for service in file.service:
            for method in service.method:
                method.input_type = method.input_type.replace(old, new)
                method.output_type = method.output_type.replace(old, new)
        pool.Add(file)


def _with_imports(files: Iterable[FileDescriptor]) -> list[FileDescriptor]:
    """The files and all that they import, each once."""
    found: dict[str, FileDescriptor] = {}
    open_files = list(files)
    while open_files:
        file = open_files.pop()
        if file.name not in found:
            found[file.name] = file
            open_files += file.dependencies
    return list(found.values())


def _symbols(file: FileDescriptor) -> Iterator[str]:
    """The symbols of a file that the pool does not look up: methods, enum values and oneofs."""
    for service in file.services_by_name.values():
        yield from (method.full_name for method in service.methods)
    yield from _values(file.package, file.enum_types_by_name.values())
    messages: list[Descriptor] = list(file.message_types_by_name.values())
    while messages:
        message = messages.pop()
        yield from (f"{message.full_name}.{oneof.name}" for oneof in message.oneofs)
        yield from _values(message.full_name, message.enum_types)
        messages += message.nested_types


def _values(scope: str, enums: Iterable[EnumDescriptor]) -> Iterator[str]:
    """The values of enums; they belong to the scope of their enum."""
    return (f"{scope}.{value.name}" for enum in enums for value in enum.values)
