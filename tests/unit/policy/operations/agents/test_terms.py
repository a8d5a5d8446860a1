"""Canonical terms, at the gate."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from astrocyte.api.requests import ListTerms, LookupTerm, ProposeTerm, ReviewTerm
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import AccessDenied, FailedPrecondition, NotFound, QuotaExceeded, ValidationError
from astrocyte.model import Caller, TermDecision, TermMatch, TermStatus

AGENT = Caller(principal="agent:atlas")
ROOT = Caller(principal="user:root")
SETTINGS = {
    "vector_store": "in_memory",
    "access_control": {"enabled": True},
    "access_grants": [{"bank_id": "*", "principal": "user:root", "permissions": ["*"]}],
    "agent_memory": {"max_terms": 2},
}


@pytest.fixture
async def app() -> AsyncIterator[App]:
    made = App(Settings.from_mapping(SETTINGS))
    yield made
    await made.close()


async def test_a_term_is_proposed_once_and_counted(app: App) -> None:
    first = await app.gate.call(AGENT, ProposeTerm("deploy window", ["release window"], "Hours.", "m1"))
    again = await app.gate.call(AGENT, ProposeTerm("Deploy-Window", memory_id="m2"))
    assert again.term_id == first.term_id
    assert (again.name, again.aliases, again.definition) == ("deploy window", ("release window",), "Hours.")
    assert (again.proposals, again.memory_ids, again.proposed_by) == (2, ("m1", "m2"), "agent:atlas")


async def test_a_repeated_proposal_is_not_counted(app: App) -> None:
    terms = [await app.gate.call(AGENT, ProposeTerm("deploy window", request_id="p1")) for _ in range(3)]
    assert [term.proposals for term in terms] == [1, 1, 1]


async def test_provenance_is_bounded(app: App) -> None:
    proposed = [await app.gate.call(AGENT, ProposeTerm("deploy window", memory_id=f"m{n}")) for n in range(20)]
    assert proposed[-1].memory_ids == tuple(f"m{number}" for number in range(16))


async def test_only_an_approved_term_is_found(app: App) -> None:
    term = await app.gate.call(AGENT, ProposeTerm("deploy window", ["release window"]))
    assert not (await app.gate.call(AGENT, LookupTerm("deploy window"))).found
    approved = await app.gate.call(ROOT, ReviewTerm(term.term_id, TermDecision.APPROVE))
    assert (approved.status, approved.reviewed_by) == (TermStatus.APPROVED, "user:root")
    found = await app.gate.call(AGENT, LookupTerm("release windows"))
    assert (found.term, found.match) == (approved, TermMatch.STEM)
    # Terms are the tenant's.
    assert not (await app.gate.call(Caller("beta", "agent:atlas"), LookupTerm("deploy window"))).found
    with pytest.raises(NotFound):
        await app.gate.call(Caller("beta", "user:root", operator=True), ReviewTerm(term.term_id, TermDecision.REJECT))


async def test_a_merged_term_is_an_alias(app: App) -> None:
    window = await app.gate.call(AGENT, ProposeTerm("deploy window"))
    other = await app.gate.call(AGENT, ProposeTerm("go-live slot", ["slot"]))
    with pytest.raises(FailedPrecondition, match="not approved"):
        await app.gate.call(ROOT, ReviewTerm(other.term_id, TermDecision.MERGE, window.term_id))
    await app.gate.call(ROOT, ReviewTerm(window.term_id, TermDecision.APPROVE))
    merged = await app.gate.call(ROOT, ReviewTerm(other.term_id, TermDecision.MERGE, window.term_id))
    assert (merged.status, merged.merged_into) == (TermStatus.MERGED, window.term_id)
    for text in ("go live slot", "slot"):
        found = await app.gate.call(AGENT, LookupTerm(text))
        assert found.term is not None
        assert (found.term.name, found.match) == ("deploy window", TermMatch.ALIAS)


async def test_a_review_is_final_and_an_admin_s(app: App) -> None:
    term = await app.gate.call(AGENT, ProposeTerm("deploy window"))
    with pytest.raises(AccessDenied):
        await app.gate.call(AGENT, ReviewTerm(term.term_id, TermDecision.APPROVE))
    first = await app.gate.call(ROOT, ReviewTerm(term.term_id, TermDecision.REJECT, request_id="v1"))
    assert await app.gate.call(ROOT, ReviewTerm(term.term_id, TermDecision.REJECT, request_id="v1")) == first
    with pytest.raises(FailedPrecondition, match="is rejected"):
        await app.gate.call(ROOT, ReviewTerm(term.term_id, TermDecision.APPROVE))
    assert not (await app.gate.call(AGENT, LookupTerm("deploy window"))).found


async def test_approved_terms_are_limited(app: App) -> None:
    terms = [await app.gate.call(AGENT, ProposeTerm(name)) for name in ("one thing", "two things", "three things")]
    for term in terms[:2]:
        await app.gate.call(ROOT, ReviewTerm(term.term_id, TermDecision.APPROVE))
    with pytest.raises(QuotaExceeded, match="max_terms"):
        await app.gate.call(ROOT, ReviewTerm(terms[2].term_id, TermDecision.APPROVE))
    rejected = await app.gate.call(ROOT, ReviewTerm(terms[2].term_id, TermDecision.REJECT))
    assert rejected.status is TermStatus.REJECTED


async def test_terms_are_paged_by_age_and_status(app: App) -> None:
    for number in range(5):
        await app.gate.call(AGENT, ProposeTerm(f"term {number}"))
    names: list[str] = []
    token = ""
    while True:
        page = await app.gate.call(ROOT, ListTerms(TermStatus.PROPOSED, page_size=2, page_token=token))
        names += [term.name for term in page.terms]
        token = page.next_page_token
        if not token:
            break
    assert names == [f"term {number}" for number in range(5)]
    assert (await app.gate.call(AGENT, ListTerms(TermStatus.APPROVED))).terms == ()


async def test_proposals_are_not_for_other_agents(app: App) -> None:
    proposed = await app.gate.call(AGENT, ProposeTerm("salary of Mara"))
    window = await app.gate.call(AGENT, ProposeTerm("deploy window"))
    await app.gate.call(ROOT, ReviewTerm(window.term_id, TermDecision.APPROVE))
    seen = await app.gate.call(Caller(principal="agent:drake"), ListTerms())
    assert [term.name for term in seen.terms] == ["deploy window"]
    for status in (TermStatus.PROPOSED, TermStatus.REJECTED):
        with pytest.raises(AccessDenied):
            await app.gate.call(Caller(principal="agent:drake"), ListTerms(status))
    assert proposed in (await app.gate.call(ROOT, ListTerms())).terms


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (LookupTerm(""), "text"),
        (LookupTerm("t" * 257), "text"),
        (ProposeTerm(""), "name"),
        (ProposeTerm("?!"), "name"),
        (ProposeTerm("term", ["a"] * 65), "aliases"),
        (ProposeTerm("term", ["a\x00"]), "aliases[0]"),
        (ProposeTerm("term", definition="d" * 1_000_000), "definition"),
        (ProposeTerm("term", memory_id=""), "memory_id"),
        (ReviewTerm("", TermDecision.APPROVE), "term_id"),
        (ReviewTerm("t", "maybe"), "decision"),  # type: ignore[arg-type]  # what a caller may send
        (ReviewTerm("t"), "decision"),
        (ReviewTerm("t", TermDecision.MERGE), "merge_into"),
        (ReviewTerm("t", TermDecision.APPROVE, "u"), "merge_into"),
        (ReviewTerm("t", TermDecision.MERGE, "t"), "merge_into"),
        (ListTerms("all"), "status"),  # type: ignore[arg-type]  # what a caller may send
    ],
)
async def test_a_wrong_field_is_named(app: App, request_: Any, field: str) -> None:
    with pytest.raises(ValidationError) as raised:
        await app.gate.call(ROOT, request_)
    assert raised.value.field == field
    assert (await app.gate.call(ROOT, ListTerms())).terms == ()
