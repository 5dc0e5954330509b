"""The topic directory among nodes with keys: nobody is taken for a subscriber, or for one no more, but by its
own word.
"""

from __future__ import annotations

import doctest
import random
from collections.abc import Iterator

import msgspec
import pytest

from tests.blocks.directory_swarm import Swarm
from topicweave.blocks.topic_directory import DirectoryParameters, proofs
from topicweave.blocks.topic_directory.announcer import (
    MOST_PROVE_PAUSE,
    PROVE_EVERY,
    PROVE_PAUSE,
    SLOTS,
    Announcer,
)
from topicweave.blocks.topic_directory.home import Home
from topicweave.blocks.topic_directory.messages import (
    MOST_TOGETHER,
    PROOFS,
    SEEKS,
    WANTS_CONTACTS,
    WITHDRAWS,
    Announcement,
    Carry,
    Lacking,
    Proof,
    ProvenCarry,
    Record,
    Renewal,
    Told,
    TopicContact,
    Unanswered,
)
from topicweave.blocks.topic_directory.proofs import (
    ALL_CHECKS_AT_ONCE,
    CHECKS_AT_ONCE,
    REMEMBERED,
    BroughtProofs,
    ProofChecks,
    ProofMaker,
)
from topicweave.model.ids import RING_SIZE, NodeId, TopicId
from topicweave.model.workload import Workload
from topicweave.port import PROOF_LASTS, InFormat, Message
from topicweave.sim.host import Host
from topicweave.sim.network import Network
from topicweave.sim.proofs import LENGTH, SimulatedProofs
from topicweave.testing import VirtualNetwork
from topicweave.testing.directory_only import DirectoryNode
from topicweave.workloads.catalogue import build

PARAMETERS = DirectoryParameters()
TOPIC = 77
HOUR = 3600.0


class Keys:
    """Nodes with keys, outside of any swarm."""

    def __init__(self, unproven: bool = False) -> None:
        self.network = VirtualNetwork(seed=1)
        self.network.proofs = SimulatedProofs(unproven=unproven)
        self.checks = ProofChecks(self.network.world(1), 1)
        self.home = Home(1, PARAMETERS, random.Random(1), 30.0)

    @property
    def now(self) -> float:
        return self.network.now

    def proof(self, node: NodeId, epoch: int = 1, topic: TopicId = TOPIC, withdraws: bool = False) -> Proof:
        return ProofMaker(self.network.world(node), node).make(epoch, (topic,), withdraws)

    def brought(self, *made: Proof, sender: NodeId = 9) -> BroughtProofs:
        return self.checks.brought(sender, ProvenCarry(1, proofs=made))

    def announce(self, node: NodeId, *made: Proof, flags: int = 0, epoch: int = 1) -> list[Told]:
        said = Announcement(node, epoch, 120.0, (TOPIC,), bytes([flags]))
        return self.home.announced(said, self.now, self.brought(*made))

    def subscribers(self) -> list[NodeId]:
        return sorted(self.home.subscribers(TOPIC))

    def lacking(self) -> list[NodeId]:
        return [one.to for one in self.home.take_lacking()]


def test_the_examples_in_the_docstrings() -> None:
    assert doctest.testmod(proofs).failed == 0


# Homes.


def test_a_home_takes_a_subscriber_by_its_own_word_only() -> None:
    keys = Keys()
    keys.announce(5)
    assert (keys.subscribers(), keys.lacking()) == ([], [5])
    liars = keys.proof(6)
    stolen = [
        msgspec.structs.replace(liars, subscriber=5),
        keys.proof(5, epoch=2),
        keys.proof(5, topic=TOPIC + 1),
        keys.proof(5, withdraws=True),
        Proof(5, 1, (TOPIC,), bytes(LENGTH)),
        Proof(5, 1, (TOPIC,), b"short"),
        Proof(5, 1, (TOPIC,), b""),
        Proof(-5, -1, (TOPIC, -1), bytes(LENGTH)),
    ]
    for proof in stolen:
        keys.announce(5, proof)
        assert (keys.subscribers(), keys.lacking()) == ([], [5]), proof
    assert keys.home.topics() == [], "no room is taken either"
    keys.announce(5, keys.proof(5))
    assert (keys.subscribers(), keys.lacking()) == ([5], [])


