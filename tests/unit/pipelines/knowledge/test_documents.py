"""Documents of mental models: Markdown in, sections with ids, the same Markdown out."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from astrocyte.model import BlockKind, ModelBlock, ModelSection
from astrocyte.pipelines.knowledge.documents import (
    cited_ids,
    decode,
    encode,
    parse,
    parse_blocks,
    render,
    slug,
    with_ids,
)

TEXT = """Known since May.

## Tools

Python for data work.
Cursor as editor.

- one
- two
  goes on

***

### Code

```python
# no heading
print(1)
```

1. first
2) second
"""


def test_markdown_becomes_sections_and_blocks() -> None:
    overview, tools, code = parse(TEXT)
    assert (overview.section_id, overview.heading, overview.level) == ("overview", "Overview", 2)
    assert overview.blocks == (ModelBlock(text="Known since May."),)
    assert tools.blocks == (
        ModelBlock(text="Python for data work.\nCursor as editor."),
        ModelBlock(BlockKind.BULLET_LIST, items=("one", "two goes on")),
    )
    assert (code.level, code.section_id) == (3, "code")
    assert code.blocks == (
        ModelBlock(BlockKind.CODE, "# no heading\nprint(1)", language="python"),
        ModelBlock(BlockKind.ORDERED_LIST, items=("first", "second")),
    )


def test_rendering_is_the_inverse_of_parsing() -> None:
    once = parse(TEXT)
    assert parse(render(once)) == once
    assert render(parse(render(once))) == render(once)


def test_code_with_fences_inside_gets_longer_fences() -> None:
    block = ModelBlock(BlockKind.CODE, "```\nx\n```")
    assert parse(render((ModelSection("a", "A", (block,)),)))[0].blocks == (block,)


def test_ids_are_words_of_the_heading_and_unique() -> None:
    assert slug("  Alice's Tools! ") == "alice-s-tools"
    assert slug("***") == "section"
    sections = with_ids(
        [ModelSection("", "A"), ModelSection("", "a!"), ModelSection("a-2", "B"), ModelSection("", "A")]
    )
    assert [section.section_id for section in sections] == ["a", "a-2", "a-2-2", "a-3"]


def test_a_document_without_text_has_no_sections() -> None:
    assert parse("") == parse("\n \n---\n") == ()
    assert parse_blocks("\n\n") == ()


@given(st.text(max_size=400))
def test_any_text_can_be_parsed_and_settles_after_one_rendering(text: str) -> None:
    rendered = render(parse(text))
    assert render(parse(rendered)) == render(parse(render(parse(rendered))))


def test_the_store_keeps_every_field() -> None:
    block = ModelBlock(BlockKind.CODE, "x", language="c", source_ids=("m1", "m2"))
    sections = (ModelSection("a", "A", (block, ModelBlock(text="y", source_ids=("m1", "m3"))), 4),)
    assert decode(encode(sections)) == sections
    assert cited_ids(sections) == ("m1", "m2", "m3")
