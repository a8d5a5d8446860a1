"""A refused call over several banks does the same work, whatever is in the banks that the caller may read."""

from collections import Counter
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from astrocyte.api.requests import BatchRetain, CreateBank, Recall
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.core import Core
from astrocyte.errors import AccessDenied
from astrocyte.model import Caller, MultiBankMode, MultiBankStrategy, RecallQuery, RetainItem
from astrocyte.pipelines.index.registry import IndexRegistry

ADMIN = Caller("default", "user:admin")
ANA = Caller("default", "user:ana")
FULL = ("full-a", "full-b")
EMPTY = ("empty-a", "empty-b")
# Named and never made.
MISSING = ("missing-a", "missing-b")


@pytest.fixture
async def app() -> AsyncIterator[App]:
    grants = [
        {"bank_id": "*", "principal": "user:admin", "permissions": ["*"]},
        *({"bank_id": bank, "principal": "user:ana", "permissions": ["read"]} for bank in (*FULL, *EMPTY, *MISSING)),
    ]
    control = {"enabled": True, "default_policy": "deny"}
    app = App(Settings.from_mapping({"vector_store": "in_memory", "access_control": control, "access_grants": grants}))
    for bank in (*FULL, *EMPTY, "forbidden"):
        await app.gate.call(ADMIN, CreateBank(bank))
    for bank in FULL:
        await app.gate.call(ADMIN, BatchRetain(bank, [RetainItem(f"a lantern {number}") for number in range(50)]))
    # The banks and their indexes are in memory, as they are for a caller who asks all day.
    await app.gate.call(ANA, Recall(RecallQuery("lantern", banks=(*FULL, *EMPTY))))
    yield app
    await app.gate.close()


@pytest.fixture
def work(app: App, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Work that could tell about a bank: reads of the store, looks at indexes, searches, embeddings."""
    done: Counter[str] = Counter()

    def count(owner: Any, name: str) -> None:
        method: Callable[..., Any] = getattr(owner, name)

        def counted(*arguments: Any, **named: Any) -> Any:
            done[name] += 1
            return method(*arguments, **named)

        monkeypatch.setattr(owner, name, counted)

    for name in ("get_bank", "hydrate", "hydrate_each", "list_banks", "content_bytes"):
        count(app.storage.store, name)
    for name in ("loaded", "get", "peek"):
        count(IndexRegistry, name)
    count(Core, "recall_many")
    return done


@pytest.mark.parametrize("mode", list(MultiBankMode))
@pytest.mark.parametrize("others", [FULL, EMPTY, MISSING], ids=["full", "empty", "missing"])
@pytest.mark.parametrize("denied", ["forbidden", "nowhere"])
async def test_a_denial_in_the_middle_does_no_work_that_depends_on_the_others(
    app: App, work: Counter[str], mode: MultiBankMode, others: tuple[str, str], denied: str
) -> None:
    asked = RecallQuery("lantern", banks=(others[0], denied, others[1]), strategy=MultiBankStrategy(mode))
    with pytest.raises(AccessDenied) as refusal:
        await app.gate.call(ANA, Recall(asked))
    assert not work
    assert all(bank not in str(refusal.value) for bank in (*FULL, *EMPTY, *MISSING))


async def test_a_call_that_is_let_pass_does(app: App, work: Counter[str]) -> None:
    await app.gate.call(ANA, Recall(RecallQuery("lantern", banks=FULL)))
    assert work["recall_many"] == 1
    assert work["hydrate_each"] == 1
