"""What can go wrong on purpose.

A fault plan is plain data: faults with the times they begin and end. `FaultyLinks` is the part of the network
that carries out those that act on messages; crashes and restarts are carried out by the simulation. Everything
is drawn from one generator of its own, so that a plan replays exactly.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from dataclasses import dataclass

from topicweave.errors import BadInput


@dataclass(frozen=True)
class _Spell:
    """Something that lasts from `start` to `end`."""

    start: float
    end: float

    def __post_init__(self) -> None:
        if not 0 <= self.start <= self.end:
            raise BadInput(f"{self}: a fault needs 0 <= start <= end")
        if not 0 <= getattr(self, "probability", 0.0) <= 1:
            raise BadInput(f"{self}: a probability lies between 0 and 1")
        if not 0 <= getattr(self, "delay", 0.0) < math.inf:
            raise BadInput(f"{self}: a delay is 0 or more seconds")


@dataclass(frozen=True)
class Loss(_Spell):
    """Each message is lost with a probability; only those from or to `nodes`, if any are given."""

    probability: float
    nodes: frozenset[int] = frozenset()


def lossy(share: float) -> list[Loss]:
    """A network that loses this share of all messages from beginning to end."""
    return [Loss(0.0, math.inf, share)] if share else []


def parse_loss(given: str | float) -> float:
    """A share of messages from '1%', '0.01' or 0.01.

    >>> parse_loss("1%"), parse_loss(0.01)
    (0.01, 0.01)
    """
    try:
        share = (
            float(given.rstrip(" %")) / (100.0 if given.rstrip().endswith("%") else 1.0)
            if isinstance(given, str)
            else float(given)
        )
    except ValueError:
        share = math.nan
    if not 0.0 <= share < 1.0:
        raise BadInput(f"loss {given!r}: say which share of the messages gets lost, as in '1%' or 0.01")
    return share


@dataclass(frozen=True)
class Duplication(_Spell):
    """Each message arrives a second time, a little later, with a probability."""

    probability: float


@dataclass(frozen=True)
class Reordering(_Spell):
    """Each message is held back with a probability, for up to `delay` seconds."""

    probability: float
    delay: float


@dataclass(frozen=True)
class Partition(_Spell):
    """No message passes between `island` and the rest; what is under way when it begins still arrives."""

    island: frozenset[int]


@dataclass(frozen=True)
class SlowNode(_Spell):
    """Whatever a node sends or is sent takes `delay` seconds longer."""

    node: int
    delay: float


@dataclass(frozen=True)
class Crash(_Spell):
    """A node stops without a word; it comes back at `end`, with or without what it knew.

    Nothing happens to a node that is down already, and one that was to leave meanwhile does not come back.
    """

    node: int
    keeps_memory: bool


SECOND_COPY = 0.1
"""How many seconds later the second copy of a message arrives at most."""

LinkFault = Loss | Duplication | Reordering | Partition | SlowNode
Fault = LinkFault | Crash


class FaultyLinks:
    """Decides the fate of each message under the faults in force."""

    def __init__(self, rng: random.Random) -> None:
        self._random = rng
        self.active: list[LinkFault] = []

    def begin(self, fault: LinkFault) -> None:
        self.active.append(fault)

    def end(self, fault: LinkFault) -> None:
        self.active.remove(fault)

    def __bool__(self) -> bool:
        return bool(self.active)

    def fates(self, source: int, target: int) -> Iterable[float]:
        """The extra delays of the copies that arrive: none if the message is lost."""
        delay, copies, draw = 0.0, 1, self._random.random
        for fault in self.active:
            match fault:
                case Loss(probability=probability, nodes=nodes):
                    if (not nodes or source in nodes or target in nodes) and draw() < probability:
                        return ()
                case Partition(island=island):
                    if (source in island) != (target in island):
                        return ()
                case Duplication(probability=probability):
                    copies += draw() < probability
                case Reordering(probability=probability, delay=longest):
                    if draw() < probability:
                        delay += longest * draw()
                case SlowNode(node=node, delay=extra):
                    delay += extra * ((node == source) + (node == target))
        return [delay + SECOND_COPY * draw() if copy else delay for copy in range(copies)]
