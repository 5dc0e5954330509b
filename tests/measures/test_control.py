import math

import pytest

from tests.measures.builders import telemetry_table
from topicweave.measures.control import (
    ControlTraffic,
    control_measures,
    control_per_operation,
    traffic_by_kind,
)

pytestmark = pytest.mark.filterwarnings("error")

CONTROL = telemetry_table(
    "control",
    [
        (10.0, "a", "Heartbeat", 4, 400),
        (10.0, "b", "Heartbeat", 6, 600),
        (10.0, "a", "Connect", 1, 50),
        (20.0, "b", "Heartbeat", 5, 500),
        (20.0, "b", "Connect", 3, 150),
        (30.0, "a", "Leave", 2, 20),
    ],
)


def test_sums_by_kind() -> None:
    assert traffic_by_kind(CONTROL) == {
        "Connect": ControlTraffic(4, 200),
        "Heartbeat": ControlTraffic(15, 1500),
        "Leave": ControlTraffic(2, 20),
    }


def test_a_row_belongs_to_the_period_that_ends_at_its_time() -> None:
    assert traffic_by_kind(CONTROL, start=10.0, end=20.0) == {
        "Connect": ControlTraffic(3, 150),
        "Heartbeat": ControlTraffic(5, 500),
        "Leave": ControlTraffic(0, 0),
    }


def test_rates_per_node_and_second() -> None:
    assert control_measures(CONTROL, node_seconds=2 * 20.0, start=0.0, end=20.0) == {
        "control_messages": 19 / 40,
        "control_messages.Connect": 4 / 40,
        "control_messages.Heartbeat": 15 / 40,
        "control_messages.Leave": 0.0,
        "control_bytes": 1700 / 40,
        "control_bytes.Connect": 200 / 40,
        "control_bytes.Heartbeat": 1500 / 40,
        "control_bytes.Leave": 0.0,
    }


def test_traffic_per_churn_operation() -> None:
    assert control_per_operation(CONTROL, ["Connect", "Leave"], 4) == ControlTraffic(6 / 4, 220 / 4)
    assert control_per_operation(CONTROL, ["Connect", "Leave"], 3, start=10.0, end=20.0) == ControlTraffic(
        1, 50
    )
    assert control_per_operation(CONTROL, ["Unheard"], 4) == ControlTraffic(0, 0)
    assert all(map(math.isnan, control_per_operation(CONTROL, ["Connect"], 0)))


def test_silence() -> None:
    silent = control_measures(telemetry_table("control"), node_seconds=10.0)
    assert silent == {"control_messages": 0.0, "control_bytes": 0.0}
    assert all(map(math.isnan, control_measures(telemetry_table("control"), node_seconds=0.0).values()))
