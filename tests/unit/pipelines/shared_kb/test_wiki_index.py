"""The index of documents as Markdown."""

from dataclasses import replace

import pytest

from astrocyte.model import KbDocument
from astrocyte.pipelines.shared_kb import wiki_index
from astrocyte.pipelines.shared_kb.wiki_index import render
from astrocyte.shared_kb.documents import rows_of


def document(path: str, **changes: object) -> KbDocument:
    made = rows_of("docs", path, "# Title\n", "h" * 32)[0].document
    return replace(made, **changes)  # type: ignore[arg-type]


def test_documents_are_in_tables_by_type() -> None:
    component = document("ARCHITECTURE.md", type="component", title="api", depends_on=("auth", "store"))
    index = render(
        [
            document("z.md", type="run-book", title="Restarts"),
            component,
            document("decisions/10-b.md", title="Ten", status="accepted", date="2026-05-06"),
            document("decisions/9-a.md", title="Nine"),
            document("specs/1.md", title="Spec"),
        ]
    )
    assert (index.document_count, index.truncated) == (5, False)
    assert index.content == (
        "---\ntype: index\n---\n\n# Shared knowledge\n"
        "\n## Specifications\n\n| id | title | status | date | path |\n|---|---|---|---|---|\n"
        "| SPEC-1 | Spec |  |  | specs/1.md |\n"
        "\n## Decisions\n\n| id | title | status | date | path |\n|---|---|---|---|---|\n"
        "| ADR-9 | Nine |  |  | decisions/9-a.md |\n"
        "| ADR-10 | Ten | accepted | 2026-05-06 | decisions/10-b.md |\n"
        "\n## Components\n\n| component | depends on | status | path |\n|---|---|---|---|\n"
        "| api | auth, store |  | ARCHITECTURE.md |\n"
        "\n## run-book\n\n| id | title | status | date | path |\n|---|---|---|---|---|\n"
        "|  | Restarts |  |  | z.md |\n"
    )


def test_the_order_of_the_documents_does_not_matter() -> None:
    documents = [document(f"decisions/{number}.md") for number in range(30)]
    assert render(documents) == render(documents[::-1])


def test_texts_of_documents_are_no_markup() -> None:
    content = render([document("a.md", title="A | B <b> [x](y)\n`c`")]).content
    assert "| A \\| B \\<b\\> \\[x\\](y) \\`c\\` |" in content
    assert content.count("\n") == render([document("a.md")]).content.count("\n")


def test_the_size_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    documents = [document(f"decisions/{number}.md", title="ä" * 100) for number in range(100)]
    whole = render(documents)
    assert (whole.document_count, whole.truncated) == (100, False)
    monkeypatch.setattr(wiki_index, "MOST_BYTES", 5_000)
    cut = render(documents)
    assert cut.truncated
    assert 4_700 < len(cut.content.encode()) <= 5_000
    assert cut.document_count == cut.content.count("| ADR-")
    assert whole.content.startswith(cut.content)
