"""Versions by memory id: read by the index of ids, however large the bank is."""

from typing import Any

from astrocyte.stores.sqlite.engine.connections import Connections
from astrocyte.stores.sqlite.store import open_store


async def test_a_few_memories_do_not_cost_a_walk_over_the_bank(monkeypatch: Any) -> None:
    store = open_store(None)
    try:
        bank = await store.create_bank(
            "default", "b", display_name="", description="", embedding_model="m", dimensions=1
        )
        plans: list[str] = []
        snapshot = Connections.snapshot

        def watched(self: Connections) -> Any:
            return _Explained(snapshot(self), plans)

        monkeypatch.setattr(Connections, "snapshot", watched)
        assert store.version_records(bank, ["mem_1"], at_position=1) == []
        assert any("sqlite_autoindex_memories_1 (bank_key=? AND memory_id=?)" in plan for plan in plans), plans
        assert not any("memories_listed" in plan for plan in plans), plans
    finally:
        store.close()


class _Explained:
    """A snapshot that notes the plans of its statements."""

    def __init__(self, inner: Any, plans: list[str]) -> None:
        self._inner = inner
        self._plans = plans

    def __enter__(self) -> Any:
        connection = self._inner.__enter__()
        plans = self._plans

        class Explaining:
            def execute(self, sql: str, bindings: Any = ()) -> Any:
                plans.extend(str(row[-1]) for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", bindings))
                return connection.execute(sql, bindings)

        return Explaining()

    def __exit__(self, *error: object) -> Any:
        return self._inner.__exit__(*error)
