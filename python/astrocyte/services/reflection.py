"""gRPC reflection in both versions that tools ask for.

grpcio-reflection answers the older one, v1alpha. The two differ in the package name alone, so the same servicer answers
v1, with v1alpha's descriptors under the new name.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool
from google.protobuf.descriptor import FileDescriptor
from grpc_reflection.v1alpha import reflection_pb2
from grpc_reflection.v1alpha.reflection import SERVICE_NAME as V1ALPHA
from grpc_reflection.v1alpha.reflection import aio

# No service uses the reasons of errors, which are texts in the details of a status: the import puts them into the pool.
from astrocyte.v1 import errors_pb2  # noqa: F401

V1 = "grpc.reflection.v1.ServerReflection"
V1_FILE = "grpc/reflection/v1/reflection.proto"


class SymbolPool:
    """The default descriptor pool, which also finds the file of a method.

    Args:
        services: Full names of the services whose methods are found.
    """

    def __init__(self, services: Iterable[str]) -> None:
        self._pool = descriptor_pool.Default()
        found = [self._pool.FindServiceByName(name) for name in services]
        self._files = {method.full_name: service.file for service in found for method in service.methods}

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
    pool: Any = SymbolPool(names)
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
