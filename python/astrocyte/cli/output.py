"""Output as tables or JSON."""

from __future__ import annotations

import base64
import dataclasses
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from enum import Enum

import click
from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from astrocyte.model import Directive, MemoryHit, MemoryPath, PrefixExpansion

# "mem_" and 32 digits: a wrapped id cannot be copied.
ID_WIDTH = 36
# Results go to stdout; progress and failures go to stderr, so that a pipe receives results only.
OUT = Console(highlight=False, soft_wrap=False)
ERR = Console(stderr=True, highlight=False)


def plain(value: object) -> object:
    """Convert a domain value to JSON types: objects, ISO 8601 times, base64 bytes."""
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        value = value._asdict()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
        return [plain(item) for item in value]
    return _scalar(value)


def _scalar(value: object) -> object:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    return value


def print_json(value: object) -> None:
    """Print a domain value to stdout as a JSON document."""
    click.echo(json.dumps(plain(value), ensure_ascii=False, indent=2))


def stamp(moment: datetime | None) -> str:
    """Format a time to the minute, or to the day at midnight; empty for None."""
    if moment is None:
        return ""
    return moment.strftime("%Y-%m-%d" if (moment.hour, moment.minute) == (0, 0) else "%Y-%m-%d %H:%M")


def megabytes(size: int) -> str:
    """Format a number of bytes as MB."""
    return f"{size / 1e6:.1f} MB"


def facts(rows: Iterable[tuple[str, object]]) -> Table:
    """Two-column table of names and values."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(name, Text(str(value)))
    return table


def grid(columns: Sequence[str], *, right: Sequence[str] = ()) -> Table:
    """Empty table; ``right`` names the numeric columns."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in columns:
        table.add_column(name, justify="right" if name in right else "left", overflow="fold")
    return table


def print_directives(directives: Iterable[Directive]) -> None:
    """Print the rules for readers of an answer, one a line, in their order."""
    for one in directives:
        # A line of its own is how a reader tells a rule from what follows it.
        OUT.print(Text(f"Directive of {one.bank_id}: {' '.join(one.rule_text.split())}", style="bold"), soft_wrap=True)


def hits_table(hits: Sequence[MemoryHit]) -> Table:
    """Table of ranked hits with their rank in each arm and their boosts."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("#", justify="right")
    table.add_column("score", justify="right")
    table.add_column("when", style="cyan", no_wrap=True)
    table.add_column("memory", ratio=1, overflow="fold", min_width=ID_WIDTH)
    table.add_column("arms", style="dim", no_wrap=True)
    for rank, hit in enumerate(hits, start=1):
        # Two lines, which leave the width to the text.
        when = stamp(hit.occurred_at or hit.retained_at).replace(" ", "\n")
        arms = "\n".join(
            [*(f"{arm.arm} {arm.rank}" for arm in hit.arms), *(f"{name} {value:+.2f}" for name, value in hit.boosts)]
        )
        table.add_row(f"{rank}", f"{hit.score:.3f}", when, _body(hit), arms)
    return table


def path_text(path: MemoryPath) -> str:
    """A path through the entity graph on one line; one that goes on through a memory ends with the link from that."""
    nodes = [*path.entity_ids, *([path.through_memory_id, ""] if path.through_memory_id else ())]
    # Between the last entity and a memory there is no link but the mention.
    links = [*path.link_types]
    if path.through_memory_id:
        links.insert(len(path.entity_ids) - 1, "mentioned in")
    steps = zip(("", *(f" -{kind}- " for kind in links)), nodes, strict=True)
    return "".join(link + node for link, node in steps).rstrip()


def prefix_text(expansion: PrefixExpansion) -> str:
    """The words of a prefix on one line."""
    words = ", ".join(expansion.words) or "no words"
    if len(expansion.words) < expansion.total:
        words = f"{words} ({len(expansion.words)} of {expansion.total})"
    return f"{expansion.bank_id}: {expansion.prefix}*: {words}"


def _body(hit: MemoryHit) -> Text:
    """Speaker, text and id of a hit, as plain text: content is never read as markup."""
    text = Text()
    if hit.speaker:
        text.append(f"{hit.speaker}: ", style="bold")
    text.append(hit.text)
    text.append(f"\n{hit.memory_id}", style="dim")
    if hit.bank_rank:
        text.append(f"  in {', '.join([hit.bank_id or '', *hit.also_in])}", style="dim")
    if hit.engine:
        text.append(f"  from {hit.engine}", style="dim")
    if hit.tags:
        text.append(f"  {', '.join(hit.tags)}", style="green")
    return text


def progress_bar() -> Progress:
    """Progress of long work on a terminal; silent elsewhere."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=ERR,
        transient=True,
        disable=not ERR.is_terminal,
    )


def milliseconds(timings: Mapping[str, float] | None) -> str:
    """Format timings on one line."""
    return ", ".join(f"{name} {value:.2f}" for name, value in (timings or {}).items() if math.isfinite(value))
