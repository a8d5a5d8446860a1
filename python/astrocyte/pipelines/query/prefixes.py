"""Prefixes of a query: the words that end with an asterisk, where a recall expands them."""

from __future__ import annotations

import re

from astrocyte.core import stemmed_words
from astrocyte.errors import ValidationError
from astrocyte.model import RecallQuery
from astrocyte.pipelines.query.phrases import map_unquoted

# What is written without space before an asterisk that ends it. An asterisk between letters is none. What begins inside
# of a word is not tried, which would take the square of its length.
_STARRED = re.compile(r"(?<![^\s*])([^\s*]+)\*+(?!\w)")

# A query of more is a search expression; each prefix costs the postings of all its words.
MOST_PREFIXES = 4
# Shorter ones stand for thousands of words of a large bank, which tell nothing apart.
FEWEST_CHARS = 3


def check_prefixes(query: RecallQuery) -> None:
    """Check the prefixes of a query.

    Raises:
        ValidationError: There is none, or too many; one is too short or has no letter; or an asterisk ends no word.
    """
    prefixes, rest = _starred(query)
    if "*" in rest:
        raise ValidationError(
            'has an asterisk that ends no word; write "*" after the letters of a prefix and nowhere else', field="query"
        )
    if not prefixes:
        raise ValidationError('has no prefix; end a word with "*", or leave expand_prefixes out', field="query")
    if len(prefixes) > MOST_PREFIXES:
        raise ValidationError(f"has {len(prefixes)} prefixes; at most {MOST_PREFIXES} are allowed", field="query")
    for number, prefix in enumerate(prefixes, 1):
        if not _is_prefix(prefix):
            raise ValidationError(
                f"has {len(prefix)} letters and digits before the asterisk of prefix {number}; at least {FEWEST_CHARS} "
                "are needed, one of them a letter of a script that puts spaces between words",
                field="query",
            )


def prefixes_of(query: RecallQuery) -> list[str]:
    """The distinct prefixes of a query, in the spelling in which words are compared and in lower case."""
    return list(dict.fromkeys(filter(_is_prefix, _starred(query)[0])))[:MOST_PREFIXES]


def without_prefixes(query: RecallQuery, text: str) -> str:
    """A text of a query without its prefixes. The other words of "blue-kil*" stay."""

    def without(part: str) -> str:
        return _STARRED.sub(lambda found: _parts(found[1])[0], part)

    return map_unquoted(without, text) if query.require_phrases else without(text)


def _starred(query: RecallQuery) -> tuple[list[str], str]:
    """The last word before each asterisk that ends one, and what else is written.

    Phrases are left out of both, where the query requires these.
    """
    found: list[str] = []
    rest: list[str] = []

    def collect(part: str) -> str:
        found.extend(_parts(starred)[1] for starred in _STARRED.findall(part))
        rest.append(_STARRED.sub(" ", part))
        return part

    if query.require_phrases:
        map_unquoted(collect, query.query)
    else:
        collect(query.query)
    return found, " ".join(rest)


def _is_prefix(prefix: str) -> bool:
    return len(prefix) >= FEWEST_CHARS and any(map(str.isalpha, prefix))


def _parts(starred: str) -> tuple[str, str]:
    """The words before the last one, and the last one."""
    words = [word for word, _ in stemmed_words(starred)]
    return " ".join(words[:-1]), words[-1] if words else ""
