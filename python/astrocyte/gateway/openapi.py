"""The OpenAPI 3.1 document of the gateway, from the descriptors of the protocol and its comments."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Any

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

from astrocyte.config.loading.environment import package_version
from astrocyte.gateway.archive_files import operations
from astrocyte.gateway.exchange import EVENTS, JSON, LINES
from astrocyte.gateway.names import choices
from astrocyte.gateway.reading import INTEGERS
from astrocyte.gateway.requests import MASK
from astrocyte.gateway.routes import Binding
from astrocyte.gateway.webhooks import PREFIX, operation

Schema = dict[str, Any]

TITLE = "Astrocyte"
DESCRIPTION = (
    "Agent memory over HTTP. JSON has the names of the protocol, enum values in lower case without prefix, and 64-bit "
    'integers as numbers. Streams are server-sent events. Errors have the shape {"error": {"code", "message"}}.'
)
# Of paths with parameters or bodies of these kinds; schemas of types that JSON has another shape for.
_PLAIN: Mapping[str, Schema] = {
    "google.protobuf.Timestamp": {"type": "string", "format": "date-time"},
    "google.protobuf.Duration": {"type": "string", "pattern": r"^-?\d+(\.\d+)?s$", "examples": ["2.5s"]},
    "google.protobuf.FieldMask": {"type": "string", "description": "Names of fields, separated by commas."},
    "google.rpc.Status": {"$ref": "#/components/schemas/ErrorDetails"},
    "astrocyte.v1.MetadataValue": {"type": ["string", "integer", "number", "boolean", "null"]},
}
_SCALARS: Mapping[int, Schema] = {
    FieldDescriptor.CPPTYPE_BOOL: {"type": "boolean"},
    FieldDescriptor.CPPTYPE_DOUBLE: {"type": "number", "format": "double"},
    FieldDescriptor.CPPTYPE_FLOAT: {"type": "number", "format": "float"},
    FieldDescriptor.CPPTYPE_STRING: {"type": "string"},
}
_ERROR_DETAILS: Schema = {
    "type": "object",
    "required": ["code", "message"],
    "properties": {
        "code": {"type": "string", "description": "Reason in lower case, such as access_denied; docs/errors.md."},
        "message": {"type": "string", "description": "What came, what was expected, what to do."},
        "field": {"type": "string", "description": "Path of the wrong value in the request."},
        "retry_after": {"type": "number", "description": "Seconds after which to repeat the call."},
        "hold_ids": {"type": "array", "items": {"type": "string"}, "description": "Legal holds in the way."},
        "metadata": {
            "type": "object",
            "additionalProperties": {"type": "string"},
            "description": "Variable parts of the message.",
        },
        "request_id": {"type": "string", "description": "Id of the call in the server's log."},
    },
}
_ERROR: Schema = {
    "type": "object",
    "required": ["error"],
    "properties": {"error": {"$ref": "#/components/schemas/ErrorDetails", "description": "What failed."}},
}


def document(found: Iterable[Binding]) -> dict[str, Any]:
    """The document of these bindings."""
    maker = _Maker()
    paths: dict[str, dict[str, Any]] = {}
    for binding in found:
        paths.setdefault(binding.template, {})[binding.verb.lower()] = maker.operation(binding)
    # A door of its own, since its callers sign and are no principals.
    paths[f"{PREFIX}{{source_id}}"] = {"post": operation()}
    return {
        "openapi": "3.1.0",
        "info": {"title": TITLE, "version": package_version(), "description": DESCRIPTION},
        "servers": [{"url": "/"}],
        "security": [{"bearer": []}, {}],
        "tags": [*maker.tags(), {"name": "Ingest", "description": "Deliveries of webhooks."}],
        "paths": paths | operations(),
        "components": {
            "schemas": dict(sorted(maker.schemas.items())),
            "responses": {
                "Error": {"description": "The call failed.", "content": {JSON: {"schema": _ref("Error")}}},
            },
            "securitySchemes": {
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "API key or JWT; not needed where the server asks for none.",
                }
            },
        },
    }


class _Maker:
    """Makes operations, and collects the schemas that they name."""

    def __init__(self) -> None:
        text = files("astrocyte.v1").joinpath("comments.json").read_text(encoding="utf-8")
        self._comments: Mapping[str, str] = json.loads(text)
        self._services: dict[str, str] = {}
        self._ids: Counter[str] = Counter()
        self.schemas: dict[str, Schema] = {"Error": _ERROR, "ErrorDetails": _ERROR_DETAILS}

    def tags(self) -> list[dict[str, str]]:
        """One tag for each service."""
        return [{"name": name, "description": self._comments.get(full, "")} for name, full in self._services.items()]

    def operation(self, binding: Binding) -> dict[str, Any]:
        """The operation of a binding."""
        method = binding.method
        service = method.containing_service
        self._services[service.name] = service.full_name
        self._ids[method.name] += 1
        # Ids are unique; a further path of an RPC has its number.
        number = self._ids[method.name]
        comment = self._comments.get(method.full_name, "").removeprefix(f"{method.name} ")
        comment = comment[:1].upper() + comment[1:]
        made: dict[str, Any] = {
            "operationId": method.name if number == 1 else f"{method.name}{number}",
            "tags": [service.name],
            "summary": re.split(r"[.;](?:\s|$)", comment, maxsplit=1)[0],
            "description": comment + _permissions(binding),
            "parameters": self._parameters(binding),
        }
        if binding.body:
            made["requestBody"] = self._body(binding)
        made["responses"] = {"200": self._response(binding), "default": {"$ref": "#/components/responses/Error"}}
        return made

    def _parameters(self, binding: Binding) -> list[dict[str, Any]]:
        kind = binding.method.input_type
        made = [self._parameter(kind.fields_by_name[name], name, "path", required=True) for name in binding.variables]
        if not binding.body:
            made += list(self._query(kind, "", frozenset(binding.variables)))
        return made

    def _query(self, kind: Descriptor, prefix: str, left_out: frozenset[str]) -> Iterable[dict[str, Any]]:
        for field in kind.fields:
            name = prefix + field.name
            inner = field.message_type
            if field.name in left_out:
                continue
            if inner is None or inner.full_name in _PLAIN:
                yield self._parameter(field, name, "query", required=False)
            elif not field.is_repeated:
                yield from self._query(inner, f"{name}.", frozenset())

    def _parameter(self, field: FieldDescriptor, name: str, place: str, *, required: bool) -> dict[str, Any]:
        schema = self._field(field, described=False)
        made: dict[str, Any] = {"name": name, "in": place, "schema": schema, "required": required}
        comment = self._comments.get(field.full_name)
        return {**made, "description": comment} if comment else made

    def _body(self, binding: Binding) -> dict[str, Any]:
        kind = binding.method.input_type
        name = kind.name
        if binding.variables:
            name = f"{kind.name}Body"
            whole = self._object(kind)
            kept = {key: value for key, value in whole["properties"].items() if key not in binding.variables}
            self.schemas[name] = {**whole, "properties": kept}
            if MASK in kept and binding.verb == "PATCH":
                note = "Fields to change. Left out: those that the body has; null clears a field."
                kept[MASK] = {**_PLAIN["google.protobuf.FieldMask"], "description": note}
        else:
            self._message(kind)
        if binding.method.client_streaming:
            note = f"One {name} as JSON on each line."
            content = {LINES: {"schema": {"type": "string"}, "x-line-schema": _ref(name)}}
            return {"required": True, "description": note, "content": content}
        return {"required": True, "content": {JSON: {"schema": _ref(name)}}}

    def _response(self, binding: Binding) -> dict[str, Any]:
        method = binding.method
        name = method.output_type.name
        self._message(method.output_type)
        comment = self._comments.get(method.output_type.full_name, "The response.")
        if method.server_streaming:
            note = f"{comment} Each event has a {name} as its data; an event named error ends a stream that fails."
            return {
                "description": note,
                "content": {EVENTS: {"schema": {"type": "string"}, "x-event-schema": _ref(name)}},
            }
        return {"description": comment, "content": {JSON: {"schema": _ref(name)}}}

    def _message(self, kind: Descriptor) -> Schema:
        plain = _PLAIN.get(kind.full_name)
        if plain is not None:
            return plain
        if kind.name not in self.schemas:
            # Before its fields, because types may hold each other.
            self.schemas[kind.name] = {}
            self.schemas[kind.name].update(self._object(kind))
        return _ref(kind.name)

    def _object(self, kind: Descriptor) -> Schema:
        made: Schema = {"type": "object"}
        comment = self._comments.get(kind.full_name)
        if comment:
            made["description"] = comment
        made["properties"] = {field.name: self._field(field) for field in kind.fields}
        made["additionalProperties"] = False
        if kind.full_name == "astrocyte.v1.MultiBankStrategy":
            return {"anyOf": [made, self._one(kind.fields_by_name["mode"])]}
        if kind.full_name == "astrocyte.v1.Embedding":
            made["properties"]["values"] = {
                **made["properties"]["values"],
                "type": ["string", "array"],
                "items": {"type": "number"},
            }
        return made

    def _field(self, field: FieldDescriptor, *, described: bool = True) -> Schema:
        kind = field.message_type
        if kind is not None and kind.GetOptions().map_entry:
            schema: Schema = {"type": "object", "additionalProperties": self._one(kind.fields_by_name["value"])}
        elif field.is_repeated:
            schema = {"type": "array", "items": self._one(field)}
        else:
            schema = self._one(field)
        comment = self._comments.get(field.full_name)
        return {**schema, "description": comment} if comment and described else schema

    def _one(self, field: FieldDescriptor) -> Schema:
        if field.message_type is not None:
            return self._message(field.message_type)
        if field.enum_type is not None:
            return self._choice(field.enum_type)
        if field.type == FieldDescriptor.TYPE_BYTES:
            return {"type": "string", "contentEncoding": "base64"}
        bounds = INTEGERS.get(field.cpp_type)
        if bounds is not None:
            bits = "64" if field.cpp_type in {FieldDescriptor.CPPTYPE_INT64, FieldDescriptor.CPPTYPE_UINT64} else "32"
            return {"type": "integer", "format": f"int{bits}", "minimum": bounds[0], "maximum": bounds[1]}
        return dict(_SCALARS[field.cpp_type])

    def _choice(self, enum: EnumDescriptor) -> Schema:
        if enum.name not in self.schemas:
            described = [
                f"- `{name}`: {self._comments.get(f'{enum.file.package}.{value.name}', '')}"
                for name, value in zip(choices(enum), enum.values[len(enum.values) - len(choices(enum)) :], strict=True)
            ]
            comment = self._comments.get(enum.full_name, "")
            text = "\n".join((comment, "", *described))
            self.schemas[enum.name] = {"type": "string", "enum": list(choices(enum)), "description": text}
        return _ref(enum.name)


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _permissions(binding: Binding) -> str:
    needed = ", ".join(sorted(binding.rpc.permissions))
    return f"\n\nPermissions: {needed}." if needed else ""