def test_a_renewal_needs_no_proof_until_the_last_one_has_ended() -> None:
    keys = Keys()
    first = keys.proof(5)
    keys.announce(5, first)
    for minute in range(1, 120):
        keys.network.run(until=60.0 * minute)
        keys.announce(5, *[first] * (minute % 2))  # To show it again makes it no younger.
        keys.home.sweep(keys.now)
        assert keys.subscribers() == [5]
    keys.network.run(until=PROOF_LASTS + 1.0)
    keys.home.sweep(keys.now)
    assert keys.subscribers() == []
    keys.announce(5)
    keys.announce(5, first)
    assert (keys.subscribers(), keys.lacking()) == ([], [5])


def test_nobody_withdraws_for_others() -> None:
    keys = Keys()
    keys.announce(5, keys.proof(5))
    for proof in (
        (),
        (keys.proof(5),),
        (msgspec.structs.replace(keys.proof(6, withdraws=True), subscriber=5),),
        (keys.proof(5, epoch=2, withdraws=True),),
    ):
        keys.announce(5, *proof, flags=WITHDRAWS)
        assert keys.subscribers() == [5], proof
    keys.announce(5, keys.proof(5, withdraws=True), flags=WITHDRAWS)
    assert keys.subscribers() == []


def test_one_that_was_reported_gone_is_asked_for_its_proof() -> None:
    keys = Keys()
    keys.announce(5, keys.proof(5))
    keys.home.reported(Unanswered(TOPIC, 5))
    keys.announce(5)
    assert keys.lacking() == [5]


def test_inventions_take_no_places() -> None:
    keys = Keys()
    keys.announce(5, keys.proof(5))
    for invented in range(1000, 1500):
        keys.announce(invented)
        keys.announce(invented, Proof(invented, 1, (TOPIC,), bytes(LENGTH)))
    assert keys.subscribers() == [5]
    assert keys.home.audience(TOPIC, 0, keys.now) == 1


def test_made_up_names_share_the_budget_of_who_brings_them() -> None:
    """Others have theirs: those who prove their names, and those whose questions another peer brings."""
    keys = Keys()
    keys.announce(5, keys.proof(5))
    most = int(25 * PARAMETERS.budget)

    def asked(asker: NodeId, sender: NodeId, *made: Proof, flags: int = WANTS_CONTACTS) -> bool:
        said = Announcement(asker, 1, 120.0, (TOPIC,), bytes([flags]))
        told = keys.home.announced(said, keys.now, keys.brought(*made, sender=sender))
        return any(answer.to == asker for answer in told)

    assert sum(asked(1000 + name, 66) for name in range(2 * most)) == most
    assert not asked(7, 66, flags=WANTS_CONTACTS | SEEKS)
    assert asked(7, 8, flags=WANTS_CONTACTS | SEEKS)
    assert asked(7, 66, keys.proof(7))
    assert asked(66, 66, keys.proof(66))


def test_a_full_home_does_not_ask_for_proofs_of_more() -> None:
    keys = Keys()
    for node in range(100, 100 + PARAMETERS.records):
        keys.network.run_for(1.0)
        keys.announce(node, keys.proof(node))
    assert len(keys.subscribers()) == PARAMETERS.records
    keys.announce(5)
    assert keys.lacking() == []
    keys.announce(5, flags=8)
    assert keys.lacking() == [5], "it leads a part: there is always room"


def test_proofs_go_with_answers_to_those_who_ask_for_them_and_with_newcomers() -> None:
    keys = Keys()
    first, second, third = (keys.proof(node) for node in (5, 6, 7))
    keys.announce(5, first)
    assert keys.home.take_shown() == []
    keys.announce(6, second, flags=WANTS_CONTACTS | PROOFS)
    assert keys.home.take_shown() == [first, second], "to the one of the other"
    keys.announce(6, flags=WANTS_CONTACTS)
    assert keys.home.take_shown() == []
    keys.announce(7, third, flags=WANTS_CONTACTS)
    assert keys.home.take_shown() == [third]


# Those who keep records with it.


def test_records_pass_from_home_to_home_with_their_proofs_and_not_without() -> None:
    keys, heir = Keys(), Home(2, PARAMETERS, random.Random(2), 30.0)
    keys.announce(5, keys.proof(5))
    records = keys.home.records([TOPIC], keys.now)
    made_up = Record(TOPIC, 6, 1, 100.0, None, -1.0)
    heir.learn([*records, made_up], keys.now, keys.brought())
    assert heir.topics() == []
    heir.learn([*records, made_up], keys.now, keys.brought(*keys.home.proofs(records)))
    assert heir.subscribers(TOPIC) == [5]
    assert heir.proofs(records) == keys.home.proofs(records)


