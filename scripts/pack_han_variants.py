"""Packs the traditional and simplified forms of Han characters out of Unihan_Variants.txt (Unicode Character Database).

The table maps each character to the form that search compares: the simplified one where there is one. It holds pairs of
16-bit little-endian code points in ascending order; characters beyond the Basic Multilingual Plane are left out.

Example:
    python scripts/pack_han_variants.py Unihan_Variants.txt rust_core/text/src/analysis/han_variants.bin
"""

from __future__ import annotations

import argparse
import struct
from pathlib import Path

LARGEST = 0xFFFF
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
    return _settled({key: value for key, value in forms.items() if max(key, value) <= LARGEST and key != value})


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
