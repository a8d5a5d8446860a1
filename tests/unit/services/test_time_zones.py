"""The zone of a request over the wire: a Timestamp keeps an instant, and not the offset it was written with."""

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest

from astrocyte.config.loading.time_zone import zone_of
from astrocyte.model import RecallQuery, ReflectQuery
from astrocyte.services.convert.codec import codec_of
from astrocyte.services.convert.recall import QUERIES
from astrocyte.v1 import memory_pb2

REFLECT_QUERIES = codec_of(ReflectQuery, memory_pb2.ReflectRequest)
NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("zone", "sent"),
    [
        (UTC, None),
        (timezone(timedelta(hours=9)), "+0900"),
        (timezone(-timedelta(hours=3, minutes=30)), "-0330"),
        (ZoneInfo("Europe/Berlin"), "Europe/Berlin"),
    ],
)
def test_the_offset_of_a_reference_is_sent_with_it(zone: timezone | ZoneInfo, sent: str | None) -> None:
    reference = NOON.astimezone(zone)
    recall = QUERIES.decode(QUERIES.encode(RecallQuery("tea", "b", query_reference_date=reference)))
    reflect = REFLECT_QUERIES.decode(REFLECT_QUERIES.encode(ReflectQuery("tea", "b", query_reference_date=reference)))
    assert recall.time_zone == reflect.time_zone == sent
    assert recall.query_reference_date == reflect.query_reference_date == NOON
    if sent is not None:
        assert NOON.astimezone(zone_of(sent)).utcoffset() == reference.utcoffset()


def test_a_zone_of_the_request_goes_before_it() -> None:
    reference = NOON.astimezone(timezone(timedelta(hours=9)))
    query = RecallQuery("tea", "b", query_reference_date=reference, time_zone="America/Lima")
    assert QUERIES.decode(QUERIES.encode(query)).time_zone == "America/Lima"
