"""Speakers of the pieces of a dialogue."""

import re
from collections.abc import Sequence
from random import Random

import pytest

from astrocyte.pipelines.text.chunking import split
from samples.chats import FORMATS, conversation

SIZE = 24
SPOKEN = (
    r"(?i)ana|chair|lopes|speaker|will|\bme\b|\bq\b|user|assistant|human|response|chatgpt|\bai\b|田中"
    r"|أحمد|Иван|अनिता|สมชาย|דוד"
)
LONG = " ".join(f"Crate {number} came without its lid this time." for number in range(30))
NARRATED = " ".join(f"Folder {number} was passed around the table." for number in range(30))


def words(texts: Sequence[str]) -> list[int]:
    return [len(text.split()) for text in texts]


def pieces(text: str, size: int = SIZE) -> list[str]:
    return [chunk.text for chunk in split(text, "dialogue", size=size, overlap=0, count_tokens=words)]


@pytest.mark.parametrize("name", FORMATS)
def test_every_piece_of_a_generated_chat_names_its_speaker(name: str) -> None:
    write, names = FORMATS[name]
    # 12 formats of 420 chats are more than 5,000.
    for seed in range(420):
        random = Random(f"{name} {seed}")
        turns = conversation(random, names)
        text = write(turns, random)
        marks = {sentence.split()[0]: turn.speaker for turn in turns for sentence in turn.sentences}
        found = set()
        speaker = re.compile("|".join(re.escape(one) for one in sorted({*marks.values()}, key=len, reverse=True)))
        for piece in pieces(text):
            for mark in re.finditer(r"Mark\d+(?= )", piece):
                before = speaker.findall(piece, 0, mark.start())
                assert before, f"{name} {seed}: nobody before {mark[0]} in {piece!r}"
                assert before[-1] == marks[mark[0]], f"{name} {seed}: {mark[0]} in {piece!r}"
                found.add(mark[0])
        assert found == set(marks), f"{name} {seed}: lost sentences"


@pytest.mark.parametrize(
    "label",
    [
        "Ana: ", "Ana：", "Ana : ", "Ana (treasurer): ", "Ana [remote]: ", "Ana Lopes, CFO: ", "ANA LOPES: ",
        "The Chair: ", "MR. LOPES: ", "Speaker 2: ", "ana_l: ", "@ana: ", ">> ANA: ", "Q: ", "Me: ", "Will: ",
        "**Ana**: ", "__Ana:__ ", "*Ana:* ", "- **Ana:** ", "<b>Ana:</b> ", "**Ana** (10:32): ", "**[00:12] Ana:** ",
        "[00:12] Ana: ", "[00:00:12.480] Ana: ", "(00:12) Ana: ", "00:12 Ana: ", "Ana (10:32): ", "Ana [10:32 AM]: ",
        "Ana 00:12: ", "Ana\t00:12\n", "Ana Lopes   0:12\n", "Ana — Today at 10:32 AM\n", "Ana — 03/12/2024 10:32\n",
        "Ana\n  10:32 AM\n", "[12-Mar-24 10:32 AM] Ana#1234\n", "Ana, [12.03.2024 10:32]\n",
        "[12.03.2024 10:32] Ana:\n", "12/03/2024, 10:32 - Ana: ", "3/12/24, 10:32 PM - Ana: ",
        "12.03.24, 10:32 - Ana: ", "2024-03-12 10:32 - Ana: ", "[2024/3/12 上午10:32:05] Ana: ",
        "2024. 3. 12. 오전 10:32, Ana : ", "2024年3月12日 10:32 - Ana: ", "12 Mar 2024, 10:32 - Ana: ",
        "\u200e[12/03/24, 10:32:05] Ana: ", "١٢/٣/٢٠٢٤، ١٠:٣٢ ص - Ana: ", "<ana> ", "<@ana> ", "10:32 <ana> ",
        "[10:32:05] < ana> ", "10:32:05\tana\t", "10:32 ana | ", "10:32 * ana ", "User: ", "assistant: ", "Human: ",
        "AI: ", "### Assistant:\n", "### Response:\n", "<|assistant|>\n", "[USER] ", "ChatGPT said:\n", "## User\n\n",
        "田中：", "田中: ", "أحمد: ", "Иван Петров: ", "अनिता: ", "สมชาย: ", "דוד: ",
    ],
)  # fmt: skip
def test_a_cut_turn_repeats_its_speaker(label: str) -> None:
    name = re.findall(SPOKEN, label)[0]
    found = pieces(f"{label}{LONG}")
    assert len(found) > 5
    assert all(name in piece for piece in found), found[1]


