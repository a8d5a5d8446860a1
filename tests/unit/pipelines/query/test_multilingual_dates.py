"""Dates of other languages in questions: understood where the settings name the language."""

import sys
from datetime import UTC, datetime
from typing import Any

import pytest

from astrocyte.api.requests import BatchRecall, Recall, Retain
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import ConfigError
from astrocyte.model import Caller, RecallQuery, RetainItem, TimeRange

ME = Caller()
dateparser = pytest.importorskip("dateparser")
TODAY = datetime(2024, 5, 10, 18, tzinfo=UTC)


def settings(*languages: str) -> Settings:
    return Settings.from_mapping({"vector_store": "in_memory", "recall": {"date_languages": list(languages)}})


def window(start: str, end: str) -> TimeRange:
    last = datetime.fromisoformat(f"{end}T23:59:59.999+00:00")
    return TimeRange(datetime.fromisoformat(f"{start}T00:00:00+00:00"), last)


@pytest.mark.parametrize(
    ("language", "text", "start", "end"),
    [
        ("de", "was habe ich gestern gegessen?", "2024-05-09", "2024-05-09"),
        ("de", "Wo waren wir im März 2023?", "2023-03-01", "2023-03-31"),
        ("de", "Was geschah letzte Woche mit dem Auto?", "2024-04-29", "2024-05-05"),
        ("fr", "qu'est-ce que j'ai fait le 3 mai 2024 ?", "2024-05-03", "2024-05-03"),
        ("de", "2019 war gut", "2019-01-01", "2019-12-31"),
    ],
)
async def test_a_date_of_the_language_becomes_a_window(language: str, text: str, start: str, end: str) -> None:
    app = App(settings(language))
    try:
        await app.gate.call(ME, Retain("b", RetainItem("Suppe", occurred_at=datetime(2024, 5, 10, 12, tzinfo=UTC))))
        result = await app.gate.call(ME, Recall(RecallQuery(text, "b", query_reference_date=TODAY)))
        (batch,) = await app.gate.call(ME, BatchRecall([RecallQuery(text, "b", query_reference_date=TODAY)]))
    finally:
        await app.close()
    assert result.trace is not None
    assert batch.trace is not None
    assert window(start, end) in result.trace.time_windows
    assert batch.trace.time_windows == result.trace.time_windows


@pytest.mark.parametrize("text", ["Wer ist Anna?", "was ist die Liste?", "mit wem?", "x" * 10_000, "\0"])
def test_what_is_no_date_makes_no_window(text: str) -> None:
    from astrocyte.pipelines.query.multilingual_dates import MultilingualDates

    assert MultilingualDates(settings("de")).windows(text, TODAY) == []


@pytest.mark.parametrize("languages", [(), ("fr",)])
async def test_another_language_is_not_understood(languages: tuple[str, ...]) -> None:
    app = App(settings(*languages))
    try:
        await app.gate.call(ME, Retain("b", RetainItem("Suppe", occurred_at=datetime(2024, 5, 10, 12, tzinfo=UTC))))
        result = await app.gate.call(ME, Recall(RecallQuery("was habe ich gestern gegessen?", "b")))
    finally:
        await app.close()
    assert result.trace is not None
    assert result.trace.time_windows == ()


def test_an_unknown_language_is_refused() -> None:
    with pytest.raises(ConfigError) as refused:
        App(settings("klingon"))
    assert refused.value.metadata["key"] == "recall.date_languages"


def test_without_the_extra_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "astrocyte.pipelines.query.multilingual_dates", raising=False)
    blocked: dict[str, Any] = {"dateparser": None, "dateparser.date": None, "dateparser.search": None}
    for name, value in blocked.items():
        monkeypatch.setitem(sys.modules, name, value)
    with pytest.raises(ConfigError, match="astrocyte-grpc\\[dates\\]"):
        App(settings("de"))
