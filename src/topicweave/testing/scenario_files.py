"""Fault scenarios written down: what happens to whom and when, as a small TOML file.

    title = "A third of the nodes is cut off for twenty seconds"
    nodes = 60
    topics = 20

    [[fault]]
    kind = "partition"
    start = 10.0
    end = 30.0
    share = 0.33

The workload, and who is hit where the file gives a share, come from a seed: one file is as many runs as one
likes, and each replays exactly. When the last fault is over, a scenario ends as a random campaign's do:
quiet, and the proof.
"""

from __future__ import annotations

import random
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import msgspec

from topicweave.blocks.membership import Membership
from topicweave.errors import BadInput
from topicweave.sim.churn import always_up
from topicweave.sim.faults import Crash, Fault, Loss, Partition, SlowNode
from topicweave.testing.campaign import Scenario
from topicweave.workloads import MODELS, generate

FOLDER = Path(__file__).parent / "scenarios"
"""The scenarios that come with the package, by name."""

Seconds = Annotated[float, msgspec.Meta(ge=0.0, le=86_400.0)]
Share = Annotated[float, msgspec.Meta(gt=0.0, le=1.0)]


class _Planned(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind"):
    """From `start` to `end`, to the `nodes` named by their numbers, or to a `share` of all drawn at random."""

    start: Seconds
    end: Seconds
    share: Share | None = None
    nodes: tuple[int, ...] = ()

    def hit(self, nodes: int, rng: random.Random) -> list[int]:
        """Who is hit, of so many nodes: everybody, if the file does not say."""
        if self.nodes:
            return sorted(set(self.nodes))
        count = nodes if self.share is None else max(1, round(self.share * nodes))
        return sorted(rng.sample(range(nodes), count))


class LossPlan(_Planned, frozen=True, tag="loss"):
    """Each message from or to those hit is lost with a probability."""

    probability: Share = 0.1

    def faults(self, hit: list[int]) -> Iterable[Fault]:
        return [Loss(self.start, self.end, self.probability, frozenset(hit))]


class PartitionPlan(_Planned, frozen=True, tag="partition"):
    """Those hit are cut off from the rest."""

    def faults(self, hit: list[int]) -> Iterable[Fault]:
        return [Partition(self.start, self.end, frozenset(hit))]


class SlowPlan(_Planned, frozen=True, tag="slow"):
    """Whatever those hit send or are sent takes longer."""

    delay: Seconds = 1.0

    def faults(self, hit: list[int]) -> Iterable[Fault]:
        return [SlowNode(self.start, self.end, node, self.delay) for node in hit]


class CrashPlan(_Planned, frozen=True, tag="crash"):
    """Those hit stop without a word, and come back at `end`, with or without what they knew."""

    memory: bool = False

    def faults(self, hit: list[int]) -> Iterable[Fault]:
        return [Crash(self.start, self.end, node, self.memory) for node in hit]


KINDS = ("crash", "loss", "partition", "slow")


class ScenarioFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a file says; `draw` makes it a run."""

    title: str
    nodes: Annotated[int, msgspec.Meta(ge=2, le=10_000)] = 60
    topics: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 20
    interests: tuple[int, int] = (2, 6)
    """How many topics a node wants, from and to."""
    model: str = "rss"
    """How popular the topics are."""
    membership: str = "gossip"
    events: Annotated[int, msgspec.Meta(ge=0, le=100_000)] = 40
    """Published at random nodes on random topics, until all is quiet."""
    quiet_from: Seconds | None = None
    """From when nothing happens any more; if not given, when the last fault ends."""
    fault: tuple[LossPlan | PartitionPlan | SlowPlan | CrashPlan, ...] = ()

    def __post_init__(self) -> None:
        if self.model not in MODELS:
            raise ValueError(f"model {self.model!r}: say one of {', '.join(sorted(MODELS))}")
        if not 1 <= self.interests[0] <= self.interests[1] <= self.topics:
            raise ValueError("interests: need 1 <= first <= second <= topics")
        for number, fault in enumerate(self.fault, 1):
            if fault.end < fault.start:
                raise ValueError(
                    f"fault {number} ends at {fault.end:g} s, before it starts at {fault.start:g} s"
                )
            if fault.nodes and fault.share is not None:
                raise ValueError(f"fault {number} has both nodes and a share: say one")
            if beyond := [node for node in fault.nodes if not 0 <= node < self.nodes]:
                raise ValueError(
                    f"fault {number}: there is no node {beyond[0]}; they are 0 to {self.nodes - 1}"
                )
        if self.quiet_from is not None and self.quiet_from < self._last:
            raise ValueError(f"quiet_from is {self.quiet_from:g} s, but a fault lasts until {self._last:g} s")
        try:
            Membership.parse(self.membership)
        except BadInput as error:
            raise ValueError(str(error)) from None

    @property
    def _last(self) -> float:
        return max((fault.end for fault in self.fault), default=0.0)

    def draw(self, seed: int, nodes: int | None = None) -> Scenario:
        """The run of one seed, with as many nodes as the file says or with others."""
        count = self.nodes if nodes is None else nodes
        if numbered := [node for fault in self.fault for node in fault.nodes if node >= count]:
            raise BadInput(f"scenario {self.title!r} names node {numbered[0]}: {count} nodes are too few")
        rng = random.Random(f"scenario-file/{seed}")
        quiet_from = self._last if self.quiet_from is None else self.quiet_from
        return Scenario(
            seed=seed,
            workload=generate(count, self.topics, self.model, *self.interests, seed=rng.getrandbits(32)),
            membership=Membership.parse(self.membership),
            churn=always_up(count),
            faults=tuple(one for fault in self.fault for one in fault.faults(fault.hit(count, rng))),
            interest_changes=(),
            publishes=tuple(
                (rng.uniform(0.0, quiet_from), rng.randrange(count), rng.randrange(self.topics))
                for _ in range(self.events)
            ),
            quiet_from=quiet_from,
        )


def shipped_scenarios() -> list[str]:
    """The names of those that come with the package."""
    return sorted(file.stem for file in FOLDER.glob("*.toml"))


def read_scenario(file: str | Path) -> ScenarioFile:
    """From a file, or by the name of one that comes with the package (`partition`)."""
    path = Path(file)
    if path.suffix != ".toml":
        if str(file) not in shipped_scenarios():
            raise BadInput(
                f"scenario {str(file)!r}: say a .toml file, or one of {', '.join(shipped_scenarios())}"
            )
        path = FOLDER / f"{file}.toml"
    try:
        return msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), ScenarioFile)
    except OSError as error:
        raise BadInput(f"scenario {path}: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        known = f"; kinds of fault: {', '.join(KINDS)}" if "kind`" in str(error) else ""
        raise BadInput(f"scenario {path}: {error}{known}") from None