@pytest.mark.parametrize(
    "begin",
    [
        "Note: ", "NB: ", "P.S.: ", "Warning: ", "TODO: ", "https://example.org/a: ", "https: ",
        "http://x.example ", "10:30 ", "10:30: ", "At 10: ", "10：30 ", "e.g.: ", "Agenda: ", "Decisions:\n",
        "Next steps: ", "Action items:\n", "Date: ", "Location: ", "Step 2: ", "Chapter 3: ", "Day 1: ",
        "In short: ", "The plan: ", "And so we agreed on this: ", "We decided: ", "Remarque : ", "Hinweis: ",
        "Nota: ", "注意：", "議題：", "備考：", "結論：", "会议的结论：", "Примечание: ", "ملاحظة: ", "הערה: ",
        "Re: ", "Subject: ", "1. ", "- ", "C:\\temp ", "Options:\n- ", "std::vector ", '{"a": 1} ',
    ],
)  # fmt: skip
def test_nobody_is_made_of_a_label_of_another_kind(begin: str) -> None:
    lines = pieces(f"{begin}{LONG}")
    assert len(lines) > 5
    assert all(piece.startswith(("Crate", "came", "without", "lid")) for piece in lines[1:]), lines[1]


@pytest.mark.parametrize(
    "between",
    [
        "\n\n## Close\n\n", "\n## Close\n", "\n\nClose\n=====\n\n", "\n\n**Close**\n\n", "\n\nCLOSE\n\n",
        "\n\n3. Close\n\n", "\n\n== Close ==\n\n", "\n\n<h2>Close</h2>\n\n", "\n\nClose:\n\n", "\n\n---\n\n",
        "\n***\n", "\n\n", "\n \n", "\n\n(Pause)\n\n", "\nDecisions: ", "\nConclusion:\n", "\n\nOutcome: ",
        "\n\n決定事項：\n",
    ],
)  # fmt: skip
@pytest.mark.parametrize("label", ["Ana: ", "Ana：", "**Ana:** ", "[00:12] Ana: ", "Ana (10:32): "])
def test_a_turn_ends_at_a_heading_and_at_a_paragraph_without_a_name(label: str, between: str) -> None:
    found = pieces(f"Opening words by nobody.\n\n{label}That is all, thank you.{between}{NARRATED}")
    said = [piece for piece in found if "Ana" in piece]
    assert said == [piece for piece in found if "That is all" in piece]
    assert all("Folder" not in piece or not piece.startswith(("Ana", "**Ana", "[00:12]")) for piece in found)


@pytest.mark.parametrize(
    "head", ["12/03/2024, 10:32 - {}: ", "[12.03.24, 10:32:05] {}: ", "{}  [10:32 AM]\n", "{}, [12.03.2024 10:32]\n"]
)
def test_a_message_of_an_export_has_paragraphs(head: str) -> None:
    found = pieces(f"{head.format('Bo')}Hello.\n{head.format('Ana')}First.\n\n{LONG}\n\nNote: the end.")
    assert all("Ana" in piece for piece in found if "Crate" in piece or "Note" in piece)


def test_a_message_of_an_assistant_has_paragraphs_lists_and_notes_in_bold() -> None:
    found = pieces(f"User: what is left?\n\nAssistant: Three things.\n\n**Lids:** none.\n\n1. One\n2. Two\n\n{LONG}")
    assert all("Assistant" in piece for piece in found if "Crate" in piece or "Lids" in piece or "Two" in piece)


