"""Nodes in processes of their own: everybody is served, some are killed, the survivors are served again."""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec

from tests.live.together import Process, processes
from topicweave.client.through import publish_through
from topicweave.live import Settings
from topicweave.live.swarm import draw_interests

WORKER = Path(__file__).with_name("fork_worker.py")
SEEDS, GROUP = 3, 20
"""Those whom the others join; how many start at a time."""
UP_WITHIN = 120.0
"""Seconds without one more process that is up."""


class Took(NamedTuple):
    """Seconds until all were up, until all were served, and from the kill until all survivors were served again."""

    up: float
    served: float
    served_again: float


class Crowd:
    """What all of them said."""

    def __init__(self) -> None:
        self.up: dict[str, tuple[int, str, str]] = {}
        """Process, address and HTTP port by name."""
        self.got: dict[tuple[str, str], list[str]] = {}
        """Who got an event, by topic and text."""

    def hear(self, process: Process) -> None:
        def read() -> None:
            assert process.process.stdout is not None
            for line in process.process.stdout:
                kind, name, *rest = json.loads(line)
                if kind == "up":
                    self.up[name] = (rest[0], rest[1], rest[2])
                else:
                    self.got.setdefault((rest[0], rest[1]), []).append(name)

        threading.Thread(target=read, daemon=True).start()

    def serve(self, wanted: dict[str, set[str]], label: str, within: float) -> float:
        """Seconds until each topic had an event that reached all of its subscribers; publishers change."""
        began = time.monotonic()
        attempt = 0
        while wanted:
            assert time.monotonic() - began < within, f"{label}: not served within {within} s: {wanted}"
            texts = [f"{label} {number}" for number in range(attempt + 1)]
            for topic, names in wanted.items():
                publisher = sorted(names)[attempt % len(names)]
                publish_through(self.up[publisher][2], "", topic, texts[-1].encode())
            patience = time.monotonic() + 2.0
            while wanted and time.monotonic() < patience:
                threading.Event().wait(0.02)
                wanted = {
                    topic: names
                    for topic, names in wanted.items()
                    if not any(set(self.got.get((topic, text), ())) >= names for text in texts)
                }
            attempt += 1
        return time.monotonic() - began


def wait_for(count: Callable[[], int], wanted: int, patience: float, what: str) -> None:
    """Until a count is as high as wanted; patience begins anew with each step towards it."""
    reached, deadline, waiting = 0, time.monotonic() + patience, threading.Event()
    while (now := count()) < wanted:
        if now > reached:
            reached, deadline = now, time.monotonic() + patience
        assert time.monotonic() < deadline, f"{what}: {now} of {wanted}"
        waiting.wait(0.05)


def kill_thirty_percent(
    settings: Settings, nodes: int, topics: int, topics_per_node: int, within: float
) -> Took:
    """`within`: seconds in which all must be served, before and after."""
    return kill_some(settings, draw_interests(nodes, topics, topics_per_node, seed=5), 0.3, within)


def kill_some(settings: Settings, interests: list[list[str]], share: float, within: float) -> Took:
    """A node for each list of topics; that share of them is killed."""
    nodes = len(interests)
    names = [f"node-{number:03d}" for number in range(nodes)]
    common = json.dumps(msgspec.to_builtins(msgspec.structs.replace(settings, http="127.0.0.1:0")))
    crowd = Crowd()
    with processes() as start:
        worker = start(common, script=WORKER)
        crowd.hear(worker)

        def fork(first: int, last: int, join: list[str]) -> None:
            orders = [
                {"name": names[number], "subscribe": interests[number], "join": join}
                for number in range(first, last)
            ]
            assert worker.process.stdin is not None
            worker.process.stdin.write(json.dumps(orders) + "\n")
            worker.process.stdin.flush()
            wait_for(lambda: len(crowd.up), last, UP_WITHIN, "nodes that are up")

        try:
            began = time.monotonic()
            fork(0, SEEDS, [])
            seeds = [address for _, address, _ in crowd.up.values()]
            for first in range(SEEDS, nodes, GROUP):
                fork(first, min(first + GROUP, nodes), seeds)
            up = time.monotonic() - began
            wanted: dict[str, set[str]] = {}
            for name, interest in zip(names, interests, strict=True):
                for topic in interest:
                    wanted.setdefault(topic, set()).add(name)
            served = crowd.serve(wanted, "before", within)
            victims = set(random.Random(0).sample(names[SEEDS:], round(share * nodes)))
            for name in victims:
                os.kill(crowd.up[name][0], signal.SIGKILL)
            left = {topic: alive for topic, who in wanted.items() if (alive := who - victims)}
            again = crowd.serve(left, "after", within)
            for (topic, text), readers in crowd.got.items():
                assert len(readers) == len(set(readers)), f"{text} on {topic}: at most once"
                assert set(readers) <= wanted[topic], "only what was asked for"
            return Took(round(up, 1), round(served, 1), round(again, 1))
        finally:
            os.killpg(worker.process.pid, signal.SIGKILL)
