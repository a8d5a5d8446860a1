"""Lookup of canonical terms."""

from datetime import UTC, datetime

import pytest

from astrocyte.model import Term, TermMatch, TermStatus
from astrocyte.pipelines.agent_memory.vocabulary import MOST_QUERY_WORDS, Vocabulary, name_key


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
        ("the deploy window", "deploy window", TermMatch.NAME),
        ("about the release window", "deploy window", TermMatch.ALIAS),
        ("the releasing windows", "deploy window", TermMatch.STEM),
        ("the knowledge grpah", "knowledge graph", TermMatch.SPELLING),
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


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("deploy window", "deploy window"),
        ("the release window", "deploy window"),
        ("when is the release window?", "deploy window"),
        ("What do you know about release windows", "deploy window"),
        ("What did ADR-5 say of the knowledge graph?", "ADR-5"),
        ("Does the KG have edges?", "knowledge graph"),
        ("Tell me of the graph of knowledge in ADR-6", "ADR-6"),
        (" ".join([*["word"] * (MOST_QUERY_WORDS - 2), "deploy", "window"]), "deploy window"),
    ],
)
def test_a_term_is_found_in_a_query(query: str, name: str) -> None:
    found = TERMS.lookup_query(query)
    assert found.term is not None
    assert found.term.name == name


@pytest.mark.parametrize(
    "query",
    [
        "",
        "?!",
        "when do we deploy?",
        "which window is open",
        "ADR-7",
        # A passage has no topic of its own.
        " ".join([*["word"] * (MOST_QUERY_WORDS - 1), "deploy", "window"]),
    ],
)
def test_a_query_without_a_term_has_none(query: str) -> None:
    assert not TERMS.lookup_query(query).found


def test_stop_words_that_are_a_name_are_found_as_such_alone() -> None:
    band = Vocabulary([term("The Who"), term("to do list")], 0.88)
    for text, name in (("the who", "The Who"), ("the to do list", "to do list"), ("my to do lists", "to do list")):
        found = band.lookup_query(text)
        assert found.term is not None
        assert found.term.name == name
    # Neither name is one of its words.
    for text in ("who is it", "the list", "what to do"):
        assert not band.lookup_query(text).found
