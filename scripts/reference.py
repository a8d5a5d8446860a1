"""Generate the reference parts of the documentation.

    python scripts/reference.py            write
    python scripts/reference.py --check    fail, and name the files, if they are out of date

Sources: settings from `astrocyte.config`, commands from `astrocyte.cli`, descriptions of calls and reasons from the
comments of the protocol, permissions and limits of calls from `astrocyte.api`. Each part is between two markers; the
rest is written by hand.
"""

from __future__ import annotations

import argparse
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Annotated, Literal, get_args, get_origin

import click
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from astrocyte.api import RPCS, Concurrency, LimitKind, Rpc
from astrocyte.api.reasons import COMMON, further_reasons
from astrocyte.cli import cli
from astrocyte.config import LimitSettings, ServerSettings, Settings
from astrocyte.config.limits import QuotaSettings, RateLimitSettings
from astrocyte.services.method_limits import PLACES

ROOT = Path(__file__).resolve().parent.parent
PROTOS = ROOT / "proto/astrocyte/v1"
MARKERS = re.compile(r"(<!-- reference: (\w+) -->\n).*?(<!-- end of reference -->)", re.DOTALL)
DOCUMENTS = ("README.md", "docs/configuration.md", "docs/cli.md", "docs/api.md", "docs/errors.md", "docs/policy.md")
# Display names of types.
TYPE_NAMES = {str: "text", Path: "path", bool: "true, false", type(None): "none", int: "whole number", float: "number"}
# Comment lines above a declaration.
COMMENT = r"((?:^ *//[^\n]*\n)+)"


def settings() -> str:
    """Tables of all settings by section."""
    return "\n".join(_section(Settings, ()))


def _section(model: type[BaseModel], path: tuple[str, ...], description: str | None = None) -> Iterator[str]:
    plain = {name: info for name, info in model.model_fields.items() if not _is_section(info)}
    if path:
        yield f"\n### {'.'.join(path)}\n\n{description or inspect.cleandoc(model.__doc__ or '')}\n"
    if plain:
        yield "| key | type | default | meaning |\n|---|---|---|---|"
        for name, info in plain.items():
            yield f"| `{'.'.join((*path, name))}` | {_type(info)} | {_default(info)} | {_meaning(info)} |"
    for name, info in model.model_fields.items():
        if isinstance(info.annotation, type) and issubclass(info.annotation, BaseModel):
            yield from _section(info.annotation, (*path, name), info.description)
        # Mappings repeat blocks that are listed elsewhere.
        for below in get_args(info.annotation) if get_origin(info.annotation) is not dict else ():
            if isinstance(below, type) and issubclass(below, BaseModel):
                yield from _section(below, (*path, f"{name}[]"))


def _is_section(info: FieldInfo) -> bool:
    return isinstance(info.annotation, type) and issubclass(info.annotation, BaseModel)


def _meaning(info: FieldInfo) -> str:
    bounds = [text for item in info.metadata for text in _bounds(item)]
    return " ".join(filter(None, (info.description or "", f"({', '.join(bounds)})" if bounds else "")))


def _bounds(item: object) -> Iterator[str]:
    for name, sign in (("ge", "≥"), ("gt", ">"), ("le", "≤"), ("lt", "<")):
        value = getattr(item, name, None)
        if value is not None:
            yield f"{sign} {value:g}"


def _type(info: FieldInfo) -> str:
    return _type_name(info.annotation).replace("|", "\\|")


def _type_name(annotation: object) -> str:
    if isinstance(annotation, type):
        return "mappings" if issubclass(annotation, BaseModel) else TYPE_NAMES.get(annotation, annotation.__name__)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return ", ".join(f"`{argument}`" for argument in arguments)
    if origin is dict:
        return "mapping"
    names = [_type_name(argument) for argument in arguments if argument is not Ellipsis]
    if origin in (tuple, list):
        return f"list of {names[0]}"
    return names[0] if origin is Annotated else " or ".join(names)


def _default(info: FieldInfo) -> str:
    value = info.get_default(call_default_factory=True, validated_data={})
    if value is PydanticUndefined:
        return "required"
    if isinstance(value, dict):
        return "<br>".join(f"`{key}: {item}`" for key, item in value.items()) or "empty"
    if isinstance(value, (tuple, list)):
        return ", ".join(f"`{item}`" for item in value) or "empty"
    if value is None:
        return "none"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def commands() -> str:
    """Help of every command, as printed."""
    return "\n".join(_command(cli, "astrocyte", None))


def _command(command: click.Command, name: str, parent: click.Context | None) -> Iterator[str]:
    # Independent of the terminal.
    shape = {**command.context_settings, "terminal_width": 100, "max_content_width": 100}
    context = click.Context(command, info_name=name, parent=parent, **shape)
    yield f"\n## {context.command_path}\n\n```text\n{command.get_help(context).rstrip()}\n```"
    if isinstance(command, click.Group):
        for below in command.list_commands(context):
            found = command.get_command(context, below)
            if found is not None:
                yield from _command(found, below, context)


