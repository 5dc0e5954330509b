"""Whole Rappel networks in the simulator: trees, friends, publishers, bootstrap."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest

from tests.systems.rappel.lab import SETTLED, Lab, one_feed
from topicweave.blocks.bloom import may_contain
from topicweave.errors import BadInput
from topicweave.model.event import Event, EventId
from topicweave.model.ids import clockwise
from topicweave.model.workload import Workload
from topicweave.sim.churn import Change, Churn
from topicweave.systems.rappel import RAPPEL, RappelNode
from topicweave.systems.rappel.messages import JoinForward, JoinOK, Left, Lineage, Ping, Update, Void
from topicweave.systems.rappel.tree import Tree
from topicweave.testing import NEWS, Bench
from topicweave.testing.invariants import NoiseLog
from topicweave.workloads import generate


@pytest.fixture(scope="module")
def settled() -> Lab:
    lab = Lab(one_feed(60))
    lab.sim.run(SETTLED)
    return lab


def test_the_subscribers_of_a_feed_form_one_tree(settled: Lab) -> None:
    assert settled.wrong() == []
    assert settled.tree(0).is_root
    assert max(len(settled.tree(index).children) for index in settled.sim.up()) <= 5


def test_every_update_reaches_every_subscriber_once() -> None:
    lab = Lab(one_feed(60))
    lab.sim.run(SETTLED)
    sequences = [lab.publish() for _ in range(3)]
    lab.sim.run(SETTLED + 5)
    assert all(lab.without(sequence) == [] for sequence in sequences)
    assert lab.log.violations == []


def test_lineages_lead_to_the_root(settled: Lab) -> None:
    for index in settled.sim.up():
        tree = settled.tree(index)
        if not tree.is_root:
            assert tree.ancestors[0] == tree.parent
            assert tree.ancestors[-1] == settled.workload.node_ids[0]


def test_friends_and_fans_are_the_two_ends_of_one_relation(settled: Lab) -> None:
    for index in settled.sim.up():
        node = settled.node(index)
        assert 2 <= len(node.friendship.friends) <= 6
        for friend in node.friendship.friends:
            assert node.id in settled.node(settled.index(friend)).friendship.fans


def test_neighbours_count_as_heard_of_with_every_ping_and_ack() -> None:
    """§3.3 makes room for fans among the candidates; parents and children are as near."""
    lab = Lab(one_feed(40), neighbours_vote=True, candidate_memory=60.0)
    lab.sim.run(SETTLED)
    for index in lab.sim.up():
        node = lab.node(index)
        tree = lab.tree(index)
        since = lab.sim.now - 60.0
        old = {child for child in tree.children if tree.since[child] < since}
        old |= {fan for fan, time in node.friendship.fans.items() if time < since}
        assert old <= {*node.friendship.candidates, *node.friendship.friends}


def test_coordinates_of_a_plane_are_close_to_its_distances(settled: Lab) -> None:
    nodes = [settled.node(index) for index in settled.sim.up()]
    errors = []
    for one, node in enumerate(nodes):
        for other in range(one):
            true = settled.sim._network._delay(one, other, 0.0)
            guess = math.dist(node.place.coordinate, nodes[other].place.coordinate)
            errors.append(abs(guess - true) / max(true, 0.001))
    assert sorted(errors)[len(errors) // 2] < 0.5


def test_periodic_rejoins_shorten_the_ways() -> None:
    lab = Lab(one_feed(120), rejoin_period=60.0)
    lab.sim.run(100.0)

    def ways() -> float:
        total = 0.0
        for index in lab.sim.up():
            chain = [lab.node(index).id, *lab.tree(index).ancestors]
            places = [lab.node(lab.index(one)).place.coordinate for one in chain]
            total += sum(math.dist(a, b) for a, b in pairwise(places))
        return total

    before = ways()
    lab.sim.run(800.0)
    assert lab.wrong() == []
    assert ways() < before


def test_without_given_publishers_the_first_subscriber_on_the_ring_leads() -> None:
    lab = Lab(generate(40, 8, "rss", 2, 4, seed=2), given=False)
    lab.sim.run(SETTLED)
    assert lab.wrong() == []
    for index in lab.sim.up():
        for feed, tree in lab.node(index).trees.trees.items():
            if tree.is_root:
                wanting = [
                    lab.workload.node_ids[other]
                    for other in lab.sim.up()
                    if feed in lab.node(other).subscriptions
                ]
                assert lab.node(index).id == min(wanting, key=lambda one: clockwise(feed, one))


def test_anybody_may_publish_through_the_master() -> None:
    lists = {f"n{number:03d}": ["feed"] for number in range(30)} | {"z-outsider": ["other"]}
    workload = Workload.from_lists(lists)
    ids = dict(zip(workload.topic_names, workload.topic_ids, strict=True))
    lab = Lab(workload, publishers={ids["feed"]: workload.node_ids[0], ids["other"]: workload.node_ids[30]})
    noise = NoiseLog(lab.sim, set())
    lab.sim.run(SETTLED)
    topic = workload.topic_names.index("feed")
    for publisher in (7, 30):
        event = lab.sim.publish(publisher, topic).event
        lab.sim.run(lab.sim.now + 5)
        reached = {index for index in range(30) if (index, event.sequence) in lab.got}
        assert reached == set(range(30))
        lab.got.clear()
    assert noise.violations == []
    assert lab.log.violations == []
    assert not lab.node(30).updates._unsent


def test_a_new_subscription_is_joined_through_a_friend_who_covers_it() -> None:
    workload = Workload.from_lists(
        {f"n{number:03d}": ["feed", "second"] if number < 25 else ["feed"] for number in range(50)}
    )
    ids = dict(zip(workload.topic_names, workload.topic_ids, strict=True))
    lab = Lab(workload, publishers=dict.fromkeys(ids.values(), workload.node_ids[0]))
    lab.sim.run(SETTLED)
    node = lab.node(40)
    assert any(may_contain(known.bloom, ids["second"]) for known in node.friendship.friends.values())
    joins = lab.node(0).trees.rejoins_received
    lab.sim.subscribe(40, workload.topic_names.index("second"))
    lab.sim.run(SETTLED + 3)
    assert node.trees.trees[ids["second"]].joined
    assert lab.node(0).trees.rejoins_received == joins
    lab.sim.run(SETTLED + 40)
    # Friends have fetched the new filter.
    for fan in node.friendship.fans:
        known = lab.node(lab.index(fan)).friendship.friends.get(node.id)
        if known is not None:
            assert may_contain(known.bloom, ids["second"])


def test_unsubscribing_hands_the_children_over() -> None:
    lab = Lab(one_feed(60))
    lab.sim.run(SETTLED)
    leaver = lab.inner()
    children = [lab.index(child) for child in lab.tree(leaver).children]
    lab.sim.unsubscribe(leaver, 0)
    lab.sim.run(SETTLED + 2)
    assert all(lab.tree(child).joined for child in children)
    sequence = lab.publish()
    lab.sim.run(SETTLED + 10)
    assert lab.without(sequence) == [leaver]
    assert lab.log.violations == []


def test_a_newcomer_pulls_what_is_still_kept() -> None:
    newcomer = 30
    churn = Churn(frozenset(range(newcomer)), (Change(SETTLED, newcomer, True),))
    lab = Lab(one_feed(newcomer), churn=churn)
    lab.sim.run(SETTLED - 10)
    sequences = [lab.publish() for _ in range(15)]
    lab.sim.run(SETTLED + 60)
    assert [one for one in sequences if (newcomer, one) in lab.got] == sequences[-10:]


def test_a_virgin_session_joins_feeds_apart_in_time_and_then_the_rest() -> None:
    """Nobody else wants these feeds, so no friend covers them: twelve joins at publishers, 20 s apart, then all."""
    feeds = [f"feed-{number:02d}" for number in range(16)]
    lists = {"b-virgin": feeds} | {f"a-publisher-{number:02d}": [feed] for number, feed in enumerate(feeds)}
    workload = Workload.from_lists(lists)
    node_id = dict(zip(workload.node_names, workload.node_ids, strict=True))
    topic_id = dict(zip(workload.topic_names, workload.topic_ids, strict=True))
    publishers = {topic_id[feed]: node_id[f"a-publisher-{number:02d}"] for number, feed in enumerate(feeds)}
    lab = Lab(workload, publishers=publishers, alpha=1)
    virgin = workload.node_names.index("b-virgin")
    counts = []
    for moment in range(10, 400, 20):
        lab.sim.run(float(moment))
        counts.append(sum(tree.joined for tree in lab.node(virgin).trees.trees.values()))
    assert counts == sorted(counts)
    assert counts[0] <= 3  # the first, and what the first friend covers
    assert counts[5] <= 12  # after 110 s
    assert counts[-1] == 16


def test_a_lineage_that_holds_the_node_itself_is_not_taken() -> None:
    lab = Lab(one_feed(20))
    lab.sim.run(SETTLED)
    index = next(i for i in lab.sim.up() if lab.tree(i).height >= 2)
    node, tree = lab.node(index), lab.tree(index)
    parent = tree.parent
    assert parent is not None
    loop = Lineage(lab.feed, (parent, node.id, tree.ancestors[-1]), tree.publisher or ())
    node.receive(parent, JoinOK(loop))
    lab.sim.run(SETTLED + 100)
    assert lab.wrong() == []


def test_a_missed_update_is_found_by_the_void_update() -> None:
    lab = Lab(one_feed(20), void_period=5.0)
    lab.sim.run(SETTLED)
    index = next(i for i in lab.sim.up() if lab.tree(i).height >= 1 and not lab.tree(i).children)
    parent = lab.node(lab.index(lab.tree(index).parent))
    known = parent.trees.trees[lab.feed].children.pop(lab.node(index).id)
    sequence = lab.publish()
    lab.sim.run(SETTLED + 1)
    parent.trees.trees[lab.feed].children[lab.node(index).id] = known
    assert lab.without(sequence) == [index]
    lab.sim.run(SETTLED + 15)
    assert lab.without(sequence) == []


def test_a_gap_in_the_numbers_is_pulled() -> None:
    lab = Lab(one_feed(20))
    lab.sim.run(SETTLED)
    index = next(i for i in lab.sim.up() if lab.tree(i).height >= 1 and not lab.tree(i).children)
    parent = lab.node(lab.index(lab.tree(index).parent))
    lab.publish()
    lab.sim.run(SETTLED + 1)
    known = parent.trees.trees[lab.feed].children.pop(lab.node(index).id)
    missed = lab.publish()
    lab.sim.run(SETTLED + 2)
    parent.trees.trees[lab.feed].children[lab.node(index).id] = known
    lab.publish()
    lab.sim.run(SETTLED + 6)
    assert lab.without(missed) == []


def test_lies_change_nothing_for_long(settled: Lab) -> None:
    """Nonsense from a stranger: no exception, no growth, no noise."""
    node, stranger = settled.node(5), 12345
    feed, other = settled.feed, 999
    before = dict(settled.tree(5).children)
    node.receive(stranger, Void(feed, ((1, 1, 1),) * 50))
    node.receive(stranger, Ping(0, 0, False, tuple(range(100_000, 100_500)), (feed, other)))
    node.receive(stranger, JoinOK(Lineage(other, (stranger,), (0.0,) * 5)))
    node.receive(stranger, JoinOK(Lineage(feed, (), ())))
    assert settled.tree(5).children == before
    assert len(node.friendship.candidates) <= node.parameters.most_candidates
    assert stranger not in node.known_peers()


def test_an_unwanted_update_is_neither_delivered_nor_passed_on(settled: Lab) -> None:
    node = settled.node(5)
    node.receive(77, Update(Event(77, 999, 1, 0), 1))
    assert not node.updates.has(EventId(77, 999, 1, 0))


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"alpha": 0}, "at least 1"),
        ({"ping_timeout": 30.0}, "need 0 < ping_timeout < ping_period"),
        ({"rejoin_period": 0}, "must be positive"),
        ({"utility": "beauty"}, "utility"),
    ],
)
def test_wrong_settings_are_refused_in_words(changes: dict[str, object], complaint: str) -> None:
    with pytest.raises(BadInput, match=complaint):
        RAPPEL.settings(**changes)


def searching_root() -> tuple[Bench[RappelNode], Tree]:
    """Node 1 leads the tree of NEWS and has asked 1000 for a place in its tree."""
    bench: Bench[RappelNode] = Bench("rappel")
    node = bench.add(1, NEWS)
    bench.run_for(10.0)
    tree = node.trees.trees[NEWS]
    assert tree.is_root
    node.trees.search_root(tree, 1000)
    return bench, tree


def test_a_deep_tree_is_searched_to_its_end() -> None:
    """Trees that hang below each other are deep: a root that gave up half-way would stay one."""
    bench, tree = searching_root()
    for peer in range(1000, 1200):
        bench.tell(peer, 1, JoinForward(NEWS, peer + 1))
    bench.tell(1200, 1, JoinOK(Lineage(NEWS, (1200, 1000), (0.0,) * 5)))
    assert tree.parent == 1200


def test_a_search_that_is_led_in_circles_ends() -> None:
    bench, tree = searching_root()
    for _ in range(100):
        bench.tell(1000, 1, JoinForward(NEWS, 1001))
        bench.tell(1001, 1, JoinForward(NEWS, 1000))
    assert tree.search is None
    bench, tree = searching_root()
    for peer in range(1000, 1400):
        bench.tell(peer, 1, JoinForward(NEWS, peer + 1))
    assert tree.search is None


def test_an_update_that_overtakes_the_answer_does_not_undo_the_join() -> None:
    bench, tree = searching_root()
    event = Event(1000, NEWS, 1, 0, b"early")
    bench.tell(1000, 1, Update(event, 1))
    bench.tell(1000, 1, JoinOK(Lineage(NEWS, (1000,), (0.0,) * 5)))
    assert tree.parent == 1000
    assert [one.payload for one in bench.delivered(1)] == [b"early"]
    assert not any(isinstance(sent.message, Left) and sent.receiver == 1000 for sent in bench.log)
