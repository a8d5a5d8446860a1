"""How a command line names several banks: by --also, or as a configured group."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import click

from astrocyte.model import MultiBankMode, MultiBankStrategy, RecallQuery, ReflectQuery

# What no bank id begins with: a configured group of banks.
GROUP_MARK = "@"

Body = TypeVar("Body", bound=Callable[..., object])
Q = TypeVar("Q", RecallQuery, ReflectQuery)


def several_banks(body: Body) -> Body:
    """The options --also and --strategy."""
    strategy = click.option(
        "--strategy",
        type=click.Choice([mode.value for mode in MultiBankMode]),
        help="How several banks are asked: all at once, in turn until there is enough, or until one has anything.",
    )
    return click.option("--also", multiple=True, help="Search this bank too; may be repeated.")(strategy(body))


def with_banks(query: Q, also: tuple[str, ...], strategy: str | None) -> Q:
    """The query with all banks that the command line names."""
    how = MultiBankStrategy(strategy) if strategy else None
    if query.bank_id.startswith(GROUP_MARK):
        return replace(query, bank_id="", bank_group=query.bank_id[1:], banks=also, strategy=how)
    if also:
        return replace(query, bank_id="", banks=(query.bank_id, *also), strategy=how)
    return replace(query, strategy=how)
