"""Context windows: turns of a session share scores, memories without one do not, and a lender ranks first."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from astrocyte import Astrocyte
from astrocyte.api.requests import BatchRetain, Explain, Recall
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.model import Caller, ExplainQuery, FusionMethod, RecallQuery, RetainItem

START = datetime(2025, 3, 1, 9, tzinfo=UTC)
NOTES = (
    "Mara is allergic to walnuts.",
    "The kiln cake was glazed in green.",
    "The bus to Ghent leaves at nine.",
    "Ulla paid the rent.",
    "The piano was delivered.",
)
TALK = (
    "Have you been to the new cinema?",
    "Yes, on Tuesday, with Ines.",
    "Which allergy does Mara have?",
    "Walnuts, she carries a pen for it.",
    "Let us bake without them.",
)


@pytest.mark.parametrize("method", FusionMethod)
async def test_dated_notes_without_a_session_share_nothing(method: FusionMethod) -> None:
    answers = []
    for windows in (True, False):
        brain = Astrocyte.from_config_dict({"vector_store": "in_memory", "recall": {"context_windows": windows}})
        for place, text in enumerate(NOTES):
            await brain.retain(text, bank_id="b", occurred_at=START + timedelta(hours=place))
        result = await brain.recall("what is Mara allergic to?", bank_id="b", fusion_method=method)
        answers.append([(hit.text, hit.score, hit.fused_score, hit.arms) for hit in result.hits])
        await brain.close()
    assert answers[0] == answers[1]
    assert answers[0][0][0] == NOTES[0]


async def test_explain_names_what_was_borrowed_and_lenders_rank_first() -> None:
    caller = Caller()
    app = App(Settings.from_mapping({"vector_store": "in_memory"}))
    items = [RetainItem(text, session_id="talk") for text in TALK]
    items += [RetainItem(text) for text in NOTES[1:]]
    ids = [one.memory_id or "" for one in await app.gate.call(caller, BatchRetain("b", items))]
    query = RecallQuery("which allergy does Mara have?", "b", max_results=9)
    hits = [hit.memory_id for hit in (await app.gate.call(caller, Recall(query))).hits]
    found = await app.gate.call(caller, Explain(ExplainQuery(query, tuple(ids))))
    explained = dict(zip(ids, found.explanations, strict=True))
    # The answer borrows from the question before it, which stands above it.
    question, answer = ids[2], ids[3]
    assert hits.index(question) < hits.index(answer)
    borrowed = [one for one in explained[answer].borrowed if one.memory_id == question]
    assert {one.arm for one in borrowed} == {"semantic", "keyword"}
    assert all(one.lender and one.amount > 0 for one in borrowed)
    for one in explained.values():
        for part in one.borrowed:
            assert part.memory_id in ids[: len(TALK)]
            if part.lender:
                assert hits.index(part.memory_id) < hits.index(one.memory_id)
    assert not any(explained[one].borrowed for one in ids[len(TALK) :])
    await app.close()
