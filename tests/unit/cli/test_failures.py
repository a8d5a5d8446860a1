import inspect

import pytest

from astrocyte import errors
from astrocyte.cli.failures import ExitCode, exit_code, explain

LEAVES = [
    kind
    for _, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, errors.AstrocyteError) and not kind.__subclasses__()
]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.ConfigError("no such key"), ExitCode.USAGE),
        (errors.ValidationError("too long", field="query"), ExitCode.USAGE),
        (errors.BankNotFound("family"), ExitCode.NOT_FOUND),
        (errors.MemoryNotFound("mem_1", "family"), ExitCode.NOT_FOUND),
        (errors.AuthorizationError("no key"), ExitCode.REFUSED),
        (errors.AccessDenied("ines", "family", "read"), ExitCode.REFUSED),
        (errors.AlreadyExists("bank"), ExitCode.CONFLICT),
        (errors.RequestIdReused("id"), ExitCode.CONFLICT),
        (errors.StoreLocked("locked"), ExitCode.CONFLICT),
        (errors.RateLimited("busy", retry_after=1.0), ExitCode.TRY_AGAIN),
        (errors.ProviderUnavailable("down"), ExitCode.TRY_AGAIN),
        (errors.DiskFull("full"), ExitCode.FAILED),
    ],
)
def test_codes(error: errors.AstrocyteError, code: ExitCode) -> None:
    assert exit_code(error) is code


def test_no_error_ends_as_success() -> None:
    assert len(LEAVES) > 10
    codes = {kind: exit_code(kind.__new__(kind)) for kind in LEAVES}
    assert [kind for kind, code in codes.items() if code is ExitCode.DONE] == []


def test_one_line_with_what_to_do() -> None:
    assert explain(errors.StoreLocked("a\nb")) == "a b; to use a running server, pass --server"
    assert "ASTROCYTE_TOKEN" in explain(errors.AuthorizationError("no credential came"))


def test_a_fault_of_ours_is_one_line_too() -> None:
    assert exit_code(KeyError("x")) is ExitCode.FAILED
    assert explain(TypeError("a\nb")) == "TypeError: a b; this is a bug, use --debug for a traceback"


def test_every_code_has_a_meaning() -> None:
    assert all(code.meaning for code in ExitCode)
