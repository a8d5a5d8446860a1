"""The commands on observations, mental models and directives, on a directory and on a server."""

import json
import re
from pathlib import Path

import pytest

from harness.commands import Command, answer, said

pytestmark = pytest.mark.process


def test_observations(astrocyte: Command, bank: str) -> None:
    kept = answer(astrocyte("--json", "retain", bank, "I love pottery.", "--speaker", "Mel"))["memory_id"]
    made = answer(astrocyte("--json", "observations", "create", bank, "Mel is creative.", "--evidence", kept))
    assert said(astrocyte("consolidate", bank, "--wait")).count("1 created") == 1
    assert "Mel loves pottery." in said(astrocyte("observations", "list", bank, "--trend", "new"))
    assert len(answer(astrocyte("--json", "observations", "list", bank, "--text", "creative"))) == 1
    assert kept in said(astrocyte("observations", "show", bank, made["observation_id"]))
    (listed,) = answer(astrocyte("--json", "operations", "list", "--bank", bank))
    assert (listed["reindex"], listed["consolidation"]["created"]) == (None, 1)
    one = made["observation_id"]
    assert said(astrocyte("observations", "update", bank, one, "--text", "Mel is creative and quiet.")) == (
        f"Revision 2 of {one}, from 1 sources.\n"
    )
    assert [entry["revision"] for entry in answer(astrocyte("--json", "observations", "revisions", bank, one))] == [
        2,
        1,
    ]
    assert "updated" in said(astrocyte("observations", "revisions", bank, one))
    assert said(astrocyte("observations", "delete", bank, made["observation_id"])) == "Deleted.\n"
    assert said(astrocyte("observations", "invalidate", bank, kept)) == "Deleted 1 observations.\n"
    assert said(astrocyte("observations", "list", bank)) == "There are no observations.\n"
    assert astrocyte("observations", "show", bank, "obs-1").exit_code != 0


def test_mental_models(astrocyte: Command, bank: str) -> None:
    markdown = "## Food\n\nNo nuts.\n"
    assert said(astrocyte("models", "create", bank, "Mara", "--file", "-", input=markdown)) == "Created model:mara.\n"
    assert said(astrocyte("models", "show", bank, "model:mara")) == f"# Mara\n\n{markdown}"
    assert "model:mara" in said(astrocyte("models", "list", bank))
    refreshed = said(astrocyte("models", "refresh", bank, "model:mara", "--file", "-", input="## Food\n\nTea."))
    assert refreshed == "Revision 2 of model:mara, from 0 memories.\n"
    assert "+Tea." in said(astrocyte("models", "diff", bank, "model:mara", 1))
    revisions = answer(astrocyte("--json", "models", "revisions", bank, "model:mara"))
    assert [(one["revision"], one["cause"]) for one in revisions] == [(2, "refreshed"), (1, "created")]
    assert said(astrocyte("models", "diff", bank, "model:mara", 2)) == "The revisions are equal.\n"
    assert said(astrocyte("models", "delete", bank, "model:mara")) == "Deleted.\n"
    assert (
        said(astrocyte("models", "delete", bank, "model:mara")) == f"There is no mental model model:mara in {bank}.\n"
    )
    assert said(astrocyte("models", "list", bank)) == "There are no mental models.\n"
    assert said(astrocyte("models", "undelete", bank, "model:mara")) == "Restored model:mara, revision 2.\n"
    assert answer(astrocyte("--json", "models", "show", bank, "model:mara"))["revision"] == 2


def test_delta_operations(astrocyte: Command, bank: str) -> None:
    said(astrocyte("models", "create", bank, "Mara", "--file", "-", input="## Food\n\nNo nuts.\n"))
    good = {"op": "append_block", "section_id": "food", "content": "No sesame."}
    wrong = {"op": "remove_block", "section_id": "drinks", "block_index": 0}
    update = ("models", "update", bank, "model:mara", "--operations", "-")
    done = astrocyte(*update, input=json.dumps([good, wrong]))
    assert said(done) == "Revision 2 of model:mara: 1 operations applied.\n"
    assert "Skipped operations[1] (remove_block)" in done.stderr
    assert "No sesame." in said(astrocyte("models", "show", bank, "model:mara"))
    assert astrocyte(*update, "--atomic", input=json.dumps([good, wrong])).exit_code != 0
    assert astrocyte(*update, input="[").exit_code != 0
    assert answer(astrocyte("--json", "models", "show", bank, "model:mara"))["revision"] == 2


def test_directives(astrocyte: Command, bank: str) -> None:
    created = said(astrocyte("directives", "create", bank, "Answer in German.", "--id", "d1", "--priority", 5))
    assert created == "Created d1.\n"
    assert "Answer in German." in said(astrocyte("directives", "list", bank))
    assert answer(astrocyte("--json", "directives", "list", bank, "--scope", "tag:x")) == []
    said(astrocyte("retain", bank, "Mara drinks tea."))
    line = f"Directive of {bank}: Answer in German.\n"
    for command in (("recall",), ("reflect",)):
        assert said(astrocyte(*command, bank, "what does Mara drink?")).startswith(line)
        assert answer(astrocyte("--json", *command, bank, "what does Mara drink?"))["directives"][0]["priority"] == 5
    assert line in said(astrocyte("reflect", bank, "what does Mara drink?", "--stream"))
    assert said(astrocyte("directives", "delete", bank, "d1")) == "Deleted.\n"
    assert "Directive" not in said(astrocyte("recall", bank, "what does Mara drink?"))
    assert said(astrocyte("directives", "delete", bank, "d1")) == f"There is no directive d1 in {bank}.\n"
    assert said(astrocyte("directives", "list", bank)) == "There are no directives.\n"


