"""Personal data and secrets in texts: found by the core's scanner, and then redacted, refused or told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from astrocyte.config.barriers import PiiSettings
from astrocyte.core import PiiScanner, pii_kinds
from astrocyte.errors import ConfigError, ValidationError
from astrocyte.policy.privacy.pii_detectors import Detector, Span

Action = Literal["redact", "reject", "warn", "ignore"]
# An error about a key below the block and a problem with it, with the line where it stands.
Refusal = Callable[[tuple[str, ...], str], ConfigError]
REDACTED: tuple[Action, ...] = ("redact",)
# What was done, in words for the caller.
WORDS: Mapping[Action, str] = {"redact": "redacted", "reject": "refused", "warn": "found"}


@dataclass(frozen=True, slots=True)
class Verdict:
    """The policy's verdict on some texts. ``texts`` are those to go on with; ``counts`` has types by action."""

    texts: tuple[str, ...]
    changed: frozenset[int] = frozenset()
    counts: Mapping[Action, Mapping[str, int]] = field(default_factory=dict)

    def warnings(self) -> tuple[str, ...]:
        """Sentences for the caller: types and counts, never what was found."""
        return tuple(f"pii: {WORDS[action]} {listed(counts)}" for action, counts in self.counts.items())


class PiiPolicy:
    """One block ``pii`` of the settings, ready to use by any thread.

    Args:
        settings: The block.
        refusal: Makes the error about a pattern.
        detector: What finds more than patterns do, if anything.

    Raises:
        ConfigError: A pattern cannot be run in linear time.
    """

    def __init__(self, settings: PiiSettings, refusal: Refusal, detector: Detector | None = None) -> None:
        kinds = pii_kinds()
        own = settings.patterns
        self.settings = settings
        self._detector = detector
        # Whether a detector looks as well.
        self.asks = detector is not None
        self._types = [name for name, _ in kinds] + [pattern.name for pattern in own]
        chosen = {name: one.action or settings.action for name, one in settings.type_overrides.items()}
        self._actions: dict[str, Action] = {
            **dict.fromkeys(self._types, settings.action),
            **chosen,
        }
        wanted = [
            name
            for name, country in kinds
            if (not country or country in settings.countries) and self._actions[name] != "ignore"
            # The model reads texts as they are; own patterns still hold.
            if settings.mode != "llm"
        ]
        _check_patterns(settings, refusal)
        self.scanner = PiiScanner(wanted, [pattern.pattern for pattern in own], min_confidence=settings.min_confidence)
        given = {pattern.name: pattern.replacement for pattern in own}
        given |= {name: one.replacement for name, one in settings.type_overrides.items() if one.replacement is not None}
        self._replacements = {name: text for name, text in given.items() if text is not None}

    def find(self, texts: Sequence[str]) -> list[Span]:
        """Everything that the patterns find, in the order of the texts and of the places in them."""
        types = self._types
        return [Span(text, start, end, types[kind]) for text, kind, start, end, _ in self.scanner.find(texts)]

    async def examine(self, texts: Sequence[str]) -> list[Span]:
        """`find`, and then what the detector finds; what overlaps goes to the longer one.

        Raises:
            ProviderUnavailable: The detector could not look.
        """
        spans = self.find(texts)
        if self._detector is None or not texts:
            return spans
        seen = list(texts)
        if self.settings.mode == "rules_then_llm":
            # What is known need not be told to a model.
            for span in reversed(spans):
                seen[span.text] = blanked(seen[span.text], span)
        return distinct([*spans, *await self._detector.find(seen)])

    def judge(self, texts: Sequence[str], spans: Sequence[Span]) -> Verdict:
        """The verdict on findings: texts with placeholders, and the counts to tell or refuse with."""
        counts: dict[Action, Counter[str]] = {}
        judged = list(texts)
        changed = set()
        # From the end, so that places before stay right.
        for span in reversed(spans):
            action = self._actions.get(span.type, self.settings.action)
            if action == "ignore":
                continue
            counts.setdefault(action, Counter())[span.type] += 1
            if action == "redact":
                text = judged[span.text]
                judged[span.text] = text[: span.start] + self.placeholder(span.type) + text[span.end :]
                changed.add(span.text)
        return Verdict(tuple(judged), frozenset(changed), counts)

    def redactions(self, spans: Sequence[Span], actions: Collection[Action] = REDACTED) -> list[tuple[Span, str]]:
        """Those of the findings with these actions, each with what stands in its place."""
        return [
            (span, self.placeholder(span.type))
            for span in spans
            if self._actions.get(span.type, self.settings.action) in actions
        ]

    def withheld(self, texts: Sequence[str]) -> list[str]:
        """The texts without what is to be redacted, or would be refused: for readers that nobody can make forget it."""
        found = self.redactions(self.find(texts), ("redact", "reject"))
        own: dict[int, list[tuple[Span, str]]] = {}
        for one in found:
            own.setdefault(one[0].text, []).append(one)
        return [redacted(text, own[place]) if place in own else text for place, text in enumerate(texts)]

    def placeholder(self, name: str) -> str:
        """The placeholder for findings of a type."""
        return self._replacements.get(name, f"[{name.upper()}_REDACTED]")


def blanked(text: str, span: Span) -> str:
    """The text with stars over a finding, so that places stay."""
    return text[: span.start] + "*" * (span.end - span.start) + text[span.end :]


def distinct(spans: Sequence[Span]) -> list[Span]:
    """Spans in their order, of overlapping ones the longest, then the first."""
    kept: list[Span] = []
    for span in sorted(spans, key=lambda span: (span.start - span.end, span.start, span.type)):
        if all(span.text != one.text or span.end <= one.start or span.start >= one.end for one in kept):
            kept.append(span)
    return sorted(kept)


def redacted(text: str, redactions: Sequence[tuple[Span, str]]) -> str:
    """The text without the findings of several policies; what overlaps goes together, by the longest one's word."""
    parts: list[str] = []
    end = len(text)
    for start, stop, placeholder in reversed(_joined(redactions)):
        parts += [text[stop:end], placeholder]
        end = start
    return "".join(reversed([*parts, text[:end]]))


def _joined(redactions: Sequence[tuple[Span, str]]) -> list[tuple[int, int, str]]:
    """Beginning, end and placeholder of what is to be replaced, in order and apart from each other."""
    joined: list[tuple[int, int, str]] = []
    longest = 0
    for span, placeholder in sorted(redactions, key=lambda each: (each[0].start, each[0].start - each[0].end)):
        length = span.end - span.start
        if not joined or span.start >= joined[-1][1]:
            joined.append((span.start, span.end, placeholder))
            longest = length
            continue
        start, end, earlier = joined[-1]
        joined[-1] = (start, max(end, span.end), placeholder if length > longest else earlier)
        longest = max(longest, length)
    return joined


def listed(counts: Mapping[str, int]) -> str:
    """Types with their counts: ``email (2), phone (1)``."""
    return ", ".join(f"{name} ({count})" for name, count in sorted(counts.items()))


def _check_patterns(settings: PiiSettings, refusal: Refusal) -> None:
    for index, pattern in enumerate(settings.patterns):
        try:
            PiiScanner((), (pattern.pattern,))
        except ValidationError as error:
            raise refusal(("patterns", str(index), "pattern"), error.description) from error
