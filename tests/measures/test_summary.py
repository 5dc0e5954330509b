import math

import pyarrow as pa
import pytest

from tests.measures.builders import churn_table, subscriptions_table, tables
from topicweave.errors import BadInput
from topicweave.measures import measure_run
from topicweave.measures.summary import scope_of
from topicweave.telemetry import Tables

pytestmark = pytest.mark.filterwarnings("error")

# a - b - c in a row, d beside c. Everybody but d wants t; c and d want u.
SUBSCRIPTIONS = subscriptions_table([("a", "t"), ("b", "t"), ("c", "t"), ("c", "u"), ("d", "u")])
RUN = tables(
    links=[
        (50.0, "a", "d", "old"),
        (100.0, "a", "b", "near"),
        (100.0, "b", "a", "near"),
        (100.0, "b", "c", "near"),
        (100.0, "c", "d", "far"),
    ],
    publishes=[(1, "t", "a", 10.0), (2, "u", "d", 60.0)],
    deliveries=[
        (1, "b", 10.5, 1, "a", True),
        (1, "c", 11.0, 2, "b", True),
        (1, "d", 11.5, 3, "c", False),
        (1, "b", 11.5, 3, "c", True),
        (2, "c", 62.0, 1, "d", True),
    ],
    control=[(50.0, "a", "Hello", 10, 1000), (100.0, "b", "Hello", 30, 3000), (100.0, "b", "Bye", 40, 400)],
)


def test_every_measure_by_hand() -> None:
    measures = measure_run(RUN, SUBSCRIPTIONS)
    # Degrees 1, 2, 2, 1: a standard deviation of sqrt(1/3), over the root of 4 nodes.
    assert measures.pop("degree_mean_ci95") == pytest.approx(1.959964 * math.sqrt(1 / 3) / 2)
    # Traffic of a, b, c, d: 1, 3, 4, 2 handled; demand 0, 1, 2, 0.
    assert measures.pop("fairness") == pytest.approx(3.5 / math.sqrt(5 * 2.75))
    assert measures == {
        "degree_mean": 1.5,
        "degree_p95": 2.0,
        "degree_max": 2.0,
        "links.near": 0.75,
        "links.far": 0.25,
        "components": 2,
        "partitioned_topics": 0,
        "coverage": 1.0,
        "topic_diameter_mean": 1.5,
        "topic_diameter_max": 2.0,
        "hit_ratio": 1.0,
        "noise": 0.25,
        "noise_node_mean": pytest.approx(1 / 3),
        "noise_all": 0.2,
        "noise_all_node_mean": pytest.approx(1 / 3),
        "duplicates": pytest.approx(1 / 3),
        "relays_per_topic": 0.5,
        "hops_mean": pytest.approx(4 / 3),
        "hops_max": 2.0,
        "latency_p50": 1.0,
        "latency_p95": pytest.approx(1.9),
        "latency_max": 2.0,
        "control_messages": 80 / 400,
        "control_messages.Hello": 40 / 400,
        "control_messages.Bye": 40 / 400,
        "control_bytes": 4400 / 400,
        "control_bytes.Hello": 4000 / 400,
        "control_bytes.Bye": 400 / 400,
    }


def test_the_interval_chooses_events_and_control_traffic() -> None:
    measures = measure_run(RUN, SUBSCRIPTIONS, start=50.0)
    assert (measures["hops_max"], measures["noise"], measures["control_messages"]) == (1, 0, 70 / 200)
    measures = measure_run(RUN, SUBSCRIPTIONS, end=50.0)
    assert (measures["hops_max"], measures["noise"], measures["control_messages"]) == (2, 1 / 3, 10 / 200)


def test_snapshot_kinds_and_coverage_are_passed_on() -> None:
    measures = measure_run(RUN, SUBSCRIPTIONS, snapshot_time=50.0)
    assert (measures["degree_mean"], measures["components"], measures["links.old"]) == (0.5, 5, 0.25)
    measures = measure_run(RUN, SUBSCRIPTIONS, link_kinds=["near"])
    assert (measures["degree_mean"], measures["partitioned_topics"]) == (1.0, 1)
    assert measure_run(RUN, SUBSCRIPTIONS, coverage_k=2)["coverage"] == 3 / 5
    assert measure_run(RUN, SUBSCRIPTIONS, snapshot_within=50.0)["degree_mean"] == 1.5


def test_the_window_is_passed_on() -> None:
    assert measure_run(RUN, SUBSCRIPTIONS, window=0.5)["hit_ratio"] == 1 / 3


