"""Documents: their fields by front matter, names and text, and their rows."""

from datetime import UTC, datetime
from typing import Any

import pytest

from astrocyte.config import LimitSettings
from astrocyte.pipelines.shared_kb.rows import document_of, metadata_of
from astrocyte.policy.requests import field_checks
from astrocyte.shared_kb.digests import digest, path_digest
from astrocyte.shared_kb.documents import PART_BYTES, Row, rows_of
from astrocyte.shared_kb.front_matter import FrontMatterError
from astrocyte.shared_kb.glossary import entries_of


def rows(path: str, text: str) -> tuple[Row, ...]:
    return rows_of("docs", path, text, "h" * 32)


def first(path: str, text: str) -> Any:
    return rows(path, text)[0].document


@pytest.mark.parametrize(
    ("path", "front", "kind"),
    [
        ("a.md", "type: ADR", "adr"),
        ("a.md", "type: Decision Record", "adr"),
        ("a.md", "type: Specification", "spec"),
        ("a.md", "type: run-book", "run-book"),
        ("decisions/a.md", "", "adr"),
        ("Specs/deep/a.md", "", "spec"),
        ("specs/decisions/a.md", "", "adr"),
        ("decisions/a.md", "type: spec", "spec"),
        ("x/ARCHITECTURE.md", "", "architecture"),
        ("GLOSSARY.md", "", "glossary"),
        ("specs/TEMPLATE.md", "", "template"),
        ("adr-5-database.md", "", "adr"),
        ("spec_7.md", "", "spec"),
        ("adrenaline.md", "", "document"),
        ("README.md", "", "document"),
    ],
)
def test_types(path: str, front: str, kind: str) -> None:
    assert first(path, f"---\n{front}\n---\n# T\n").type == kind


@pytest.mark.parametrize(
    ("path", "text", "status"),
    [
        ("a.md", "---\nstatus: In Review\n---\nx", "in-review"),
        ("specs/approved/a.md", "x", "approved"),
        ("specs/Drafts/a.md", "x", "draft"),
        ("approved/old/rejected/a.md", "x", "rejected"),
        ("specs/approved/a.md", "---\nstatus: withdrawn\n---\nx", "withdrawn"),
        ("a.md", "# T\n\n## Status\n\nAccepted, 2024\n", "accepted"),
        ("a.md", "# T\n\n## Status\n**Proposed**\n", "proposed"),
        ("a.md", "# T\n\n## Context\n\nAccepted\n", ""),
    ],
)
def test_states(path: str, text: str, status: str) -> None:
    assert first(path, text).status == status


@pytest.mark.parametrize(
    ("path", "front", "identifier"),
    [
        ("decisions/a.md", "id: ADR-5", "ADR-5"),
        ("decisions/a.md", "adr_id: A5", "A5"),
        ("specs/a.md", "spec_id: SPEC-023", "SPEC-023"),
        ("ADR-0012-x.md", "", "ADR-0012"),
        ("decisions/0012-x.md", "", "ADR-0012"),
        ("specs/7.md", "", "SPEC-7"),
        ("2024-notes.md", "", ""),
        ("decisions/plain.md", "", ""),
    ],
)
def test_identifiers(path: str, front: str, identifier: str) -> None:
    assert first(path, f"---\n{front}\n---\n# T\n").document_id == identifier


def test_titles_dates_summaries_and_tags() -> None:
    text = (
        "---\ntitle: Given\ndate: 2024-02-29T10:00:00Z\nabstract: Short.\ntags: [storage, shared_kb]\n---\n# Heading\n"
    )
    (row,) = rows("a.md", text)
    document = row.document
    assert (document.title, document.date, document.summary) == ("Given", "2024-02-29", "Short.")
    assert row.tags == ("shared_kb", "storage")
    assert row.occurred_at == datetime(2024, 2, 29, tzinfo=UTC)
    plain = rows("deep/some-file.md", "no heading")[0]
    assert (plain.document.title, plain.document.date, plain.occurred_at) == ("some-file", "", None)
    assert first("a.md", "# Of the text ##\n").title == "Of the text"


@pytest.mark.parametrize(
    ("front", "problem"),
    [
        ("status: [a]", "status is a list"),
        ("status: a/b", "status is 'a/b'; use letters, digits and hyphens"),
        ("type: component", "type component is for components"),
        ("date: 2024-02-30", "date 2024-02-30 is no day of the calendar"),
        ("title: {a: b}", "title is a dict"),
        ("tags: {a: b}", "tags is not a list of texts"),
    ],
)
def test_wrong_fields_are_told(front: str, problem: str) -> None:
    with pytest.raises(FrontMatterError, match=problem):
        rows("a.md", f"---\n{front}\n---\n# T\n")


def test_an_index_has_no_rows() -> None:
    assert rows("all.md", "---\ntype: index\n---\n# All\n") == ()


def test_the_text_begins_with_identifier_and_title() -> None:
    assert rows("adr-5-x.md", "# Databases\n\nOne.")[0].text == "ADR-5: Databases\n\n# Databases\n\nOne."
    assert rows("adr-5-x.md", "# ADR-5: Databases\n\nOne.")[0].text == "# ADR-5: Databases\n\nOne."
    assert rows("a.md", "---\ntitle: Only\n---\n")[0].text == "Only"


def test_a_status_is_no_part_of_the_text() -> None:
    draft, approved = (rows("a.md", f"---\nstatus: {one}\n---\n# T\n\nText.")[0] for one in ("draft", "approved"))
    assert draft.document.text_hash == approved.document.text_hash == digest(draft.text.encode())
    assert draft.document.status != approved.document.status


