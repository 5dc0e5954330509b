"""Somebody gives up a topic. Homes and views may name it as a subscriber for minutes; the others are served
all the same, and learn better when they call it.
"""

from __future__ import annotations

import pytest

from topicweave.blocks.membership import Membership
from topicweave.model.event import Event, EventId
from topicweave.model.ids import NodeId, clockwise
from topicweave.model.workload import Workload
from topicweave.port import Message
from topicweave.sim.churn import Churn
from topicweave.sim.host import Host
from topicweave.sim.network import Network
from topicweave.sim.simulation import Simulation
from topicweave.systems.omen.messages import Connect
from topicweave.systems.registry import find_system

AUDIENCE, NODES = 5, 60
SETTLED, SOON = 40.0, 15.0


class GivenUp:
    """Five topics that five nodes want each. Of each another one gives it up: the first after the topic's
    identifier, the second, and so on.
    """

    def __init__(self, system: str) -> None:
        wanted = {f"n{number:03d}": [f"own{number}"] for number in range(NODES)}
        for number in range(AUDIENCE**2):
            wanted[f"n{number:03d}"].append(f"rare{number // AUDIENCE}")
        workload = Workload.from_lists(wanted)
        found = find_system(system)
        self.simulation = Simulation(
            workload,
            found,
            found.settings(**found.paced("lan", {})),
            seed=1,
            membership=Membership.parse("directory:6"),
            churn=Churn(frozenset(range(NODES)), (), start_window=10.0),
        )
        self.simulation.seeds = (0, 1, 2)
        self.simulation.run(SETTLED)
        self.got: dict[EventId, set[int]] = {}
        self.simulation.on_delivery(self._delivered)
        self.left: dict[int, int] = {}
        self.wanting: dict[int, list[int]] = {}
        for place in range(AUDIENCE):
            topic = workload.topic_names.index(f"rare{place}")
            members = [index for index in range(NODES) if topic in workload.interests(index).tolist()]
            members.sort(key=lambda index: clockwise(workload.topic_ids[topic], workload.node_ids[index]))
            self.left[topic] = members.pop(place)
            self.wanting[topic] = members
        self.gone: set[NodeId] = {workload.node_ids[index] for index in self.left.values()}
        for topic, index in self.left.items():
            self.simulation.unsubscribe(index, topic)

    def _delivered(self, host: Host, event: Event) -> None:
        self.got.setdefault(event.id, set()).add(host.index)

    def run(self, seconds: float) -> None:
        self.simulation.run(self.simulation.now + seconds)

    def missed(self) -> dict[int, set[int]]:
        """Of topics on which somebody missed an event: who."""
        events = {
            topic: self.simulation.publish(members[0], topic).event.id
            for topic, members in self.wanting.items()
        }
        self.run(5.0)
        missed = {
            topic: set(self.wanting[topic][1:]) - self.got.get(event, set())
            for topic, event in events.items()
        }
        return {topic: who for topic, who in missed.items() if who}


@pytest.mark.parametrize("system", ["spidercast", "gossipsub", "omen", "rappel", "ring-per-topic", "weave"])
def test_the_others_are_served_and_so_is_a_newcomer(system: str) -> None:
    case = GivenUp(system)
    case.run(SOON)
    assert case.missed() == {}
    for place, (topic, members) in enumerate(case.wanting.items()):
        newcomer = NODES - 1 - place
        case.simulation.subscribe(newcomer, topic)
        members.append(newcomer)
    case.run(SOON)
    assert case.missed() == {}


def test_omen_asks_nobody_again_who_said_that_it_does_not_want_the_topic(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    case = GivenUp("omen")
    asked: list[tuple[NodeId, NodeId]] = []
    send = Network.send

    def noted(network: Network, source: Host, peer: NodeId, message: Message) -> None:
        if isinstance(message, Connect) and peer in case.gone:
            asked.append((source.name, peer))
        send(network, source, peer, message)

    monkeypatch.setattr(Network, "send", noted)
    case.run(60.0)
    assert len(asked) == len(set(asked))
