"""Commands of the command line in this process, and what they print."""

import json
from collections.abc import Callable, Sequence
from typing import Any

from click.testing import CliRunner, Result

from astrocyte.cli import cli

Command = Callable[..., Result]


def command(place: Sequence[str]) -> Command:
    """A command on a directory or server, which ``place`` names."""
    return lambda *arguments, **options: CliRunner().invoke(cli, [*place, *map(str, arguments)], **options)


def said(result: Result) -> str:
    """The output of a command that succeeded."""
    assert result.exit_code == 0, result.stderr
    return result.stdout


def answer(result: Result) -> Any:
    """The JSON that a command printed."""
    return json.loads(said(result))
