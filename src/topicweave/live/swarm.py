"""Many nodes in one process: to try things out, for tests, and for machines that host several nodes."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

import msgspec

from topicweave.live.node import LiveNode
from topicweave.live.settings import Settings
from topicweave.systems.presets import Preset

CONTACTS = 3
"""How many earlier nodes a node of the swarm is told of."""

CROWD = 100
"""More nodes than this on one machine may answer late."""


def preset_for(nodes: int) -> Preset:
    """The times that so many nodes on one machine need: nodes of a crowd that do not wait for each other dial
    again and again, and are busier still.

    >>> preset_for(50), preset_for(200)
    ('local', 'wan')
    """
    return "local" if nodes <= CROWD else "wan"


def draw_interests(nodes: int, topics: int, topics_per_node: int, seed: int = 0) -> list[list[str]]:
    """Interests by Zipf popularity: topic number r is wanted with weight 1/r.

    >>> draw_interests(2, 5, 2, seed=1) == draw_interests(2, 5, 2, seed=1)
    True
    """
    rng = random.Random(f"interests/{seed}")
    names = [f"topic-{number:04d}" for number in range(1, topics + 1)]
    # The smallest of exponential draws divided by weights is a weighted sample without replacement.
    drawn = []
    for _ in range(nodes):
        keys = [rng.expovariate(1.0) * number for number in range(1, topics + 1)]
        order = sorted(range(topics), key=keys.__getitem__)
        drawn.append([names[place] for place in sorted(order[:topics_per_node])])
    return drawn


@asynccontextmanager
async def run_swarm(
    interests: Sequence[Sequence[str]],
    settings: Settings,
    *,
    names: Sequence[str] | None = None,
    keys: Sequence[str] | None = None,
    join: Sequence[str] = (),
    seed: int | None = None,
    keep_events: bool = True,
    before_start: Callable[[int, LiveNode], Awaitable[None]] | None = None,
) -> AsyncIterator[list[LiveNode]]:
    """One node per interest, up for the length of a `with` block.

    `settings` hold for all; `keys` and `names` are one per node; `join` names nodes elsewhere. Nodes start
    one after the other; each is handed to `before_start`, with its number, which may prepare it and let it
    wait.
    """
    rng = random.Random(f"swarm/{seed}")
    nodes: list[LiveNode] = []
    try:
        for number, topics in enumerate(interests):
            earlier = rng.sample(nodes, min(CONTACTS, len(nodes)))
            own = msgspec.structs.replace(
                settings,
                name=names[number] if names else "",
                keys=keys[number] if keys else settings.keys,
                subscribe=tuple(topics),
                join=(*join, *(str(node.address) for node in earlier)),
            )
            node = LiveNode(
                own,
                keep_events=keep_events,
                seed=None if seed is None else f"node/{seed}/{number}",
            )
            if before_start is not None:
                await before_start(number, node)
            await node.start()
            nodes.append(node)
        yield nodes
    finally:
        await asyncio.gather(*(node.stop() for node in nodes))
