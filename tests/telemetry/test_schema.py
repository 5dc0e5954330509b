import hashlib

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from topicweave.model.event import EventId
from topicweave.model.ids import RING_SIZE
from topicweave.telemetry.schema import RECORDED, event_key

ring_points = st.integers(0, RING_SIZE - 1)
counters = st.integers(0, 2**63 - 1)
event_ids = st.builds(EventId, ring_points, ring_points, counters, counters)


def test_columns_are_those_of_the_design() -> None:
    assert {table: schema.names for table, schema in RECORDED.items()} == {
        "links": ["run", "time", "node", "peer", "kind"],
        "publishes": ["run", "event", "topic", "node", "time"],
        "deliveries": ["run", "event", "node", "time", "hops", "sender", "wanted"],
        "control": ["run", "time", "node", "kind", "messages", "bytes"],
        "interests": ["run", "time", "node", "topic", "wanted"],
    }


def test_event_key_is_the_sha1_of_the_four_fields_as_64_bit_numbers() -> None:
    plain = b"".join(number.to_bytes(8, "big") for number in (1, 2, 3, 4))
    first_64_bits = int(hashlib.sha1(plain).hexdigest()[:16], 16)
    assert event_key(EventId(1, 2, 3, 4)) == first_64_bits // 2


@given(event_ids)
def test_event_key_fits_the_column(event: EventId) -> None:
    assert pa.array([event_key(event)], pa.int64())[0].as_py() >= 0


@given(event_ids, event_ids)
def test_different_events_have_different_keys(one: EventId, other: EventId) -> None:
    assert (event_key(one) == event_key(other)) == (one == other)
