"""Chats in the forms that programs export them, generated from a seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random

NAMES = (
    "Ines", "Tobias Krahl", "Mr. Okafor", "Zoë", "O'Neill", "Jean-Luc", "Nuria de la Vega", "Олена", "Ólafur", "田中",
    "김민수", "أمينة", "דוד", "अनिता", "สมชาย", "Ngọc Anh", "DJ_Marlo", "Dr. Ruiz", "Yağmur", "Σοφία",
)  # fmt: skip
NICKS = ("ines", "krahl_", "okafor42", "zoe[m]", "o-neill", "jl|away", "nuria", "olena", "Olafur", "tanaka")
WORDS = [
    "the",
    "roof",
    "leaks",
    "again",
    "since",
    "tuesday",
    "and",
    "someone",
    "must",
    "call",
    "about",
    "it",
    "before",
    "winter",
    "because",
    "paint",
    "price",
    "oven",
    "lamp",
    "boat",
    "garden",
    "crate",
    "ladder",
    "window",
    "river",
    "train",
    "invoice",
    "cable",
    "letter",
    "Norway",
    "June",
    "Berlin",
]


@dataclass(frozen=True)
class Turn:
    """A turn: its speaker, its time and the numbers of its sentences."""

    speaker: str
    at: datetime
    sentences: tuple[str, ...]

    @property
    def text(self) -> str:
        """The text of the turn."""
        return " ".join(self.sentences)


def conversation(random: Random, names: Sequence[str] = NAMES) -> list[Turn]:
    """Turns of two to four speakers; each sentence begins with a mark of its own, such as ``Mark17``."""
    speakers = random.sample(names, random.randint(2, 4))
    at = datetime(2024, 3, random.randint(1, 28), random.randint(1, 22), random.randint(0, 59), tzinfo=UTC)
    turns: list[Turn] = []
    number = 0
    for place in range(random.randint(3, 8)):
        sentences = []
        for _ in range(random.choice((1, 1, 2, 9))):
            number += 1
            body = " ".join(random.choices(WORDS, k=random.randint(2, 9)))
            sentences.append(f"Mark{number} {body}{random.choice('...?!')}")
        speaker = speakers[place % 2] if place < 2 else random.choice(speakers)
        turns.append(Turn(speaker, at, tuple(sentences)))
        at += timedelta(seconds=random.randint(5, 400))
    return turns


def _cue(turn: Turn, mark: str) -> str:
    end = turn.at + timedelta(seconds=4)
    return f"{turn.at:%H:%M:%S}{mark}000 --> {end:%H:%M:%S}{mark}500"


def webvtt(turns: list[Turn], random: Random) -> str:
    closed = random.choice(("", "</v>"))
    cues = (f"{_cue(turn, '.')}\n<v {turn.speaker}>{turn.text}{closed}\n" for turn in turns)
    return "WEBVTT\n\n" + "\n".join(cues)


def subrip(turns: list[Turn], random: Random) -> str:
    dash = random.choice(("", "- "))
    return "\n".join(
        f"{number}\n{_cue(turn, ',')}\n{dash}{turn.speaker}: {turn.text}\n" for number, turn in enumerate(turns, 1)
    )


def whatsapp_android(turns: list[Turn], random: Random) -> str:
    form = random.choice(
        ("%d/%m/%Y, %H:%M", "%m/%d/%y, %I:%M\u202f%p", "%d.%m.%y, %H:%M", "%Y-%m-%d, %I:%M %p", "%Y/%m/%d %H:%M")
    )
    first = (
        f"{turns[0].at:{form}} - Messages and calls are end-to-end encrypted. Only people in this chat can read them.\n"
    )
    return first + "".join(f"{turn.at:{form}} - {turn.speaker}: {_lines(turn, random)}\n" for turn in turns)


def whatsapp_ios(turns: list[Turn], random: Random) -> str:
    form = random.choice(
        ("%d/%m/%Y, %H:%M:%S", "%d.%m.%y, %H:%M:%S", "%m/%d/%y, %I:%M:%S\u202f%p", "%Y/%m/%d 下午%I:%M:%S")
    )
    mark = random.choice(("", "\u200e"))
    return "".join(
        f"{mark}[{turn.at:{form}}] {random.choice(('', '~ '))}{turn.speaker}: {_lines(turn, random)}\n"
        for turn in turns
    )


def telegram(turns: list[Turn], random: Random) -> str:
    if random.random() < 0.5:
        return "\n".join(f"{turn.speaker}, [{turn.at:%d.%m.%Y %H:%M}]\n{turn.text}\n" for turn in turns)
    return "\n".join(f"[{turn.at:%d.%m.%Y %H:%M}] {turn.speaker}:\n{turn.text}" for turn in turns)


def irc(turns: list[Turn], random: Random) -> str:
    stamp = random.choice(("", "[%H:%M] ", "%H:%M:%S ", "[%Y-%m-%d %H:%M:%S] "))
    mode = random.choice(("", "@", "+", " "))
    joined = f"{turns[0].at.strftime(stamp)}-!- visitor has joined #roofs\n" if stamp else ""
    return joined + "".join(f"{turn.at.strftime(stamp)}<{mode}{turn.speaker}> {turn.text}\n" for turn in turns)


def nicks(turns: list[Turn], random: Random) -> str:
    stamp = random.choice(("", "[%H:%M] "))
    return "".join(f"{turn.at.strftime(stamp)}{turn.speaker}: {turn.text}\n" for turn in turns)


def slack(turns: list[Turn], random: Random) -> str:
    form = random.choice(
        ("{name}  [{at:%I:%M %p}]", "{name}  {at:%I:%M %p}", "{name} — Today at {at:%I:%M %p}", "{name}   {at:%H:%M}")
    )
    gap = random.choice(("", "\n"))
    return gap.join(f"{form.format(name=turn.speaker, at=turn.at)}\n{turn.text}\n" for turn in turns)


def roles(turns: list[Turn], random: Random) -> str:
    form = random.choice(("{}: ", "### {}:\n", "**{}:** ", "[{}]: ", "<|im_start|>{}\n", "## {}\n\n"))
    gap = random.choice(("\n", "\n\n"))
    return gap.join(f"{form.format(turn.speaker)}{_lines(turn, random)}" for turn in turns)


def bold(turns: list[Turn], random: Random) -> str:
    form = random.choice(("**{}:** ", "**{}**: ", "__{}:__ ", "- **{}:** "))
    return "\n\n".join(f"{form.format(turn.speaker)}{turn.text}" for turn in turns)


def timed(turns: list[Turn], random: Random) -> str:
    form = random.choice(
        (
            "[{at:%M:%S}] {name}: ",
            "{name} ({at:%M:%S}): ",
            "[{at:%H:%M:%S}] {name}: ",
            "({at:%M:%S}) {name}: ",
            "{name} [{at:%H:%M:%S}]: ",
            "**[{at:%M:%S}] {name}:** ",
        )
    )
    gap = random.choice(("\n", "\n\n"))
    return gap.join(f"{form.format(at=turn.at, name=turn.speaker)}{turn.text}" for turn in turns)


def plain(turns: list[Turn], random: Random) -> str:
    colon = random.choice((": ", "\uff1a", "\u00a0: ", " (guest): ", ":\n"))
    gap = random.choice(("\n", "\n\n"))
    return gap.join(f"{turn.speaker}{colon}{turn.text}" for turn in turns)


def _lines(turn: Turn, random: Random) -> str:
    """The text in one line, several lines, or paragraphs, one of which looks like a label."""
    text = random.choice((" ", " ", "\n", "\n\n")).join(turn.sentences)
    return f"{text}\nNote: see https://example.org/a:b at 10:30" if random.random() < 0.1 else text


FORMATS: dict[str, tuple[Callable[[list[Turn], Random], str], Sequence[str]]] = {
    "webvtt": (webvtt, NAMES),
    "subrip": (subrip, NAMES),
    "whatsapp-android": (whatsapp_android, (*NAMES, "+44 7700 900123", "mum and dad", "Zoë 🌸")),
    "whatsapp-ios": (whatsapp_ios, (*NAMES, "+49 151 23456789", "Lars")),
    "telegram": (telegram, NAMES),
    "irc": (irc, NICKS),
    "nicks": (nicks, NICKS),
    "slack": (slack, NAMES),
    "roles": (roles, ("user", "assistant", "system", "Human", "AI")),
    "bold": (bold, NAMES),
    "timed": (timed, NAMES),
    "plain": (plain, NAMES),
}