def test_a_proof_made_anew_reaches_keepers_with_the_renewal() -> None:
    keys, keeper = Keys(), Home(2, PARAMETERS, random.Random(2), 30.0)
    keys.announce(5, keys.proof(5))
    changed = keys.home.take_changed(keys.now)
    keeper.learn(changed, keys.now, keys.brought(*keys.home.proofs(changed)))
    for minute in range(1, 240):
        keys.network.run(until=60.0 * minute)
        keys.announce(5, *([keys.proof(5)] if minute % 80 == 0 else []))
        changed = keys.home.take_changed(keys.now)
        keeper.learn(changed, keys.now, keys.brought(*keys.home.proofs(changed)), lambda _topic: True)
        keeper.learn_renewals(keys.home.take_renewed(lambda _topic: True, keys.now), keys.now, keys.brought())
        keeper.sweep(keys.now)
        assert keeper.subscribers(TOPIC) == [5], minute
    unknown = Renewal(6, 1, 100.0, (TOPIC,))
    keeper.learn_renewals([unknown], keys.now, keys.brought())
    assert keeper.subscribers(TOPIC) == [5]


# Subscribers.


def proven(announcer: Announcer) -> Iterator[tuple[Announcement, list[Proof]]]:
    for announcement in announcer.due():
        yield announcement, announcer.proofs(announcement)


def announcer_of(keys: Keys, topics: int) -> Announcer:
    announcer = Announcer(keys.network.world(5), 5, PARAMETERS, known=lambda _topic: PARAMETERS.enough)
    announcer.restart()
    announcer.set_topics(frozenset(range(topics)))
    return announcer


def test_a_proof_goes_with_the_first_announcement_and_again_before_it_ends() -> None:
    keys = Keys()
    announcer = announcer_of(keys, 40)
    last: dict[TopicId, float] = {}
    announced = pauses = 0
    for second in range(int(4 * HOUR)):
        keys.network.run(until=float(second))
        for announcement, made in proven(announcer):
            announced += len(announcement.topics)
            for proof in made:
                assert len(proof.topics) <= MOST_TOGETHER
                for topic in proof.topics:
                    assert topic in announcement.topics
                    pauses += topic in last
                    assert (
                        second - last.get(topic, second)
                        <= PROVE_EVERY + PARAMETERS.renew / SLOTS + PARAMETERS.tick
                    )
                    last[topic] = second
    assert set(last) == set(range(40))
    assert min(last.values()) >= 4 * HOUR - PROVE_EVERY - PARAMETERS.renew
    assert pauses < announced / 20, "most renewals go without"


def test_a_home_that_lacks_a_proof_gets_it_and_nobody_can_ask_for_many() -> None:
    keys = Keys()
    announcer = announcer_of(keys, 3)
    made = [proof for _, some in proven(announcer) for proof in some]
    assert [proof.topics for proof in made] == [(0, 1, 2)]
    keys.network.run_for(PROVE_PAUSE)
    announcer.lacking([1, 99])
    assert [proof.topics for _, some in proven(announcer) for proof in some] == [(1,)]
    proven_at = []
    for second in range(600):
        keys.network.run_for(1.0)
        announcer.lacking([1])
        proven_at += [second for _, some in proven(announcer) for proof in some if 1 in proof.topics]
    assert len(proven_at) <= 5 + 600 / MOST_PROVE_PAUSE


def test_what_is_dropped_is_withdrawn_with_a_proof() -> None:
    keys = Keys()
    announcer = announcer_of(keys, 3)
    list(proven(announcer))
    announcer.set_topics(frozenset({0, 1}))
    [(announcement, [proof])] = proven(announcer)
    assert (announcement.flags, proof.topics, proof.withdraws) == (bytes([WITHDRAWS]), (2,), True)


def test_topics_are_proven_together_only_where_they_have_one_home() -> None:
    keys = Keys()
    announcer = announcer_of(keys, 0)
    announcer.nodes = lambda: 1000
    step = RING_SIZE // 3000
    announcer.set_topics(frozenset(range(0, 12 * step, step)))
    [(_, made)] = proven(announcer)
    assert [len(proof.topics) for proof in made] == [4, 4, 4]


def test_a_new_key_proves_everything_anew_with_the_next_renewals() -> None:
    keys = Keys()
    assert keys.network.proofs is not None
    announcer = announcer_of(keys, 40)
    list(proven(announcer))
    keys.network.run_for(10.0)
    keys.network.proofs.renew_key(5)
    again: set[TopicId] = set()
    for _ in range(int(2 * PARAMETERS.renew)):
        keys.network.run_for(1.0)
        again.update(topic for _, some in proven(announcer) for proof in some for topic in proof.topics)
    assert again == set(range(40))


