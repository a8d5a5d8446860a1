"""Repeated headings and table headers in chunks, and the places of cuts."""

from collections.abc import Sequence
from random import Random

import pytest

from astrocyte.core import count_tokens_many, split_words
from astrocyte.pipelines.text.blocks import blocks
from astrocyte.pipelines.text.chunking import split
from oracles.growth import takes_less

CELLS = [f"bolt {number}" for number in range(60)]
TABLES = {
    "pipes": ("| part | price |\n|------|------:|", [f"| {cell} | {number} |" for number, cell in enumerate(CELLS)]),
    "bare pipes": ("part | price\n--- | ---", [f"{cell} | {number}" for number, cell in enumerate(CELLS)]),
    "boxed": (
        "+------+-----+\n| part | price |\n+======+=====+",
        [f"| {cell} | {number} |" for number, cell in enumerate(CELLS)],
    ),
    "psql": (" part | price \n------+-------", [f" {cell} | {number} " for number, cell in enumerate(CELLS)]),
    "no dashes": ("| part | price |", [f"| {cell} | {number} |" for number, cell in enumerate(CELLS)]),
    "tabs": ("part\tprice", [f"{cell}\t{number}" for number, cell in enumerate(CELLS)]),
    "commas": ("part,price,stock", [f"{cell},{number},3" for number, cell in enumerate(CELLS)]),
    "semicolons": ("part;price;stock", [f"{cell};{number};3" for number, cell in enumerate(CELLS)]),
    "quoted": ('"part","price","stock"', [f'"{cell}; big","{number}","3"' for number, cell in enumerate(CELLS)]),
}
TEXT = " ".join(f"Shelf {number} was painted in the evening." for number in range(40))


def words(texts: Sequence[str]) -> list[int]:
    return [len(text.split()) for text in texts]


def pieces(text: str, strategy: str, size: int = 30) -> list[str]:
    return [chunk.text for chunk in split(text, strategy, size=size, overlap=0, count_tokens=words)]


@pytest.mark.parametrize("strategy", ["sentence", "paragraph", "dialogue"])
@pytest.mark.parametrize("name", TABLES)
def test_each_chunk_of_a_table_has_its_header(name: str, strategy: str) -> None:
    header, rows = TABLES[name]
    found = pieces(f"Prices of today.\n\n{header}\n" + "\n".join(rows) + "\n\nThat is all.", strategy)
    for row in rows:
        assert any(row.strip() in piece and header.strip() in piece for piece in found)
    assert (
        sum(
            piece.count("bolt 7 ") + piece.count("bolt 7\t") + piece.count("bolt 7,") + piece.count("bolt 7;")
            for piece in found
        )
        == 1
    )


@pytest.mark.parametrize("text", ["a | b", "x || y, or z | w", "Well, yes, no, maybe", "one, two, three", "|x|"])
def test_lines_that_are_no_table_repeat_nothing(text: str) -> None:
    found = pieces("\n".join(f"{text} {number}" for number in range(60)), "sentence")
    assert sum(piece.count(f"{text} 0") for piece in found) == 1


@pytest.mark.parametrize("strategy", ["sentence", "paragraph", "dialogue"])
@pytest.mark.parametrize(
    "heading",
    ["# Shed", "### Shed ###", "Shed\n====", "Shed\n----", "**Shed**", "__Shed__", "SHED", "2.1 Shed",
     "3. Shed", "§ 4 Shed", "== Shed ==", "<h2>Shed</h2>"],
)  # fmt: skip
def test_each_chunk_of_a_section_has_its_heading(heading: str, strategy: str) -> None:
    found = pieces(f"Before all.\n\n{heading}\n\n{TEXT}\n\n## Garden\n\nRoses. {TEXT}", strategy)
    garden = next(number for number, piece in enumerate(found) if "Roses" in piece)
    assert garden > 3
    assert all(piece.startswith(heading) for piece in found[1:garden] if "Garden" not in piece)
    assert all("Garden" in piece for piece in found[garden:])
    assert not any(piece.endswith(heading) for piece in found)


