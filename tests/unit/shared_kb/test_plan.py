"""Plans: the difference between the files of a folder and the rows of a bank."""

from collections.abc import Mapping
from dataclasses import replace

from astrocyte.model import KbDocument
from astrocyte.shared_kb.digests import path_digest
from astrocyte.shared_kb.documents import rows_of
from astrocyte.shared_kb.plan import Plan, plan_of


def row(path: str, file_hash: str) -> KbDocument:
    return replace(rows_of("docs", path, "# T\n", file_hash)[0].document, memory_id=f"mem_{path}")


def plan(hashes: Mapping[str, str], *rows: KbDocument, kept: tuple[str, ...] = ()) -> Plan:
    return plan_of("docs", hashes, kept, rows)


def test_equal_files_are_unchanged() -> None:
    assert plan({"a.md": "1"}, row("a.md", "1")) == Plan(unchanged=1)


def test_new_changed_and_gone_files() -> None:
    kept, gone = row("b.md", "1"), row("c.md", "2")
    made = plan({"a.md": "9", "b.md": "3"}, kept, gone)
    assert made == Plan(created=["a.md"], updated={"b.md": [kept]}, removed={"c.md": [gone]})


def test_a_renamed_file_keeps_its_rows() -> None:
    old = row("old.md", "1")
    assert plan({"new.md": "1"}, old) == Plan(moved={"new.md": [old]})


def test_a_copied_file_is_new() -> None:
    assert plan({"a.md": "1", "b.md": "1"}, row("a.md", "1")) == Plan(unchanged=1, created=["b.md"])


def test_of_two_gone_files_with_one_content_one_is_moved() -> None:
    first, second = row("a.md", "1"), row("b.md", "1")
    made = plan({"c.md": "1"}, first, second)
    assert made == Plan(moved={"c.md": [first]}, removed={"b.md": [second]})


def test_files_that_swap_names_are_changed() -> None:
    first, second = row("a.md", "1"), row("b.md", "2")
    made = plan({"a.md": "2", "b.md": "1"}, first, second)
    assert made == Plan(updated={"a.md": [first], "b.md": [second]})


def test_a_file_without_all_its_rows_is_changed() -> None:
    one = replace(row("a.md", "1"), row_count=2)
    two = replace(one, row="2", memory_id="mem_2")
    assert plan({"a.md": "1"}, one, two) == Plan(unchanged=1)
    assert plan({"a.md": "1"}, one) == Plan(updated={"a.md": [one]})
    # One row twice, as two runs at once leave them.
    again = replace(one, memory_id="mem_3")
    assert plan({"a.md": "1"}, one, again) == Plan(updated={"a.md": [one, again]})
    # Half of an older version.
    old = replace(two, file_hash="0")
    assert plan({"a.md": "1"}, one, old) == Plan(updated={"a.md": [one, old]})
    # And it is not taken for a file that was renamed.
    assert plan({"b.md": "1"}, one) == Plan(created=["b.md"], removed={"a.md": [one]})


def test_unreadable_files_and_folders_keep_their_rows() -> None:
    rows = [row(path, "1") for path in ("a.md", "x/b.md", "x/y/c.md", "xy/d.md")]
    assert plan({}, *rows, kept=("a.md", "x")) == Plan(removed={"xy/d.md": [rows[3]]})
    assert plan({}, *rows, kept=(".",)) == Plan()


def test_a_path_that_a_barrier_redacted_is_known_by_its_digest() -> None:
    redacted = replace(row("mail/ann@example.com.md", "1"), path="mail/[EMAIL].md")
    assert redacted.path_hash == path_digest("docs", "mail/ann@example.com.md")
    assert plan({"mail/ann@example.com.md": "1"}, redacted) == Plan(unchanged=1)
