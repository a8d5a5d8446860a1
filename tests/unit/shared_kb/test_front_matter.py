"""Front matter: what is read, and that what grows is refused."""

from typing import Any

import pytest

from astrocyte.shared_kb.front_matter import MOST_BLOCK_CHARS, FrontMatterError, line, list_of, split, text_of


@pytest.mark.parametrize(
    ("text", "values", "body"),
    [
        ("# Title\n", {}, "# Title\n"),
        ("---\nId: 005\nstatus: yes\n---\nbody\n", {"id": "005", "status": "yes"}, "body\n"),
        ("---\ntags: [a, b]\nn: {x: 1}\n...\nbody", {"tags": ["a", "b"], "n": {"x": "1"}}, "body"),
        ("---\n---\nbody", {}, "body"),
        ("---\n# only a comment\n---\n", {}, ""),
        ("---\na: 1\n---", {"a": "1"}, ""),
        (" ---\na: 1\n---\n", {}, " ---\na: 1\n---\n"),
        ("text\n---\na: 1\n---\n", {}, "text\n---\na: 1\n---\n"),
        ("---\na: 1\nno end", {}, "---\na: 1\nno end"),
        ("---\nwhen: 2024-13-45\nt: !!python/object:os.system x\n---\n", {"when": "2024-13-45", "t": "x"}, ""),
    ],
)
def test_a_block_is_split_from_its_text(text: str, values: dict[str, Any], body: str) -> None:
    assert split(text) == (values, body)


@pytest.mark.parametrize(
    ("block", "problem"),
    [
        ("a: [", "front matter is not YAML: .* in line 3"),
        ("a: b: c", "front matter is not YAML: .* in line 2"),
        ("a: \x07", "front matter is not YAML: (control )?characters are not allowed"),
        ("- a", "front matter is not a mapping, but a list"),
        ("just a text", "front matter is not a mapping, but a str"),
        ("a: &x [1]\nb: *x", "front matter has a YAML alias"),
        ("a: " + "[" * 17 + "]" * 17, "front matter has more than 16 levels"),
        ("a: " + "[" * 60_000, "front matter has more than 16 levels"),
        ("- " * 30_000, "front matter has more than 16 levels"),
        ("a: " + "x" * MOST_BLOCK_CHARS, "front matter has more than 65,536 characters"),
        ("a: 1\n---\n--- b", None),
    ],
)
def test_a_block_that_cannot_be_read_is_told(block: str, problem: str | None) -> None:
    if problem is None:
        assert split(f"---\n{block}\n---\n")[0] == {"a": "1"}
        return
    with pytest.raises(FrontMatterError, match=problem):
        split(f"---\n{block}\n---\nbody")


def test_a_text_is_the_first_value_that_is_given() -> None:
    values = {"a": "~", "b": "", "c": " one\n  line\u0007 "}
    assert text_of(values, ("a", "b", "c"), 100) == "one line"
    assert text_of(values, ("c",), 3) == "one"
    assert text_of(values, ("a", "d"), 100) == ""
    with pytest.raises(FrontMatterError, match="c is a list; write it as text"):
        text_of({"c": ["x"]}, ("c",), 100)


def test_a_list_is_written_in_two_ways() -> None:
    assert list_of({"tags": "a, b,,a"}, "tags", 2, 10) == ("a", "b")
    assert list_of({"tags": ["a", " b ", "a", ""]}, "tags", 2, 10) == ("a", "b")
    assert list_of({}, "tags", 2, 10) == list_of({"tags": "null"}, "tags", 2, 10) == ()
    for wrong in ({"x": "y"}, [["a"]], [{"a": "b"}]):
        with pytest.raises(FrontMatterError, match="tags is not a list of texts"):
            list_of({"tags": wrong}, "tags", 2, 10)
    with pytest.raises(FrontMatterError, match="tags has 3 values, the limit is 2"):
        list_of({"tags": "a,b,c"}, "tags", 2, 10)


def test_a_line_is_cut_and_printable() -> None:
    assert line("  a\tb\u200b\n c ", 100) == "a b c"
    assert line("abc d", 4) == "abc"