def test_code_has_no_headings_speakers_or_tables() -> None:
    code = "```sh\n# not a heading\nAna: not a name\n| a | b |\n|---|---|\n" + "echo shelf\n" * 40 + "```"
    found = pieces(f"Run this.\n\n{code}\n\nDone.", "dialogue")
    assert sum(piece.count("not a heading") for piece in found) == 1
    assert sum(piece.count("Ana") for piece in found) == 1


def test_a_table_in_a_message_has_its_speaker() -> None:
    header, rows = TABLES["pipes"]
    found = pieces(
        f"User: prices?\nAssistant: Here.\n\n{header}\n" + "\n".join(rows) + "\n\nAnything else?", "dialogue"
    )
    assert all("Assistant: " in piece and "| part |" in piece for piece in found if "bolt" in piece)
    assert "Assistant" in found[-1]


@pytest.mark.parametrize("table", ["pipes", "commas"])
@pytest.mark.parametrize("before", ["Ana: Here it is.\n\n", "Bob: Prices?\nAna: Here they are.\n\n"])
def test_a_table_behind_a_short_turn_has_its_header(table: str, before: str) -> None:
    header, rows = TABLES[table]
    found = pieces(f"{before}{header}\n" + "\n".join(rows) + "\n\nBob: Thanks.", "dialogue")
    assert all(header in piece for piece in found if "bolt" in piece)
    assert sum(piece.count("bolt 7") for piece in found) == 1


def test_a_table_beside_a_label_has_its_header_and_speaker() -> None:
    header, rows = TABLES["pipes"]
    found = pieces(f"Bob: Prices?\nAna: {header}\n" + "\n".join(rows) + "\nBob: Thanks.", "dialogue")
    assert all(f"Ana: {header}" in piece for piece in found if "bolt" in piece)
    assert "Bob: Thanks." in found[-1]


@pytest.mark.parametrize("strategy", ["sentence", "paragraph", "dialogue"])
@pytest.mark.parametrize(
    ("outer", "inner", "sibling"),
    [
        ("# Shed", "## Floor", "## Roof"), ("# Shed", "#### Floor", "## Roof"),
        ("Shed\n====", "Floor\n----", "Roof\n----"),
        ("== Shed ==", "=== Floor ===", "=== Roof ==="), ("<h1>Shed</h1>", "<h2>Floor</h2>", "<h2>Roof</h2>"),
        ("1. Shed", "1.1 Floor", "1.2 Roof"), ("# Shed", "**Floor**", "**Roof**"), ("# Shed", "FLOOR", "ROOF"),
        ("SHED", "1. Floor", "2. Roof"), ("# Shed", "Floor\n-----", "Roof\n----"),
    ],
)  # fmt: skip
def test_each_chunk_has_the_headings_above_its_own(outer: str, inner: str, sibling: str, strategy: str) -> None:
    found = pieces(f"{outer}\n\nIntro.\n\n{inner}\n\nOak. {TEXT}\n\n{sibling}\n\nSlate. {TEXT}", strategy)
    roof = next(number for number, piece in enumerate(found) if "Slate" in piece)
    assert all(piece.startswith(outer) for piece in found)
    assert all(inner in piece and sibling not in piece for piece in found[: roof - 1])
    assert all(sibling in piece for piece in found[roof:])
    assert not any(inner in piece for piece in found[roof + 1 :])


def test_a_heading_ends_the_sections_of_its_level() -> None:
    found = pieces(f"# Shed\n\n## Floor\n\n{TEXT}\n\n# Garden\n\n## Beds\n\nRoses. {TEXT}", "paragraph")
    assert all(piece.startswith("# Garden\n\n## Beds\n\n") for piece in found[-5:])


def test_outer_headings_go_where_the_path_is_too_long() -> None:
    found = pieces(f"# {'wide ' * 16}\n\n## Floor\n\n{TEXT}", "paragraph")
    assert all(piece.startswith("## Floor") for piece in found[2:])


def test_a_heading_that_fills_a_chunk_is_not_repeated() -> None:
    heading = "# " + "very " * 25 + "long"
    assert sum(heading in piece for piece in pieces(f"{heading}\n\n{TEXT}", "paragraph")) == 1


