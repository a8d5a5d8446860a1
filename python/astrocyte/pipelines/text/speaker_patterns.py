"""Regular expressions of the labels by which chats, transcripts and minutes name a speaker."""

from __future__ import annotations

import re

from astrocyte.pipelines.text.speaker_labels import TAGGED_ROLES

# Marks of the writing direction that exports put before a line.
MARKS = r"[\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]{0,4}"
GAP = r"[ \t\u00a0\u202f]"
# Morning or afternoon, in English, Chinese, Japanese, Korean and Arabic.
HALF_DAY = (
    rf"(?:[AaPp]\.?{GAP}?[Mm]\b\.?|\u4e0a\u5348|\u4e0b\u5348|\u5348\u524d|\u5348\u5f8c|\uc624\uc804|\uc624\ud6c4"
    r"|[\u0635\u0645]\b)"
)
TIME = (
    rf"(?:{HALF_DAY}{GAP}?)?\d{{1,2}}[:.h\uff1a]\d{{2}}(?:[:.\uff1a]\d{{2}}(?:[.,]\d{{1,3}})?)?(?:{GAP}?{HALF_DAY})?"
    r"(?:Z\b|[+-]\d{2}:?\d{2}\b)?"
)
DATE = (
    r"(?:\d{1,4}[./\-\u200f]+ ?\d{1,2}[./\-\u200f]+ ?\d{1,4}\.?"
    r"|\d{2,4} ?[\u5e74\ub144] ?\d{1,2} ?[\u6708\uc6d4] ?\d{1,2} ?[\u65e5\uc77c]"
    r"|\d{1,2}[.\-]? ?[^\W\d_]{3,12}\.?[ \-]\d{2,4}|[^\W\d_]{3,12}\.? \d{1,2},? \d{4})"
)
DAY = r"(?:[^\W\d_]{2,12}\.?,? (?:at |um |\u00e0 |a las )?)"
BETWEEN = (
    rf"(?:[,\u060c\u3001]|{GAP}at\b|{GAP}um\b|{GAP}\u00e0\b)?[T \t\u00a0\u202f]?{GAP}?"
    rf"(?:\([^\W\d_]{{1,9}}\){GAP}?)?"
)
DATED = rf"(?:(?:{DAY})?{DATE}{BETWEEN}{TIME}|{TIME}[,]?{GAP}{DATE})"
STAMP = rf"(?:{DATED}|(?:{DAY})?{TIME})"
# A bracket with a time or a date in it, of any format.
BRACKET = r"(?:\[(?=[^\]\n]{0,40}\d[:.h/\-]?\d)[^\[\]\n]{2,48}\]|\((?=[^)\n]{0,40}\d[:.h/\-]?\d)[^()\n]{3,48}\))"
RANGE = rf"(?:{TIME}(?:{GAP}?(?:-+>?|\u2013|\u2192){GAP}?{TIME})?)"
PERSON = r"[^\n:\uff1a<>\[\](){}|*\t]{1,48}?"
NICKNAME = r"[\w\[\]\\`^{}|\-]{1,32}"
# An office, a place or a time behind a name.
OFFICE = r"(?P<office>(?:(?:[ \t]*[\[(][^\])\n]{1,40}[\])]){1,3}|,[ \t][A-Z][^\n:\uff1a,.]{1,40}?)?)"
COLON = r"(?:[ \u00a0\u202f]?(?::(?=\s|$)|(?<=[^\x00-\x7f]):(?![\d/])|[\uff1a\ufe55\ufe13]))"
END = r"[ \t]*(?:\n|$)"
EMPHASIS = r"(?:\*{1,3}|__|<b>|<strong>)"
END_EMPHASIS = r"(?:\*{1,3}|__|</b>|</strong>)"
ROLE = "|".join(sorted(map(re.escape, TAGGED_ROLES), key=len, reverse=True))

