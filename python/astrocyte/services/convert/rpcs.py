"""The codec of each RPC: its request and its response.

A request class has the fields of its message. A field that holds a dataclass and is no field of the message, such as
``Retain.item``, is spread over the message. A response message with one field holds the response in it, another one has
the fields of the response. The table `_SPECIAL` has the functions for other shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any, NamedTuple, get_origin, get_type_hints

from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.descriptor_pool import Default
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.message_factory import GetMessageClass

from astrocyte.api import Rpc, requests
from astrocyte.errors import CapabilityNotSupported, ValidationError
from astrocyte.model import (
    EntityLink,
    ExplainQuery,
    NewEntityLink,
    Operation,
    RecallQuery,
    ReflectQuery,
    ReflectResult,
    Reindex,
    RetainResult,
)
from astrocyte.services.convert import recall
from astrocyte.services.convert.codec import Codec, SpreadCodec, Unset, codec_of, converters, register
from astrocyte.services.convert.memory import ITEMS
from astrocyte.services.convert.values import Refused, decode_metadata, encode_metadata, encoding
from astrocyte.v1 import admin_pb2, agent_memory_pb2, graph_pb2, knowledge_pb2, memory_pb2

# The pool has the services of a file from its import on.
FILES = (
    graph_pb2.DESCRIPTOR,
    memory_pb2.DESCRIPTOR,
    admin_pb2.DESCRIPTOR,
    agent_memory_pb2.DESCRIPTOR,
    knowledge_pb2.DESCRIPTOR,
)

# Fields of a bank that UpdateBank can change.
BANK_FIELDS = frozenset({"display_name", "description"})
# Fields of an entity that UpdateEntity can change.
ENTITY_FIELDS = ("name", "aliases", "metadata")

register(Reindex, names={"sample": "sample_size"})
register(NewEntityLink, unset=Unset.DEFAULT)
register(EntityLink, unset=Unset.NULL)
register(Operation, names={"outcome": "reindex_result"})

REFLECTS = codec_of(ReflectQuery, memory_pb2.ReflectRequest)
REFLECT_RESULTS = codec_of(ReflectResult, memory_pb2.ReflectResponse)
RETAIN_RESULTS = codec_of(RetainResult, memory_pb2.RetainResponse)


class RpcCodec(NamedTuple):
    """Converts requests and responses of one RPC.

    Attributes:
        decode_request: A request of a message; raises `ValidationError` with the path of a wrong field.
        encode_request: A message of a request; raises `ValidationError` with the path of a value that cannot be sent.
        encode_response: A message of a response, or its bytes.
        decode_response: The response of a message, to a request.
    """

    decode_request: Callable[[Any], Any]
    encode_request: Callable[[Any], Any]
    encode_response: Callable[[Any], Any]
    decode_response: Callable[[Any, Any], Any]


def descriptor_of(rpc: Rpc) -> MethodDescriptor:
    """The method of the protocol.

    Raises:
        KeyError: The protocol has no such service or method.
    """
    method: MethodDescriptor = Default().FindServiceByName(rpc.service).methods_by_name[rpc.name]
    return method


@cache
def codec_of_rpc(rpc: Rpc) -> RpcCodec:
    """The codec of an RPC, compiled from its request, its response and their messages."""
    method = descriptor_of(rpc)
    given = _SPECIAL.get(rpc.request, {})
    if len(given) == len(RpcCodec._fields):
        return RpcCodec(**given)
    decode_request, encode_request = _request(rpc.request, GetMessageClass(method.input_type))
    encode_response, decode_response = _response(rpc.response, GetMessageClass(method.output_type))
    made = RpcCodec(decode_request, encode_request, encode_response, decode_response)
    return made._replace(**given)


def _request(kind: type[Any], message: Any) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:  # noqa: ANN401 - a class of messages
    """Decodes and encodes requests of a class."""
    hints = get_type_hints(kind)
    wire = message.DESCRIPTOR.fields_by_name
    names = [field.name for field in fields(kind)]
    spread = next(
        (name for name in names if is_dataclass(hints[name]) and (name not in wire or wire[name].message_type is None)),
        None,
    )
    codec: Codec[Any]
    codec = Codec(kind, message) if spread is None else SpreadCodec(kind, message, spread, hints[spread])

    def encode(request: Any) -> Any:  # noqa: ANN401 - a request
        # Names in an error are those of the message, which does not have the field that is spread.
        values = {"" if name == spread else name: getattr(request, name) for name in names}
        with encoding(values):
            return codec.encode(request)

    return codec.decode, encode


def _response(kind: Any, message: Any) -> tuple[Callable[[Any], Any], Callable[[Any, Any], Any]]:  # noqa: ANN401 - a type and a class of messages
    """Encodes and decodes responses of a type."""
    own = message.DESCRIPTOR.fields
    if len(own) == 1 and not (is_dataclass(kind) and own[0].name in {field.name for field in fields(kind)}):
        name = own[0].name
        read, write, _ = converters(kind, own[0])

        def encode(response: Any) -> Any:  # noqa: ANN401 - a response
            return message(**{name: response if write is None else write(response)})

        def decode(message: Any, _: object) -> Any:  # noqa: ANN401 - a response
            value = getattr(message, name)
            return value if read is None else read(value)

        return encode, decode
    if get_origin(kind) is not None:
        raise TypeError(f"{message.DESCRIPTOR.full_name} needs functions of its own to hold {kind}")
    codec = codec_of(kind, message)
    return codec.encode, lambda message, _: codec.decode(message)


def _decode_items(message: Any) -> requests.BatchRetain:  # noqa: ANN401 - a message
    items = [ITEMS.decode(item, f"items[{index}].") for index, item in enumerate(message.items)]
    return requests.BatchRetain(message.bank_id, items, message.request_id or None, message.validate_only)


def _encode_items(request: requests.BatchRetain) -> Any:  # noqa: ANN401 - a message
    encoded = []
    for index, item in enumerate(request.items):
        with encoding({"": item}, f"items[{index}]."):
            encoded.append(ITEMS.encode(item))
    with encoding({"bank_id": request.bank_id, "request_id": request.request_id}):
        return memory_pb2.BatchRetainRequest(
            bank_id=request.bank_id,
            items=encoded,
            request_id=request.request_id or "",
            validate_only=request.validate_only,
        )


def _encode_query(query: RecallQuery, path: str = "") -> Any:  # noqa: ANN401 - a message
    with encoding({"": query}, path):
        return recall.QUERIES.encode(query)


def _decode_queries(message: Any) -> requests.BatchRecall:  # noqa: ANN401 - a message
    decode = recall.QUERIES.decode
    return requests.BatchRecall([decode(query, f"queries[{index}].") for index, query in enumerate(message.queries)])


def _encode_queries(request: requests.BatchRecall) -> Any:  # noqa: ANN401 - a message
    encoded = [_encode_query(query, f"queries[{index}].") for index, query in enumerate(request.queries)]
    return memory_pb2.BatchRecallRequest(queries=encoded)


def _decode_results(message: Any, request: requests.BatchRecall) -> Any:  # noqa: ANN401 - a message, and results
    decode = recall.RESULTS.decode
    return [decode(result) for _, result in zip(request.queries, message.results, strict=True)]


def _decode_history(message: Any) -> requests.History:  # noqa: ANN401 - a message
    if not message.HasField("as_of"):
        raise ValidationError("is missing; set the instant of the query", field="as_of")
    return requests.History(recall.HISTORY_QUERIES.decode(message))


def _encode_history(request: requests.History) -> Any:  # noqa: ANN401 - a message
    query = request.query
    if query.as_of is None:
        raise ValidationError("is missing; set the instant of the query", field="as_of")
    if query != RecallQuery(**{name: getattr(query, name) for name in recall.HISTORY_FIELDS}):
        raise CapabilityNotSupported("history takes query, as_of, limits and tags only; use recall with as_of instead")
    with encoding({"": query}):
        return recall.HISTORY_QUERIES.encode(query)


def _decode_explain(message: Any) -> requests.Explain:  # noqa: ANN401 - a message
    if not message.HasField("recall"):
        raise ValidationError("is missing; send the recall request to explain", field="recall")
    query = recall.QUERIES.decode(message.recall)
    return requests.Explain(ExplainQuery(query, tuple(message.memory_ids), message.position))


def _encode_explain(request: requests.Explain) -> Any:  # noqa: ANN401 - a message
    asked = request.query
    with encoding({"recall": asked.query, "": asked}):
        return memory_pb2.ExplainRequest(
            recall=recall.QUERIES.encode(asked.query), memory_ids=asked.memory_ids, position=asked.position
        )


def _decode_reflect_result(message: Any, request: Any) -> ReflectResult:  # noqa: ANN401 - a message and its request
    """Decode a response; the request tells empty sources from sources that were not requested."""
    result: ReflectResult = REFLECT_RESULTS.decode(message)
    return replace(result, sources=result.sources if request.query.include_sources else None)


def _encode_reflect(request: Any) -> Any:  # noqa: ANN401 - a request
    with encoding({"": request.query}):
        return REFLECTS.encode(request.query)


def _encode_piece(piece: str | ReflectResult) -> Any:  # noqa: ANN401 - a message
    if isinstance(piece, str):
        return memory_pb2.StreamReflectResponse(text=piece)
    return memory_pb2.StreamReflectResponse(result=REFLECT_RESULTS.encode(piece))


def _decode_piece(message: Any, request: requests.StreamReflect) -> str | ReflectResult:  # noqa: ANN401 - a message
    if message.HasField("result"):
        return _decode_reflect_result(message.result, request)
    text: str = message.text
    return text


def _decode_bank_update(message: Any) -> requests.UpdateBank:  # noqa: ANN401 - a message
    named = set(message.update_mask.paths)
    if not named or named - BANK_FIELDS:
        raise ValidationError(
            f"must name one or more of {', '.join(sorted(BANK_FIELDS))}, got {sorted(named)!r:.200}",
            field="update_mask",
        )
    changes = {name: getattr(message, name) for name in named}
    return requests.UpdateBank(
        message.bank_id, etag=message.etag or None, request_id=message.request_id or None, **changes
    )


def _encode_bank_update(request: requests.UpdateBank) -> Any:  # noqa: ANN401 - a message
    changed = [name for name in ("display_name", "description") if getattr(request, name) is not None]
    with encoding({"": request}):
        values = {field.name: getattr(request, field.name) for field in fields(request)}
        return admin_pb2.UpdateBankRequest(**values, update_mask=FieldMask(paths=changed))


def _decode_entity_update(message: Any) -> requests.UpdateEntity:  # noqa: ANN401 - a message
    named = set(message.update_mask.paths)
    if not named or not named <= set(ENTITY_FIELDS):
        raise ValidationError(
            f"must name one or more of {', '.join(ENTITY_FIELDS)}, got {sorted(named)!r:.200}", field="update_mask"
        )
    changes: dict[str, Any] = {}
    if "name" in named:
        changes["name"] = message.name
    if "aliases" in named:
        changes["aliases"] = tuple(message.aliases)
    if "metadata" in named:
        try:
            changes["metadata"] = decode_metadata(message.metadata)
        except Refused as error:
            raise ValidationError(error.description, field=f"metadata{error.at}") from None
    return requests.UpdateEntity(
        message.bank_id,
        message.entity_id,
        etag=message.etag or None,
        request_id=message.request_id or None,
        validate_only=message.validate_only,
        **changes,
    )


def _encode_entity_update(request: requests.UpdateEntity) -> Any:  # noqa: ANN401 - a message
    changed = [name for name in ENTITY_FIELDS if getattr(request, name) is not None]
    with encoding({"": request}):
        values = {field.name: getattr(request, field.name) for field in fields(request)}
        if request.metadata is not None:
            try:
                values["metadata"] = encode_metadata(request.metadata)
            except Refused as error:
                raise Refused(f"metadata{error.at}", error.description) from None
        return graph_pb2.UpdateEntityRequest(**values, update_mask=FieldMask(paths=changed))


# Functions of `RpcCodec` for what the rules at the top of this file do not cover.
_SPECIAL: Mapping[type[Any], Mapping[str, Any]] = {
    requests.BatchRetain: {"decode_request": _decode_items, "encode_request": _encode_items},
    requests.Recall: {
        "decode_request": recall.decode_recall,
        "encode_request": lambda request: _encode_query(request.query),
        "encode_response": recall.encode_recall_result,
    },
    requests.BatchRecall: {
        "decode_request": _decode_queries,
        "encode_request": _encode_queries,
        "encode_response": recall.encode_recall_results,
        "decode_response": _decode_results,
    },
    requests.History: {
        "decode_request": _decode_history,
        "encode_request": _encode_history,
        "encode_response": recall.encode_history_result,
        "decode_response": lambda message, _: recall.HISTORY_RESULTS.decode(message),
    },
    requests.Explain: {"decode_request": _decode_explain, "encode_request": _encode_explain},
    requests.Reflect: {"encode_request": _encode_reflect, "decode_response": _decode_reflect_result},
    requests.StreamReflect: {
        "decode_request": lambda message: requests.StreamReflect(REFLECTS.decode(message.reflect)),
        "encode_request": lambda request: memory_pb2.StreamReflectRequest(reflect=_encode_reflect(request)),
        "encode_response": _encode_piece,
        "decode_response": _decode_piece,
    },
    requests.UpdateEntity: {"decode_request": _decode_entity_update, "encode_request": _encode_entity_update},
    requests.UpdateBank: {"decode_request": _decode_bank_update, "encode_request": _encode_bank_update},
}
