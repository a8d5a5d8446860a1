"""Words of all scripts, symbols and names are found by keywords, through the library's own door."""

from pathlib import Path

import pytest

from astrocyte import Astrocyte
from astrocyte.errors import ConfigError

REST = (
    "The kettle whistles.",
    "Le chat dort.",
    "Der Zug fährt ab.",
    "الشاي ساخن",
    "狗在花园里",
    "Кот спит.",
    "बिल्ली सोती है",
)


async def arms(text: str, query: str, **settings: object) -> list[str]:
    """The arms that find a text among others, where it is the first hit."""
    brain = Astrocyte.from_config_dict({"vector_store": "in_memory", **settings})
    for one in (*REST, text):
        await brain.retain(one, bank_id="b")
    first = (await brain.recall(query, bank_id="b", max_results=3)).hits[0]
    await brain.close()
    return [arm.arm for arm in first.arms] if first.text == text else []


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("Frau Kühn kommt.", "Kuehn"), ("Herr Baecker kommt.", "Bäcker"), ("Onkel Jørgen kommt.", "Joergen"),
        ("Fru Ågren kommt.", "Aagren"), ("وصل إبراهيم مساء", "ابراهيم"), ("فُتِحَت المكتبة", "المكتبه"),
        ("رقم البيت ٤٧", "47"), ("Σήμερα ψωνίζει η Ελένη", "ΕΛΕΝΗ"), ("Пришёл Семён", "Семен"),
        ("בָּאָה רִבְקָה", "רבקה"), ("सड़क बंद है", "सडक"), ("飛機延誤了", "飞机"), ("竜の絵本です", "龍"),
        ("沢田さんの店", "澤田"), ("桜が咲いた", "櫻"), ("広島へ行く", "廣島"), ("Party 🎉 tonight", "🎉"),
        ("Flag 🇵🇹 outside", "🇵🇹"), ("On visite l'abbaye.", "abbaye"), ("Konya'ya gidiyoruz.", "Konya"),
        ("Ask Mr O'Hara.", "OHara"), ("Call loadXMLFile now.", "xml"),
        ("Hepatitis A was ruled out.", "hepatitis A"),
    ],
)  # fmt: skip
async def test_a_word_is_found_in_another_spelling(text: str, query: str) -> None:
    assert "keyword" in await arms(text, query)


async def test_a_bank_has_a_language() -> None:
    german = {"banks": {"b": {"extraction": {"language": "german"}}}}
    assert "keyword" in await arms("Zwei Katzen liegen am Fluss.", "Katze", **german)
    assert "keyword" not in await arms("Zwei Katzen liegen am Fluss.", "Katze")
    with pytest.raises(ConfigError, match="language"):
        Astrocyte.from_config_dict({"extraction": {"language": "klingon"}})


async def test_an_index_of_another_language_is_built_anew(tmp_path: Path) -> None:
    for language, found in (("english", False), ("german", True), ("english", False)):
        settings = {
            "data_dir": str(tmp_path / "data"),
            "extraction": {"language": language},
            "index": {"checkpoint_rows": 1, "checkpoint_evicted_rows": 1},
        }
        brain = Astrocyte.from_config_dict(settings)
        if language == "english" and not (tmp_path / "kept").exists():
            for one in (*REST, "Zwei Katzen liegen am Fluss."):
                await brain.retain(one, bank_id="b")
            (tmp_path / "kept").touch()
        hits = (await brain.recall("Katze", bank_id="b", max_results=8)).hits
        by_words = {hit.text for hit in hits if any(arm.arm == "keyword" for arm in hit.arms)}
        assert ("Zwei Katzen liegen am Fluss." in by_words) is found, language
        await brain.close()


async def test_names_that_look_the_same_are_the_same() -> None:
    composed, apart = "Caf\u00e9", "Cafe\u0301"
    brain = Astrocyte.from_config_dict({"vector_store": "in_memory"})
    kept = await brain.retain("A cup.", bank_id="b", tags=[apart], metadata={apart: apart}, session_id=apart)
    memory = await brain.get(kept.memory_id or "", "b")
    assert (memory.tags, memory.metadata, memory.session_id) == ((composed,), {composed: composed}, composed)
    for name in (composed, apart):
        assert len((await brain.recall("cup", bank_id="b", tags=[name])).hits) == 1
        assert len((await brain.recall("cup", bank_id="b", session_id=name)).hits) == 1
        assert len((await brain.list("b", tags=[name], session_id=name)).memories) == 1
    await brain.forget("b", tags=[apart])
    assert (await brain.list("b")).memories == ()
    await brain.close()


async def test_personal_data_in_an_encoded_mail_is_seen() -> None:
    brain = Astrocyte.from_config_dict({"vector_store": "in_memory"})
    head = "From: Lea\nSubject: Shed\nContent-Type: text/plain\nContent-Transfer-Encoding: quoted-printable\n\n"
    kept = await brain.retain(f"{head}Write to mara.l=\n=40example.org today.", bank_id="b", content_type="email")
    memory = await brain.get(kept.memory_id or "", "b")
    assert "mara" not in memory.content
    assert memory.content.startswith("Shed\n\nWrite to ")
    await brain.update(kept.memory_id or "", "b", content=f"{head}Or to mara.l=\n=40example.org.")
    assert "mara" not in (await brain.get(kept.memory_id or "", "b")).content
    await brain.close()
