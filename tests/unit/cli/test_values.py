from datetime import UTC, datetime

import click
import pytest
from click.testing import CliRunner

from astrocyte.cli.values import MOMENT, PAIR, parse_moment


@click.command()
@click.option("--at", type=MOMENT)
@click.option("--meta", type=PAIR, multiple=True)
def command(at: datetime | None, meta: tuple[tuple[str, object], ...]) -> None:
    click.echo(repr((at, meta)))


def test_moments_have_a_zone() -> None:
    assert parse_moment("2025-06-01T09:30:00Z") == datetime(2025, 6, 1, 9, 30, tzinfo=UTC)
    result = CliRunner().invoke(command, ["--at", "2025-06-01"])
    assert result.exit_code == 2
    assert "'2025-06-01' has no time zone; write it like 2025-06-01T09:30:00Z" in result.stderr


@pytest.mark.parametrize(
    ("text", "pair"),
    [
        ("flight=2", ("flight", 2)),
        ("price=2.5", ("price", 2.5)),
        ("paid=true", ("paid", True)),
        ("seat=null", ("seat", None)),
        ("zip=01234", ("zip", "01234")),
        ("name=Ana=B", ("name", "Ana=B")),
        ("list=[1]", ("list", "[1]")),
        ("empty=", ("empty", "")),
    ],
)
def test_pairs_are_typed_as_json_types_them(text: str, pair: tuple[str, object]) -> None:
    result = CliRunner().invoke(command, ["--meta", text])
    assert result.output.strip() == repr((None, (pair,)))


@pytest.mark.parametrize("text", ["flight", "=2"])
def test_a_pair_has_a_key(text: str) -> None:
    result = CliRunner().invoke(command, ["--meta", text])
    assert result.exit_code == 2
    assert "expected key=value, got" in result.stderr
