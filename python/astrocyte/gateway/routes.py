"""HTTP methods and paths of the RPCs, from the annotations `google.api.http` of the protocol."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from google.api import annotations_pb2
from google.protobuf.descriptor import MethodDescriptor

from astrocyte.api import Rpc
from astrocyte.services.convert import descriptor_of

# In an annotation, the body that holds all fields that are not in the path.
WHOLE_BODY = "*"
VARIABLE = re.compile(r"\{([^{}]+)\}")
FIELD = re.compile(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True)
class Binding:
    """One method and path of an RPC.

    Attributes:
        rpc: Its row.
        method: The descriptor of the RPC.
        verb: HTTP method, in capitals.
        template: The path, with names of fields in braces.
        body: Field that the body holds; `WHOLE_BODY`, or "" where there is no body.
        variables: Fields in the path, in order.
    """

    rpc: Rpc
    method: MethodDescriptor
    verb: str
    template: str
    body: str
    variables: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        variables = tuple(VARIABLE.findall(self.template))
        wrong = [name for name in variables if not FIELD.fullmatch(name)]
        if wrong or self.body not in {"", WHOLE_BODY}:
            raise ValueError(f"{self.method.full_name}: the gateway serves no rule {self.template} with {self.body!r}")
        object.__setattr__(self, "variables", variables)

    @property
    def pattern(self) -> str:
        """Regular expression of the path; a variable is one segment, not empty."""
        parts = VARIABLE.split(self.template)
        return "".join(f"(?P<{part}>[^/]+)" if index % 2 else re.escape(part) for index, part in enumerate(parts))


def bindings(rpcs: Iterable[Rpc]) -> Iterator[Binding]:
    """The bindings of all RPCs; an RPC without an annotation has none.

    Raises:
        ValueError: An annotation has a form that the gateway does not serve.
    """
    for rpc in rpcs:
        method = descriptor_of(rpc)
        options = method.GetOptions()
        if options.HasExtension(annotations_pb2.http):
            rule = options.Extensions[annotations_pb2.http]
            yield _binding(rpc, method, rule)
            yield from (_binding(rpc, method, one) for one in rule.additional_bindings)


def _binding(rpc: Rpc, method: MethodDescriptor, rule: Any) -> Binding:  # noqa: ANN401 - published without types
    kind = rule.WhichOneof("pattern")
    if kind in {None, "custom"} or rule.response_body:
        raise ValueError(f"{method.full_name}: the gateway serves no custom method and no response_body")
    return Binding(rpc, method, kind.upper(), getattr(rule, kind), rule.body)


class Router:
    """Finds the binding of a path.

    Args:
        found: All bindings.
    """

    def __init__(self, found: Iterable[Binding]) -> None:
        self._static: dict[str, dict[str, Binding]] = {}
        patterns: dict[str, dict[str, Binding]] = {}
        for binding in found:
            table = patterns if binding.variables else self._static
            verbs = table.setdefault(binding.pattern if binding.variables else binding.template, {})
            if verbs.setdefault(binding.verb, binding) is not binding:
                raise ValueError(f"{binding.verb} {binding.template} is in the protocol twice")
        # A path with a verb after a colon before the one without, which would match it as well.
        self._patterns = [
            (re.compile(pattern), verbs)
            for pattern, verbs in sorted(patterns.items(), key=lambda item: ":" not in item[0].rpartition(")")[2])
        ]

    def find(self, verb: str, path: str) -> tuple[Binding | None, Mapping[str, str], list[str]]:
        """The binding and the values of its path, or None and the HTTP methods that the path has.

        A path of two bindings, such as that of a bank whose id ends as a verb does, is that of the first that has the
        HTTP method.
        """
        static = self._static.get(path)
        if static is not None:
            return static.get(verb), {}, sorted(static)
        allowed: set[str] = set()
        for pattern, verbs in self._patterns:
            match = pattern.fullmatch(path)
            if match is not None:
                binding = verbs.get(verb)
                if binding is not None:
                    return binding, match.groupdict(), []
                allowed.update(verbs)
        return None, {}, sorted(allowed)
