"""Bank arguments of multi-bank commands: --also, or a bank group."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import click

from astrocyte.model import MultiBankMode, RecallQuery, ReflectQuery
from astrocyte.model.multi_bank import OPEN_STRATEGY

# Prefix of a bank group; no bank id starts with it.
GROUP_MARK = "@"

Body = TypeVar("Body", bound=Callable[..., object])
Q = TypeVar("Q", RecallQuery, ReflectQuery)


def several_banks(body: Body) -> Body:
    """Add the options --also and --strategy."""
    strategy = click.option(
        "--strategy",
        type=click.Choice([mode.value for mode in MultiBankMode]),
        help="Multi-bank strategy: all banks at once, in order until enough hits, or until one bank has hits.",
    )
    return click.option("--also", multiple=True, help="Additional bank; may be repeated.")(strategy(body))


def with_banks(query: Q, also: tuple[str, ...], strategy: str | None) -> Q:
    """Add the banks of the command line to a query."""
    how = replace(OPEN_STRATEGY, mode=strategy) if strategy else None
    if query.bank_id.startswith(GROUP_MARK):
        return replace(query, bank_id="", bank_group=query.bank_id[1:], banks=also, strategy=how)
    if also:
        return replace(query, bank_id="", banks=(query.bank_id, *also), strategy=how)
    return replace(query, strategy=how)
