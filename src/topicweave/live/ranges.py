"""Between which bounds each number in the settings lies: beyond them a node cannot work, or does so by accident."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from topicweave.errors import BadInput

if TYPE_CHECKING:
    from topicweave.live.settings import Settings

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
ANY_BYTES = 1 << 50
ANY_NUMBER = 1_000_000_000
YEAR = 31_536_000
BESIDE_PAYLOAD = 256 * KIB
"""What a frame holds beside the largest payload, or the longest interest, at most."""
TOPIC_BYTES = 8
"""Of an interest in a frame."""


class Range(NamedTuple):
    least: float
    most: float
    why: str = ""

    def __str__(self) -> str:
        return f"{self.least} to {self.most}"


RANGES = {
    "view": Range(1, 1_000_000),
    "cache": Range(0, ANY_NUMBER),
    "caches": Range(0, ANY_NUMBER),
    "redeliver_after": Range(0.01, YEAR),
    "limits.frame_bytes": Range(BESIDE_PAYLOAD, GIB, "gossip fills frames of so many"),
    "limits.hello_bytes": Range(3 * KIB, MIB, "a hello with long names takes so many"),
    "limits.payload_bytes": Range(KIB, GIB // 2, "a signature takes 72 of them"),
    "limits.queue_bytes": Range(1000, ANY_BYTES, "a queue holds a few messages at least"),
    "limits.connections": Range(1, 1_000_000),
    "limits.half_open": Range(1, 1_000_000),
    "limits.bytes_per_second": Range(10_000, ANY_BYTES, "signs of life and gossip take so many"),
    "limits.messages_per_second": Range(10, ANY_NUMBER, "signs of life and gossip are so many"),
    "limits.topics_per_peer": Range(256, 1 << 18, "gossip names up to 256, a connection 262144"),
    "limits.pattern_topics": Range(1, 1_000_000),
    "limits.addresses": Range(16, 1_000_000, "a node remembers its neighbours at least"),
    "limits.credentials": Range(16, 1_000_000, "a node remembers its neighbours at least"),
    "limits.application_events": Range(1, ANY_NUMBER),
    "limits.application_bytes": Range(KIB, ANY_BYTES),
    "limits.cache_bytes": Range(0, ANY_BYTES),
    "limits.max_memory": Range(MIB, ANY_BYTES),
    "log.events": Range(0, ANY_NUMBER),
    "log.bytes": Range(KIB, ANY_BYTES),
    "log.seconds": Range(0, 100 * YEAR),
}
"""For each topic, `caches` has the range of its own, and `logs` those of `log`."""


def check_ranges(settings: Settings) -> None:
    """Raises `BadInput` for a number that is out of its range, or for two that do not go together."""
    for name, value, allowed in _numbers(settings):
        if not allowed.least <= value <= allowed.most:
            why = f" ({allowed.why})" if allowed.why else ""
            raise BadInput(f"{name} is {value}: say {allowed}{why}")
    limits = settings.limits
    for name, needs in (
        ("payload_bytes", limits.payload_bytes),
        ("topics_per_peer", limits.topics_per_peer * TOPIC_BYTES),
    ):
        if limits.frame_bytes < needs + BESIDE_PAYLOAD:
            raise BadInput(
                f"limits.frame_bytes is {limits.frame_bytes}: with limits.{name} {getattr(limits, name)}"
                f" it must be {needs + BESIDE_PAYLOAD} at least"
            )


def _numbers(settings: Settings) -> Iterator[tuple[str, float, Range]]:
    """Each number: how users write its name, its value, its range."""
    for name in ("view", "cache", "redeliver_after"):
        yield name, getattr(settings, name), RANGES[name]
    for topic, size in settings.caches.items():
        yield f"caches.{topic[:40]}", size, RANGES["caches"]
    for name, value in msgspec.structs.asdict(settings.limits).items():
        yield f"limits.{name}", value, RANGES[f"limits.{name}"]
    logs = {"log": settings.log, **{f"logs.{topic[:40]}": log for topic, log in settings.logs.items()}}
    for where, log in logs.items():
        for name, value in msgspec.structs.asdict(log).items():
            yield f"{where}.{name}", value, RANGES[f"log.{name}"]