def test_wiki_pages(astrocyte: Command, bank: str, tmp_path: Path) -> None:
    for text in ("The deployment runs on Friday.", "A deployment failed in May.", "Deployments need an approval."):
        said(astrocyte("retain", bank, text, "--tag", "deployment"))
    assert "1 pages created" in said(astrocyte("wiki", "compile", bank, "--dry-run"))
    assert said(astrocyte("wiki", "list", bank)) == "There are no pages.\n"
    assert said(astrocyte("wiki", "compile", bank)).startswith("1 topics: 1 pages created, 0 updated, 0 unchanged")
    assert answer(astrocyte("--json", "wiki", "compile", bank, "--scope", "deployment"))["pages_unchanged"] == 1
    assert "topic:deployment" in said(astrocyte("wiki", "list", bank))
    assert answer(astrocyte("--json", "wiki", "list", bank, "--scope", "other")) == []
    assert said(astrocyte("wiki", "show", bank, "topic:deployment")).startswith(
        "# deployment\n\n## Overview\n\nThe dep"
    )
    assert "approval" in said(astrocyte("wiki", "search", bank, "which deployment needs an approval?"))
    assert "No page is relevant." in said(astrocyte("wiki", "search", bank, "zebra"))
    assert "1" in said(astrocyte("wiki", "revisions", bank, "topic:deployment"))
    assert said(astrocyte("wiki", "lint", bank)) == "0 problems in 1 pages.\n"
    folder = tmp_path / "wiki"
    assert said(astrocyte("wiki", "export", bank, folder)) == f"Wrote 1 pages to {folder}.\n"
    text = (folder / "topic-deployment.md").read_text(encoding="utf-8")
    assert text.startswith('---\nid: "topic:deployment"\ntitle: "deployment"\n')
    assert "A deployment failed in May." in text
    assert (folder / "index.md").read_text() == f"# {bank}\n\n- [deployment](topic-deployment.md)\n"
    assert astrocyte("wiki", "show", bank, "topic:none").exit_code != 0


def test_an_export_of_several_pages_stays_in_its_folder_and_its_links_resolve(
    astrocyte: Command, bank: str, tmp_path: Path
) -> None:
    # Names that lead out of the folder, look alike as file names, are Markdown, or are the name of the index.
    tags = ("../../outside", "outside", "/outside", "C[1]", "index", "index.md", "..", "Über", "uber")
    for number in range(3):
        labels = [part for tag in tags for part in ("--tag", tag)]
        said(astrocyte("retain", bank, f"Visit {number} of the [[topic:index]] and of [[no page]].", *labels))
    said(astrocyte("wiki", "compile", bank))
    pages = answer(astrocyte("--json", "wiki", "list", bank))
    assert {page["title"] for page in pages} >= set(tags)
    before = {path for path in tmp_path.rglob("*") if path.is_file()}
    folder = tmp_path / "there" / "wiki"
    written = answer(astrocyte("--json", "wiki", "export", bank, folder))
    assert set(written) == {page["page_id"] for page in pages}
    files = {path for path in tmp_path.rglob("*") if path.is_file()} - before
    assert files == {folder / name for name in (*written.values(), "index.md")}
    # One file for each page, on a file system that takes no notice of case, too.
    assert len({name.casefold() for name in (*written.values(), "index.md")}) == len(written) + 1
    for file in files:
        text = file.read_text(encoding="utf-8")
        links = re.findall(r"(?<!\\)\]\(([^)]+)\)", text)
        assert len(links) >= (len(pages) if file.name == "index.md" else 1)
        assert [link for link in links if folder / link not in files] == []
        assert "[[topic:" not in text
    some = (folder / written["topic:outside"]).read_text(encoding="utf-8")
    assert r"- [C\[1\]](topic-c-1" in some
    assert "[[no page]]" in some


def test_coverage(astrocyte: Command, bank: str) -> None:
    kept = answer(astrocyte("--json", "retain", bank, "Refunds are approved by Jonas Berg."))["memory_id"]
    told = said(astrocyte("coverage", bank, "--question", "Who approves refunds?"))
    assert told.startswith("Coverage 100% of 1 memories, by rules.")
    assert f"covered  Who approves refunds?: {kept}" in told
    told = said(astrocyte("coverage", bank, "escalation paths", "--file", "-", input="Who approves refunds?\n"))
    assert "No memory is relevant." in told
    assert answer(astrocyte("--json", "coverage", bank, "escalation paths"))["coverage_score"] == 0
    assert astrocyte("coverage", bank).exit_code != 0


def test_doctor(astrocyte: Command, bank: str) -> None:
    said(astrocyte("retain", bank, "The dentist is on Monday."))
    told = said(astrocyte("doctor", bank, "--check", "duplicates"))
    assert told == "No problem was found.\nduplicates: 0 found, 1 of 1 examined\n"
    said(astrocyte("retain", bank, "the dentist is on monday", "--session", "s"))
    found = answer(astrocyte("--json", "doctor", bank, "--check", "duplicates"))["diagnosis"]["findings"]
    assert [(one["check"], len(one["ids"])) for one in found] == [("duplicates", 2)]
    dry = said(astrocyte("doctor", bank, "--fix", "--dry-run"))
    assert "--fix would delete 0 orphaned rows and 0 pages, and compile 0 pages." in dry
    assert "Deleted 0 orphaned rows and 0 pages, and compiled 0 pages." in said(astrocyte("doctor", bank, "--fix"))
    assert astrocyte("doctor", bank, "--dry-run").exit_code != 0
