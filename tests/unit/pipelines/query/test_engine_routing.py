"""The router sends a query to the side that is good at its kind."""

import pytest

from astrocyte.pipelines.query.engine_routing import TOWARDS_ENGINE, TOWARDS_PIPELINE, route
from astrocyte.providers.engines import EngineCapabilities

ABLE = EngineCapabilities(temporal_search=True, graph_search=True, reflect=True)
PLAIN = EngineCapabilities()


@pytest.mark.parametrize(
    ("query", "signals"),
    [
        ("When did Mara move to Oslo?", ("temporal", "entities")),
        ("What happened in May 2024?", ("temporal",)),
        ("How does Mara know Jonas and Freya?", ("entities",)),
        ("compare the two offers", ("complex",)),
        ("explain the whole plan step by step", ("complex",)),
        ("Marigolds and junipers", ("short",)),
        ("coffee machine", ("short",)),
        ("what is the name of the dog", ()),
        ("", ()),
        ("???", ()),
    ],
)
def test_a_query_has_the_signals_of_its_form(query: str, signals: tuple[str, ...]) -> None:
    assert route(query, ABLE).signals == signals


def test_a_signal_counts_for_who_is_good_at_it() -> None:
    assert route("When did Mara move?", ABLE)[:2] == (TOWARDS_ENGINE, 1.0)
    assert route("When did Mara move?", PLAIN)[:2] == (1.0, TOWARDS_PIPELINE)
    assert route("coffee machine", ABLE)[:2] == (1.0, TOWARDS_PIPELINE)
    assert route("what is the name of the dog", ABLE)[:2] == (1.0, 1.0)
