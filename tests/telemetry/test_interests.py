"""Who wanted what when: the vectorised reading beside one that goes through time."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from topicweave.model.workload import Workload
from topicweave.sim.churn import Change, Churn
from topicweave.sim.simulation import Simulation
from topicweave.systems.registry import find_system
from topicweave.telemetry import MemoryTelemetry
from topicweave.telemetry.interests import wanted_between
from topicweave.telemetry.schema import INTERESTS

Row = tuple[int, str, str, bool]
rows = st.lists(
    st.tuples(st.integers(0, 6), st.sampled_from("ab"), st.sampled_from(["", "x", "y"]), st.booleans()),
    max_size=12,
)


def table(found: list[Row]) -> pa.Table:
    columns = {
        "run": ["r"] * len(found),
        "time": [float(time) for time, _, _, _ in found],
        "node": [node for _, node, _, _ in found],
        "topic": [topic for _, _, topic, _ in found],
        "wanted": [wanted and topic != "" for _, _, topic, wanted in found],
    }
    return pa.table(columns).cast(INTERESTS)


def states(found: list[Row]) -> list[set[tuple[str, str]]]:
    """The pairs that are wanted from each of the moments 0 to 7 on."""
    now: set[tuple[str, str]] = set()
    every = []
    for moment in range(8):
        here = [row for row in found if row[0] == moment]
        for _, node, topic, _ in here:
            if not topic:
                now = {pair for pair in now if pair[0] != node}
        for _, node, topic, wanted in here:
            if topic:
                (now.add if wanted else now.discard)((node, topic))
        every.append(set(now))
    return every


@given(rows, st.integers(0, 7), st.integers(0, 7))
def test_lists_are_those_of_all_moments(found: list[Row], one: int, other: int) -> None:
    start, end = sorted((one, other))
    expected = set().union(*states(found)[start : end + 1])
    lists = wanted_between(table(found), float(start), float(end)).subscriptions.to_pylist()
    assert sorted((row["node"], row["topic"]) for row in lists) == sorted(expected)


@given(rows)
def test_a_node_is_there_while_it_wants_something(found: list[Row]) -> None:
    expected, before = [], set[str]()
    for moment, pairs in enumerate(states(found)):
        now = {node for node, _ in pairs}
        expected += [
            (float(moment), node, "join" if node in now else "leave") for node in sorted(now ^ before)
        ]
        before = now
    churn = wanted_between(table(found), 0.0, 7.0).churn.to_pylist()
    assert sorted((row["time"], row["node"], row["change"]) for row in churn) == expected


def test_a_simulation_records_what_its_nodes_want() -> None:
    workload = Workload.from_lists({"ann": ["a", "b"], "bob": ["a"], "eve": ["b"]})
    telemetry = MemoryTelemetry("r", *workload.names())
    telemetry.keeps_interests = True
    churn = Churn(frozenset({0, 1}), (Change(4.0, 1, False), Change(6.0, 2, True)))
    simulation = Simulation(workload, find_system("random"), seed=1, telemetry=telemetry, churn=churn)
    simulation.run(5.0)
    simulation.subscribe(0, 0)
    simulation.unsubscribe(0, 1)
    simulation.run(8.0)
    recorded = pa.Table.from_batches(telemetry.batches()["interests"])

    def lists(start: float, end: float) -> set[tuple[str, str]]:
        found = wanted_between(recorded, start, end).subscriptions.to_pylist()
        return {(row["node"], row["topic"]) for row in found}

    assert lists(3.0, 3.5) == {("ann", "a"), ("ann", "b"), ("bob", "a")}
    assert lists(5.5, 8.0) == {("ann", "a"), ("eve", "b")}
    changes = [(row["node"], row["change"]) for row in wanted_between(recorded, 0, 9).churn.to_pylist()]
    assert changes[-2:] == [("bob", "leave"), ("eve", "join")]