def test_nodes_that_want_nothing_and_do_nothing_count_when_named() -> None:
    measures = measure_run(RUN, SUBSCRIPTIONS, nodes=["a", "b", "c", "d", "idle"])
    assert measures["degree_mean"] == 6 / 5
    assert measures["control_messages"] == 80 / 500
    assert (measures["components"], measures["hit_ratio"]) == (2, 1.0)


def test_churn() -> None:
    """c comes at 9 (one second before event 1) and b is gone from 98 on."""
    churn = churn_table([(9.0, "c", "join"), (98.0, "b", "leave")])
    measures = measure_run(RUN, SUBSCRIPTIONS, churn=churn, window=5.0)
    # b has left the overlay: a stands alone, t falls apart.
    assert (measures["degree_mean"], measures["partitioned_topics"]) == (2 / 3, 1)
    assert measures["control_messages"] == 80 / (400 - 9 - 2)
    assert measures["hit_ratio"] == 1.0
    # Event 2 is then the only one c is expected to get: it is not, in time.
    measures = measure_run(RUN, SUBSCRIPTIONS, churn=churn, grace=2.0, window=1.0)
    assert measures["hit_ratio"] == 1 / 2
    # Too new to be counted in the overlay.
    measures = measure_run(RUN, SUBSCRIPTIONS, churn=churn, grace=92.0)
    assert measures["degree_max"] == 0


def test_one_of_several_runs() -> None:
    other = tables(publishes=[(1, "t", "a", 10.0)], run="other")
    both = Tables(
        *(
            pa.concat_tables([getattr(RUN, table), getattr(other, table)])
            for table in ("links", "publishes", "deliveries", "control")
        )
    )
    with pytest.raises(BadInput, match=r"2 runs \(other, r\); say which"):
        measure_run(both, SUBSCRIPTIONS)
    with pytest.raises(BadInput, match="no run 'x'; they hold other, r"):
        measure_run(both, SUBSCRIPTIONS, run="x")
    assert measure_run(both, SUBSCRIPTIONS, run="r") == measure_run(RUN, SUBSCRIPTIONS)
    assert measure_run(both, SUBSCRIPTIONS, run="other")["hit_ratio"] == 0.0


COUNTS = {"components": 0, "partitioned_topics": 0}


def test_nothing_at_all() -> None:
    measures = measure_run(tables(), subscriptions_table([]))
    assert {name: value for name, value in measures.items() if not math.isnan(value)} == COUNTS


def test_one_node_alone() -> None:
    run = tables(publishes=[(1, "t", "a", 1.0)], control=[(10.0, "a", "Hello", 5, 50)])
    measures = measure_run(run, subscriptions_table([("a", "t")]))
    assert {name: value for name, value in measures.items() if not math.isnan(value)} == {
        "degree_mean": 0,
        "degree_p95": 0,
        "degree_max": 0,
        "components": 1,
        "partitioned_topics": 0,
        "coverage": 1,
        "topic_diameter_mean": 0,
        "topic_diameter_max": 0,
        "relays_per_topic": 0,
        "control_messages": 0.5,
        "control_messages.Hello": 0.5,
        "control_bytes": 5,
        "control_bytes.Hello": 5,
    }


def test_a_node_without_topics_relays() -> None:
    run = tables(
        links=[(1.0, "m", "a", "x"), (1.0, "m", "b", "x")],
        publishes=[(1, "t", "a", 1.0)],
        deliveries=[(1, "m", 1.5, 1, "a", False), (1, "b", 2.0, 2, "m", True)],
    )
    measures = measure_run(run, subscriptions_table([("a", "t"), ("b", "t")]))
    assert (measures["degree_mean"], measures["partitioned_topics"]) == (4 / 3, 1)
    assert (measures["hit_ratio"], measures["noise"], measures["relays_per_topic"]) == (1, 0.5, 1)


@pytest.mark.parametrize(
    ("scope", "said"),
    [
        ({"window": -1.0}, "window -1: give seconds, more than 0"),
        ({"start": 50.0, "end": 10.0}, "end 10: not after the start, 50"),
        ({"start": math.nan}, "start nan: give a moment of the run"),
        ({"end": math.nan}, "end nan: not after the start"),
        ({"grace": -5.0}, "grace -5: give seconds, 0 or more"),
    ],
)
def test_a_scope_that_measures_nothing_is_refused(scope: dict[str, float], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        scope_of(**scope)
