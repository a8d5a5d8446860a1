"""Reflection over the wire, in both versions: services, files and symbols."""

from __future__ import annotations

from collections.abc import AsyncIterator

import grpc
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from grpc_reflection.v1alpha.reflection_pb2 import ServerReflectionRequest, ServerReflectionResponse

from astrocyte import errors
from astrocyte.api import RPCS
from harness.serving import Served, serving

ERRORS = "astrocyte/v1/errors.proto"
MEMORY = "astrocyte/v1/memory.proto"
REASONS = {
    kind.reason for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.AstrocyteError)
}


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    async with serving() as served:
        yield served


@pytest.fixture(params=["v1", "v1alpha"])
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def ask(served: Served, version: str, *questions: ServerReflectionRequest) -> list[ServerReflectionResponse]:
    call = served.channel.stream_stream(
        f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo",
        request_serializer=ServerReflectionRequest.SerializeToString,
        response_deserializer=ServerReflectionResponse.FromString,
    )
    return [answer async for answer in call(iter(questions))]


async def files_of(served: Served, version: str, *symbols: str) -> list[FileDescriptorProto]:
    """The file that declares each symbol, without those that it imports."""
    answers = await ask(served, version, *(ServerReflectionRequest(file_containing_symbol=name) for name in symbols))
    return [first_file(answer) for answer in answers]


def first_file(answer: ServerReflectionResponse) -> FileDescriptorProto:
    assert answer.WhichOneof("message_response") == "file_descriptor_response", answer
    return FileDescriptorProto.FromString(answer.file_descriptor_response.file_descriptor_proto[0])


async def test_services_are_listed_and_described(served: Served, version: str) -> None:
    (listed,) = await ask(served, version, ServerReflectionRequest(list_services=""))
    names = {service.name for service in listed.list_services_response.service}
    assert names == {
        "astrocyte.v1.MemoryService",
        "astrocyte.v1.AdminService",
        "astrocyte.v1.GraphService",
        "astrocyte.v1.AgentMemoryService",
        "astrocyte.v1.KnowledgeService",
        "grpc.health.v1.Health",
        "grpc.reflection.v1.ServerReflection",
        "grpc.reflection.v1alpha.ServerReflection",
    }
    for name, file in zip(names, await files_of(served, version, *names), strict=True):
        assert name in {f"{file.package}.{service.name}" for service in file.service}


async def test_every_method_is_found(served: Served, version: str) -> None:
    symbols = [f"{rpc.service}.{rpc.name}" for rpc in RPCS.values()]
    symbols += [
        "grpc.health.v1.Health.Check",
        f"grpc.reflection.{version}.ServerReflection.ServerReflectionInfo",
    ]
    for symbol, file in zip(symbols, await files_of(served, version, *symbols), strict=True):
        service, _, method = symbol.rpartition(".")
        assert f"{file.package}.{file.service[0].name}" == service
        assert method in {one.name for one in file.service[0].method}


async def test_the_reasons_of_errors_are_found(served: Served, version: str) -> None:
    by_name, by_symbol, by_value = await ask(
        served,
        version,
        ServerReflectionRequest(file_by_filename=ERRORS),
        ServerReflectionRequest(file_containing_symbol="astrocyte.v1.ErrorReason"),
        ServerReflectionRequest(file_containing_symbol="astrocyte.v1.ERROR_REASON_BANK_NOT_FOUND"),
    )
    (file,) = {answer.file_descriptor_response.file_descriptor_proto[0] for answer in (by_name, by_symbol, by_value)}
    described = FileDescriptorProto.FromString(file)
    assert described.name == ERRORS
    assert {f"ERROR_REASON_{name}" for name in REASONS} <= {value.name for value in described.enum_type[0].value}


async def test_fields_values_and_oneofs_are_found(served: Served, version: str) -> None:
    symbols = (
        "astrocyte.v1.RecallRequest.query",
        "astrocyte.v1.DetailLevel",
        "astrocyte.v1.DETAIL_LEVEL_FULL",
        "astrocyte.v1.StreamRetainResponse.outcome",
    )
    assert [file.name for file in await files_of(served, version, *symbols)] == [MEMORY] * len(symbols)


async def test_a_symbol_that_does_not_exist_is_not_found(served: Served, version: str) -> None:
    names = ("astrocyte.v1.MemoryService.Nope", "astrocyte.v1.Nope", "nope", "", "astrocyte.v1.MemoryService.")
    answers = await ask(served, version, *(ServerReflectionRequest(file_containing_symbol=name) for name in names))
    codes = [answer.error_response.error_code for answer in answers]
    assert codes == [grpc.StatusCode.NOT_FOUND.value[0]] * len(names)
