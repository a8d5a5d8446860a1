"""The name of the one who asks: "What is my name?" is answered by a memory in which somebody introduces himself.

Question and answer ("I'm Sam Okafor") share no word and little meaning, so the confidence of a recall is low.
"""

from __future__ import annotations

import re
from dataclasses import replace

from astrocyte.pipelines.graph.names.gazetteers import fold, gazetteers
from astrocyte.pipelines.reflect.evidence import DATE_WORDS, Evidence, Sentence

# The confidence of an answer where all introductions agree: whoever is asked may know of another speaker.
INTRODUCED = 0.8
ASKED = re.compile(
    r"(?:(?:so|and|hey|hi|please),? )?(?:(?:what['\u2019]?s|what is|what was|do you (?:know|remember)|tell me)"
    r" my (?:(?:own|first|last|full|given|family) )?name|who am i|(?:do you (?:know|remember)|tell me) who i am)"
    r"(?:,? please)?[ ?.!]*",
    re.IGNORECASE,
)
# Given names that are peoples and faiths as well: alone they introduce nobody.
PEOPLES = frozenset({"christian", "german", "norman", "roman"})
# What follows "call me" and is no name. April, May, June and August are.
TIMES = (DATE_WORDS | {"today", "tomorrow", "tonight", "later", "back"}) - {"april", "may", "june", "august"}
_NAME = r"[A-Z\u00c0-\u00de][\w-]*(?:[ ][A-Z\u00c0-\u00de][\w-]*){0,3}\b(?!['\u2019])"
# What follows is a name, whatever it is.
NAMES_ITSELF = re.compile(rf"\b(?:[Mm]y (?:(?:full|first|given) )?name(?:['\u2019]s| is)|[Cc]all me) (?P<name>{_NAME})")
# What follows may be anything: "I'm German". It counts if people are called so.
MAY_NAME = re.compile(rf"\b(?:I['\u2019]m|I am|[Tt]his is) (?P<name>{_NAME})")


def introduced(question: str, evidence: Evidence) -> Evidence | None:
    """The evidence with introductions alone, where a question asks for the name of the one who asks.

    Returns None for other questions, and where nobody, or several of different names, introduced themselves.
    """
    if not ASKED.fullmatch(question.strip()):
        return None
    found = [(name, sentence) for sentence in evidence.sentences if (name := _name(sentence))]
    # "Sam" and "Sam Okafor" are one.
    if len({name.split()[0] for name, _ in found}) != 1:
        return None
    return replace(evidence, sentences=[sentence for _, sentence in found])


def _name(sentence: Sentence) -> str:
    """The name by which the speaker of a sentence introduces himself; empty where he does not."""
    sure, unsure = NAMES_ITSELF.search(sentence.text), MAY_NAME.search(sentence.text)
    # "Call me Monday" names nobody; "Call me May" may.
    if sure is not None and sure["name"].split()[0].lower() not in TIMES:
        return fold(sure["name"])
    name = fold(unsure["name"]) if unsure is not None else ""
    return name if name and name not in PEOPLES and name.split()[0] in gazetteers().given else ""
