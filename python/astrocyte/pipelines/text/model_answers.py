"""Reading of the JSON answers of a language model, with bounds."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from astrocyte.errors import ProviderUnavailable
from astrocyte.providers.messages import Completion, FinishReason

# A longer answer is no answer to these prompts.
MOST_ANSWER_CHARS = 100_000
# Models without a response schema put JSON between these lines.
FENCED = re.compile(r"\s*```(?:json)?\s*\n(.*)\n\s*```\s*", re.DOTALL)


class UnusableAnswer(ProviderUnavailable):
    """A language model answered, and the answer is of no use."""


def read_object(completion: Completion) -> dict[str, Any]:
    """The JSON object of an answer.

    Raises:
        UnusableAnswer: The answer is cut off, refused, too long or no JSON object. The message quotes nothing.
    """
    if completion.finish_reason is not FinishReason.STOP:
        raise unusable(f"it ended with {completion.finish_reason}")
    if len(completion.text) > MOST_ANSWER_CHARS:
        raise unusable(f"it is longer than {MOST_ANSWER_CHARS} characters")
    fenced = FENCED.fullmatch(completion.text)
    try:
        said = json.loads(fenced[1] if fenced is not None else completion.text)
    except (ValueError, RecursionError):
        raise unusable("it is not JSON") from None
    if not isinstance(said, dict):
        raise unusable("it is not a JSON object")
    return said


def read_confidence(value: object) -> float | None:
    """A number from 0 to 1; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value) if 0 <= value <= 1 else None


def unusable(problem: str) -> UnusableAnswer:
    """The error of an answer that cannot be used."""
    return UnusableAnswer(f"the language model's answer is unusable: {problem}")
