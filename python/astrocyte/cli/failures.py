"""How a command ends when it cannot do what it was asked: one line on stderr, and a code that a script can test."""

from __future__ import annotations

from enum import IntEnum

from astrocyte import errors


class ExitCode(IntEnum):
    """What the process returns."""

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
        """The line of the table in ``--help``."""
        return _MEANINGS[self]


_MEANINGS = {
    ExitCode.DONE: "done",
    ExitCode.FAILED: "failed here, or in the server",
    ExitCode.USAGE: "wrong usage: an option, a value or a setting",
    ExitCode.NOT_FOUND: "no such bank or memory",
    ExitCode.REFUSED: "no valid credential, or not enough rights",
    ExitCode.CONFLICT: "the state forbids it, or somebody was faster",
    ExitCode.TRY_AGAIN: "overloaded or out of reach; try again",
    ExitCode.PARTIAL: "import: some lines were not stored",
}

# The first class that fits; the tree is in `astrocyte.errors`.
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
    """The code that stands for an error."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), ExitCode.FAILED)


def explain(error: Exception) -> str:
    """The error in one line, with what to do where the message cannot know that it is read at a prompt."""
    message = " ".join(str(error).split())
    if not isinstance(error, errors.AstrocyteError):
        return f"{type(error).__name__}: {message}; this is a fault of the program, --debug shows where"
    if isinstance(error, errors.StoreLocked):
        return f"{message}; if that is a server of yours, reach it with --server"
    if isinstance(error, errors.Unavailable):
        return f"{message}; is a server there? `astrocyte serve` starts one"
    if isinstance(error, errors.AuthorizationError):
        return f"{message}; put the key into the environment variable ASTROCYTE_TOKEN"
    return message
