"""Fifty nodes in as many real processes: everybody is served, some are killed, the survivors are served again."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from tests.live.together import PATIENCE, Process, local, processes
from topicweave.live.client import publish_through
from topicweave.live.swarm import draw_interests
from topicweave.systems.registry import SYSTEMS

WORKER = Path(__file__).with_name("swarm_worker.py")
REPAIRED_WITHIN = 60.0
"""Seconds after a kill -9 of 30 % within which all survivors must be served again: the stated time."""


class Worker:
    """One process, the names and interests of its nodes, and what their applications got."""

    def __init__(self, process: Process, names: list[str], interests: list[list[str]]) -> None:
        self.process, self.names, self.interests = process, names, interests
        where = process.where()
        self.listen: list[str] = where["listen"]
        self.http: list[str] = where["http"]
        self.got: list[tuple[str, str, str]] = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.process.stdout is not None
        for line in self.process.process.stdout:
            name, topic, text = json.loads(line)
            self.got.append((name, topic, text))


def wait_for(condition: Callable[[], bool], patience: float) -> bool:
    deadline = time.monotonic() + patience
    waiting = threading.Event()
    while not condition():
        if time.monotonic() > deadline:
            return False
        waiting.wait(0.02)
    return True


@pytest.mark.live
@pytest.mark.parametrize("system", [name for name in SYSTEMS if SYSTEMS[name].connects_topics])
def test_kill_nine_of_thirty_percent(system: str, record_property: Callable[[str, object], None]) -> None:
    """How long it took is in the report (`--junit-xml`)."""
    seconds = crowd(system, workers=50, nodes_each=1, topics=10, topics_per_node=4)
    record_property("served_again_after_seconds", round(seconds, 1))


def test_a_third_of_the_processes_is_killed() -> None:
    crowd("spidercast", workers=3, nodes_each=4, topics=3, topics_per_node=2)


def crowd(system: str, workers: int, nodes_each: int, topics: int, topics_per_node: int) -> float:
    """Seconds from the kill until each topic had an event that reached all of its surviving subscribers."""
    nodes = workers * nodes_each
    interests = draw_interests(nodes, topics, topics_per_node, seed=5)
    settings = msgspec.to_builtins(local(system=system, cache=0, http="127.0.0.1:0"))
    with processes() as start:
        crew: list[Worker] = []

        def begin(number: int) -> tuple[Process, list[str], list[list[str]]]:
            part = slice(number * nodes_each, (number + 1) * nodes_each)
            names = [f"node-{index:03d}" for index in range(part.start, part.stop)]
            order = {
                "settings": settings,
                "interests": interests[part],
                "names": names,
                "join": [one.listen[0] for one in crew[:3]],
            }
            return start(json.dumps(order), script=WORKER), names, interests[part]

        # The first three one by one, since the others join them; then ten at a time.
        groups = [range(number, number + 1) for number in range(3)]
        groups += [range(low, min(low + 10, workers)) for low in range(3, workers, 10)]
        for group in groups:
            begun = [begin(number) for number in group]
            crew += [Worker(*one) for one in begun]

        def everybody_is_served(label: str, alive: list[Worker], patience: float) -> None:
            """Each topic: events from changing publishers until one has reached all its subscribers."""
            wanted = {topic for one in alive for interest in one.interests for topic in interest}
            deadline = time.monotonic() + patience
            for topic in sorted(wanted):
                who = [
                    (one, place)
                    for one in alive
                    for place, interest in enumerate(one.interests)
                    if topic in interest
                ]
                names = {one.names[place] for one, place in who}
                attempt = 0
                while True:
                    text = f"{label} {topic} {attempt}"
                    one, place = who[attempt % len(who)]
                    publish_through(one.http[place], "", topic, text.encode())

                    def reached(topic: str = topic, text: str = text) -> set[str]:
                        return {n for w in alive for n, t, said in list(w.got) if (t, said) == (topic, text)}

                    if wait_for(lambda reached=reached, names=names: reached() == names, 2.0):  # type: ignore[misc]  # what the loop had
                        break
                    missing = sorted(names - reached())
                    assert time.monotonic() < deadline, f"{label}: {topic} does not reach {missing}"
                    attempt += 1

        everybody_is_served("before", crew, PATIENCE * 2)
        killed = round(0.3 * workers)
        for one in crew[-killed:]:
            one.process.kill()
        began = time.monotonic()
        survivors = crew[:-killed]
        everybody_is_served("after", survivors, REPAIRED_WITHIN)
        took = time.monotonic() - began
        for one in survivors:
            assert len(one.got) == len(set(one.got)), "at most once"
            for name, topic, _ in one.got:
                assert topic in one.interests[one.names.index(name)], "only what was asked for"
        for one in survivors:
            assert one.process.stop() == 0
    return took
