"""Servers, memory, database load and p99 of a fleet on one PostgreSQL, simulated from measured costs.

    python -m benches.fleet                                    with the stored costs
    python -m benches.fleet --dsn postgresql://... --measure   measures them first, and a mixed run beside them
    python -m benches.fleet --costs FILE --set recall_ms=0.8   with costs of a JSON file, some of them changed

A million banks are called by Zipf's law, and the banks of hot tenants in addition. Consistent hashing sends each bank
to a server, a process with one interpreter; a bank that would fill a server is divided over several. The number of
servers is the smallest that keeps the busiest below `--target` of its processor, and below `--after-loss` once the
server with the most calls is gone. Calls come at random times and wait in turn.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Callable
from dataclasses import asdict, fields, replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benches.fleet.costs import Measured, measured
from benches.fleet.model import Costs, Fleet, Plan, Traffic
from benches.machine import describe

STORED = Path(__file__).with_name("costs.json")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benches.fleet", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--measure", action="store_true", help="measure the costs here; needs --dsn")
    parser.add_argument("--dsn", help="PostgreSQL database of this machine; schemas are made and dropped")
    parser.add_argument("--measured-banks", type=int, default=200, help="banks of the measurement (default 200)")
    parser.add_argument("--measured-memories", type=int, default=100, help="memories of each (default 100)")
    parser.add_argument("--costs", type=Path, default=STORED, help="JSON file with costs (default: the stored ones)")
    parser.add_argument("--save", type=Path, help="write the costs of --measure to a file")
    parser.add_argument("--set", action="append", default=[], metavar="COST=VALUE", help="change a cost")
    parser.add_argument("--recalls", type=float, nargs="+", default=[1_000, 10_000, 100_000], help="in a second")
    parser.add_argument("--retain-share", type=float, default=0.1, help="retains for each recall (default 0.1)")
    parser.add_argument("--banks", type=int, default=1_000_000)
    parser.add_argument("--exponent", type=float, default=1.0, help="of Zipf's law (default 1)")
    parser.add_argument("--hot-banks", type=int, default=20, help="banks of hot tenants (default 20)")
    parser.add_argument("--hot-share", type=float, default=0.1, help="their share of the calls (default 0.1)")
    parser.add_argument("--keep-seconds", type=float, default=3_600, help="an index is kept unused (default 3600)")
    parser.add_argument("--target", type=float, default=0.6, help="of a server's processor (default 0.6)")
    parser.add_argument("--after-loss", type=float, default=0.8, help="the same, one server lost (default 0.8)")
    parser.add_argument("--seed", type=int, default=31)
    asked = parser.parse_args()
    if asked.measure and not asked.dsn:
        parser.error("--measure needs --dsn")
    if not (0 < asked.target < 1 and 0 < asked.after_loss < 1):
        parser.error("--target and --after-loss are between 0 and 1")
    return asked


def costs_of(text: str, changes: list[str]) -> Costs:
    """Costs of a JSON object, with changes such as ``recall_ms=0.8``.

    Raises:
        SystemExit: There is no such cost, one is missing, or one is no number.
    """
    known = {field.name for field in fields(Costs)}
    values = dict(json.loads(text))
    values.update(change.partition("=")[::2] for change in changes)
    if unknown := sorted(values.keys() - known):
        raise SystemExit(f"no cost is named {', '.join(unknown)}; there are {', '.join(sorted(known))}")
    if missing := sorted(known - values.keys()):
        raise SystemExit(f"the costs {', '.join(missing)} are missing; give all, or change some of the stored ones")
    try:
        return Costs(**{name: float(value) for name, value in values.items()})
    except ValueError as error:
        raise SystemExit(f"a cost is no number: {error}") from error


def _told(found: Measured, console: Console) -> None:
    ratio = found.predicted / found.measured
    console.print(
        f"one server  predicted {found.predicted:.0f} calls per second of its processor, measured"
        f" {found.measured:.0f} (predicted / measured {ratio:.2f}); {found.per_second:.0f} per second of the clock"
    )


def _table(plans: dict[float, Plan]) -> Table:
    table = Table("recalls/s", *(f"{recalls:,.0f}" for recalls in plans))
    rows: dict[str, Callable[[Plan], str]] = {
        "servers": lambda plan: f"{plan.servers:,}",
        "busiest, with one lost": lambda plan: f"{plan.busiest:.2f}, {plan.busiest_after_loss:.2f}",
        "p50, p99 at the busiest, ms": lambda plan: f"{plan.p50_ms:.1f}, {plan.p99_ms:.1f}",
        "p99 with one lost, ms": lambda plan: f"{plan.p99_after_loss_ms:.1f}",
        "calls moved by the loss": lambda plan: f"{plan.moved:.1%}",
        "memory, all and fullest, GB": lambda plan: f"{plan.gigabytes:,.0f}, {plan.fullest_gigabytes:.1f}",
        "recalls of cold banks/s": lambda plan: f"{plan.cold:,.0f}",
        "statements/s": lambda plan: f"{plan.statements:,.0f}",
        "processors of the database": lambda plan: f"{plan.database_processors:,.1f}",
        "retains/s": lambda plan: f"{plan.retains:,.0f}",
    }
    for name, text in rows.items():
        table.add_row(name, *(text(plan) for plan in plans.values()))
    return table


def main() -> None:
    """Measure if asked, simulate, print."""
    asked = _options()
    console = Console(width=120)
    console.print(describe("numpy", "psycopg", banks=asked.banks, exponent=asked.exponent, seed=asked.seed))
    if asked.measure:
        found = asyncio.run(
            measured(asked.dsn, banks=asked.measured_banks, memories=asked.measured_memories, seed=asked.seed)
        )
        _told(found, console)
        text = json.dumps({name: round(value, 4) for name, value in asdict(found.costs).items()}, indent=1)
        if asked.save:
            asked.save.write_text(f"{text}\n", encoding="utf-8")
    else:
        text = asked.costs.read_text(encoding="utf-8")
    costs = costs_of(text, asked.set)
    console.print("costs     ", ", ".join(f"{name} {value:g}" for name, value in asdict(costs).items()))
    traffic = Traffic(
        1.0, asked.retain_share, asked.banks, asked.exponent, asked.hot_banks, asked.hot_share, asked.keep_seconds
    )
    plans = {
        recalls: Fleet(costs, replace(traffic, recalls=recalls), asked.seed).plan(asked.target, asked.after_loss)
        for recalls in asked.recalls
    }
    console.print(_table(plans))


if __name__ == "__main__":
    main()
