"""Docstrings and doc comments begin with the thing they name, not with a question word."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PYTHON = [ROOT / name for name in ("python/astrocyte", "tests", "benches", "examples", "scripts", "clients")]
CRATES = ROOT / "rust_core"
# Generated code, build output and environments.
LEFT_OUT = {"v1", "target", ".venv", ".tools", "node_modules"}
QUESTION = re.compile(r"(What|Who|Whose|Whoever|Whether|Which|How)\b")
# Fields of a node that hold statements, or handlers and cases, which hold statements.
BODIES = ("body", "handlers", "cases", "orelse", "finalbody")
DOC_COMMENT = re.compile(r"\s*//[/!](?!/) ?(.*)")


def sources(folder: Path, pattern: str) -> list[Path]:
    return sorted(path for path in folder.rglob(pattern) if not LEFT_OUT & set(path.relative_to(folder).parts))


def docstrings(text: str) -> Iterator[tuple[int, str]]:
    """The line and the text of each docstring, also of those below attributes."""
    bodies: list[ast.AST] = [ast.parse(text)]
    # Only statements hold docstrings: expressions are far more, and hold none.
    while bodies:
        body = bodies.pop()
        for node in [one for name in BODIES for one in getattr(body, name, ())]:
            match node:
                case ast.Expr(value=ast.Constant(value=str(found))):
                    yield node.lineno, found.strip()
                case _:
                    bodies.append(node)


def doc_comments(text: str) -> Iterator[tuple[int, str]]:
    """The line and the text of the first line of each doc comment."""
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        found = DOC_COMMENT.match(line)
        if found and not inside:
            yield number, found[1]
        inside = found is not None


def begun_with_questions(path: Path, documented: Iterator[tuple[int, str]]) -> list[str]:
    return [f"{path.relative_to(ROOT)}:{line}: {text[:60]}" for line, text in documented if QUESTION.match(text)]


def test_no_docstring_begins_with_a_question_word() -> None:
    paths = [path for folder in PYTHON for pattern in ("*.py", "*.pyi") for path in sources(folder, pattern)]
    assert paths
    assert not [
        one for path in paths for one in begun_with_questions(path, docstrings(path.read_text(encoding="utf-8")))
    ]


def test_no_doc_comment_begins_with_a_question_word() -> None:
    paths = sources(CRATES, "*.rs")
    assert paths
    assert not [
        one for path in paths for one in begun_with_questions(path, doc_comments(path.read_text(encoding="utf-8")))
    ]


def test_question_words_are_found() -> None:
    module = '"""Whose module."""\n\ndef call():\n    """\n    Which call.\n    """\n\nplain = "What else"\n'
    assert [line for line, text in docstrings(module) if QUESTION.match(text)] == [1, 4]
    rust = "//! How it works.\n\n/// A type.\n/// What goes on.\nstruct A;\n// Who\n/// Whether\nfn b() {}\n//// What\n"
    assert [line for line, text in doc_comments(rust) if QUESTION.match(text)] == [1, 7]