def calls() -> str:
    """Table of all calls with the first sentence of their comments and their permissions."""
    rows = ["| service | call | description | permissions | REST path |", "|---|---|---|---|---|"]
    known = {rpc.name: rpc for rpc in RPCS.values()}
    for file in sorted(PROTOS.glob("*.proto"), key=lambda path: path.name != "memory.proto"):
        text = file.read_text(encoding="utf-8")
        for service in re.finditer(r"^service (\w+) \{\n(.*?)^\}", text, re.DOTALL | re.MULTILINE):
            for call in re.finditer(COMMENT + r"^ *rpc (\w+)(.*?)^  \}", service[2], re.DOTALL | re.MULTILINE):
                verb, path = re.findall(r'(get|post|patch|delete|put): "([^"]+)"', call[3])[0]
                what, needed = _sentence(call[1], call[2]), _permissions(known[call[2]])
                rows.append(f"| {service[1]} | `{call[2]}` | {what} | {needed} | `{verb.upper()} {path}` |")
    return "\n".join(rows) + "\n"


def _permissions(rpc: Rpc) -> str:
    """Permissions of a call, and their scope if it is not the named bank."""
    names = ", ".join(sorted(rpc.permissions))
    return names if rpc.bank or not names else f"{names} in all banks"


def _sentence(comment: str, name: str) -> str:
    """First sentence of a comment, without the leading name."""
    text = _text(comment).removeprefix(f"{name} ")
    first = re.split(r"(?<=[.;])\s", text, maxsplit=1)[0].rstrip(".;")
    return first[0].upper() + first[1:]


def _text(comment: str) -> str:
    return " ".join(line.strip().removeprefix("//").strip() for line in comment.splitlines()).strip()


def reasons() -> str:
    """Table of all error reasons."""
    rows = ["| reason | gRPC code | cause | metadata |", "|---|---|---|---|"]
    text = (PROTOS / "errors.proto").read_text(encoding="utf-8")
    for found in re.finditer(COMMENT + r"^ *ERROR_REASON_(\w+) = [1-9]", text, re.MULTILINE):
        code, _, rest = _text(found[1]).partition(": ")
        what, _, metadata = rest.partition(" Metadata: ")
        rows.append(f"| `{found[2]}` | {code} | {what[0].upper()}{what[1:]} | {metadata.rstrip('.')} |")
    return "\n".join(rows) + "\n"


def reasons_by_call() -> str:
    """Reasons of all calls, and tables of further reasons by service; calls with equal reasons share a row."""
    # In the order of the table above.
    order = re.findall(r"^ *ERROR_REASON_(\w+) = [1-9]", (PROTOS / "errors.proto").read_text("utf-8"), re.MULTILINE)
    common = {kind.reason for kind in COMMON}
    rows = [f"Every call: {_codes(name for name in order if name in common)}.", ""]
    rows += ["| calls | further reasons |", "|---|---|"]
    alike: dict[tuple[str, ...], list[str]] = {}
    for rpc in RPCS.values():
        further = further_reasons(rpc)
        alike.setdefault(tuple(name for name in order if name in further), []).append(rpc.name)
    rows += [f"| {_codes(names)} | {_codes(further) or 'none'} |" for further, names in alike.items()]
    return "\n".join(rows) + "\n"


def _codes(names: Iterable[str]) -> str:
    return " ".join(f"`{name}`" for name in names)


def limits() -> str:
    """Table of call limits; calls with equal limits share a row."""
    alike: dict[tuple[Concurrency, LimitKind | None, str | None], list[str]] = {}
    for rpc in RPCS.values():
        alike.setdefault((rpc.concurrency, rpc.limit_kind, rpc.size), []).append(f"`{rpc.name}`")
    rows = ["| calls | running and waiting | deadline | rate limit | quota | size |", "|---|---|---|---|---|---|"]
    for (concurrency, kind, size), names in alike.items():
        places = PLACES[concurrency]
        deadline = "none" if places.deadline is None else f"{_server(places.deadline)} s"
        rate = _limit(RateLimitSettings, f"{kind}_per_minute")
        quota = _limit(QuotaSettings, f"{kind}_per_day")
        most = "" if size is None else f"`{size}`: {LimitSettings.model_fields[size].default:,}"
        number = f"{_server(places.number)} {'each' if places.queued else 'and none'}"
        rows.append(f"| {' '.join(names)} | {number} | {deadline} | {rate} | {quota} | {most} |")
    return "\n".join(rows) + "\n"


def _server(name: str) -> str:
    """Server setting with its default."""
    return f"`{name}`: {ServerSettings.model_fields[name].default:g}"


def _limit(section: type[BaseModel], name: str) -> str:
    """Setting of a limit, if it exists."""
    return f"`{name}`" if name in section.model_fields else ""


PARTS: dict[str, Callable[[], str]] = {
    "settings": settings,
    "commands": commands,
    "calls": calls,
    "reasons": reasons,
    "reasons_by_call": reasons_by_call,
    "limits": limits,
}


def render(document: str) -> str:
    """Regenerate the reference parts of a document."""
    return MARKERS.sub(lambda found: f"{found[1]}\n{PARTS[found[2]]().strip()}\n\n{found[3]}", document)


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    check = parser.parse_args().check
    stale = []
    for name in DOCUMENTS:
        path = ROOT / name
        before = path.read_text(encoding="utf-8")
        after = render(before)
        if before != after:
            stale.append(name)
            if not check:
                path.write_text(after, encoding="utf-8")
    if stale:
        print(f"{'out of date' if check else 'written'}: {', '.join(stale)}")
    if check and stale:
        sys.exit("run python scripts/reference.py")


if __name__ == "__main__":
    main()
