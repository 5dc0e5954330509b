"""Every system of the registry, live: whatever is registered later is tested here without a change."""

from __future__ import annotations

import contextlib

import pytest

from tests.live.together import eventually, local, run, taken, total
from topicweave.live import LiveNode
from topicweave.live.swarm import draw_interests, run_swarm
from topicweave.systems.registry import SYSTEMS

MOST_ROUNDS = 40
IN_A_ROW = 3


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_event_reaches_every_subscriber_and_nobody_else(system: str) -> None:
    serve_everybody(system, nodes=12, topics=6, topics_per_node=3)


@pytest.mark.live
@pytest.mark.parametrize("system", SYSTEMS)
def test_fifty_nodes(system: str) -> None:
    serve_everybody(system, nodes=50, topics=20, topics_per_node=5)


def serve_everybody(system: str, nodes: int, topics: int, topics_per_node: int) -> None:
    interests = draw_interests(nodes, topics, topics_per_node, seed=3)
    # Without catching up, so that the system itself has to do it.
    settings = local(system=system, cache=0)

    async def test() -> None:
        async with run_swarm(interests, settings, seed=3) as swarm:
            if SYSTEMS[system].connects_topics:
                await served_in_a_row(swarm)
            else:  # One that promises nothing is not waited for.
                missed = [await round_of_events(swarm, attempt) for attempt in range(3)]
                assert min(map(len, missed)) < sum(len(node.subscriptions) for node in swarm), "nobody served"
            for node in swarm:
                events = taken(node)
                assert {topic for topic, _ in events} <= set(node.subscriptions), "only what was asked for"
                assert len(events) == len(set(events)), "at most once"
            for counter in ("node_errors", "protocol_errors", "events_dropped", "application_drops"):
                assert total(swarm, counter) == 0, counter

    run(test)


async def served_in_a_row(swarm: list[LiveNode]) -> None:
    """Every topic has an event in every round; some rounds in a row must miss nobody.

    A system settles in its own time, and while links are still moved an event may meet a place that is
    between two of them. How long that takes depends on the machine; that it ends does not.
    """
    complete, missed = 0, set[tuple[int, str]]()
    for attempt in range(MOST_ROUNDS):
        missed = await round_of_events(swarm, attempt)
        complete = 0 if missed else complete + 1
        if complete == IN_A_ROW:
            return
    pytest.fail(
        f"no {IN_A_ROW} of {MOST_ROUNDS} rounds in a row served everybody; the last missed {sorted(missed)}"
    )


async def round_of_events(swarm: list[LiveNode], attempt: int) -> set[tuple[int, str]]:
    """One event on each topic, from another subscriber each time; who of the subscribers did not get it."""
    for topic in sorted({topic for node in swarm for topic in node.subscriptions}):
        subscribers = [node for node in swarm if topic in node.subscriptions]
        await subscribers[attempt % len(subscribers)].publish(topic, str(attempt).encode())

    missed = {(place, topic) for place, node in enumerate(swarm) for topic in node.subscriptions}
    looked_at = [0] * len(swarm)

    def all_served() -> bool:
        for place, node in enumerate(swarm):
            events = taken(node, looked_at[place])
            looked_at[place] += len(events)
            missed.difference_update(
                (place, topic) for topic, payload in events if payload == str(attempt).encode()
            )
        return not missed

    with contextlib.suppress(AssertionError):
        await eventually(all_served, patience=3.0)
    return missed