@pytest.mark.parametrize(
    ("first", "second", "name"),
    [
        ("10:32:01 From Ana Lopes to Everyone:\n\t", "10:33:01 From Bo Krahl to Everyone:\n\t", "Bo Krahl"),
        ("10:32:01\t From Ana : ", "10:33:01\t From Bo : ", "Bo"),
        ("[SPEAKER_00] ", "[SPEAKER_01] ", "SPEAKER_01"),
        ("[Speaker A]: ", "[Speaker B]: ", "Speaker B"),
        ("@ana:example.org: ", "@bo:chat.example.org: ", "@bo:chat.example.org"),
        ("Ms Ana Lopes (Leeds North) (Lab): ", "Mr Bo Krahl (York) (Con): ", "Krahl (York) (Con)"),
        ("Ms. Lopes (Portugal): ", "Mr. Krahl (Germany) (spoke in German): ", "Mr. Krahl"),
        ("\u200e[3/12/24, 10:32:05\u202fAM] Ana: ", "[3/12/24, 10:33:05\u202fAM] ~\u202fBo: ", "Bo"),
        ("Ana Lopes\n10:32 AM\n", "\nBo Krahl\n10:33 AM\n", "Bo Krahl"),
        ("Ana, [12 Mar 2024 at 10:32:05]:\n", "Bo, [12 Mar 2024 at 10:33:05]:\n", "Bo"),
        ("Ana (2024-03-12 10:32): ", "Bo (2024-03-12 10:33): ", "Bo"),
        ("[00:01.000 --> 00:02.000] Ana: ", "[00:02.000 --> 00:12.000] Bo: ", "Bo"),
        ("<strong>Ana</strong>: ", "<strong>Bo</strong>: ", "Bo"),
        ("**User:** ", "**Bo:** ", "Bo"),
        ("2024-03-12 10:32:05\tana\t", "2024-03-12 10:33:05\t@bo\t", "bo"),
        ("1\n00:00:01,000 --> 00:00:04,000\nAna: ", "\n2\n00:00:05,000 --> 00:01:04,000\nBo: ", "Bo"),
        ("The PRESIDENT: ", "The CLERK: ", "CLERK"),
    ],
)
def test_the_second_of_two_turns_is_of_its_speaker(first: str, second: str, name: str) -> None:
    found = [piece for piece in pieces(f"{first}Hello.\n{second}{LONG}\n") if "Crate" in piece]
    assert len(found) > 5
    assert [piece for piece in found if name not in piece] == []


def test_lines_of_a_record_that_nobody_says_end_a_message() -> None:
    text = f"12/03/2024, 10:32 - Ana: Bye.\n12/03/2024, 10:33 - Ana left the group. {NARRATED}"
    assert all(not piece.startswith("Ana: Folder") for piece in pieces(text))
    # A cue without a voice is nobody's.
    cues = f"WEBVTT\n\n00:01.000 --> 00:02.000\n<v Ana>Bye.\n\n00:02.000 --> 00:09.000\n{NARRATED}\n"
    assert all("Ana" not in piece or "Bye" in piece for piece in pieces(cues))


def test_a_name_that_stands_once_in_a_message_of_another_form_is_no_speaker() -> None:
    text = f"[00:01] Ana: Hello.\n[00:05] Bo: I quote.\nMara: nine crates. {LONG}\n"
    assert all("Bo" in piece for piece in pieces(text) if "Crate" in piece)


@pytest.mark.parametrize("indent", ["", "    ", "\t", " 12   "])
def test_questions_and_answers_of_a_court_name_their_speaker(indent: str) -> None:
    turns = f"Q. Where were you?\nA. {LONG}\nTHE COURT: Go on.\nQ. What is this: a box?\nA. It is. {LONG}"
    found = pieces("\n".join(f"{indent}{line}" for line in turns.split("\n")))
    for piece in found:
        if "Crate" in piece:
            before = re.findall(r"\b([QA])\. |(THE COURT): ", piece[: piece.index("Crate")])
            assert before[-1] == ("A", ""), piece
    assert any("THE COURT: Go on." in piece for piece in found)


@pytest.mark.parametrize("lines", ["A. {}\nB. {}\nQ. {}", "A. {}\nA. {}", "Q. {}\nQ. {}"])
def test_letters_of_lists_name_nobody(lines: str) -> None:
    found = pieces(lines.format(LONG, LONG, LONG))
    assert sum(len(re.findall(r"\b[ABQ]\. ", piece)) for piece in found) == lines.count(".")
