"""Named faults: what breaks, and that it heals without losing an update that somebody still keeps."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pytest

from tests.seeds import seeds
from tests.systems.rappel.lab import SETTLED, Lab, one_feed
from topicweave.blocks.membership import GOSSIP, Membership
from topicweave.sim.faults import Crash, Loss
from topicweave.systems.registry import find_system
from topicweave.testing import draw_scenario, run_scenario
from topicweave.workloads import generate

HEALED = 150.0
QUICK: Mapping[str, Any] = {
    "ping_period": 3.0,
    "ping_timeout": 1.5,
    "stagger": 2.0,
    "join_timeout": 1.0,
    "void_period": 3.0,
}


def test_parent_crash_in_mid_push() -> None:
    """The parent has the update and dies before its children have: they pull it from their new parents."""
    lab = Lab(one_feed(60))
    lab.sim.run(SETTLED)
    victim = lab.inner()
    children = [lab.index(child) for child in lab.tree(victim).children]
    sequence = lab.publish()
    # It goes down with what it was about to send.
    dying = Loss(lab.sim.now, lab.sim.now, 1.0)
    while (victim, sequence) not in lab.got:
        lab.sim._network.faults.begin(dying)
        lab.sim.run(lab.sim.now + 0.0005)
        lab.sim._network.faults.end(dying)
        if (victim, sequence) not in lab.got:
            # Not yet: let the others have what was lost meanwhile.
            for index in lab.sim.up():
                tree = lab.tree(index)
                if (index, sequence) in lab.got:
                    lab.node(index).updates._push(tree, lab.events[sequence], tree.height, None)
    lab.sim.stop(victim, orderly=False)
    assert set(children) & set(lab.without(sequence))
    lab.sim.run(SETTLED + HEALED)
    assert lab.without(sequence) == []
    assert lab.wrong() == []


def test_chain_of_three_ancestors_crashes() -> None:
    lab = Lab(one_feed(100), beta=2)
    lab.sim.run(SETTLED)
    deep = max(lab.sim.up(), key=lambda index: lab.tree(index).height)
    chain = [lab.index(ancestor) for ancestor in lab.tree(deep).ancestors[:3]]
    assert 0 not in chain
    for index in chain:
        lab.sim.stop(index, orderly=False)
    sequence = lab.publish()
    lab.sim.run(SETTLED + HEALED)
    assert lab.without(sequence) == []
    assert lab.wrong() == []


@pytest.mark.parametrize("keeps_memory", [True, False])
def test_publisher_restart(keeps_memory: bool) -> None:
    lab = Lab(one_feed(60), faults=[Crash(SETTLED, SETTLED + 60.0, 0, keeps_memory)])
    lab.sim.run(SETTLED - 5)
    first = lab.publish()
    lab.sim.run(SETTLED + 60 + HEALED)
    assert lab.tree(0).is_root
    assert lab.wrong() == []
    # A publisher without memory pulls its own update back from nobody: it had it.
    assert lab.without(first) == []
    lab.got.clear()
    sequence = lab.publish()
    lab.sim.run(lab.sim.now + 5)
    assert lab.without(sequence) == []


def test_half_of_the_network_at_once_and_back() -> None:
    half = random.Random(1).sample(range(1, 101), 50)
    faults = [Crash(SETTLED, SETTLED + 200.0, index, True) for index in half]
    lab = Lab(one_feed(100), faults=faults)
    lab.sim.run(SETTLED + 1)
    sequence = lab.publish()
    lab.sim.run(SETTLED + 199)
    assert len(lab.sim.up()) == 51
    assert lab.without(sequence) == []
    assert lab.wrong() == []
    lab.sim.run(SETTLED + 400)
    assert len(lab.sim.up()) == 101
    assert lab.wrong() == []
    assert lab.without(sequence) == []  # those who were away pulled it when they came back


def test_a_returning_node_finds_its_friends_again() -> None:
    """A reentrant session (§5.3) begins with the friends of the last one."""
    lab = Lab(one_feed(60), faults=[Crash(SETTLED, SETTLED + 100.0, 7, True)])
    lab.sim.run(SETTLED - 1)
    before = set(lab.node(7).friendship.friends)
    lab.sim.run(SETTLED + 110)
    assert lab.tree(7).joined
    assert before & set(lab.node(7).friendship.friends)


@pytest.mark.parametrize(("seed", "parameters"), [(1, {}), (2, {"beta": 2, "alpha": 3}), (3, {})])
def test_campaign(seed: int, parameters: dict[str, object]) -> None:
    system = find_system("rappel")
    verdict = run_scenario(system, draw_scenario(seed, nodes=30), system.settings(**parameters))
    assert verdict.violations == ()


def test_the_elected_root_goes_and_a_child_of_its_heir_leads() -> None:
    """Whoever is to lead is somewhere in the tree, and thinks that the old root still does."""
    for seed in range(1, 6):
        lab = Lab(one_feed(8), seed=seed, given=False)
        lab.sim.run(SETTLED)
        root = next(index for index in lab.sim.up() if lab.tree(index).is_root)
        lab.sim.unsubscribe(root, 0)
        lab.sim.run(SETTLED + 100)
        assert lab.wrong() == []


@seeds(range(1, 9))
def test_a_dead_root_is_followed_long_before_gossip_forgets_it(seed: int) -> None:
    """Those below a headless node still hear of the old root, and would leave the lead to it for a minute."""
    lab = Lab(one_feed(30), seed=seed, given=False, membership=GOSSIP, **QUICK)
    lab.sim.run(SETTLED)
    assert lab.wrong() == []
    root = next(index for index in lab.sim.up() if lab.tree(index).is_root)
    lab.sim.stop(root, orderly=False)
    lab.sim.run(SETTLED + 30)
    roots = [index for index in lab.sim.up() if lab.tree(index).is_root]
    assert len(roots) == 1
    assert all(lab.tree(index).joined for index in lab.sim.up())


@seeds([6, 7, 8, 1, 2, 3, 4, 5])
def test_the_children_of_a_dead_root_follow_one_of_them(seed: int) -> None:
    """Each knows few of the feed's subscribers, and others than its siblings: each would choose another root."""
    lab = Lab(one_feed(150), seed=seed, given=False, membership=Membership.parse("directory:10"), **QUICK)
    lab.sim.run(SETTLED)
    assert lab.wrong() == []
    root = next(index for index in lab.sim.up() if lab.tree(index).is_root)
    assert len(lab.tree(root).children) > 1
    lab.sim.stop(root, orderly=False)
    for _ in range(40):
        lab.sim.run(lab.sim.now + 0.5)
        roots = [index for index in lab.sim.up() if lab.tree(index).is_root]
        assert len(roots) <= 1
    assert len(roots) == 1
    sequence = lab.publish(roots[0])
    lab.sim.run(lab.sim.now + 10.0)
    assert lab.without(sequence) == []


@seeds(range(1, 7))
def test_nobody_leads_beside_a_root_that_lives(seed: int) -> None:
    """A root that is full leads orphans to a child of its that died, until it notices."""
    workload = generate(120, 24, "rss", 6, 6, seed=seed)
    lab = Lab(workload, seed=seed, given=False, membership=Membership.parse("directory:20"), **QUICK)
    lab.sim.run(SETTLED)
    roots = lab.roots()
    others = sorted(set(lab.sim.up()) - {index for leaders in roots.values() for index in leaders})
    for index in random.Random(seed).sample(others, 24):
        lab.sim.stop(index, orderly=False)
    for _ in range(30):
        lab.sim.run(lab.sim.now + 0.5)
        assert lab.roots() == roots
