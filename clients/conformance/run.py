"""Take the same steps with every client, each against a server of its own, and compare the outcomes.

    python -m conformance.run                  all clients
    python -m conformance.run python go        only these; Python's outcomes are what others are compared with
    python -m conformance.run --print          print the outcomes of Python as well

Run in `clients/` by `make clients`. Ends with 1 if a client differs, or if an outcome is not the expected one.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conformance.calls import Normaliser, call
from conformance.drivers import DRIVERS, Driver, build
from conformance.steps import API_KEY, SETTINGS, STEPS
from conformance.steps.step import Step
from conformance.wire import recording
from conformance.wire_checks import CHECKS
from harness.certificates import certificates
from harness.processes import running_server

Outcomes = list[dict[str, Any]]


def take_steps(name: str, folder: Path) -> tuple[Outcomes, list[str]]:
    """The outcomes of all steps by one client, and what is not as expected."""
    saved: dict[str, str] = {}
    normaliser, outcomes, faults = Normaliser(), [], []
    config = settings_file(folder, SETTINGS)
    with running_server(folder, "--config", config) as address, Driver(name) as driver:
        connection = {"address": address, "api_key": API_KEY}
        for number, step in enumerate(STEPS, 1):
            requests = [filled(request, saved) for request in step.requests]
            outcome = call(driver, connection, step.method, *requests, **step.options)
            faults += [f"step {number}, {step.method}: {fault}" for fault in unexpected(step, outcome, saved)]
            for key, path in step.save.items():
                saved[key] = str(at(outcome, f"responses.0.{path}"))
            outcomes.append({"step": number, "method": step.method, **normaliser.value(outcome)})
    return outcomes, faults


def settings_file(folder: Path, settings: Mapping[str, Any]) -> str:
    """Path of a new file with these settings."""
    file = folder / "astrocyte.yaml"
    file.write_text(json.dumps(settings), encoding="utf-8")
    return str(file)


def filled(value: Any, saved: Mapping[str, str]) -> Any:
    """A value with saved texts in place of their names."""
    if isinstance(value, Mapping):
        return {key: filled(item, saved) for key, item in value.items()}
    if isinstance(value, list):
        return [filled(item, saved) for item in value]
    return value.format_map(saved) if isinstance(value, str) else value


def at(value: Any, path: str) -> Any:
    """The value at a path of keys and indexes; None where there is none."""
    for key in path.split("."):
        if isinstance(value, list):
            value = value[int(key)] if int(key) < len(value) else None
        else:
            value = value.get(key) if isinstance(value, Mapping) else None
    return value


def unexpected(step: Step, outcome: Mapping[str, Any], saved: Mapping[str, str]) -> list[str]:
    """The differences from the expectations of the step."""
    return [
        f"{path} is {at(outcome, path)!r}, expected {wanted!r}; got {json.dumps(outcome)[:600]}"
        for path, expected in step.expect.items()
        for wanted in [filled(expected, saved)]
        if at(outcome, path) != wanted
    ]


def take_wire_checks(name: str) -> list[str]:
    """The faults of a client against a recording server."""
    faults = []
    with Driver(name) as driver:
        for check in CHECKS:
            with recording() as (address, recorder):
                try:
                    check(driver, {"address": address}, recorder)
                except (AssertionError, KeyError) as error:
                    faults.append(f"{check.__name__}: {error!r}")
    return faults


def take_tls_checks(name: str, folder: Path) -> list[str]:
    """The faults of a client with a server that demands a certificate."""
    files = {key: str(path) for key, path in certificates(folder / "certificates").items()}
    other = {key: str(path) for key, path in certificates(folder / "other").items()}
    server = {
        "tls_cert_file": files["server.pem"],
        "tls_key_file": files["server.key"],
        "tls_client_ca_file": files["ca.pem"],
    }
    config = settings_file(folder, {"server": server})
    faults = []
    with running_server(folder, "--config", config) as address, Driver(name) as driver:
        # A name, because Node sends none where the address is a number.
        trusted = {"address": address.replace("127.0.0.1", "localhost"), "ca": files["ca.pem"], "retries": False}
        known = {**trusted, "certificate": files["client.pem"], "key": files["client.key"]}
        answer = call(driver, known, "CheckAccess", {"bankId": "b"})
        if at(answer, "responses.0") is None and at(answer, "error.reason") != "BANK_NOT_FOUND":
            faults.append(f"a certificate is refused: {answer}")
        if at(call(driver, {**known, "api_key": "wrong"}, "ListBanks", {}), "error.kind") != "Unauthenticated":
            faults.append("a wrong key is not refused")
        for case, connection in (("no certificate", trusted), ("other roots", {**known, "ca": other["ca.pem"]})):
            refused = call(driver, connection, "ListBanks", {}, deadline=5.0)
            if at(refused, "error.kind") != "Unavailable":
                faults.append(f"{case}: {refused}")
    return faults


def differences(expected: Outcomes, found: Outcomes) -> list[str]:
    """The differences of the outcomes, by step."""
    return [
        f"step {one['step']}, {one['method']}: {difference}"
        for one, other in zip(expected, found, strict=True)
        for difference in _differences(one, other, "")
    ]


def _differences(one: Any, other: Any, path: str) -> list[str]:
    if isinstance(one, dict) and isinstance(other, dict):
        keys = sorted(one.keys() | other.keys())
        return [found for key in keys for found in _differences(one.get(key), other.get(key), f"{path}.{key}")]
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = enumerate(zip(one, other, strict=True))
        return [found for index, pair in pairs for found in _differences(*pair, f"{path}.{index}")]
    return [] if one == other else [f"{path.removeprefix('.')} is {other!r}, with Python {one!r}"]


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("driver", nargs="*", help=f"one of {', '.join(DRIVERS)}; default: all")
    parser.add_argument("--print", action="store_true", help="print the outcomes of Python")
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.driver) - set(DRIVERS))
    if unknown:
        parser.error(f"unknown client {', '.join(unknown)}; expected {', '.join(DRIVERS)}")
    chosen = ["python", *(name for name in DRIVERS if name != "python" and name in (arguments.driver or DRIVERS))]
    expected: Outcomes = []
    failed = 0
    for name in chosen:
        build(name)
        with tempfile.TemporaryDirectory() as folder:
            outcomes, faults = take_steps(name, Path(folder))
        expected = expected or outcomes
        faults += differences(expected, outcomes)
        faults += take_wire_checks(name)
        with tempfile.TemporaryDirectory() as folder:
            faults += take_tls_checks(name, Path(folder))
        if name == "python" and arguments.print:
            print(json.dumps(outcomes, indent=1))
        print(
            f"{name}: {len(outcomes)} steps, {len(CHECKS)} checks of the wire, TLS: {'FAILED' if faults else 'passed'}"
        )
        for fault in faults:
            print(f"    {fault}")
        failed += bool(faults)
    print(f"{len(chosen) - failed} passed, {failed} failed", flush=True)
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
