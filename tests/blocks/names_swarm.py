"""Swarms whose nodes do nothing but say names and watch patterns, over a ring of their own."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import msgspec

from topicweave.blocks.name_messages import NameContent, RingParcel
from topicweave.blocks.topic_directory.messages import Carry
from topicweave.blocks.topic_names import NameDirectory, NamesParameters
from topicweave.blocks.topic_names.own_ring import OwnRing
from topicweave.blocks.topic_names.rules import place_of
from topicweave.model.ids import NodeId, TopicId, ring_id, successor
from topicweave.model.patterns import hidden, matches
from topicweave.port import Receivers
from topicweave.testing.network import VirtualNetwork

NODES = [ring_id(f"node-{number}") for number in range(200)]


class Member:
    """One node, and what its application was told."""

    def __init__(
        self,
        network: NamesSwarm,
        node_id: NodeId,
        parameters: NamesParameters | None,
        private: bool,
    ) -> None:
        world = network.world(node_id)
        self.id = node_id
        self.ring = OwnRing(world, node_id, lambda: network.known(node_id))
        self.names = NameDirectory(world, node_id, self.ring, parameters, private)
        world.use(self.ring)
        world.use(self.names)
        self.found: dict[str, dict[str, TopicId]] = {}
        self.found_at: dict[tuple[str, str], float] = {}
        self.ages: dict[str, float] = {}
        self.publishers: dict[str, NodeId | None] = {}
        self.incomplete: list[tuple[str, str, str]] = []
        self.complete: list[tuple[str, str]] = []
        self.flaps = 0
        self._network = network
        self.names.on_found = self._found
        self.names.on_gone = self._gone
        self.names.on_incomplete = lambda pattern, prefix, why: self.incomplete.append((pattern, prefix, why))
        self.names.on_complete = lambda pattern, prefix: self.complete.append((pattern, prefix))

    def start(self, contacts: Sequence[NodeId]) -> None:
        self.ring.start(contacts)
        self.names.start()

    def watch(self, *patterns: str) -> None:
        for pattern in patterns:
            self.found.setdefault(pattern, {})
            self.names.watch(pattern)

    def _found(self, pattern: str, name: str, topic: TopicId, age: float, publisher: NodeId | None) -> None:
        assert name not in self.found[pattern], "found twice"
        self.flaps += (pattern, name) in self.found_at
        self.found[pattern][name] = topic
        self.found_at[pattern, name] = self._network.now
        self.ages[name] = age
        self.publishers[name] = publisher

    def _gone(self, pattern: str, name: str, topic: TopicId) -> None:
        assert self.found[pattern].pop(name) == topic


class EarlierRing(OwnRing):
    """Of a node of an earlier wire format: it reads over parcels."""

    def receivers(self) -> Receivers:
        return {**super().receivers(), Carry: self._receive}

    def _receive(self, sender: NodeId, carry: Carry) -> None:
        self.carrier._receive(sender, msgspec.structs.replace(carry, parcels=()))


class NamesSwarm(VirtualNetwork):
    """Who knows whom at first is up to `known`: everybody, unless a test says otherwise."""

    def __init__(
        self,
        nodes: int,
        seed: int = 1,
        parameters: NamesParameters | None = None,
        private: bool = False,
        settle: float = 20.0,
    ) -> None:
        super().__init__(seed)
        self.parameters, self.private = parameters, private
        self.members: dict[NodeId, Member] = {}
        self.elders: dict[NodeId, EarlierRing] = {}
        self.published: dict[str, set[NodeId]] = {}
        self.acquainted: Callable[[NodeId, NodeId], bool] = lambda _one, _other: True
        self.rng = random.Random(seed)
        for number in range(nodes):
            self.add(NODES[number], NODES[max(0, number - 3) : number])
        self.run_for(settle)

    def known(self, node_id: NodeId) -> list[NodeId]:
        others = [
            peer
            for peer in (*self.members, *self.elders)
            if peer != node_id and self.acquainted(node_id, peer)
        ]
        return others[:12]

    def add(self, node_id: NodeId, contacts: Sequence[NodeId]) -> Member:
        member = self.members[node_id] = Member(self, node_id, self.parameters, self.private)
        member.start(contacts)
        return member

    def add_earlier(self, node_id: NodeId, contacts: Sequence[NodeId]) -> None:
        """A node that knows no names."""
        world = self.world(node_id)
        ring = EarlierRing(world, node_id, lambda: self.known(node_id))
        world.use(ring)
        self.earlier.add(node_id)
        ring.start(contacts)
        self.elders[node_id] = ring

    def crash(self, nodes: Sequence[NodeId]) -> None:
        self.kill(nodes)
        for node in nodes:
            del self.members[node]
            for name in [name for name, by in self.published.items() if node in by]:
                self.published[name].discard(node)
                if not self.published[name]:
                    del self.published[name]

    def publishes(self, node: NodeId, *names: str) -> None:
        for name in names:
            self.members[node].names.publishes(name)
            self.published.setdefault(name, set()).add(node)

    def ends(self, node: NodeId, name: str) -> None:
        self.members[node].names.ends(name)
        self.published[name].discard(node)
        if not self.published[name]:
            del self.published[name]

    def home_of(self, prefix: str) -> Member:
        return self.members[successor(place_of(prefix), list(self.members))]

    def expected(self, pattern: str) -> dict[str, TopicId]:
        """By brute force."""
        return {name: ring_id(name) for name in self.published if matches(pattern, name)}

    def wrong(self) -> list[str]:
        """What watchers know and should not, or should know and do not."""
        said = []
        for member in self.members.values():
            for pattern, found in member.found.items():
                expected = self.expected(pattern)
                if self.private:
                    expected = {
                        member.names._shown(pattern, hidden(name)): topic for name, topic in expected.items()
                    }
                if found != expected:
                    missing, odd = expected.keys() - found.keys(), found.keys() - expected.keys()
                    said.append(
                        f"{pattern}: {len(missing)} of {len(expected)} missing {sorted(missing)[:3]}, odd {sorted(odd)[:3]}"
                    )
        return said

    def inject(self, member: Member, content: NameContent, sender: NodeId = NODES[199]) -> None:
        """Somebody sends a parcel that ends at a member."""
        self.tell(sender, member.id, Carry(1, parcels=(RingParcel(member.id, content),)))
