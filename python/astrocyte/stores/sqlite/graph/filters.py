"""The conditions of a recall on the version ``m`` of a statement, as SQL over named bindings."""

from __future__ import annotations

from typing import Any

from astrocyte.stores.memory_filter import MemoryFilter, Span
from astrocyte.stores.sqlite.rows import Array

_TAGGED = (
    "EXISTS (SELECT 1 FROM carray(:tags) w CROSS JOIN tags t"
    " ON t.bank_key = :bank AND t.tag = w.value AND t.row_key = m.row_key)"
)
_ALL_TAGGED = (
    "NOT EXISTS (SELECT 1 FROM carray(:tags) w WHERE NOT EXISTS (SELECT 1 FROM tags t"
    " WHERE t.bank_key = :bank AND t.tag = w.value AND t.row_key = m.row_key))"
)
_METADATA = (
    "EXISTS (SELECT 1 FROM contents f, json_each(f.metadata) j WHERE f.row_key = m.row_key AND j.key = :key{0} AND {1})"
)
# By the first character of a typed value.
_VALUES = {
    "s": "j.type = 'text' AND j.value = :value{0}",
    "i": "j.type = 'integer' AND CAST(j.value AS TEXT) = :value{0}",
    "d": "j.type = 'real' AND j.value = CAST(:value{0} AS REAL)",
    "t": "j.type = 'true'",
    "f": "j.type = 'false'",
    "n": "j.type = 'null'",
}


def conditions(wanted: MemoryFilter) -> tuple[str, dict[str, Any]]:
    """The filter as SQL that follows other conditions, with the values of its bindings; "" admits everything.

    The statement also binds ``:bank``.
    """
    parts: list[str] = []
    bindings: dict[str, Any] = {}
    if wanted.tags:
        match = {"any": _TAGGED, "all": _ALL_TAGGED, "none": f"NOT {_TAGGED}"}
        parts.append(match[wanted.tag_match])
        bindings["tags"] = Array(wanted.tags)
    for column, name, values in (
        ("m.fact_type", "fact_types", wanted.fact_types),
        ("m.memory_id", "memory_ids", wanted.memory_ids),
    ):
        if values:
            parts.append(f"{column} IN (SELECT value FROM carray(:{name}))")
            bindings[name] = Array(values)
    if wanted.session_id is not None:
        parts.append("m.session_id = :session")
        bindings["session"] = wanted.session_id
    for place, (key, value) in enumerate(wanted.metadata):
        parts.append(_METADATA.format(place, _VALUES[value[0]].format(place)))
        bindings[f"key{place}"] = key
        if len(value) > 1:
            bindings[f"value{place}"] = value[1:]
    _within(parts, bindings, "coalesce(m.occurred_at, m.retained_at)", "happened", wanted.happened)
    _within(parts, bindings, "m.retained_at", "retained", wanted.retained)
    return "".join(f" AND {part}" for part in parts), bindings


def _within(parts: list[str], bindings: dict[str, Any], column: str, name: str, span: Span) -> None:
    for end, sign, value in zip(("first", "last"), (">=", "<="), span, strict=True):
        if value is not None:
            parts.append(f"{column} {sign} :{name}_{end}")
            bindings[f"{name}_{end}"] = value