# Bounds.


def test_checks_are_rationed_by_sender_and_in_all() -> None:
    keys = Keys()
    simulated = keys.network.proofs
    assert simulated is not None
    for sender in (8, 9):
        for number in range(5000):
            keys.announce(number + 100, Proof(number + 100, 1, (TOPIC,), bytes(LENGTH)))
            lie = keys.brought(Proof(number + 100, 1, (TOPIC,), bytes(LENGTH)), sender=sender)
            lie.of(number + 100, TOPIC)
    assert simulated.checks <= 2 * CHECKS_AT_ONCE
    for sender in range(1000, 1100):
        for number in range(100):
            keys.brought(Proof(number, 1, (TOPIC,), bytes(LENGTH)), sender=sender).of(number, TOPIC)
    assert simulated.checks <= ALL_CHECKS_AT_ONCE


def test_what_is_too_long_does_not_decode() -> None:
    decode = msgspec.msgpack.Decoder(ProvenCarry).decode
    for proof in (Proof(1, 1, (1,), bytes(129)), Proof(1, 1, tuple(range(9)), bytes(LENGTH))):
        with pytest.raises(msgspec.ValidationError):
            decode(msgspec.msgpack.encode(ProvenCarry(1, proofs=(proof,))))


def test_a_message_that_brings_too_much_is_not_looked_at() -> None:
    swarm = Swarm(build("rare", 1, nodes=20))
    swarm.simulation.use_proofs(simulated := SimulatedProofs())
    swarm.run(20.0)
    node, before = swarm.nodes()[5], simulated.checks
    many = tuple(Proof(999, 1, (topic,), bytes(LENGTH)) for topic in range(5000))
    node.receive(999, ProvenCarry(1, told=told_of(node, 999), proofs=many))
    node.receive(
        999, ProvenCarry(1, told=told_of(node, 999), lacking=(Lacking(node.id, tuple(range(5000))),))
    )
    assert simulated.checks == before


# Swarms.


def told_of(node: DirectoryNode, *peers: NodeId) -> tuple[Told, ...]:
    topic = min(node.subscriptions)
    return (Told(node.id, topic, tuple(TopicContact(peer, None, 600) for peer in peers), 9, 60.0),)


def with_keys(workload: Workload, **options: bool) -> tuple[Swarm, SimulatedProofs]:
    swarm, simulated = Swarm(workload), SimulatedProofs(**options)
    swarm.simulation.use_proofs(simulated)
    return swarm, simulated


def named(node: DirectoryNode) -> set[tuple[NodeId, TopicId]]:
    return {
        (peer, topic) for peer in node.view._contacts._until for topic in node.view._contacts.topics(peer)
    }


def test_everybody_is_found_by_proofs_and_nobody_else_is() -> None:
    swarm, _ = with_keys(build("rare", 1, nodes=120))
    swarm.run(40.0)
    assert swarm.unknown() == 0
    wanted = swarm.subscribers()
    for node in swarm.nodes():
        assert all(peer in wanted[topic] for peer, topic in named(node))
        home = node.directory.home
        for topic in home.topics():
            assert all(home._topics[topic].kept[one].proof is not None for one in home.subscribers(topic))


def test_without_keys_no_proof_travels(monkeypatch: pytest.MonkeyPatch) -> None:
    swarm = Swarm(build("rare", 1, nodes=40))
    sent: set[type] = set()
    send = Network.send

    def noted(network: Network, source: Host, peer: NodeId, message: Message) -> None:
        sent.add(type(message))
        send(network, source, peer, message)

    monkeypatch.setattr(Network, "send", noted)
    swarm.run(40.0)
    assert Carry in sent
    assert ProvenCarry not in sent


def rare_topic(swarm: Swarm) -> tuple[TopicId, list[DirectoryNode]]:
    """One whose home and keepers are none of its subscribers."""
    nodes = swarm.nodes()
    for topic, wanting in sorted(swarm.subscribers().items()):
        home = swarm.home_of(topic)
        if len(wanting) == 3 and not wanting & {home.id, *home.directory.ring.after}:
            return topic, [node for node in nodes if node.id in wanting]
    raise AssertionError("there is none")


