"""gRPC reflection in both versions that tools ask for.

grpcio-reflection answers the older one, v1alpha. The two differ in the package name alone, so the same servicer answers
v1, with v1alpha's descriptors under the new name.
"""

from __future__ import annotations

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool
from grpc_reflection.v1alpha import reflection_pb2
from grpc_reflection.v1alpha.reflection import SERVICE_NAME as V1ALPHA
from grpc_reflection.v1alpha.reflection import aio

V1 = "grpc.reflection.v1.ServerReflection"
V1_FILE = "grpc/reflection/v1/reflection.proto"


def reflection_handlers(services: list[str]) -> list[grpc.GenericRpcHandler]:
    """What answers reflection about ``services``, full names, and about itself."""
    _describe_v1()
    servicer = aio.ReflectionServicer([*services, V1ALPHA, V1])
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
