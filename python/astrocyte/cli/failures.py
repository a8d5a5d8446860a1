"""Exit codes and one-line error messages of commands."""

from __future__ import annotations

from enum import IntEnum

from astrocyte import errors


class ExitCode(IntEnum):
    """Exit code of the process."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    REFUSED = 4
    CONFLICT = 5
    TRY_AGAIN = 6
    PARTIAL = 7

    @property
    def meaning(self) -> str:
        """Description in ``--help``."""
        return _MEANINGS[self]


_MEANINGS = {
    ExitCode.DONE: "success",
    ExitCode.FAILED: "internal failure",
    ExitCode.USAGE: "invalid option, value or setting",
    ExitCode.NOT_FOUND: "not found",
    ExitCode.REFUSED: "not authenticated, not permitted, or rejected by a policy",
    ExitCode.CONFLICT: "conflict with the current state",
    ExitCode.TRY_AGAIN: "overloaded or unavailable; retry",
    ExitCode.PARTIAL: "import, kb index: some lines or files were not stored",
}

# The first matching class wins; `astrocyte.errors` has the tree.
_CODES: tuple[tuple[type[errors.AstrocyteError], ExitCode], ...] = (
    (errors.ConfigError, ExitCode.USAGE),
    (errors.ValidationError, ExitCode.USAGE),
    (errors.CapabilityNotSupported, ExitCode.USAGE),
    (errors.MessageTooLarge, ExitCode.USAGE),
    (errors.PiiRejected, ExitCode.REFUSED),
    (errors.NotFound, ExitCode.NOT_FOUND),
    (errors.AuthorizationError, ExitCode.REFUSED),
    (errors.AccessDenied, ExitCode.REFUSED),
    (errors.AlreadyExists, ExitCode.CONFLICT),
    (errors.Conflict, ExitCode.CONFLICT),
    (errors.FailedPrecondition, ExitCode.CONFLICT),
    (errors.StoreLocked, ExitCode.CONFLICT),
    (errors.RateLimited, ExitCode.TRY_AGAIN),
    (errors.ProviderUnavailable, ExitCode.TRY_AGAIN),
    (errors.DeadlineExceeded, ExitCode.TRY_AGAIN),
    (errors.Unavailable, ExitCode.TRY_AGAIN),
)


def exit_code(error: Exception) -> ExitCode:
    """Exit code of an error."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), ExitCode.FAILED)


def explain(error: Exception) -> str:
    """Format an error as one line, with a hint for the command line."""
    message = " ".join(str(error).split())
    if not isinstance(error, errors.AstrocyteError):
        return f"{type(error).__name__}: {message}; this is a bug, use --debug for a traceback"
    if isinstance(error, errors.StoreLocked):
        return f"{message}; to use a running server, pass --server"
    if isinstance(error, errors.Unavailable):
        return f"{message}; start a server with `astrocyte serve`, or check --server, --ca, --cert and --key"
    if isinstance(error, errors.AuthorizationError):
        return f"{message}; set the environment variable ASTROCYTE_TOKEN to an API key, or pass --cert and --key"
    return message
