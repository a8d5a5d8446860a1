"""An erasure leaves no byte of a source in observations, mental models, revisions or answers to requests."""

from __future__ import annotations

from pathlib import Path

from astrocyte.api.requests import (
    CreateMentalModel,
    CreateObservation,
    DeleteObservation,
    Forget,
    GetMentalModel,
    Recall,
    RefreshMentalModel,
    Retain,
    UpdateMentalModel,
    UpdateObservation,
)
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.model import (
    Caller,
    DeltaOperation,
    ForgetSelector,
    ModelBlock,
    ModelSection,
    RecallQuery,
    RetainItem,
)
from oracles.byte_scans import files_with

ME, BANK = Caller(), "family"
# A word that stands nowhere else.
SECRET = "qzxvoltairxzq"


async def test_no_byte_of_an_erased_source_is_left(tmp_path: Path) -> None:
    app = App(Settings.from_mapping({"data_dir": str(tmp_path / "data")}))
    call = app.gate.call
    secret = (await call(ME, Retain(BANK, RetainItem(f"Mara calls the cat {SECRET}.")))).memory_id or ""
    other = (await call(ME, Retain(BANK, RetainItem("Mara drinks green tea.")))).memory_id or ""
    text = f"The cat is called {SECRET}."
    # A current revision, an earlier one, a deleted item, a request id.
    await call(ME, CreateObservation(BANK, text, [secret, other], request_id="r1"))
    later = await call(ME, CreateObservation(BANK, text, [secret]))
    await call(ME, UpdateObservation(BANK, later.observation_id, "Tea.", [other], request_id="r2"))
    gone = await call(ME, CreateObservation(BANK, text, [secret]))
    await call(ME, DeleteObservation(BANK, gone.observation_id))
    cited = ModelBlock(text=text, source_ids=(secret,))
    sections = (ModelSection("cat", "Cat", (cited,)), ModelSection("tea", "Tea", (ModelBlock(text="Green."),)))
    await call(ME, CreateMentalModel(BANK, "Mara", sections, model_id="model:mara", request_id="r3"))
    await call(ME, UpdateMentalModel(BANK, "model:mara", [DeltaOperation("append_block", "cat", block=cited)]))
    await call(ME, CreateMentalModel(BANK, "Cat", content=text, source_ids=[secret], model_id="model:cat"))
    drinks = (ModelSection("cat", "Cat", (ModelBlock(text="Who?"),)),)
    await call(ME, CreateMentalModel(BANK, "Cat of Mara", drinks, model_id="model:refreshed"))
    refreshed = await call(ME, RefreshMentalModel(BANK, "model:refreshed"))
    assert SECRET in refreshed.content
    await call(ME, Recall(RecallQuery("what is the cat called?", BANK)))
    assert files_with(tmp_path, SECRET)
    result = await call(ME, Forget(BANK, ForgetSelector(memory_ids=(secret,)), compliance=True))
    assert result.receipt is not None
    assert result.receipt.counts["knowledge_items"] == 2
    assert result.receipt.counts["knowledge_revisions"] == 4
    assert files_with(tmp_path, SECRET) == []
    model = await call(ME, GetMentalModel(BANK, "model:mara"))
    assert model.content == "## Tea\n\nGreen."
    hits = (await call(ME, Recall(RecallQuery("what is the cat called?", BANK)))).hits
    assert all(SECRET not in hit.text for hit in hits)
    await app.close()
    assert files_with(tmp_path, SECRET) == []
