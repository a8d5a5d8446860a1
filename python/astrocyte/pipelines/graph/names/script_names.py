"""Names of people in scripts without capitals: listed given names, and names beside an honorific."""

from __future__ import annotations

import re
from collections.abc import Iterator

from astrocyte.model.derived.graph import Mention
from astrocyte.pipelines.graph.names.gazetteers import fold, gazetteers
from astrocyte.pipelines.graph.names.type_words import PERSON

# Arabic, Hebrew, Devanagari, Bengali, Tamil, Thai and other scripts between Armenian and Georgian; Hangul.
SPACED = re.compile(r"[\u0590-\u0fff\uac00-\ud7a3]{2,40}")
# A name before an honorific, in Chinese, Japanese and Korean.
TITLED = re.compile(
    r"([\u4e00-\u9fff\u30a0-\u30ff]{1,8}?)(?:さん|さま|様|氏|くん|君|ちゃん|先生|先輩|女士|老师|老師|小姐|总|總|教授|医生|醫生|经理|經理|同学)"
    r"|([\uac00-\ud7a3]{2,4}?)\s?(?:씨|님|선생님|교수님|대리|과장|부장)(?![\uac00-\ud7a3]{2})"
)
# Particles that Korean writes at the end of a name.
PARTICLES = re.compile(r"(?:이가|에게|한테|이는|은|는|이|가|을|를|와|과|의|도|랑)$")
OF_TITLE, OF_LIST = 0.8, 0.65
# Han characters before a name that belong to the sentence.
BEFORE_HAN = re.compile(r"^.*[和与與跟见見是的在给給向、\uff0c。]")


def script_names(text: str) -> Iterator[Mention]:
    """The names, in order of their kind; none in text of scripts with capitals."""
    if text.isascii():
        return
    taken: set[int] = set()
    for found in TITLED.finditer(text):
        group = 1 if found[1] else 2
        name = BEFORE_HAN.sub("", found[group])
        if name:
            end = found.end(group)
            taken.update(range(end - len(name), end))
            yield Mention(name, PERSON, end - len(name), end, OF_TITLE)
    given, family = gazetteers().given, gazetteers().family
    words = list(SPACED.finditer(text))
    place = 0
    while place < len(words):
        word = words[place]
        place += 1
        name = word.group() if fold(word.group()) in given else PARTICLES.sub("", word.group())
        if fold(name) not in given or word.start() in taken:
            continue
        end = word.start() + len(name)
        if place < len(words) and words[place].start() == end + 1 and fold(words[place].group()) in family:
            end = words[place].end()
            place += 1
        yield Mention(text[word.start() : end], PERSON, word.start(), end, OF_LIST)
