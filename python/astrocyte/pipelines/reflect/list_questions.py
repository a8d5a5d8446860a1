"""Questions that ask for several things: "which dishes ...", "all the ...", "list ..."."""

from __future__ import annotations

import re

from astrocyte.pipelines.reflect.answer_types import AnswerType, answer_type

# A time, an amount or a reason is one answer, whatever the number of its noun: "on which days", "how many".
ONE_ANSWER = frozenset({
    AnswerType.DATE, AnswerType.DURATION, AnswerType.FREQUENCY, AnswerType.NUMBER, AnswerType.REASON,
})  # fmt: skip
_AUXILIARY = r"(?:am|is|are|was|were|do|does|did|has|have|had|can|could|will|would|should|shall|may|might|must)"
# Words with the ending of a plural that are verbs, adverbs, or nouns of one thing.
_NO_PLURAL = (
    r"(?:\w*(?:ss|us|is)|does|has|was|news|series|always|perhaps|besides|sometimes|physics|mathematics|politics"
    r"|economics|gas|bus|lens|makes|helps|happens|keeps|gives|takes|comes|goes|brings|motivates|inspires|worries"
    r"|bothers|interests|stops|drives|days|dates|times|hours|weeks|months|years|seasons)"
)
# A noun in the plural, also before "of", and never a name with its "'s".
_PLURAL = rf"(?!{_NO_PLURAL}\b)(?:(?-i:[a-z/-]{{2,}}s)|people|children|men|women)(?:'|\u2019)?(?=[\s,?.!]|$)"
_BETWEEN = rf"(?:(?!{_AUXILIARY}\b)[\w'\u2019/+&-]+ )"
_PRONOUN = r"(?:you|we|they|i|he|she|it)\b"
# What may stand between the noun and its verb: "books about cats", "events for veterans", "places or events".
_PHRASE = r"(?: (?:of|for|in|at|on|to|with|from|about|and|or|that|who)(?: [\w'\u2019-]+){1,4}?)?"
_QUESTIONS = (
    # "What hobbies does Mara have", "which of Mara's friends have come".
    rf"\b(?:what|which) {_BETWEEN}{{0,4}}?{_PLURAL}{_PHRASE} {_AUXILIARY}\b",
    # "Which dishes went cold": no verb stands directly behind "which".
    rf"\bwhich {_PLURAL} ",
    # "What are the names of", "what were Mara's plans".
    rf"\b(?:what|which) (?:are|were) (?!{_PRONOUN}){_BETWEEN}{{0,3}}?{_PLURAL}",
    # "Tell me all the places", "what were all of her jobs".
    (
        r"^(?:tell|give|show|what|which|where|name)\b.*\ball (?:of )?"
        rf"(?:(?:the|his|her|their|my|our|your)|[\w-]+['\u2019]s?) (?:[\w-]+ )?{_PLURAL}"
    ),
    r"^(?:please )?(?:list|enumerate)\b",
    r"^(?:please )?name (?:all|some|every|the (?:\w+ )?\w+s\b|two|three|four|five|\d)",
)
_LIST = re.compile("|".join(_QUESTIONS), re.IGNORECASE)


def asks_for_list(question: str) -> bool:
    """True if a question asks for several things, by its form alone."""
    text = " ".join(question.split())
    return _LIST.search(text) is not None and answer_type(text) not in ONE_ANSWER
