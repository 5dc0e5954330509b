"""The topic directory: the ring of homes, and that everybody is found."""

from __future__ import annotations

import doctest
import math
import random
from collections import Counter
from itertools import pairwise

import pytest

from tests.blocks.directory_swarm import Swarm
from topicweave.blocks.interest_index import InterestIndex
from topicweave.blocks.topic_directory import DirectoryParameters, Parts, TopicDirectory, carrier, rules
from topicweave.blocks.topic_directory.announcer import Announcer
from topicweave.blocks.topic_directory.carrier import MOST_ITEMS, Waiting, loads
from topicweave.blocks.topic_directory.home import Home
from topicweave.blocks.topic_directory.messages import (
    LEADS,
    Announcement,
    Carry,
    OtherRecords,
    Record,
    Renewal,
    SameRecords,
    Told,
    TopicContact,
)
from topicweave.blocks.topic_directory.proofs import BroughtProofs
from topicweave.blocks.topic_directory.ring import HomesRing
from topicweave.model.ids import RING_SIZE, NodeId, TopicId, successor
from topicweave.model.workload import Workload
from topicweave.port import Message
from topicweave.sim.churn import Change
from topicweave.sim.host import Host
from topicweave.sim.network import Network
from topicweave.testing.directory_only import DirectoryNode
from topicweave.workloads.catalogue import build

PARAMETERS = DirectoryParameters()
TOPIC = 77


@pytest.mark.parametrize("module", [rules, carrier])
def test_the_examples_in_the_docstrings(module: object) -> None:
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]  # a module as any other


# Rules.


def test_every_way_over_a_small_world_ends_at_the_home() -> None:
    rng = random.Random(4)
    ring = sorted(rng.randrange(RING_SIZE) for _ in range(200))
    sides = {own: rules.sides_of(own, [peer for peer in ring if peer != own], 3) for own in ring}
    tables = {
        own: sorted({own, *after, *before, *rng.sample(ring, 4)}) for own, (after, before) in sides.items()
    }
    for _ in range(300):
        point, at = rng.randrange(RING_SIZE), rng.choice(ring)
        for hops in range(40):  # noqa: B007
            hop = rules.next_hop(at, *sides[at], tables[at], point)
            if hop == at:
                break
            at = hop
        assert at == successor(point, ring)
        assert hops < 30


def test_an_unanswered_question_goes_to_a_later_successor() -> None:
    ring = [10, 20, 30, 40, 50, 60, 70, 80]
    sides = {own: rules.sides_of(own, [peer for peer in ring if peer != own], 3) for own in ring}
    # The home of 25 is 30. From 20, the second attempt goes to 40, which takes it.
    assert rules.next_hop(20, *sides[20], ring, 25) == 30
    assert rules.next_hop(20, *sides[20], [10, 20, 40, 50], 25, attempt=1) == 40
    assert rules.next_hop(40, *sides[40], ring, 25, attempt=1) == 40


# Swarms.


def test_all_who_want_a_rare_topic_know_each_other_and_again_after_a_crash() -> None:
    swarm = Swarm(build("rare", 1, nodes=300))
    swarm.run(30.0)
    assert swarm.misplaced() == 0
    assert swarm.unknown() == 0
    most = 6 + 2 * math.log2(300)
    assert max(len(node.view.contacts()) for node in swarm.nodes()) <= most
    for index in random.Random(3).sample(swarm.simulation.up(), 30):
        swarm.simulation.stop(index, orderly=False)
    newcomers = [node for node in swarm.nodes() if node.subscriptions][:20]
    topics = sorted({topic for node in newcomers for topic in node.subscriptions})
    for node in newcomers[:5]:
        for topic in topics[:4]:
            node.subscribe(topic)
    swarm.run(30.0)
    assert swarm.misplaced() == 0
    assert swarm.unknown() == 0


