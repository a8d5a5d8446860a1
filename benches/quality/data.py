"""Question sets and saved runs, as files."""

from __future__ import annotations

import calendar
import gzip
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

# Bank and question: names a question in all files of a set.
Key = tuple[str, str]
Run = Mapping[Key, list[str]]


@dataclass(frozen=True, slots=True)
class Turn:
    """One memory of a set."""

    id: str
    text: str
    speaker: str | None = None
    occurred_at: datetime | None = None
    session: str | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """One question and the ids of what should come back."""

    id: str
    text: str
    category: str
    evidence: tuple[str, ...]
    answer: str | None = None
    asked_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Bank:
    """Memories of one conversation in the order it was said, and the questions about it.

    `traps` are questions that no memory answers; they have no evidence.
    """

    name: str
    turns: tuple[Turn, ...]
    questions: tuple[Question, ...]
    traps: tuple[Question, ...] = ()

    def asked_at(self, question: Question) -> datetime | None:
        """Reference of relative dates in a question: the time it was asked, else the newest memory's time."""
        return question.asked_at or max((turn.occurred_at for turn in self.turns if turn.occurred_at), default=None)


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """All banks of one file."""

    name: str
    banks: tuple[Bank, ...]


def read_set(path: Path) -> QuestionSet:
    """Read a set from JSON, gzipped if the name ends in `.gz`.

    Layout: `{"dataset", "banks": [{"bank", "memories": [{"id", "text", "speaker"?, "time"?, "session"?}],
    "queries": [{"id", "text", "category", "evidence": [memory ids], "answer"?, "asked_at"?}],
    "traps"?: [{"id", "text", "category", "asked_at"?}]}]}`.
    Times without an offset are UTC. Evidence that is not among the bank's memories, and queries that have no other,
    are left out.
    """
    data = path.read_bytes()
    parsed = json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)
    name = parsed.get("dataset") or path.name.split(".", 1)[0]
    return QuestionSet(name, tuple(_bank(bank) for bank in parsed["banks"]))


def write_run(path: Path, run: Run) -> None:
    """Write a run as JSON lines: bank, query, ranked ids."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        for (bank, query), ranked in run.items():
            file.write(json.dumps({"bank": bank, "query": query, "ranked": ranked}, ensure_ascii=False) + "\n")


def read_run(path: Path) -> dict[Key, list[str]]:
    """Read what `write_run` wrote."""
    lines = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    return {(line["bank"], line["query"]): line["ranked"] for line in lines}


def _bank(raw: Mapping[str, Any]) -> Bank:
    turns = tuple(_turn(memory) for memory in raw["memories"])
    known = {turn.id for turn in turns}
    questions = (_question(query, known) for query in raw["queries"])
    traps = tuple(_question(trap, known) for trap in raw.get("traps", ()))
    return Bank(str(raw["bank"]), turns, tuple(question for question in questions if question.evidence), traps)


def _turn(raw: Mapping[str, Any]) -> Turn:
    session = raw.get("session")
    return Turn(
        str(raw["id"]),
        raw["text"],
        raw.get("speaker") or None,
        _time(raw.get("time")),
        None if session is None else str(session),
    )


def _question(raw: Mapping[str, Any], known: Iterable[str]) -> Question:
    evidence = tuple(str(identifier) for identifier in raw.get("evidence", ()) if str(identifier) in known)
    answer = raw.get("answer")
    return Question(
        str(raw["id"]),
        raw["text"],
        raw["category"],
        evidence,
        None if answer is None else str(answer),
        _time(raw.get("asked_at")),
    )


def _time(text: str | None) -> datetime | None:
    """A time; a month alone is its last day."""
    if text and re.fullmatch(r"\d{4}-\d\d", text):
        year, month = map(int, text.split("-"))
        text = f"{text}-{calendar.monthrange(year, month)[1]}"
    time = datetime.fromisoformat(text) if text else None
    return time.replace(tzinfo=UTC) if time is not None and time.tzinfo is None else time
