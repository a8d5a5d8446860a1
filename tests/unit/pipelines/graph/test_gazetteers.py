"""Lists of names that ship: their form and the notice of their sources."""

from importlib.resources import files

import pytest

from astrocyte.pipelines.graph.names.gazetteers import fold, gazetteers, nickname_table, place_table, spelling_table

DATA = files("astrocyte.pipelines.graph.names").joinpath("data")
LISTS = ("given_names", "family_names", "places", "regions", "organisations", "products", "events", "word_names")


def test_notice_names_every_file() -> None:
    notice = DATA.joinpath("NOTICE").read_text(encoding="utf-8")
    for one in DATA.iterdir():
        assert one.name == "NOTICE" or one.name in notice, one.name


@pytest.mark.parametrize("name", LISTS)
def test_entries_are_folded_sorted_and_unique(name: str) -> None:
    entries = DATA.joinpath(f"{name}.txt").read_text(encoding="utf-8").splitlines()
    assert all(one == fold(one) for one in entries)
    assert len(entries) == len(set(entries)) > 50


def test_names_of_many_cultures_are_listed() -> None:
    lists = gazetteers()
    names = ("Alice", "Ngozi", "Kenji", "Priya", "Mehmet", "Łukasz", "Алексей", "وليد")
    assert {fold(name) for name in names} <= lists.given
    assert lists.holds("new york")
    assert not lists.holds("alice")


def test_tables() -> None:
    assert "robert" in nickname_table()["bob"]
    assert "aleksandr" in nickname_table()["sasha"]
    assert spelling_table()["mohammed"] == spelling_table()["muhammad"]
    assert place_table()["nyc"] == place_table()["new york"]
