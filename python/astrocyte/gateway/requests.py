"""The message of a request: its path, its parameters and its body."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

import orjson
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from astrocyte.errors import ValidationError
from astrocyte.gateway.reading import SHOWN_NAME_CHARS, read_message
from astrocyte.gateway.routes import Binding

# Parameters of one request; a list of tags or ids has one for each.
MOST_PARAMETERS = 1_000
MASK = "update_mask"
# Fields of an update that say how to change, not what.
CONTROLS = frozenset({"embedding", "etag", "request_id", "validate_only", MASK})


def message_of(binding: Binding, path: Mapping[str, str], query: bytes, body: bytes) -> Message:
    """The message of a request.

    Raises:
        ValidationError: A part of the request cannot be read; ``field`` is its path.
    """
    kind = binding.method.input_type
    values = parse(body) if binding.body else {}
    if not isinstance(values, dict):
        raise ValidationError("the body must be an object", field="request")
    for name in path:
        if name in values:
            raise ValidationError("is in the path; leave it out of the body", field=name)
    if binding.verb == "PATCH" and MASK in kind.fields_by_name and MASK not in values:
        values = {**values, MASK: _changed(kind, values)}
    if query:
        if binding.body:
            raise ValidationError("takes no parameters; send them in the body", field="query")
        values = parameters(kind, query)
        _check_path(path, values)
    return read_message(kind, {**values, **path})


def parse(body: bytes) -> Any:  # noqa: ANN401 - a value of JSON
    """The value of a body; an empty body is an object without fields.

    Raises:
        ValidationError: It is not JSON.
    """
    if not body:
        return {}
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise ValidationError(f"the body is not JSON: {place}", field="request") from None


def parameters(kind: Descriptor, query: bytes) -> dict[str, Any]:
    """The fields that the parameters of a query set; a field of a message inside has a dot in its name.

    Raises:
        ValidationError: A parameter is no field, or is given twice.
    """
    try:
        text = query.decode("ascii")
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=MOST_PARAMETERS, errors="strict")
    except ValueError:
        raise ValidationError(
            f"must be UTF-8 in percent-encoding with at most {MOST_PARAMETERS:,} parameters", field="query"
        ) from None
    values: dict[str, Any] = {}
    for name, value in pairs:
        _set(kind, values, name, value)
    return values


def _set(kind: Descriptor, values: dict[str, Any], name: str, text: str) -> None:
    shown = name[:SHOWN_NAME_CHARS]
    *outer, last = name.split(".")
    for part in outer:
        field = _field(kind, part, shown)
        if field.message_type is None or field.is_repeated:
            raise ValidationError(f"is no parameter: {field.name} has no fields", field=shown)
        kind = field.message_type
        values = values.setdefault(field.name, {})
        if not isinstance(values, dict):
            raise ValidationError("is given whole and in parts; send one of them", field=shown)
    field = _field(kind, last, shown)
    if field.is_repeated:
        values.setdefault(field.name, []).append(text)
    elif field.name in values:
        raise ValidationError("is given twice; send it once", field=shown)
    else:
        values[field.name] = text


def _field(kind: Descriptor, name: str, shown: str) -> FieldDescriptor:
    field = kind.fields_by_name.get(name) or kind.fields_by_camelcase_name.get(name)
    if field is None:
        raise ValidationError(f"is no parameter; known are {', '.join(kind.fields_by_name) or 'none'}", field=shown)
    return field


def _check_path(path: Mapping[str, str], values: Mapping[str, Any]) -> None:
    for name in path:
        if name in values:
            raise ValidationError("is in the path; leave it out of the query", field=name)


def _changed(kind: Descriptor, values: Mapping[str, Any]) -> list[str]:
    """The fields that an update names by giving them a value; null clears a field."""
    named = [kind.fields_by_camelcase_name[key].name if key in kind.fields_by_camelcase_name else key for key in values]
    return [name for name in named if name not in CONTROLS]
