"""Packs the traditional and simplified forms of Han characters out of Unihan_Variants.txt (Unicode Character Database).

Forms of Japan are added to them. The table maps each character to the form that search compares: the simplified one
where there is one. It holds pairs of 16-bit little-endian code points in ascending order; characters beyond the Basic
Multilingual Plane are left out.

Example:
    python scripts/pack_han_variants.py Unihan_Variants.txt rust_core/text/src/analysis/han_variants.bin
"""

from __future__ import annotations

import argparse
import struct
from pathlib import Path

LARGEST = 0xFFFF
# The forms of Japan's reform of 1946 and of names, each before the older form. Unihan has few of them as variants.
JAPANESE = """
亜亞 悪惡 圧壓 囲圍 壱壹 隠隱 栄榮 営營 衛衞 駅驛 円圓 塩鹽 縁緣 艶艷 応應 欧歐 殴毆 桜櫻 奥奧 横橫
仮假 価價 絵繪 懐懷 壊壞 拡擴 殻殼 覚覺 楽樂 渇渴 巻卷 陥陷 勧勸 関關 歓歡 観觀 気氣 帰歸 亀龜 偽僞
戯戲 犠犧 拠據 挙擧 虚虛 狭狹 郷鄕 暁曉 駆驅 勲勳 薫薰 径徑 茎莖 恵惠 掲揭 渓溪 経經 蛍螢 軽輕 継繼
鶏鷄 芸藝 撃擊 研硏 県縣 倹儉 剣劍 険險 圏圈 検檢 権權 験驗 顕顯 厳嚴 広廣 効效 恒恆 鉱鑛 黒黑 済濟
砕碎 斎齋 斉齊 剤劑 冊册 雑雜 桟棧 蚕蠶 惨慘 賛贊 残殘 歯齒 児兒 辞辭 湿濕 実實 舎舍 釈釋 寿壽 収收
従從 渋澁 獣獸 縦縱 粛肅 処處 叙敍 将將 焼燒 奨奬 条條 状狀 乗乘 浄淨 剰剩 畳疊 縄繩 壌壤 嬢孃 譲讓
醸釀 真眞 尽盡 図圖 粋粹 酔醉 穂穗 髄髓 枢樞 瀬瀨 摂攝 専專 戦戰 浅淺 践踐 銭錢 潜潛 繊纖 禅禪 双雙
壮壯 捜搜 挿插 巣巢 総總 聡聰 荘莊 装裝 騒騷 増增 臓臟 蔵藏 続續 堕墮 対對 帯帶 滞滯 滝瀧 択擇 沢澤
担擔 胆膽 団團 弾彈 断斷 痴癡 遅遲 昼晝 鋳鑄 庁廳 徴徵 聴聽 鎮鎭 転轉 鉄鐵 伝傳 灯燈 当當 盗盜 稲稻
闘鬪 徳德 独獨 読讀 届屆 弐貳 悩惱 脳腦 覇霸 拝拜 廃廢 売賣 麦麥 発發 髪髮 抜拔 蛮蠻 秘祕 浜濱 払拂
仏佛 並竝 辺邊 邉邊 変變 宝寶 豊豐 褒襃 翻飜 毎每 満滿 黙默 薬藥 訳譯 誉譽 揺搖 様樣 謡謠 来來 頼賴
乱亂 覧覽 竜龍 両兩 猟獵 緑綠 涙淚 塁壘 励勵 礼禮 隷隸 霊靈 齢齡 歴歷 暦曆 恋戀 錬鍊 炉爐 労勞 楼樓
録錄 湾灣 窓窗 鋭銳 閲閱 悦悅 税稅 説說 脱脫 巌巖 弥彌 桧檜 槙槇 瑶瑤 遥遙 尭堯 晋晉 渋澀 鴎鷗 頬頰
剥剝 填塡 麺麵 麹麴 掴摑 蝋蠟 繋繫 痩瘦 嘘噓 嚢囊 頚頸 砺礪 祷禱 蝉蟬 躯軀 噛嚙 涜瀆 撹攪 焔焰 侠俠
倶俱 曽曾 呉吳 娯娛 戸戶 歩步 渉涉 単單 産產 顔顏 姉姊 厨廚 髙高 濵濱 冨富 嶋島 嶌島 舘館
"""
FIELDS = ("kSimplifiedVariant", "kTraditionalVariant", "kZVariant")


def main() -> None:
    """Read the file of the first argument, write that of the second."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("unihan", type=Path)
    parser.add_argument("table", type=Path)
    options = parser.parse_args()
    pairs = sorted(variants(options.unihan.read_text(encoding="utf-8")).items())
    options.table.write_bytes(b"".join(struct.pack("<HH", *pair) for pair in pairs))
    print(f"{len(pairs)} characters")


def variants(text: str) -> dict[int, int]:
    """Characters with the form that stands for them; no value is a key."""
    found = _fields(text)
    forms: dict[int, int] = {}
    for character, codes in found["kSimplifiedVariant"].items():
        other = next((code for code in codes if code != character), None)
        if other is not None:
            forms[character] = other
    for character, codes in found["kTraditionalVariant"].items():
        for traditional in codes:
            if traditional != character:
                forms.setdefault(traditional, character)
    for character, codes in found["kZVariant"].items():
        for other in codes:
            # The one that has a simplified form leads there.
            first, second = sorted((character, other), key=lambda code: (code not in forms, code))
            forms.setdefault(second, first)
    return with_japanese({key: value for key, value in forms.items() if max(key, value) <= LARGEST and key != value})


def with_japanese(forms: dict[int, int]) -> dict[int, int]:
    """The forms with those of Japan beside them: each stands for what its older form stands for."""
    found = dict(forms)

    def end(character: int) -> int:
        while character in found:
            character = found[character]
        return character

    known = {*forms, *forms.values()}
    for new, old in (map(ord, pair) for pair in JAPANESE.split()):
        one, other = end(new), end(old)
        if one != other:
            # What only Japan writes joins what others write.
            first, second = (one, other) if old in known else (other, one)
            found[first] = second
    return _settled(found)


def _fields(text: str) -> dict[str, dict[int, list[int]]]:
    """The variants of each character by field."""
    found: dict[str, dict[int, list[int]]] = {field: {} for field in FIELDS}
    for line in text.splitlines():
        if line.startswith("#") or not line.strip():
            continue
        character, field, values = line.split("\t")
        # Of what means the same, only what is the same character in another drawing.
        if field == "kSemanticVariant" and "kHKGlyph" in values:
            field = "kZVariant"
        if field in found:
            codes = [int(value.split("<")[0].removeprefix("U+"), 16) for value in values.split()]
            found[field].setdefault(int(character.removeprefix("U+"), 16), []).extend(codes)
    return found


def _settled(forms: dict[int, int]) -> dict[int, int]:
    """The forms with chains followed to their ends; a circle ends at its smallest character."""
    settled = {}
    for character in forms:
        seen = [character]
        while (form := forms.get(seen[-1])) is not None and form not in seen:
            seen.append(form)
        end = seen[-1] if form is None else min(seen[seen.index(form) :])
        if end != character:
            settled[character] = end
    return settled


if __name__ == "__main__":
    main()