@pytest.mark.parametrize("unit", ["## Section\n\nA paragraph of some words.\n\n", "a paragraph\n\n", "a line\n", "ä"])
def test_long_texts_have_parts_that_hold_all_of_it(unit: str) -> None:
    body = unit * (150_000 // len(unit.encode()))
    found = rows("a.md", f"# Long\n\n{body}")
    assert len(found) >= 3
    assert [row.document.row for row in found] == [str(number) for number in range(1, len(found) + 1)]
    assert {row.document.row_count for row in found} == {len(found)}
    assert all(len(row.text.encode()) <= PART_BYTES + 300 for row in found)
    assert found[1].text.startswith("Long, part 2\n\n")
    told = "".join(row.text.removeprefix(f"Long, part {number}\n\n") for number, row in enumerate(found, 1))
    assert "".join(told.split()) == "".join(f"# Long\n\n{body}".split())


def test_components_come_from_front_matter_and_tables() -> None:
    text = """---
components:
  - name: gateway
    depends_on: [auth, store]
    description: Entry of all calls.
  - auth
---
# System

| Service | Depends on | Purpose |
|:--|---|---|
| `store` | none | Keeps *all*. |
| [worker](w.md) | store, `queue`; auth | |
| gateway | queue | Another purpose. |

| not | components |
|---|---|
| a | b |

```
| component | depends on |
|---|---|
| example | of a table |
```
"""
    document, *components = rows("ARCHITECTURE.md", text)
    found = {row.document.title: (row.document.depends_on, row.document.summary) for row in components}
    assert found == {
        "gateway": (("auth", "store", "queue"), "Entry of all calls."),
        "auth": ((), ""),
        "store": ((), "Keeps all."),
        "worker": (("store", "queue", "auth"), ""),
    }
    assert {row.document.type for row in components} == {"component"}
    assert {row.document.row_count for row in (document, *components)} == {5}
    assert components[0].text == "Component gateway of System depends on auth, store, queue.\n\nEntry of all calls."
    # Only documents of this type have any.
    assert len(rows("a.md", text)) == 1


def test_components_can_be_a_mapping() -> None:
    _, *components = rows(
        "a.md", "---\ntype: topology\ncomponents:\n  a: [b, c]\n  b: {depends_on: c}\n  c:\n---\n# T\n"
    )
    assert [(row.document.title, row.document.depends_on) for row in components] == [
        ("a", ("b", "c")),
        ("b", ("c",)),
        ("c", ()),
    ]


@pytest.mark.parametrize(
    ("components", "problem"),
    [
        ("just a text", "components is not a list or a mapping"),
        ("[{depends_on: a}]", "a component has no name"),
        ("[{name: a, depends_on: {b: c}}]", "depends_on is not a list of texts"),
        (f"[{', '.join(f'c{number}' for number in range(257))}]", "there are more than 256 components"),
        (f"{{a: [{', '.join(f'c{number}' for number in range(65))}]}}", "depends_on has 65 values, the limit is 64"),
        (f"{{a: [{', '.join('x' * 95 + str(number) for number in range(11))}]}}", "or their names are too long"),
    ],
)
def test_wrong_components_are_told(components: str, problem: str) -> None:
    with pytest.raises(FrontMatterError, match=problem):
        rows("a.md", f"---\ntype: architecture\ncomponents: {components}\n---\n# T\n")


def test_the_largest_metadata_fits_and_is_read_back() -> None:
    wide = "\U0001f600"
    path = f"{'p' * 250}/{'q' * 250}.md"
    front = f"title: {wide * 300}\nsummary: {wide * 300}\nid: {wide * 99}\nstatus: {'s' * 64}\ndate: 2024-01-01"
    names = ", ".join(f"{number}{'d' * 13}" for number in range(10, 64))
    component = f"components: [{{name: {'ä' * 100}, description: {wide * 300}, depends_on: [{names}]}}]"
    found = rows_of("f" * 64, path, f"---\ntype: architecture\n{front}\n{component}\n---\n# T\n", "h" * 32)
    assert len(found) == 2
    for row in found:
        metadata = metadata_of(row.document)
        field_checks.metadata(metadata, "metadata", LimitSettings())
        assert document_of("", metadata, None) == row.document


def test_a_path_digest_names_folder_and_path() -> None:
    assert len({path_digest("a", "b/c"), path_digest("a/b", "c"), path_digest("a", "b/d")}) == 3


@pytest.mark.parametrize(
    "changes",
    [{"kb_path": None}, {"kb_type": 7}, {"kb_rows": "1"}, {"kb_rows": True}, {"kb_rows": 0}, {"kb_rows": 2**31}],
)
def test_a_memory_with_other_metadata_is_no_document(changes: dict[str, Any]) -> None:
    metadata = metadata_of(first("a.md", "# T\n"))
    assert document_of("mem_1", metadata, None) is not None
    assert document_of("mem_1", {**metadata, **changes}, None) is None


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "body",
    [
        "# " + "# " * 500_000 + "x",
        "# " + " " * 1_000_000 + "x" * 1_000,
        "| a |\n|-" + " " * 1_000_000 + "x |",
        "|" * 1_000_000,
        "[" * 1_000_000,
        "[](" * 300_000,
        "## status" + " #" * 500_000 + "x",
        "- **" + " " * 1_000_000,
        "```\n" * 250_000,
        "\n" * 1_000_000 + "x",
        "a <br" * 200_000,
    ],
    ids=lambda body: body[:8],
)
def test_no_text_takes_more_than_linear_time(body: str) -> None:
    assert rows("a.md", f"---\ntype: architecture\n---\n{body}")
    entries_of(body)
