"""Two hundred processes: all are served, 30 % are killed with kill -9, the rest is served again."""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.live.together import Process, local, processes
from topicweave.live.client import publish_through
from topicweave.live.swarm import draw_interests

WORKER = Path(__file__).with_name("fork_worker.py")
NODES, TOPICS, EACH, SEEDS, GROUP = 200, 10, 2, 3, 20
UP_WITHIN, SERVED_WITHIN = 120.0, 240.0
"""Seconds, of a group of processes and of all topics."""


class Crowd:
    """What all of them said."""

    def __init__(self) -> None:
        self.up: dict[str, tuple[int, str, str]] = {}
        self.got: dict[tuple[str, str], list[str]] = {}

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


def wait_for(condition: Callable[[], object], patience: float, what: str) -> None:
    deadline, waiting = time.monotonic() + patience, threading.Event()
    while not condition():
        assert time.monotonic() < deadline, what
        waiting.wait(0.05)


def serve(crowd: Crowd, wanted: dict[str, list[str]], alive: set[str], label: str) -> float:
    """Seconds until each topic had an event that reached all of its subscribers, once each."""
    began = time.monotonic()
    open_ = {topic: [name for name in names if name in alive] for topic, names in wanted.items()}
    attempt = 0
    while open_:
        assert time.monotonic() - began < SERVED_WITHIN, f"{label}: not served: {sorted(open_)}"
        for topic, names in open_.items():
            http = crowd.up[names[attempt % len(names)]][2]
            publish_through(http, "", topic, f"{label} {attempt}".encode())
        said = [f"{label} {earlier}" for earlier in range(attempt + 1)]

        def served(topic: str, names: list[str], said: list[str] = said) -> bool:
            return any(sorted(crowd.got.get((topic, text), [])) == sorted(names) for text in said)

        patience = time.monotonic() + 3.0
        while open_ and time.monotonic() < patience:
            open_ = {topic: names for topic, names in open_.items() if not served(topic, names)}
            threading.Event().wait(0.05)
        attempt += 1
    return time.monotonic() - began


@pytest.mark.live
def test_two_hundred_processes_of_which_thirty_percent_are_killed(
    record_property: Callable[[str, object], None],
) -> None:
    interests = draw_interests(NODES, TOPICS, EACH, seed=3)
    names = [f"node-{number:03d}" for number in range(NODES)]
    settings: dict[str, Any] = msgspec.to_builtins(local(preset="wan", cache=0, http="127.0.0.1:0"))
    crowd = Crowd()
    groups: list[int] = []
    with processes() as start:

        def fork(numbers: range, join: list[str]) -> None:
            orders = [
                {"name": names[number], "subscribe": interests[number], "join": join} for number in numbers
            ]
            process = start(json.dumps(orders), json.dumps(settings), script=WORKER)
            groups.append(process.process.pid)
            crowd.hear(process)

        began = time.monotonic()
        try:
            fork(range(SEEDS), [])
            wait_for(lambda: len(crowd.up) == SEEDS, UP_WITHIN, "the seeds are not up")
            seeds = [address for _, address, _ in crowd.up.values()]
            for first in range(SEEDS, NODES, GROUP):
                last = min(first + GROUP, NODES)
                fork(range(first, last), seeds)
                wait_for(lambda last=last: len(crowd.up) == last, UP_WITHIN, "not all are up")  # type: ignore[misc]  # a lambda's default
            record_property("up_after_seconds", round(time.monotonic() - began, 1))
            wanted: dict[str, list[str]] = {}
            for name, topics in zip(names, interests, strict=True):
                for topic in topics:
                    wanted.setdefault(topic, []).append(name)
            took = serve(crowd, wanted, set(names), "before")
            record_property("served_after_seconds", round(took, 1))
            victims = set(random.Random(0).sample(names[SEEDS:], NODES * 3 // 10))
            for name in victims:
                os.kill(crowd.up[name][0], signal.SIGKILL)
            took = serve(crowd, wanted, set(names) - victims, "after")
            record_property("served_again_after_seconds", round(took, 1))
        finally:
            for group in groups:
                os.killpg(group, signal.SIGKILL)
