"""Where lines of chats, transcripts and minutes name their speaker.

A content has one form of labels. Forms that only a machine or a markup writes go before bare names, because a line of a
message may begin like one ("Note: ...").
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from enum import IntEnum

from astrocyte.pipelines.index.turn_kinds import is_role
from astrocyte.pipelines.text.speaker_labels import is_label, is_name, is_short
from astrocyte.pipelines.text.speaker_patterns import (
    BARE,
    BOLD,
    COLUMNS,
    DATED_LINE,
    DIARISED,
    EXPORT,
    HEADER,
    HTML_TAGS,
    LETTER,
    MATRIX,
    MEETING,
    NICK,
    NO_SPEECH,
    STAMPED_LINE,
    TAGGED_ROLE,
    TIMED,
    VOICE,
)


class Form(IntEnum):
    """Forms of labels; the first of which a content has two is the content's."""

    # <v Name> of WebVTT.
    VOICE = 0
    # A date and a time before the name: WhatsApp, Telegram, Signal; or a time and "From": Zoom.
    EXPORT = 1
    # <nick> of IRC, @name:server of Matrix.
    NICK = 2
    # Name and time on a line of their own: Slack, Discord, Teams, Otter.
    HEADER = 3
    # User and assistant.
    ROLE = 4
    # A time beside the name.
    TIMED = 5
    # A name in bold.
    BOLD = 6
    NAME = 7


# Forms of machine-made records, whose messages go on behind a blank line.
RECORDS = frozenset({Form.EXPORT, Form.NICK, Form.HEADER, Form.ROLE})
# Labels of this many lines are a content's form.
LEAST = 2

# Question and answer.
EXAMINATION = frozenset("QA")
# Lines of a record that nobody says end a turn.
UNSAID = {Form.EXPORT: DATED_LINE, Form.NICK: STAMPED_LINE, Form.TIMED: STAMPED_LINE}


@dataclass(frozen=True, slots=True)
class Label:
    """A speaker named at the start of a line.

    Args:
        form: How.
        name: Who, as written.
        lead: What names them again in front of a later part of their turn.
        end: The place behind the label.
    """

    form: Form
    name: str
    lead: str
    end: int


def labels(content: str, starts: list[int]) -> dict[int, Label]:
    """The labels of a content by their place.

    Args:
        content: Text with line feeds for line ends.
        starts: Places of the lines that may begin with a label.
    """
    found = {start: label for start in starts if (label := _label(content, start)) is not None}
    found |= _examination(content, starts, found)
    roles = {name for label in found.values() if label.form is Form.NAME and is_role(name := label.name.casefold())}
    if len(roles) >= LEAST:
        for start, label in found.items():
            if label.name.casefold() in roles:
                found[start] = replace(label, form=Form.ROLE)
    # One role in bold beside names in bold is a speaker among others, not the form of the content.
    bold = any(label.form is Form.BOLD and is_name(label.name) for label in found.values())
    if bold and sum(label.form is Form.ROLE for label in found.values()) < LEAST:
        for start, label in found.items():
            if label.form is Form.ROLE and BOLD.match(content, start):
                found[start] = replace(label, form=Form.BOLD)
    form = _form(Counter(label.form for label in found.values()))
    names = Counter(label.name.casefold() for label in found.values())
    return {start: label for start, label in found.items() if label.form is form and _names_somebody(label, names)}


def _examination(content: str, starts: list[int], found: dict[int, Label]) -> dict[int, Label]:
    """Lines of questions and answers by their place; none without both, or where other letters begin lines too."""
    lines = {start: match for start in starts if (match := LETTER.match(content, start)) is not None}
    # "Q. Smith: ..." names somebody.
    lines = {start: match for start, match in lines.items() if not (start in found and is_name(found[start].name))}
    if {match["name"] for match in lines.values()} != EXAMINATION:
        return {}
    return {start: Label(Form.NAME, match["name"], f"{match['name']}. ", match.end()) for start, match in lines.items()}


