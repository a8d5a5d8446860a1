from datetime import UTC, datetime

import pytest

from astrocyte.model import Entity, MemoryState
from astrocyte.policy.requests.pages import RESERVED_BYTES, PageLimit, cut_page, largest_size

# Twelve characters are this much.
TEXT, TEXT_BYTES = "a dozen char", 20


def rows(count: int) -> list[tuple[int, str]]:
    return [(place, TEXT) for place in range(1, count + 1)]


def test_a_page_ends_after_its_entries() -> None:
    limit = PageLimit(3, 1_000_000)
    assert cut_page(rows(4), limit) == ((TEXT,) * 3, 3)
    assert cut_page(rows(3), limit) == ((TEXT,) * 3, None)
    assert cut_page([], limit) == ((), None)


@pytest.mark.parametrize(
    ("size_bytes", "count"), [(2 * TEXT_BYTES, 2), (3 * TEXT_BYTES - 1, 2), (3 * TEXT_BYTES, 3), (0, 1), (-5, 1)]
)
def test_a_page_ends_before_its_bytes_do_and_has_an_entry(size_bytes: int, count: int) -> None:
    assert largest_size(TEXT) == TEXT_BYTES
    assert cut_page(rows(4), PageLimit(10, size_bytes)) == ((TEXT,) * count, count)


def test_a_last_page_that_its_bytes_cut_goes_on() -> None:
    assert cut_page(rows(3), PageLimit(3, 2 * TEXT_BYTES)) == ((TEXT,) * 2, 2)


def test_an_answer_keeps_room_for_the_rest_of_the_page() -> None:
    assert PageLimit.within(5, 4 << 20) == (5, (4 << 20) - RESERVED_BYTES)
    assert PageLimit.within(5, 1_024) == (5, 0)


def test_sizes_count_bytes_and_what_is_computed() -> None:
    assert largest_size("漢字") == largest_size("six by")
    assert largest_size("\ud800") >= 3
    assert largest_size(b"abc") == largest_size("abc")
    assert largest_size({"key": "value"}) > largest_size("key") + largest_size("value")
    for scalar in (None, 7, 2.5, datetime.now(UTC)):
        assert largest_size(scalar) >= 20
    assert largest_size(MemoryState.ACTIVE) >= len("active")
    entity = Entity("Alice Smith", "PERSON")
    assert largest_size(entity) > largest_size(entity.name) + largest_size(entity.entity_type) + len(entity.id)