def test_a_home_that_lost_its_records_gets_the_proofs_again() -> None:
    swarm, _ = with_keys(build("rare", 1, nodes=60))
    swarm.run(40.0)
    topic, wanting = rare_topic(swarm)
    home = swarm.home_of(topic).directory.home
    home._topics.clear()
    swarm.run(1.5 * PARAMETERS.renew)
    assert set(home.subscribers(topic)) == {node.id for node in wanting}
    assert all(kept.proof is not None for kept in home._topics[topic].kept.values())


def test_keepers_take_over_with_proofs_when_the_home_crashes() -> None:
    swarm, _ = with_keys(build("rare", 1, nodes=60))
    swarm.run(40.0)
    topic, wanting = rare_topic(swarm)
    home = swarm.home_of(topic)
    [index] = [number for number in swarm.simulation.up() if swarm.simulation.node(number) is home]
    swarm.simulation.stop(index, orderly=False)
    swarm.run(15.0)
    heir = swarm.home_of(topic)
    kept = heir.directory.home._topics[topic].kept
    assert set(kept) == {node.id for node in wanting}
    assert all(record.proof is not None for record in kept.values())
    stranger = next(node for node in swarm.nodes() if topic not in node.subscriptions and node is not heir)
    stranger.subscribe(topic)
    swarm.run(10.0)
    assert {(node.id, topic) for node in wanting} <= named(stranger)


def test_who_has_a_new_key_is_found_by_it_and_not_by_the_old_one() -> None:
    swarm, simulated = with_keys(build("rare", 1, nodes=60))
    swarm.run(40.0)
    topic, wanting = rare_topic(swarm)
    changed = wanting[0]
    old = swarm.home_of(topic).directory.home._topics[topic].kept[changed.id].proof
    simulated.renew_key(changed.id)
    swarm.run(1.5 * PARAMETERS.renew)
    new = swarm.home_of(topic).directory.home._topics[topic].kept[changed.id].proof
    assert new != old
    stranger = next(node for node in swarm.nodes() if topic not in node.subscriptions)
    assert old is not None
    stranger.subscribe(topic)
    stranger.receive(999, ProvenCarry(1, told=told_by(stranger, topic, changed.id), proofs=(old,)))
    assert (changed.id, topic) not in named(stranger)
    swarm.run(10.0)
    assert (changed.id, topic) in named(stranger)


def told_by(node: DirectoryNode, topic: TopicId, peer: NodeId) -> tuple[Told, ...]:
    return (Told(node.id, topic, (TopicContact(peer, None, 600),), 9, 60.0),)


def test_who_was_proven_once_is_believed_for_a_while_and_who_says_so_itself_is_too() -> None:
    swarm, _ = with_keys(Workload.from_lists({f"n{number}": ["shared"] for number in range(3)}))
    swarm.run(20.0)
    node, other, third = swarm.nodes()
    [topic] = node.subscriptions
    for peer in (other, third):
        node.view._contacts.remove(peer.id)
    node.receive(999, Carry(1, told=told_by(node, topic, other.id)))
    node.receive(999, Carry(2, told=told_by(node, topic, 12345)))
    assert named(node) == {(other.id, topic)}
    node.directory._proven.sweep(swarm.simulation.now + REMEMBERED)
    for peer in (other, third):
        node.view._contacts.remove(peer.id)
    node.view.said(third.id, frozenset({topic}))
    for peer in (other, third):
        node.receive(999, Carry(3, told=told_by(node, topic, peer.id)))
    assert named(node) == {(third.id, topic)}
    node.view.lost(third.id)
    node.view._gone.clear()
    node.receive(999, Carry(4, told=told_by(node, topic, third.id)))
    assert named(node) == set()


@pytest.mark.parametrize("unproven", [False, True])
def test_proofs_do_not_go_to_nodes_of_an_earlier_format_and_where_told_so_nodes_do_without(
    unproven: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every second node takes no proofs and passes none on."""
    swarm, _ = with_keys(build("rare", 1, nodes=60), unproven=unproven)
    earlier = {host.name for host in swarm.simulation.hosts[::2]}

    def understands(host: Host, peer: NodeId, kind: type[InFormat]) -> bool:
        return kind is not ProvenCarry or not {host.name, peer} & earlier

    monkeypatch.setattr(Host, "understands", understands)
    swarm.run(40.0)
    missing = {
        (topic, peer)
        for topic, wanting in swarm.subscribers().items()
        for peer in wanting - set(swarm.home_of(topic).directory.home.subscribers(topic))
        if len(wanting) == 3
    }
    assert bool(missing) != unproven