def _form(counts: Counter[Form]) -> Form:
    for least in (LEAST, 1):
        for form in Form:
            if counts[form] >= least:
                # Notes in bold stand in many dialogues of bare names.
                return Form.NAME if form is Form.BOLD and counts[Form.NAME] > counts[form] else form
    return Form.NAME


def _names_somebody(label: Label, names: Counter[str]) -> bool:
    if label.form in {Form.VOICE, Form.NICK, Form.ROLE} or is_name(label.name):
        return True
    if label.form is Form.EXPORT:
        # The date is evidence, and contacts have names of any kind; but "Ann changed the subject to: ..." is a clause.
        return is_short(label.name) or not any(one.isalpha() for one in label.name)
    return names[label.name.casefold()] >= LEAST and is_short(label.name) and label.name[0].isalpha()


def _label(content: str, start: int) -> Label | None:
    """The label at a place, of the first form that fits."""
    return next((label for read in READERS if (label := read(content, start)) is not None), None)


def _voice(content: str, start: int) -> Label | None:
    match = VOICE.match(content, start)
    return _made(Form.VOICE, match["name"], match.end()) if match else None


def _export(content: str, start: int) -> Label | None:
    match = EXPORT.match(content, start) or MEETING.match(content, start)
    return _made(Form.EXPORT, match["name"], match.end()) if match else None


def _nick(content: str, start: int) -> Label | None:
    match = NICK.match(content, start)
    if match is None and (matrix := MATRIX.match(content, start)) is not None:
        return Label(Form.NICK, matrix["name"], f"{matrix['name']}: ", matrix.end())
    if match is None:
        match = COLUMNS.match(content, start)
    elif not match["stamp"] and (match["actor"] or match["name"].casefold() in HTML_TAGS):
        return None
    return _made(Form.NICK, match["name"] or match["actor"], match.end()) if match else None


def _tagged_role(content: str, start: int) -> Label | None:
    diarised = DIARISED.match(content, start)
    if diarised is not None:
        return _made(Form.ROLE, diarised["name"], diarised.end())
    match = TAGGED_ROLE.match(content, start)
    if match is None:
        return None
    return _made(Form.ROLE, match["head"] or match["tag"] or match["said"] or match["bold"], match.end())


def _header(content: str, start: int) -> Label | None:
    match = HEADER.match(content, start)
    # A line that another such line follows is a row of an agenda.
    if match is None or HEADER.match(content, match.end()) is not None:
        return None
    name = (match["name"] or match["later"]).strip()
    return _made(Form.HEADER, name, match.end()) if is_name(name) else None


def _timed(content: str, start: int) -> Label | None:
    match = TIMED.match(content, start)
    if match is None:
        return None
    name = (match["name"] or match["before"]).strip()
    return _made(Form.TIMED, name, match.end(), match["office"] or "") if is_short(name) or is_name(name) else None


def _bold(content: str, start: int) -> Label | None:
    match = BOLD.match(content, start)
    return _made(Form.BOLD, match["name"], match.end(), match["office"]) if match else None


def _bare(content: str, start: int) -> Label | None:
    match = BARE.match(content, start)
    if match is None:
        return None
    name = match["name"].strip("[] \t@>")
    if not name or not (name[0].isalpha() or name[0] == "_") or is_label(name):
        return None
    # A label alone on its line introduces a speech, or a list.
    if content.startswith("\n", match.end()) and NO_SPEECH.match(content, match.end() + 1):
        return None
    lead = match.group().strip()
    return Label(Form.NAME, name, lead if lead.endswith("\uff1a") else f"{lead} ", match.end())


READERS = (_voice, _export, _nick, _tagged_role, _header, _timed, _bold, _bare)


def _made(form: Form, name: str, end: int, office: str = "") -> Label | None:
    name = name.strip(" \t\u00a0\u202f\u200e\u200f\u202a\u202c\u202d\u202e~@")
    return Label(form, name, f"{name}{office.rstrip()}: ", end) if name else None