# <v Name> of WebVTT.
VOICE = re.compile(r"(?:-[ \t]?)?<v(?:\.[^\s>]*)?[ \t]+(?P<name>[^>\n]{1,64})>")
# [12.03.24, 10:32:05] Name: and 12/03/2024, 10:32 - Name:
EXPORT = re.compile(
    rf"{MARKS}(?:\[{MARKS}{GAP}?{DATED}[^\[\]\n]{{0,12}}\]|\({DATED}\)|{DATED}){GAP}*"
    rf"(?:[-\u2013\u2014|,]{GAP}*)?{MARKS}~?{GAP}?(?P<name>[^\n:\uff1a\[\]]{{1,64}}?){COLON}"
)
# 10:32:01 From Name to Everyone: of a meeting's chat.
MEETING = re.compile(rf"{TIME}[ \t]+From[ \t]+(?P<name>[^\n:]{{1,64}}?)(?:[ \t]+to[ \t]+[^\n:]{{1,64}}?)?[ \t]*:(?=\s)")
# [SPEAKER_00] of a program that tells voices apart.
DIARISED = re.compile(r"\[(?P<name>(?i:speaker)[ _]?[A-Z0-9]{1,3})\]:?[ \t]+(?=\S)")
# @name:server: of Matrix.
MATRIX = re.compile(r"(?P<name>@[\w.=/+-]{1,32}:[\w-]{1,32}(?:\.[\w-]{1,32}){1,4}):(?=\s)")
# <nick> and, behind a time, "* nick".
NICK = re.compile(
    rf"(?:(?P<stamp>{BRACKET}|{STAMP}){GAP}*)?"
    rf"(?:<[ @+%&~!]?(?P<name>[^\s<>=/@][^<>=/@\n]{{0,38}})>(?=\s|$)|\*{GAP}(?P<actor>\S{{1,32}})(?={GAP}))"
)
# A time, a nick and a text in columns.
COLUMNS = re.compile(
    rf"(?:{BRACKET}|{STAMP})"
    rf"(?:\t[@+%]?(?P<name>[^\s<>|*=-][^\t\n]{{0,31}})\t|{GAP}+(?P<actor>[^\s<>|*=-]\S{{0,31}}){GAP}*\|(?={GAP}))"
)
# A name and a time on a line of their own, or on two, in either order.
HEADER = re.compile(
    rf"{MARKS}(?:(?P<name>{PERSON})"
    rf"(?:{GAP}{{1,8}}|,{GAP}|{GAP}[\u2014\u2013-]{GAP}|{GAP}\|{GAP}|\n{GAP}{{0,8}})(?:{BRACKET}|{RANGE}|{STAMP})"
    rf"|(?:{BRACKET}|{STAMP}){GAP}+(?:[-\u2013|]{GAP})?(?P<later>{PERSON}))"
    rf"(?:{GAP}*\((?:edited|bot|app)\))?{END}(?=[ \t]*\S)"
)
# ### User, [USER], <|user|>, <|im_start|>user, User said:, **User**:
TAGGED_ROLE = re.compile(
    rf"(?i)(?:\#{{1,6}}[ \t]*(?P<head>{ROLE})(?:[ \t]+said)?(?:{END}|:)"
    rf"|(?:<\|(?:im_start\|>[ \t]*)?|\[\|?)(?P<tag>{ROLE})(?:\|?[\]>]|(?=\n)):?"
    rf"|(?P<said>{ROLE})[ \t]said:"
    rf"|{EMPHASIS}(?P<bold>{ROLE})(?:{END_EMPHASIS}[ \t]*:|:[ \t]*{END_EMPHASIS}|{END_EMPHASIS}{END}))"
)
# [00:12] Name:, 00:12 Name:, Name (10:32): and Name [10:32]
TIMED = re.compile(
    rf"(?:[-\u2013*\u2022>][ \t])?(?:{EMPHASIS}[ \t]?)?"
    rf"(?:(?:{BRACKET}|{RANGE}){GAP}*(?:{END_EMPHASIS}{GAP}*)?(?:[-\u2013|]{GAP}*)?(?:{EMPHASIS})?"
    rf"(?P<name>{PERSON}|{NICKNAME}){OFFICE}(?:{END_EMPHASIS})?[ \u00a0\u202f]?[:\uff1a](?:{END_EMPHASIS})?"
    r"(?=\s|$|(?<=\uff1a))"
    rf"|(?P<before>{PERSON}),?{GAP}*(?:{END_EMPHASIS}{GAP}*)?"
    rf"(?:[\[(]{GAP}?(?:{RANGE}|{STAMP}){GAP}?[\])](?:{END_EMPHASIS})?(?:[:\uff1a]|(?=\s))|{TIME}[:\uff1a](?=\s|$))"
    rf"(?:{END_EMPHASIS})?)"
)
# **Name:** and **Name**:
BOLD = re.compile(
    rf"(?:[-*\u2022>][ \t]+)?{EMPHASIS}[ \t]?(?P<name>{PERSON}){OFFICE}"
    rf"(?:[ \t]?[:\uff1a][ \t]?{END_EMPHASIS}|{END_EMPHASIS}(?:[ \t]?[\[(][^\])\n]{{1,40}}[\])])?[ \t]?[:\uff1a])"
)
# Name:, Name (office):, nick:, [Name]: and >> NAME:
BARE = re.compile(
    rf"{MARKS}(?:>>[ \t]*)?@?"
    rf"(?P<name>[^\n:\uff1a<>\[\]()*\t,|]{{1,48}}?|{NICKNAME}|\[[^\]\n:]{{1,32}}\]){OFFICE}{COLON}"
)
# Q. and A. of an examination, behind the number of the line; the letters of a list look alike.
LETTER = re.compile(r"[ \t]*(?:\d{1,2}[ \t]+)?(?P<name>[A-Z])\.[ \t]+(?=\S)")
# What stands before a name in a subtitle of two speakers.
DASH = re.compile(r"[-\u2013\u2014][ \t]?")
# Lines of a record that nobody says: a stamp without a name, and what programs tell.
DATED_LINE = re.compile(rf"{MARKS}(?:\[{MARKS}{GAP}?{DATED}|{DATED}){GAP}*[-\u2013\u2014\]|]")
STAMPED_LINE = re.compile(rf"{MARKS}(?:{BRACKET}|{STAMP})(?=\s)|(?:-!-|\*\*\*|-->|<--)(?=\s)")
# Begin an item, a heading or a row, which a speaker's first line does not.
NO_SPEECH = re.compile(r"\n?[ \t]*(?:[-*+\u2022][ \t]|\d{1,3}[.)][ \t]|[|#>])")
_TAGS = """
a abbr address article aside b blockquote body br button caption center cite code col dd del details div dl dt
em fieldset figure font footer form h1 h2 h3 h4 h5 h6 head header hr html i iframe img input ins kbd label
legend li link main mark meta nav ol option p pre q s samp section select small span strike strong style sub
summary sup table tbody td textarea tfoot th thead think thinking title tr u ul var video
"""
# In angle brackets they are no nicknames.
HTML_TAGS = frozenset(_TAGS.split())
