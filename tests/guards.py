"""Switch off each guard of an invariant in turn, and require that its test fails.

python tests/guards.py --list
python tests/guards.py                      all of them
python tests/guards.py hidden-rows pages    those named

Each run works on a folder of links to the package, in which one file is a copy without its guard. A guard whose text is
no longer in its file is an error, so that this list follows the code.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from guard_lists import Guard, doors_and_policy, pipelines, stores

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "python"
# A test run that does not end is a failure of its own kind.
TIMEOUT_SECONDS = 300
# The import of all plugins takes longer than most tests.
PLUGINS = ("-p", "no:cacheprovider", "-p", "pytest_asyncio.plugin", "-p", "pytest_timeout")
# pytest: tests ran, and some failed; and how its summary begins then. A thread may print more after it.
TESTS_FAILED = 1
SUMMARY_OF_FAILED = re.compile(r"^\d+ failed\b", re.MULTILINE)


GUARDS: Sequence[Guard] = (*doors_and_policy.GUARDS, *pipelines.GUARDS, *stores.GUARDS)


def chosen(names: Sequence[str]) -> list[Guard]:
    """The guards of these names, or all.

    Raises:
        SystemExit: There is no such guard.
    """
    known = {guard.name: guard for guard in GUARDS}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise SystemExit(f"no guard is named {', '.join(unknown)}; there are {', '.join(known)}")
    return [known[name] for name in names] if names else list(GUARDS)


def switched_off(guard: Guard, folder: Path) -> None:
    """Make ``folder`` the package without this guard.

    Raises:
        LookupError: Its text does not stand in the file exactly once.
    """
    text = (PACKAGE / "astrocyte" / guard.file).read_text(encoding="utf-8")
    if text.count(guard.on) != 1:
        raise LookupError(f"{guard.name}: its text stands {text.count(guard.on)} times in {guard.file}, not once")
    linked(PACKAGE, folder, ("astrocyte", *Path(guard.file).parts))
    (folder / "astrocyte" / guard.file).write_text(text.replace(guard.on, guard.off), encoding="utf-8")


def linked(source: Path, folder: Path, left_out: Sequence[str]) -> None:
    """Make a folder of links to what is in ``source``, without one file, whose parts are ``left_out``."""
    folder.mkdir()
    name, *rest = left_out
    for entry in source.iterdir():
        if entry.name == "__pycache__" and not rest:
            # Also for what is compiled now: it must not be written beside the sources.
            (folder / entry.name).mkdir()
            for compiled in entry.iterdir():
                if not compiled.name.startswith(f"{Path(name).stem}."):
                    (folder / entry.name / compiled.name).symlink_to(compiled)
        elif entry.name != name:
            (folder / entry.name).symlink_to(entry)
    if rest:
        linked(source / name, folder / name, rest)


def run(package: Path, tests: Sequence[str]) -> tuple[int, str]:
    """The exit code of pytest with the package at ``package``, and what it says."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "--no-header", "--tb=no", *PLUGINS, *tests]
    environment = {**os.environ, "PYTHONPATH": str(package), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, timeout=TIMEOUT_SECONDS, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout.rstrip()


def holds(guard: Guard) -> str | None:
    """None where the tests of a guard fail without it; else what is wrong."""
    # A process that a failed test left behind may still write into it.
    with tempfile.TemporaryDirectory(prefix="astrocyte-guard-", ignore_cleanup_errors=True) as folder:
        package = Path(folder) / "python"
        try:
            switched_off(guard, package)
        except LookupError as error:
            return str(error)
        code, told = run(package, guard.tests)
    # A test that could not run at all has an error, and proves nothing.
    if code == TESTS_FAILED and SUMMARY_OF_FAILED.search(told):
        return None
    last = told.rpartition("\n")[2]
    return f"{guard.name}: a test must fail without it; pytest ended with {code} and told: {last}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Check the guards; the number of those that do not hold."""
    parser = argparse.ArgumentParser(
        prog="python tests/guards.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="guards to check; all by default")
    parser.add_argument("--list", action="store_true", help="print the guards and their tests")
    options = parser.parse_args(arguments)
    guards = chosen(options.names)
    if options.list:
        columns = zip(*((one.name, one.file) for one in guards), strict=True)
        names, files = (2 + max(map(len, texts)) for texts in columns)
        for guard in guards:
            sys.stdout.write(f"{guard.name:<{names}}{guard.file:<{files}}{' '.join(guard.tests)}\n")
        return 0
    wrong = 0
    for guard in guards:
        problem = holds(guard)
        wrong += problem is not None
        sys.stdout.write(f"{'ok' if problem is None else 'WRONG':<6}{guard.name if problem is None else problem}\n")
        sys.stdout.flush()
    return wrong


if __name__ == "__main__":
    sys.exit(main())
