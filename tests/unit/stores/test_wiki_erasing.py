"""An erasure leaves no byte of a source in wiki pages, their titles, links or revisions."""

from __future__ import annotations

from pathlib import Path

from astrocyte.api.requests import CompileBank, Forget, GetPage, ListPages, Retain, SearchPages
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.model import Caller, ForgetSelector, RetainItem
from oracles.byte_scans import files_with

ME, BANK = Caller(), "family"
# A word that stands nowhere else.
SECRET = "qzxvoltairxzq"


async def test_no_byte_of_an_erased_source_is_left_in_pages(tmp_path: Path) -> None:
    values = {"wiki": {"min_memories": 1}, "pipeline": {"entity_extraction": {"mode": "rules"}}}
    app = App(Settings.from_mapping({"data_dir": str(tmp_path / "data"), **values}))
    call = app.gate.call
    # It is a topic by its tag and by its name, and in the text and the links of another one.
    told = RetainItem(f"Jonas {SECRET.title()} calls the cat {SECRET}.", tags=("cat", f"about-{SECRET}"))
    secret = (await call(ME, Retain(BANK, told))).memory_id or ""
    await call(ME, Retain(BANK, RetainItem("The cat sleeps on the stove.", tags=("cat",))))
    await call(ME, CompileBank(BANK, request_id="r1"))
    await call(ME, Retain(BANK, RetainItem("The cat eats expensive food.", tags=("cat",))))
    await call(ME, CompileBank(BANK, request_id="r2"))
    page = await call(ME, GetPage(BANK, "topic:cat"))
    assert SECRET in page.content
    assert {one.page_id for one in page.links} == {f"topic:about-{SECRET}", f"entity:jonas-{SECRET}"}
    await call(ME, SearchPages(BANK, "what is the cat called?"))
    assert files_with(tmp_path, SECRET)
    result = await call(ME, Forget(BANK, ForgetSelector(memory_ids=(secret,)), compliance=True))
    assert result.receipt is not None
    assert result.receipt.counts["knowledge_items"] == 2
    assert result.receipt.counts["knowledge_revisions"] == 2
    assert files_with(tmp_path, SECRET) == []
    page = await call(ME, GetPage(BANK, "topic:cat"))
    assert ("sleeps on the stove" in page.content, page.links) == (True, ())
    assert [one.page_id for one in await call(ME, ListPages(BANK))] == ["topic:cat"]
    hits = await call(ME, SearchPages(BANK, "what is the cat called?"))
    assert all(SECRET not in hit.text for hit in hits)
    await app.close()
    assert files_with(tmp_path, SECRET) == []