def test_a_home_that_crashes_is_replaced_by_its_successors() -> None:
    workload = Workload.from_lists({f"n{number}": [f"other{number}"] for number in range(60)})
    swarm = Swarm(workload)
    swarm.run(40.0)
    first, second = swarm.nodes()[:2]
    first.subscribe(TOPIC)
    swarm.run(10.0)
    home_node = swarm.home_of(TOPIC)
    if home_node in (first, second):
        pytest.skip("the home is one of the two; another seed would do")
    assert home_node.directory.home.subscribers(TOPIC) == [first.id]
    keepers = home_node.directory.ring.after
    index = next(number for number in swarm.simulation.up() if swarm.simulation.node(number) is home_node)
    for node in swarm.nodes():
        if node.id in keepers:
            assert node.directory.home.subscribers(TOPIC) == [first.id]
    swarm.simulation.stop(index, orderly=False)
    second.subscribe(TOPIC)  # at once: its question meets the hole
    swarm.run(10.0)
    assert first.id in second.view.subscribers(TOPIC).tolist()
    assert second.id in first.view.subscribers(TOPIC).tolist()


def test_more_parts_than_a_home_keeps_records_become_one() -> None:
    """Everybody leads itself. Whoever is introduced to a lower leader follows that one."""
    swarm = Swarm(
        Workload.from_lists({f"n{number:03d}": ["shared"] for number in range(2 * PARAMETERS.records)})
    )
    follows: dict[int, int] = {}

    def leader(node: int) -> int:
        while node in follows:
            node = follows[node]
        return node

    def parts_of(own: int, topic: int) -> Parts:
        def introduced(_topic: int, _peer: int, label: int | None) -> None:
            one, other = leader(own), leader(own if label is None else label)
            if one != other:
                follows[max(one, other)] = min(one, other)

        return Parts(8.0, lambda _topic: leader(own), lambda: () if own in follows else (topic,), introduced)

    swarm.run(11.0)
    for node in swarm.nodes():
        [topic] = node.subscriptions
        node.view.serve(parts_of(node.id, topic))
    swarm.run(120.0)
    assert len(swarm.nodes()) == 2 * PARAMETERS.records
    assert len(follows) == 2 * PARAMETERS.records - 1


def test_a_publisher_that_does_not_subscribe_learns_who_does() -> None:
    workload = Workload.from_lists({f"n{number}": [f"other{number}"] for number in range(60)})
    swarm = Swarm(workload)
    swarm.run(40.0)
    one, publisher = swarm.nodes()[:2]
    assert publisher.view.audience(TOPIC) is None
    publisher.publish(TOPIC)
    swarm.run(5.0)
    assert publisher.view.audience(TOPIC) == 0
    swarm.run(20.0)
    one.subscribe(TOPIC)
    swarm.run(6.0)
    assert publisher.view.audience(TOPIC) == 0, "the home's word of earlier"
    publisher.publish(TOPIC)
    swarm.run(2.0)
    assert publisher.view.audience(TOPIC) == 1
    swarm.run(30.0)
    assert publisher.view.audience(TOPIC) == 1
    assert publisher.view.subscribers(TOPIC).tolist() == [one.id]
    assert one.view.subscribers(TOPIC).tolist() == [], "who publishes does not subscribe"


