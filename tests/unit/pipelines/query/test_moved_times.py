"""Changes of a memory's times: filters and neighbours use the right ones."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from astrocyte import Astrocyte

DAY = timedelta(days=1)
EVENING = datetime(2024, 5, 8, 20, tzinfo=UTC)


@pytest.fixture
async def brain() -> AsyncIterator[Astrocyte]:
    async with Astrocyte.from_config_dict({"vector_store": "in_memory"}) as brain:
        yield brain


async def test_an_edit_does_not_move_a_memory_in_time(brain: Astrocyte) -> None:
    kept = await brain.retain("The spare key is under the blue pot.", "home")
    assert kept.memory_id is not None
    first = (await brain.recall("spare key", bank_id="home")).hits[0]
    assert first.retained_at is not None
    await brain.update(kept.memory_id, "home", tags=["keys"])
    # Up to the first storing, in milliseconds: the edit came later, or within the same one.
    until = first.retained_at + timedelta(milliseconds=1)
    found = await brain.recall("spare key", bank_id="home", time_range=(until - DAY, until))
    assert [hit.memory_id for hit in found.hits] == [kept.memory_id]
    assert found.hits[0].version == 2
    assert found.hits[0].retained_at == first.retained_at


async def test_a_corrected_time_moves_a_turn_among_its_neighbours(brain: Astrocyte) -> None:
    """The same scores as if it had been stored at the right time at once."""
    turns = [f"Turn number {number} speaks of the {name}." for number, name in enumerate(["harbour", "mill", "quarry"])]
    times = [EVENING, EVENING + DAY, EVENING + 2 * DAY]
    for text, at in zip(turns, times, strict=True):
        await brain.retain(text, "right", session_id="s", occurred_at=at)
    late = EVENING + 9 * DAY
    kept = [
        await brain.retain(text, "corrected", session_id="s", occurred_at=at)
        for text, at in zip(turns, [late, *times[1:]], strict=True)
    ]
    moved = kept[0].memory_id
    assert moved is not None
    await brain.update(moved, "corrected", occurred_at=EVENING)

    async def scores(bank: str) -> list[tuple[str, float]]:
        result = await brain.recall("what about the mill?", bank_id=bank)
        return [(hit.text, hit.score) for hit in result.hits]

    assert await scores("corrected") == await scores("right")
