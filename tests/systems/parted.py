"""Two parts of one topic whose members hear of each other by introductions only: gossip does not pass between
the parts, views hold nobody of the other part, and what homes say besides introductions is not believed of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.systems.overlays import parted_topics
from topicweave.blocks.directory_view import DirectoryView
from topicweave.blocks.interest_node import ViewNode
from topicweave.blocks.membership import DIRECTORY
from topicweave.blocks.topic_directory import DirectoryParameters, TopicDirectory
from topicweave.blocks.topic_directory.directory import NamedSubscribers
from topicweave.blocks.topic_directory.messages import TopicContact
from topicweave.model.ids import NodeId
from topicweave.model.workload import Workload
from topicweave.port import Message
from topicweave.sim.host import Host
from topicweave.sim.network import Network
from topicweave.sim.simulation import Simulation
from topicweave.systems.alternatives.gossipsub import GossipSubNode
from topicweave.systems.registry import find_system
from topicweave.systems.spidercast.node import OverlayNode

PART = 2 * DirectoryParameters().enough
"""Members of each part: enough that nobody needs to ask a home for more, or another link."""


def _of_side(named: NamedSubscribers, contacts: list[TopicContact]) -> NamedSubscribers:
    return named._replace(contacts=contacts)


class Parted:
    """The simulation, and who is on which side: the first `PART` nodes are one part, the others the other."""

    def __init__(
        self,
        system: str,
        monkeypatch: pytest.MonkeyPatch,
        workload: Workload | None = None,
        first: int = PART,
        **parameters: Any,
    ) -> None:
        found = find_system(system)
        wanted = workload or Workload.from_lists({f"n{number:02d}": ["shared"] for number in range(2 * PART)})
        self.introduced = 0
        """How often a home introduced somebody."""
        self.silent = False
        """Whether nothing passes between the parts, but for the ring of homes."""
        self._close_views(monkeypatch)
        self.simulation = Simulation(
            wanted, found, found.settings(**found.paced("lan", parameters)), seed=1, membership=DIRECTORY
        )
        self.side = {host.name: host.index >= first for host in self.simulation.hosts}
        self._index = {host.name: host.index for host in self.simulation.hosts}
        self._start_apart(monkeypatch)
        self._cut_gossip(monkeypatch)

    def _close_views(self, monkeypatch: pytest.MonkeyPatch) -> None:
        learn = DirectoryView._named

        def named(view: DirectoryView, said: Sequence[NamedSubscribers]) -> list[list[TopicContact]]:
            own = self.side[view.directory.id]
            self.introduced += sum(one.parted for one in said)
            believed = learn(
                view, [_of_side(one, [c for c in one.contacts if self.side[c.id] == own]) for one in said]
            )
            return [
                list(one.contacts) if one.parted else known for one, known in zip(said, believed, strict=True)
            ]

        monkeypatch.setattr(DirectoryView, "_named", named)

    def _start_apart(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Newcomers know somebody of their own part; the ring of homes is one."""
        hosts, start = self.simulation.hosts, TopicDirectory.start
        names = [next(host.name for host in hosts if self.side[host.name] == side) for side in (False, True)]
        monkeypatch.setattr(
            self.simulation, "_contacts", lambda newcomer: [names[self.side[hosts[newcomer].name]]]
        )
        monkeypatch.setattr(TopicDirectory, "start", lambda directory, _contacts: start(directory, names))

    def _cut_gossip(self, monkeypatch: pytest.MonkeyPatch) -> None:
        send = Network.send

        def sent(network: Network, source: Host, peer: NodeId, message: Message) -> None:
            tag = str(message.__struct_config__.tag)
            gossip = tag in self.simulation.membership_kinds
            of_homes = tag.startswith("dir-")
            if of_homes or self.side[source.name] == self.side[peer] or not (gossip or self.silent):
                send(network, source, peer, message)

        monkeypatch.setattr(Network, "send", sent)

    def introduce_nobody(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(TopicDirectory, "_hear", self._without_introductions(TopicDirectory._hear))

    @staticmethod
    def _without_introductions(hear: Any) -> Any:
        return lambda directory, told, brought: hear(
            directory, [one for one in told if not one.parted], brought
        )

    @property
    def apart(self) -> bool:
        return bool(parted_topics(self.simulation))

    def links_between(self) -> list[tuple[int, int, str]]:
        """Links that pass from one side to the other, with their kinds."""
        return [
            (index, self._index[link.peer], link.kind)
            for index in self.simulation.up()
            for link in self.simulation.node(index).links()
            if self.side[link.peer] != self.side[self.simulation.hosts[index].name]
        ]

    def members_known(self) -> int:
        """How many others the node that knows fewest knows, of each of its topics."""
        known = []
        for index in self.simulation.up():
            node = self.simulation.node(index)
            assert isinstance(node, ViewNode)
            known += [len(node.view.subscribers(topic)) for topic in node.subscriptions]
        return min(known)

    def introduce_all(self, each: int) -> None:
        """A home introduces each node of the one part to so many of the other."""
        names = {side: [name for name, its in self.side.items() if its == side] for side in (False, True)}
        topic = self.simulation.workload.topic_ids[0]
        for place, name in enumerate(names[False]):
            for step in range(each):
                other = names[True][(place + step) % len(names[True])]
                for member, stranger in ((name, other), (other, name)):
                    node = self.simulation.node(self._index[member])
                    assert isinstance(node, OverlayNode | GossipSubNode)
                    node._introduced(topic, stranger, None)

    def parted_within(self, seconds: float) -> int:
        """How often the topics are apart, once per second."""
        apart, until = 0, self.simulation.now + seconds
        while self.simulation.now < until:
            self.simulation.run(self.simulation.now + 1.0)
            apart += self.apart
        return apart

    def run_until_one(self, until: float) -> float | None:
        """When the topics are each in one piece; None if not by then."""
        while self.apart:
            if self.simulation.now >= until:
                return None
            self.simulation.run(self.simulation.now + 1.0)
        return self.simulation.now