@pytest.mark.parametrize("way", ["both ways", "candidates", "look-around"])
@pytest.mark.parametrize("nodes", [120, pytest.param(1000, marks=pytest.mark.seeds)])
def test_two_converged_rings_become_one(nodes: int, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the nodes know one seed, half another; then one node of the first half hears of one of the other,
    by gossip. Each way alone is enough: candidates that gossip brings, or looking around by a random peer.
    """
    workload = build("rare", 1, nodes=nodes, popular_topics=1, popular=0, rare=1)
    swarm = Swarm(workload)
    simulation = swarm.simulation

    def contacts(newcomer: int) -> list[int]:
        return [simulation.hosts[newcomer % 2].name] if newcomer > 1 else []

    monkeypatch.setattr(simulation, "_contacts", contacts)
    swarm.run(20.0)
    halves = [{host.name for host in simulation.hosts[first::2]} for first in (0, 1)]
    for index in simulation.up():
        assert halves[1 - index % 2].isdisjoint(simulation.node(index).known_peers()), (
            "two rings, interleaved"
        )
    assert swarm.misplaced() > 0.8 * nodes, "most have somebody of the other half among the next three"
    if way == "candidates":
        monkeypatch.setattr(HomesRing, "_look_around", lambda _ring, _now: None)
    elif way == "look-around":
        monkeypatch.setattr(TopicDirectory, "candidates", lambda _directory, _peers: None)
    [first] = [node for node in swarm.nodes() if node.id == simulation.hosts[0].name]
    first.view.sampling.start([simulation.hosts[1].name])
    seconds = 0
    while swarm.misplaced() and seconds < 120:
        swarm.run(5.0)
        seconds += 5
    assert swarm.misplaced() == 0
    while way == "both ways" and swarm.unknown() and seconds < 180:
        swarm.run(5.0)
        seconds += 5
    assert way != "both ways" or swarm.unknown() == 0


def test_a_run_is_a_function_of_its_seed() -> None:
    def state() -> list[tuple[int, ...]]:
        swarm = Swarm(build("rare", 1, nodes=60))
        swarm.run(30.0)
        return [(node.id, *sorted(node.view.contacts()), *node.view.peers()) for node in swarm.nodes()]

    assert state() == state()


def test_nobody_keeps_the_departed_for_ever() -> None:
    swarm = Swarm(build("rare", 1, nodes=60))
    swarm.run(30.0)
    gone = swarm.simulation.up()[10:20]
    names = {swarm.simulation.hosts[index].name for index in gone}
    for number, index in enumerate(gone):
        swarm.simulation.stop(index, orderly=number % 2 == 0)
    swarm.run(140.0)  # what they said of themselves is good for 120 s, and is looked through every 10
    for node in swarm.nodes():
        assert not names & node.known_peers()
        assert not names & set(node.directory.home.known_peers())


def test_malformed_messages_change_nothing() -> None:
    swarm = Swarm(build("rare", 1, nodes=20))
    swarm.run(20.0)
    node = swarm.nodes()[5]
    before = node.directory.home.topics()
    topics = tuple(range(5000))
    node.receive(999, Carry(1, (Announcement(999, 1, 60.0, topics, bytes(5000)),)))
    node.receive(999, Carry(2, (Announcement(999, 1, 60.0, (5,), b""),)))
    assert node.directory.home.topics() == before


def test_what_is_more_than_a_message_holds_goes_in_several_and_nothing_is_lost() -> None:
    things = Waiting()
    things.announcements = [
        Announcement(peer, 1, 60.0, tuple(range(peer, 50_000, 10)), bytes(len(range(peer, 50_000, 10))))
        for peer in (1, 2)
    ]
    things.renewals = [Renewal(3, 1, 50.0, tuple(range(3000)))]
    things.records = [Record(topic, 4, 1, 50.0, None, -1.0) for topic in range(3000)]
    made = loads(things, 5)
    assert [load.number for load in made] == list(range(5, 5 + len(made)))
    said: dict[int, list[int]] = {}
    for load in made:
        parts: list[Announcement | Renewal] = [*load.announcements, *load.renewals]
        assert sum(len(part.topics) for part in parts) + len(load.records) <= MOST_ITEMS // 2
        for part in parts:
            said.setdefault(part.subscriber, []).extend(part.topics)
        said.setdefault(4, []).extend(record.topic for record in load.records)
    assert said[1] == list(range(1, 50_000, 10))
    assert said[2] == list(range(2, 50_000, 10))
    assert said[3] == said[4] == list(range(3000))
    few = Waiting()
    few.announcements = [Announcement(1, 1, 60.0, (5,), b"\x00")]
    few.records = things.records[:1]
    assert [load.number for load in loads(few, 1)] == [1]
    assert loads(Waiting(), 1) == []


def test_a_renewal_says_so_in_few_bytes_and_keeps_records_alive_at_the_successors() -> None:
    first, keeper, late = (Home(node, PARAMETERS, random.Random(node), 30.0) for node in (1, 2, 3))
    said = Announcement(7, 1, 100.0, tuple(range(50)), bytes(50))
    first.announced(said, 0.0)
    keeper.learn(first.take_changed(0.0), 0.0)
    assert first.take_renewed(lambda _topic: True, 0.0) == []
    first.announced(said, 60.0)
    assert first.take_changed(60.0) == []
    [renewal] = first.take_renewed(lambda topic: topic != 49, 60.0)
    assert renewal == Renewal(7, 1, 100.0, tuple(range(49)))
    for other in (keeper, late):
        other.learn_renewals([renewal], 60.0)
        other.sweep(150.0)
        assert sorted(other.topics()) == list(range(49))
    # What is new is told in full.
    first.announced(Announcement(7, 1, 100.0, (5,), bytes([LEADS])), 70.0)
    assert [record.topic for record in first.take_changed(70.0)] == [5]


@pytest.mark.parametrize("earlier", [False, True])
def test_successors_keep_records_alive_by_renewals_that_go_together_or_by_marks(
    earlier: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of an earlier wire format are told of renewals; others that all is as it was."""
    monkeypatch.setattr(
        Host, "understands", lambda _host, _peer, kind: not earlier or kind.wire < SameRecords.wire
    )
    topics = [f"t{number}" for number in range(100)]
    swarm = Swarm(Workload.from_lists({f"n{number}": topics for number in range(8)}))
    swarm.run(100.0)
    times: dict[tuple[int, int], list[float]] = {}
    send = Network.send

    def noting(network: Network, source: Host, peer: int, message: Message) -> None:
        if (isinstance(message, Carry) and message.renewals) or isinstance(message, SameRecords):
            assert isinstance(message, SameRecords) != earlier
            times.setdefault((source.name, peer), []).append(network.kernel.now)
        assert not isinstance(message, OtherRecords)
        send(network, source, peer, message)

    monkeypatch.setattr(Network, "send", noting)
    swarm.run(160.0)
    assert times
    for moments in times.values():
        pauses = [later - first for first, later in pairwise(moments)]
        assert min(pauses) > (4.5 if earlier else 29.5) * PARAMETERS.tick
    nodes = {node.id: node for node in swarm.nodes()}
    homes = 0
    for node in nodes.values():
        keeper = nodes[node.directory.ring.after[-1]]
        for topic in filter(node.directory.ring.owns, node.directory.home.topics()):
            homes += 1
            assert len(node.directory.home.subscribers(topic)) == 8
            assert len(keeper.directory.home.subscribers(topic)) == 8
    assert homes == len(topics)


def test_who_is_known_to_want_a_topic_is_introduced_however_often() -> None:
    """Gossip vouches for it: that costs no budget."""
    swarm = Swarm(Workload.from_lists({f"n{number}": ["shared"] for number in range(10)}))
    swarm.run(40.0)
    node, other = swarm.nodes()[:2]
    [topic] = node.subscriptions
    assert topic in node.view._profiles[other.id]
    introduced: list[int] = []
    node.view.serve(
        Parts(30.0, lambda _: None, lambda: (), lambda _topic, peer, _label: introduced.append(peer))
    )
    contact = TopicContact(other.id, other.id, 60)
    for number in range(200):
        node.receive(999, Carry(number, told=(Told(node.id, topic, (contact,), 9, parted=True),)))
    assert introduced == [other.id] * 200


def test_a_system_is_told_when_a_home_names_somebody() -> None:
    """Once per message, when the view knows all of them; not by an answer that names nobody."""
    swarm = Swarm(Workload.from_lists({f"n{number}": ["shared", "more"] for number in range(3)}))
    swarm.run(10.0)
    node = swarm.nodes()[0]
    known: list[bool] = []
    node.view.serve(
        Parts(
            *(30.0, lambda _: None, lambda: (), lambda _topic, _peer, _label: None),
            named=lambda: known.append(777 in node.view.peers()),
        )
    )
    one, other = sorted(node.subscriptions)
    contact = TopicContact(777, None, 60)
    told = (Told(node.id, one, (contact,), 9), Told(node.id, other, (contact,), 9))
    node.receive(999, Carry(1, told=told))
    node.receive(999, Carry(2, told=(Told(node.id, one, (), 9),)))
    assert known == [True]


def test_what_one_message_names_is_learned_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node may want thousands of topics: a view that is told of each by itself goes through all of them each time."""
    topics = [f"t{number}" for number in range(500)]
    swarm = Swarm(Workload.from_lists({"many": topics, **{f"n{number}": ["else"] for number in range(20)}}))
    swarm.run(20.0)
    node = next(node for node in swarm.nodes() if len(node.subscriptions) == 500)
    others = [other.id for other in swarm.nodes() if other is not node][:8]
    put: list[int] = []
    real = InterestIndex.put

    def noted(index: InterestIndex, peer: int, interest: frozenset[int]) -> None:
        put.append(peer)
        real(index, peer, interest)

    monkeypatch.setattr(InterestIndex, "put", noted)
    contacts = tuple(TopicContact(peer, None, 60) for peer in others)
    told = tuple(Told(node.id, topic, contacts, 8, 60.0) for topic in sorted(node.subscriptions))
    node.receive(999, Carry(1, told=told))
    assert sorted(put) == sorted(others)
    assert all(node.view.interest_of(peer) >= node.subscriptions for peer in others)


def test_a_home_that_lost_its_memory_asks_its_neighbours_for_their_records() -> None:
    """It is back before anybody missed it: to its neighbours the ring is as it was, and nobody takes over."""
    swarm = Swarm(Workload.from_lists({f"n{number}": [f"other{number}"] for number in range(30)}))
    swarm.run(40.0)
    home_node = swarm.home_of(TOPIC)
    first, second = [node for node in swarm.nodes() if node is not home_node][:2]
    first.subscribe(TOPIC)
    swarm.run(10.0)
    assert home_node.directory.home.subscribers(TOPIC) == [first.id]
    [index] = [host.index for host in swarm.simulation.hosts if host.name == home_node.id]
    swarm.simulation.stop(index, orderly=False)
    swarm.simulation.plan([Change(swarm.simulation.now + 1.0, index, up=True)])
    swarm.run(8.0)
    assert swarm.home_of(TOPIC).id == home_node.id
    assert swarm.home_of(TOPIC) is not home_node, "another life"
    assert swarm.home_of(TOPIC).directory.home.subscribers(TOPIC) == [first.id]
    second.subscribe(TOPIC)
    swarm.run(5.0)
    assert second.view.subscribers(TOPIC).tolist() == [first.id]


@pytest.mark.parametrize("nodes", [30, 60, 120])
def test_membership_contacts_are_bounded_at_every_node_and_time(nodes: int) -> None:
    """By the number of nodes as each estimates it; also while they join, and after a crash."""
    swarm = Swarm(build("rare", 1, nodes=nodes))
    for second in range(70):
        swarm.run(1.0)
        if second == 40:
            for index in random.Random(1).sample(swarm.simulation.up(), nodes // 10):
                swarm.simulation.stop(index, orderly=False)
        mean = 0.0
        for node in swarm.nodes():
            ring = node.directory.ring
            assert len(ring.contacts()) <= rules.most_contacts(ring.nodes)
            mean += len(ring.contacts()) / len(swarm.nodes())
        assert mean <= 6 + 2 * math.log2(len(swarm.nodes()) or 1), "the column `membership_contacts`"


def test_a_new_leader_counts_after_two_lifetimes_of_a_label(monkeypatch: pytest.MonkeyPatch) -> None:
    """It speaks after the first, for who joins leads itself for a while; the home waits for the second. The others
    of its part say nothing about that but with their renewals.
    """
    said = _announcements(monkeypatch)
    lifetime = 8.0
    swarm = Swarm(Workload.from_lists({f"n{number:02d}": ["shared"] for number in range(12)}))
    swarm.run(11.0)
    sides = [swarm.nodes()[first::2] for first in (0, 1)]
    introduced: list[tuple[float, int | None]] = []

    def parts_of(node: DirectoryNode, side: list[DirectoryNode]) -> Parts:
        def leader(_topic: TopicId) -> NodeId:
            return min(member.id for member in side)

        def leading() -> list[TopicId]:
            return sorted(node.subscriptions) if leader(0) == node.id else []

        def met(_topic: TopicId, _peer: NodeId, label: NodeId | None) -> None:
            introduced.append((swarm.simulation.now, label))

        return Parts(lifetime, leader, leading, met)

    for side in sides:
        for node in side:
            node.view.serve(parts_of(node, side))
    swarm.run(60.0)
    leader = min(sides[0], key=lambda node: node.id)
    assert leader.id in {label for _, label in introduced}
    [index] = [host.index for host in swarm.simulation.hosts if host.name == leader.id]
    swarm.simulation.stop(index, orderly=False)
    sides[0].remove(leader)
    for node in sides[0]:
        node.peer_lost(leader.id)
    crashed, heir = swarm.simulation.now, min(node.id for node in sides[0])
    swarm.run(60.0)
    first = min(moment for moment, label in introduced if label == heir)
    assert 2 * lifetime <= first - crashed < 2 * lifetime + PARAMETERS.introduce_every
    others = [node.id for side in sides for node in side if node.id not in (heir, min(n.id for n in side))]
    assert {node for node, _, flags in said if flags & LEADS and node in [n.id for n in sides[0]]} == {heir}
    first_said = min(moment for node, moment, flags in said if node == heir and flags & LEADS)
    assert lifetime <= first_said - crashed < lifetime + 4 * PARAMETERS.tick
    for other in others:
        moments = [moment for node, moment, _ in said if node == other]
        assert moments[-1] > crashed
        pauses = [later - earlier for earlier, later in pairwise(moments) if later > crashed]
        assert min(pauses) >= 0.7 * PARAMETERS.renew, "nobody but the new leader hurries"


def _announcements(monkeypatch: pytest.MonkeyPatch) -> list[tuple[NodeId, float, int]]:
    """Who announces when, with what flags: a list that grows as a run goes on."""
    said: list[tuple[NodeId, float, int]] = []
    due = Announcer.due

    def noting(announcer: Announcer) -> list[Announcement]:
        made = due(announcer)
        said.extend((announcer._id, announcer._world.now, one.flags[0]) for one in made)
        return made

    monkeypatch.setattr(Announcer, "due", noting)
    return said


def test_who_reached_none_of_those_it_knew_is_named_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """To all whom the answer names; and none of them is one that it said it could not reach."""
    workload = Workload.from_lists({f"n{number:02d}": ["shared"] for number in range(60)})
    swarm = Swarm(workload, membership="directory:10")
    swarm.run(60.0)
    alone = swarm.nodes()[7]
    [topic] = alone.subscriptions
    heard: dict[NodeId, list[Told]] = {}
    hear = TopicDirectory._hear

    def log(directory: TopicDirectory, told: list[Told], brought: BroughtProofs) -> None:
        heard.setdefault(directory.id, []).extend(told)
        hear(directory, told, brought)

    monkeypatch.setattr(TopicDirectory, "_hear", log)
    lost = alone.view.subscribers(topic).tolist()
    for peer in lost:
        alone.view.lost(peer)
    swarm.run(8.0)
    answer = next(told for told in heard[alone.id] if told.again)
    named = {contact.id for contact in answer.contacts}
    assert named.isdisjoint(lost)
    assert len(named) == PARAMETERS.contacts
    told_of_it = {
        peer
        for peer, told in heard.items()
        for one in told
        for contact in one.contacts
        if contact.id == alone.id
    }
    assert named <= told_of_it


def test_what_is_carried_goes_to_contacts_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also while contacts come and go, between the moment that a thing is put up for a hop and its departure."""
    strangers = Counter[str]()
    send = HomesRing.send

    def watch(ring: HomesRing, peer: NodeId, message: Message) -> None:
        if isinstance(message, Carry):
            strangers["carried"] += 1
            strangers["to strangers"] += peer not in ring.contacts()
        send(ring, peer, message)

    monkeypatch.setattr(HomesRing, "send", watch)
    swarm = Swarm(build("rare", 1, nodes=150))
    for second in range(90):
        swarm.run(1.0)
        if 40 <= second < 60:
            swarm.simulation.stop(second, orderly=second % 2 == 0)
    assert strangers["carried"] > 1000
    assert strangers["to strangers"] == 0
