"""Every system of the registry, live: whatever is registered later is tested here without a change."""

from __future__ import annotations

import pytest

from tests.live.together import eventually, local, run, taken, total
from topicweave.live.swarm import draw_interests, run_swarm
from topicweave.systems.registry import SYSTEMS


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
    connects = SYSTEMS[system].connects_topics

    async def test() -> None:
        async with run_swarm(interests, settings, seed=3) as swarm:
            wanted = sorted({topic for interest in interests for topic in interest})
            subscribers = {topic: [n for n in swarm if topic in n.subscriptions] for topic in wanted}
            reached: dict[str, bool] = {}

            async def settled() -> None:
                """Probe each topic until a probe reaches all: a system settles in its own time."""
                for topic in wanted:
                    # One that promises nothing is not waited for.
                    for attempt in range(40 if connects else 3):
                        publisher = subscribers[topic][attempt % len(subscribers[topic])]
                        probe = f"probe {topic} {attempt}".encode()
                        await publisher.publish(topic, probe)

                        def everybody(topic: str = topic, probe: bytes = probe) -> bool:
                            return all((topic, probe) in taken(node) for node in subscribers[topic])

                        try:
                            await eventually(everybody, patience=1.5)
                        except AssertionError:
                            continue
                        reached[topic] = True
                        break

            await settled()
            if connects:
                assert set(reached) == set(wanted), f"never served: {set(wanted) - set(reached)}"
                for round_ in range(3):
                    for topic in wanted:
                        publisher = subscribers[topic][round_ % len(subscribers[topic])]
                        await publisher.publish(topic, f"event {topic} {round_}".encode())
                for node in swarm:
                    expected = {(t, f"event {t} {r}".encode()) for t in node.subscriptions for r in range(3)}
                    await eventually(lambda node=node, expected=expected: expected <= set(taken(node)))  # type: ignore[misc]
            else:
                assert reached, "not a single topic was served"
            for node in swarm:
                events = taken(node)
                assert {topic for topic, _ in events} <= set(node.subscriptions), "only what was asked for"
                assert len(events) == len(set(events)), "at most once"
            for counter in ("node_errors", "protocol_errors", "events_dropped", "application_drops"):
                assert total(swarm, counter) == 0, counter

    run(test)