@pytest.mark.parametrize(
    ("sentence", "end"),
    [
        ("नदी शाम को शांत रहती है। ", "।"), ("নদী সন্ধ্যায় শান্ত থাকে। ", "।"),
        ("هل النهر هادئ في المساء؟ ", "؟"), ("دریا شام کو پرسکون ہوتا ہے۔ ", "۔"), ("ወንዙ ማታ ጸጥ ይላል። ", "።"),
        ("Գետը երեկոյան հանգիստ է։ ", "։"), ("ទន្លេស្ងប់នៅពេលល្ងាច។ ", "។"), ("မြစ်သည်ညနေတွင်ငြိမ်သည်။ ", "။"),
        ("川は夕方静かです。", "。"), ("河水晚上很平静！", "！"), ("河水晚上很平静吗？", "？"),
        ("강은 저녁에 고요하다. ", "."), ("Είναι ήσυχο το ποτάμι το βράδυ; ", ";"),
        ("Река вечером спокойна… ", "…"), ("The river is calm at 5.30 p.m. in St. Ives, says Dr. Low. ", "Low."),
        ("the river is calm. ", "."), ("« La rivière est calme. » ", "»"), ("ཆུ་བོ་ཞི་བདེ་ཡིན། ", "།"),
    ],
)  # fmt: skip
def test_pieces_end_with_sentences_of_their_script(sentence: str, end: str) -> None:
    found = [
        chunk.text for chunk in split(sentence * 80, "sentence", size=120, overlap=0, count_tokens=count_tokens_many)
    ]
    assert len(found) > 3
    assert all(piece.endswith(end) for piece in found)


CLUSTERS = ["👨‍👩‍👧", "🇵🇹", "👍🏿", "🏴󠁧󠁢󠁳󠁣󠁴󠁿", "á̤", "각", "กำ", "ก์", "நி", "क्ष", "က္က", "1️⃣", "❤️‍🔥", "ﷺ", "Z͑ͫ̓ͪ"]


@pytest.mark.parametrize("strategy", ["sentence", "paragraph", "dialogue", "fixed"])
@pytest.mark.parametrize("cluster", CLUSTERS)
def test_no_cut_is_inside_a_grapheme_cluster(cluster: str, strategy: str) -> None:
    for glue in ("", "a", "語"):
        run = split(f"{glue}{cluster}" * 90, strategy, size=40, overlap=10, count_tokens=count_tokens_many)
        assert len(run) > 1
        assert all(piece.text.replace(cluster, "").replace(glue, "") == "" for piece in run)


def test_blocks_joined_are_the_text() -> None:
    parts = [
        "Ana: hi",
        "# Head",
        "| a | b |",
        "|---|---|",
        "",
        "",
        "text.",
        "[00:12] Bo: x",
        "```",
        "---",
        "CLOSE",
        "a\tb",
        "- x",
        "12/03/2024, 10:32 - C: y",
        "  ",
    ]
    for seed in range(400):
        random = Random(seed)
        text = "\n".join(random.choices(parts, k=random.randint(1, 14)))
        for dialogue in (True, False):
            assert "".join(block.text for block in blocks(text, dialogue=dialogue)) == text or not text.strip()


@pytest.mark.parametrize(
    "hostile",
    [
        "```a\n" * 10_000, "a|b\n" * 12_000, "|a|\n\n" * 10_000, "a,b,c\n" * 8_000, "a,b\n" * 12_000,
        "x: \n" * 12_000, "[1:1 " * 10_000, "1:11 " * 10_000, "*" * 50_000, "\u200e" * 50_000, "<" * 50_000,
        "a" * 50_000 + ":", "a: " * 16_000, "(1" * 25_000, "- - " * 12_000, "# \n" * 16_000, "2024-01-01 " * 4_500,
        "10:00 a, b c d e f\n" * 2_600, "\n" * 50_000, "\n \t" * 16_000, "=" * 50_000,
    ],
)  # fmt: skip
def test_hostile_text_is_read_in_time(hostile: str) -> None:
    found = blocks(hostile, dialogue=True)
    assert "".join(block.text for block in found) == hostile or not hostile.strip()
    # Linear reading takes some hundredths of it.
    assert takes_less(2, lambda: blocks(hostile, dialogue=True))


def test_a_title_ends_between_graphemes() -> None:
    assert all(word == "👨‍👩‍👧" * (len(word) // 5) for word in split_words("👨‍👩‍👧" * 30, 32))
