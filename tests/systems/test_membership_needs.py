"""Each system runs the membership that it uses, no more and no less: over the whole registry."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from topicweave.blocks import membership
from topicweave.blocks.directory_view import DirectoryView
from topicweave.blocks.interest_index import Slots
from topicweave.blocks.membership import DIRECTORY, Membership
from topicweave.errors import BadInput
from topicweave.model.ids import NodeId, TopicId
from topicweave.sim.simulation import Simulation
from topicweave.systems.registry import SYSTEMS
from topicweave.systems.system import System
from topicweave.testing.toys import recorder
from topicweave.workloads import generate

WORKLOAD = generate(12, 6, "rss", 3, 3, seed=1)
ASKED: set[str] = set()
"""What nodes asked their views."""


class Watched(DirectoryView):
    """A view with gossip and directory that notes what its system wants of it."""

    def start(self, contacts: Sequence[NodeId]) -> None:
        ASKED.add("who is there")
        super().start(contacts)

    def overlap_counts(self, topics: Iterable[TopicId]) -> Slots:
        ASKED.add("who wants a topic")
        return super().overlap_counts(topics)

    def subscribers(self, topic: TopicId) -> NDArray[np.uint64]:
        ASKED.add("who wants a topic")
        return super().subscribers(topic)

    def lowest(self, topic: TopicId) -> NodeId | None:
        ASKED.add("who wants a topic")
        return super().lowest(topic)


def settled(system: System, **parameters: Any) -> tuple[Simulation, set[str]]:
    """A small swarm that came to rest, and the kinds of messages that it sent meanwhile."""
    telemetry = recorder(WORKLOAD)
    simulation = Simulation(
        *(WORKLOAD, system, system.settings(**system.paced("lan", parameters))),
        seed=1,
        membership=DIRECTORY,
        telemetry=telemetry,
    )
    simulation.run(20.0)
    simulation.flush_control()
    return simulation, set(telemetry.tables().control["kind"].to_pylist())


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_system_needs_what_it_asks_for(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is given gossip and a directory, and says by what it does with them what it needs."""
    monkeypatch.setattr(membership, "DirectoryView", Watched)
    ASKED.clear()
    settled(replace(SYSTEMS[name], needs="subscribers"))
    needs = {
        frozenset(): "nothing",
        frozenset({"who is there"}): "peers",
        frozenset({"who is there", "who wants a topic"}): "subscribers",
    }
    assert SYSTEMS[name].needs == needs[frozenset(ASKED)]


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_system_runs_the_directory_if_it_needs_subscribers(name: str) -> None:
    system = SYSTEMS[name]
    simulation, kinds = settled(system)
    directory = {kind for kind in kinds if kind.startswith("dir-")}
    assert bool(directory) == (system.needs == "subscribers")
    assert directory <= simulation.membership_kinds, "it is charged for it"
    shared = kinds & {"sampling.offer", "sampling.answer", "sampling.names-offer", "sampling.names-answer"}
    if system.needs != "nothing":
        assert shared, "all others gossip"
        assert shared <= simulation.membership_kinds


@pytest.mark.parametrize("changes", [{"similar": 1}, {"bridges": 1}])
def test_random_links_are_not_chosen_by_interest(changes: dict[str, int]) -> None:
    """They would need subscribers."""
    with pytest.raises(BadInput, match="Expected `int` <= 0"):
        SYSTEMS["random"].settings(**changes)


def test_candidates_of_t_man_come_by_gossip_and_no_directory_is_run_for_them() -> None:
    opt = SYSTEMS["opt"]
    with pytest.raises(BadInput, match="by gossip alone; say --membership gossip, or tman=0"):
        settled(opt, tman=20)
    simulation = Simulation(
        WORKLOAD, opt, opt.settings(tman=20), membership=Membership.parse("live-gossip"), seed=1
    )
    simulation.run(20.0)
    assert all(simulation.node(index).degree for index in simulation.up())
