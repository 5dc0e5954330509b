"""Recordings for the tests of this folder."""

import random

from topicweave.port import Link
from topicweave.telemetry import Telemetry

NODES = {1: "ann", 2: "bob", 2**64 - 1: "zoe"}
TOPICS = {7: "news"}


def record_little(telemetry: Telemetry) -> None:
    """Two snapshots, an event that reaches two nodes (one of them nameless) and a heartbeat."""
    telemetry.links(1.0, 1, [Link(2, "ring"), Link(2**64 - 1, "friend")])
    telemetry.links(1.0, 2, [])
    telemetry.publish(2**63 - 1, 7, 1, 1.5)
    telemetry.reception(2**63 - 1, 2, 1.75, 1, 1, True)
    telemetry.reception(2**63 - 1, 0xABC, 2.0, 2, 2**64 - 1, False)
    telemetry.control(2.0, 2, "Heartbeat", 3, 120)


def record_much(telemetry: Telemetry, rows: int, seed: int = 1) -> None:
    """`rows` rows in each table, hardly compressible."""
    rng = random.Random(seed)
    for row in range(0, rows, 4):
        telemetry.links(row / 8, rng.randrange(99), [Link(rng.randrange(99), "ring")] * min(4, rows - row))
    for row in range(rows):
        event = rng.getrandbits(63)
        telemetry.publish(event, rng.randrange(9), rng.randrange(99), rng.random())
        telemetry.reception(event, rng.randrange(99), row * rng.random(), row % 9, 5, rng.random() < 0.5)
        telemetry.control(row, rng.randrange(99), f"Kind{row % 3}", rng.randrange(9), rng.getrandbits(40))
        telemetry.wants(row * rng.random(), rng.randrange(99), [rng.randrange(1, 9)], rng.random() < 0.5)
