"""The texts within an item, an update or a hit: taken out to be looked at together, and put back where they changed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar, cast

from astrocyte.model import Memory, MemoryHit, MemoryUpdate, Metadata, RetainItem
from astrocyte.policy.privacy.pii_detectors import Span
from astrocyte.policy.privacy.pii_policy import Verdict

# A shorter number is no card, account or phone.
LEAST_NUMBER = 1_000_000
T = TypeVar("T", RetainItem, MemoryUpdate, MemoryHit)


class Part(NamedTuple):
    """Where a text was: a field, an entry of it or None, and how many characters before the text are not its own."""

    field: str
    entry: str | int | None
    lead: int


@dataclass(frozen=True, slots=True)
class Parts:
    """Texts and where each was."""

    texts: list[str] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)

    def add(self, name: str, text: str | None, entry: str | int | None = None, lead: str = "") -> None:
        """Take a text; ``lead`` goes before it while it is looked at, since it says what the text is."""
        if text:
            self.texts.append(lead + text)
            self.parts.append(Part(name, entry, len(lead)))

    def add_metadata(self, metadata: Metadata) -> None:
        """Take the values, each led by its key: ``phone: 4155550123``. Of numbers only those long enough to matter."""
        for key, value in metadata.items():
            if isinstance(value, str):
                self.add("metadata", value, key, f"{key}: ")
            elif isinstance(value, int) and abs(value) >= LEAST_NUMBER:
                self.add("metadata", str(value), key, f"{key}: ")

    def add_all(self, name: str, texts: Sequence[str]) -> None:
        """Take every text of a field."""
        for place, text in enumerate(texts):
            self.add(name, text, place)

    def own(self, spans: Iterable[Span]) -> list[Span]:
        """Findings without what of them lies before the texts."""
        clipped = []
        for span in spans:
            lead = self.parts[span.text].lead
            if span.end > lead:
                clipped.append(span if span.start >= lead else span._replace(start=lead))
        return clipped

    def changed(self, verdict: Verdict) -> set[str]:
        """The fields in which something changed."""
        return {self.parts[place].field for place in verdict.changed}

    def put(self, whole: T, verdict: Verdict) -> T:
        """``whole`` with the verdict's texts in their places."""
        values: dict[str, Any] = {}
        for place in sorted(verdict.changed):
            name, entry, lead = self.parts[place]
            text = verdict.texts[place][lead:]
            if entry is None:
                values[name] = text
            elif isinstance(entry, int):
                labels = values.setdefault(name, list(getattr(whole, name)))
                labels[entry] = text
            else:
                values.setdefault(name, dict(getattr(whole, name)))[entry] = text
        # Two labels may have become one.
        values = {name: tuple(dict.fromkeys(one)) if isinstance(one, list) else one for name, one in values.items()}
        replaced: T = replace(cast("Any", whole), **values)
        return replaced


def item_parts(item: RetainItem | Memory, scan: Collection[str]) -> Parts:
    """The texts of an item, or of a memory, that are looked at, its content first."""
    parts = Parts()
    if "content" in scan:
        parts.add("content", item.content)
    _add_labels(parts, item, scan)
    if "speaker" in scan:
        parts.add("speaker", item.speaker)
    return parts


def update_parts(update: MemoryUpdate, scan: Collection[str]) -> Parts:
    """The texts of an update that are looked at; of fields that it does not name, none is there."""
    parts = Parts()
    if "content" in scan and "content" in update.fields:
        parts.add("content", update.content)
    _add_labels(parts, update, scan)
    return parts


def hit_parts(hit: MemoryHit) -> Parts:
    """All texts of a hit."""
    parts = Parts()
    parts.add("text", hit.text)
    parts.add_metadata(hit.metadata or {})
    parts.add_all("tags", hit.tags or ())
    parts.add("source", hit.source)
    parts.add("speaker", hit.speaker)
    return parts


def _add_labels(parts: Parts, whole: RetainItem | Memory | MemoryUpdate, scan: Collection[str]) -> None:
    if "metadata" in scan and whole.metadata:
        parts.add_metadata(whole.metadata)
    if "tags" in scan and whole.tags:
        parts.add_all("tags", whole.tags)
    if "source" in scan:
        parts.add("source", whole.source)
