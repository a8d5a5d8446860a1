"""The outbound policy applies to memories that external models read."""

import sys
from pathlib import Path
from typing import Any

import pytest

from astrocyte.api.requests import BatchRetain, CompileBank, Recall, Retain
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.model import Caller, RecallQuery, RetainItem
from doubles import rerankers

ME = Caller()
# Stored while the barrier was off.
SECRETS = ("mara@example.org", "4111 1111 1111 1111")
TEXTS = [f"Mara writes from {SECRETS[0]} of the ferry.", f"The ferry is paid by {SECRETS[1]}.", "The ferry is blue."]
QUERY = RecallQuery("who pays for the ferry?", "b", max_results=3)
DLP = {"scan_recall_output": True, "output_pii_action": "redact"}


@pytest.fixture(autouse=True)
def third_party(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rerankers.install(tmp_path / "site", monkeypatch)
    monkeypatch.setitem(sys.modules, "rerankers", rerankers)
    rerankers.LAST.clear()


def app_of(**settings: Any) -> App:
    return App(
        Settings.from_mapping({"vector_store": "in_memory", "barriers": {"pii": {"mode": "disabled"}}, **settings})
    )


async def filled(app: App, bank: str = "b") -> App:
    await app.gate.call(ME, BatchRetain(bank, [RetainItem(text) for text in TEXTS]))
    return app


def prompts(app: App) -> str:
    """Everything that the language model was ever sent."""
    model: Any = app.providers.language_model
    while not hasattr(model, "prompts"):
        model = model._model
    return repr(model.prompts)


def by_model(dlp: dict[str, Any], **settings: Any) -> App:
    return app_of(
        dlp=dlp,
        pipeline={"reranking": {"mode": "llm"}},
        llm_provider="mock",
        llm_provider_config={"replies": ['{"grades": [1, 2, 3]}']},
        **settings,
    )


def leaked(sent: str) -> list[str]:
    return [secret for secret in SECRETS if secret in sent]


@pytest.mark.parametrize("action", ["redact", "reject"])
@pytest.mark.parametrize("scan", ["scan_recall_output", "scan_reflect_output"])
async def test_a_language_model_that_grades_sees_no_personal_data(action: str, scan: str) -> None:
    app = await filled(by_model({scan: True, "output_pii_action": action}))
    await app.gate.call(ME, Recall(QUERY))
    sent = prompts(app)
    assert "The ferry is blue." in sent
    assert "[EMAIL_REDACTED]" in sent
    assert leaked(sent) == []
    await app.close()


async def test_without_the_policy_it_would() -> None:
    app = await filled(by_model(DLP))
    reranking: Any = app.stages.reranking
    reranking._outbound = None
    await app.gate.call(ME, Recall(QUERY))
    assert leaked(prompts(app)) == list(SECRETS)
    await app.close()


@pytest.mark.parametrize("dlp", [{}, {**DLP, "output_pii_action": "warn"}])
async def test_where_nothing_is_kept_back_texts_are_read_as_they_are(dlp: dict[str, Any]) -> None:
    app = await filled(by_model(dlp))
    await app.gate.call(ME, Recall(QUERY))
    assert leaked(prompts(app)) == list(SECRETS)
    await app.close()


async def test_each_bank_has_its_own_policy() -> None:
    app = await filled(await filled(by_model({}, banks={"strict": {"dlp": DLP}}), "strict"))
    await app.gate.call(ME, Recall(RecallQuery(QUERY.query, "strict")))
    assert leaked(prompts(app)) == []
    await app.gate.call(ME, Recall(QUERY))
    assert leaked(prompts(app)) == list(SECRETS)
    await app.close()


@pytest.mark.parametrize("local", [True, False])
async def test_a_reranker_of_others_is_outside_unless_it_says_that_it_is_not(
    monkeypatch: pytest.MonkeyPatch, *, local: bool
) -> None:
    if local:
        monkeypatch.setattr(rerankers.WordReranker, "local", True, raising=False)
    app = await filled(app_of(dlp=DLP, pipeline={"reranking": {"mode": "words", "options": {"word": "paid"}}}))
    result = await app.gate.call(ME, Recall(QUERY))
    read = repr(rerankers.LAST[0].read)
    assert leaked(read) == (list(SECRETS) if local else [])
    # What leaves in the end is judged as ever.
    assert leaked(repr(result.hits)) == []
    await app.close()


async def test_a_number_that_a_passage_would_cut_is_found_before() -> None:
    app = app_of(dlp=DLP, pipeline={"reranking": {"mode": "words", "passage_chars": 100}})
    long = f"{'and so on ' * 9}{SECRETS[1]} ferry pays {'and so on ' * 30}"
    await app.gate.call(ME, BatchRetain("b", [RetainItem(long), RetainItem(TEXTS[2])]))
    await app.gate.call(ME, Recall(QUERY))
    assert "1111" not in repr(rerankers.LAST[0].read)
    await app.close()


async def test_a_language_model_that_curates_sees_none_either() -> None:
    reply = '{"action": "add", "target": 0, "content": "", "memory_layer": "fact", "reason": "because"}'
    settings = {"llm_provider": "mock", "llm_provider_config": {"replies": [reply] * 9}}
    app = await filled(app_of(dlp=DLP, curated_retain={"enabled": True}, **settings))
    before = prompts(app)
    await app.gate.call(ME, Retain("b", RetainItem("The ferry is paid by Ines.")))
    sent = prompts(app)[len(before) - 1 :]
    assert "The ferry is blue." in sent
    assert "[CREDIT_CARD_REDACTED]" in sent
    assert leaked(sent) == []
    await app.close()


async def test_a_language_model_that_writes_pages_sees_none_as_texts_speakers_and_names() -> None:
    settings = {"llm_provider": "mock", "llm_provider_config": {"replies": ["The ferry is blue [1]."] * 9}}
    app = app_of(dlp=DLP, wiki={"writer": "model", "min_memories": 1}, **settings)
    items = [RetainItem(text, speaker=SECRETS[0], tags=("ferry", SECRETS[0])) for text in TEXTS]
    await app.gate.call(ME, BatchRetain("b", items))
    assert (await app.gate.call(ME, CompileBank("b"))).pages_created >= 2
    sent = prompts(app)
    assert "The ferry is blue." in sent
    assert "[EMAIL_REDACTED]" in sent.replace("(EMAIL_REDACTED)", "[EMAIL_REDACTED]")
    assert leaked(sent) == []
    await app.close()
