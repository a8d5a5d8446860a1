"""Lookup of canonical terms."""

from datetime import UTC, datetime

import pytest

from astrocyte.model import Term, TermMatch, TermStatus
from astrocyte.pipelines.agent_memory.vocabulary import Vocabulary, name_key


def term(name: str, *aliases: str) -> Term:
    when = datetime(2026, 1, 1, tzinfo=UTC)
    return Term(name, name, aliases, "", TermStatus.APPROVED, (), 1, "user:a", when)


TERMS = Vocabulary(
    [
        term("deploy window", "release window", "Freigabefenster"),
        term("ADR-5"),
        term("ADR-6"),
        term("knowledge graph", "KG"),
        term("Ωmega service"),
    ],
    0.88,
)


@pytest.mark.parametrize(
    ("text", "name", "match"),
    [
        ("deploy window", "deploy window", TermMatch.NAME),
        ("Deploy-Window", "deploy window", TermMatch.NAME),
        ("deploy_window", "deploy window", TermMatch.NAME),
        ("ＤＥＰＬＯＹ window", "deploy window", TermMatch.NAME),
        ("Release Window", "deploy window", TermMatch.ALIAS),
        ("kg", "knowledge graph", TermMatch.ALIAS),
        ("freigabefenster", "deploy window", TermMatch.ALIAS),
        ("deploying windows", "deploy window", TermMatch.STEM),
        ("release windows", "deploy window", TermMatch.STEM),
        ("knowledge grpah", "knowledge graph", TermMatch.SPELLING),
        ("deplyo window", "deploy window", TermMatch.SPELLING),
        ("adr 5", "ADR-5", TermMatch.NAME),
        ("ωmega service", "Ωmega service", TermMatch.NAME),
    ],
)
def test_a_term_is_found(text: str, name: str, match: TermMatch) -> None:
    found = TERMS.lookup(text)
    assert found.term is not None
    assert (found.term.name, found.match) == (name, match)
    assert found.similarity == 1.0 or (match is TermMatch.SPELLING and 0.88 <= found.similarity < 1.0)


@pytest.mark.parametrize("text", ["", "---", "window", "ADR-7", "ADR-56", "graph", "when do we deploy", "k", "deploy"])
def test_no_term_is_found(text: str) -> None:
    found = TERMS.lookup(text)
    assert not found.found
    assert (found.term, found.match, found.similarity) == (None, None, 0.0)


def test_the_first_of_two_terms_of_one_name_is_found() -> None:
    found = Vocabulary([term("edge"), term("border", "Edge")], 0.88).lookup("EDGE")
    assert found.term is not None
    assert found.term.name == "edge"


def test_a_key_has_the_words_alone() -> None:
    assert name_key("  Vivek's_Terraform—preference ") == "vivek s terraform preference"
    assert name_key("!?") == ""
