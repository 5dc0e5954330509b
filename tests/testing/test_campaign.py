"""Fault campaigns: SpiderCast passes them, a scenario replays exactly, and broken systems are found out."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.seeds import seeds
from topicweave.blocks.broadcast_tree import Push
from topicweave.blocks.membership import DIRECTORY, GOSSIP, Membership
from topicweave.errors import BadInput
from topicweave.model.event import Event
from topicweave.model.ids import NodeId, successor
from topicweave.port import Link, Message, TimerKey
from topicweave.sim.faults import Crash
from topicweave.systems.registry import find_system
from topicweave.systems.spidercast import SPIDERCAST, SpiderCastNode
from topicweave.testing import Verdict, draw_scenario, read_scenario, run_campaign, run_scenario
from topicweave.testing.campaign import homes_crash


@seeds(range(12), always=4)
def test_spidercast_passes(seed: int) -> None:
    scenario = draw_scenario(seed, nodes=30 + seed * 30 // 11)
    verdict = run_scenario(SPIDERCAST, scenario)
    assert verdict.violations == ()
    assert verdict.events > 0
    assert verdict.deliveries > verdict.events


@pytest.mark.seeds
def test_what_the_departed_said_ends_with_its_term() -> None:
    """One leaves while the network is parted: its announcement comes to the home 20 s after it has left."""
    assert run_scenario(SPIDERCAST, draw_scenario(1321)).violations == ()


@pytest.mark.parametrize("system", ["ring-per-topic", "similarity", "random"])
def test_the_baselines_keep_the_invariants_they_promise(system: str) -> None:
    for verdict in run_campaign(find_system(system), (4, 7), nodes=30):
        assert verdict.violations == ()


def test_the_adaptive_setting_passes() -> None:
    verdict = run_scenario(SPIDERCAST, draw_scenario(5, 40), SPIDERCAST.settings(adaptive=True, k_random=1))
    assert verdict.violations == ()


def test_a_membership_that_is_given_changes_nothing_else() -> None:
    for seed in range(10):
        drawn, found, told = (draw_scenario(seed, membership=how) for how in (None, "directory:20", "gossip"))
        assert (found.membership, told.membership) == (Membership.parse("directory:20"), GOSSIP)
        for one in (found, told):
            assert one.workload.tables() == drawn.workload.tables()
            assert (one.churn, one.interest_changes, one.publishes) == (
                drawn.churn,
                drawn.interest_changes,
                drawn.publishes,
            )
        assert found.faults[: len(told.faults)] == told.faults
        assert all(isinstance(fault, Crash) for fault in found.faults[len(told.faults) :])
        assert drawn.faults == (found if drawn.membership.directory else told).faults


def test_a_campaign_with_a_membership_that_is_given() -> None:
    [verdict] = run_campaign(SPIDERCAST, [3], nodes=12, membership="directory")
    assert verdict == run_scenario(SPIDERCAST, draw_scenario(3, 12, "directory"))
    with pytest.raises(BadInput, match="membership 'any'"):
        draw_scenario(3, membership="any")
    with pytest.raises(BadInput, match="membership 'any'"):
        run_campaign(SPIDERCAST, [3], membership="any")


SHORT = """
title = "one node is slow"
nodes = 8
topics = 6
[[fault]]
kind = "slow"
start = 1.0
end = 3.0
nodes = [0]
"""


def test_a_campaign_of_a_scenario_file_in_processes(tmp_path: Path) -> None:
    """The same as in this process: whatever workers do, verdicts are those of the seeds."""
    file = tmp_path / "short.toml"
    file.write_text(SHORT)
    settings = SPIDERCAST.settings(k_greedy=2)
    here, there = (
        run_campaign(
            SPIDERCAST, range(4, 7), 9, settings, membership="directory:20", scenario=file, workers=workers
        )
        for workers in (1, 2)
    )
    verdicts = list(here)
    assert sorted(there, key=lambda verdict: verdict.seed) == verdicts
    assert [(verdict.seed, verdict.passed) for verdict in verdicts] == [(4, True), (5, True), (6, True)]
    drawn = replace(read_scenario(file).draw(4, 9), membership=Membership.parse("directory:20"))
    assert verdicts[0] == run_scenario(SPIDERCAST, drawn, settings)


def test_a_campaign_has_as_many_workers_as_can_be() -> None:
    with pytest.raises(BadInput, match="0 workers"):
        run_campaign(SPIDERCAST, [1], workers=0)
    assert list(run_campaign(SPIDERCAST, [], workers=2)) == []


def test_a_system_that_other_processes_cannot_import_is_refused() -> None:
    hidden = replace(SPIDERCAST, name="hidden", always=lambda _nodes: ())
    with pytest.raises(BadInput, match="system 'hidden': other processes cannot import it"):
        run_campaign(hidden, [1, 2], workers=2)


def test_a_scenario_is_a_function_of_its_seed() -> None:
    for seed in range(30):
        first, again, other = draw_scenario(seed), draw_scenario(seed), draw_scenario(seed + 1000)
        assert first.workload.tables() == again.workload.tables()
        assert replace(again, workload=first.workload) == first
        assert (first.faults, first.churn) != (other.faults, other.churn)
        assert 30 <= first.workload.nodes <= 100
        assert first.faults


def test_a_campaign_draws_every_fault_and_both_memberships() -> None:
    scenarios = [draw_scenario(seed) for seed in range(30)]
    faults = {type(fault).__name__ for scenario in scenarios for fault in scenario.faults}
    assert faults == {"Crash", "Duplication", "Loss", "Partition", "Reordering", "SlowNode"}
    assert {scenario.membership for scenario in scenarios} == {GOSSIP, DIRECTORY}


def test_with_a_directory_the_homes_of_topics_crash() -> None:
    scenario = next(one for one in map(draw_scenario, range(30)) if one.membership == DIRECTORY)
    nodes, topics = scenario.workload.node_ids, scenario.workload.topic_ids
    homes = {nodes.index(successor(topic, nodes)) for topic in topics}
    crashed = [
        fault.node for fault in homes_crash(scenario.workload, random.Random(1)) if isinstance(fault, Crash)
    ]
    assert set(crashed[::2]) <= homes, "each home, and the next on the ring after it"
    assert len(set(crashed)) >= 2


def test_a_scenario_replays_exactly() -> None:
    one, same, next_one = (run_scenario(SPIDERCAST, draw_scenario(seed, 30)) for seed in (21, 21, 22))
    assert one == same
    assert (one.events, one.deliveries) != (next_one.events, next_one.deliveries)


def test_one_node_is_not_enough() -> None:
    with pytest.raises(BadInput, match="at least 2"):
        draw_scenario(1, nodes=1)
    assert draw_scenario(1, nodes=2).workload.nodes == 2


# Systems with a fault of their own.


class DeliversTwice(SpiderCastNode):
    def _hand_over(self, event: Event, age: float = 0.0) -> None:
        super()._hand_over(event, age)
        if self.id % 4 == 0:
            super()._hand_over(event, age)


class DeliversUnwanted(SpiderCastNode):
    """Hands over what it takes part in only because it once published there."""

    def _hand_over(self, event: Event, age: float = 0.0) -> None:
        self.world.deliver(event)


class Hoarder(SpiderCastNode):
    """Remembers every peer that it ever heard of."""

    hoard: set[NodeId] = set()  # noqa: RUF012 (one for all nodes will do)

    def known_peers(self) -> set[NodeId]:
        return super().known_peers() | self.hoard

    def _link_changed(self, peer: NodeId) -> None:
        super()._link_changed(peer)
        self.hoard.add(peer)


class LeavesTimers(SpiderCastNode):
    """Has a timer per peer that it never cancels."""

    def _link_changed(self, peer: NodeId) -> None:
        super()._link_changed(peer)
        self.world.set_timer(("watchdog", peer), 1e6)

    def timer(self, key: TimerKey) -> None:
        if key[0] != "watchdog":
            super().timer(key)


class KeepsDeadLinks(SpiderCastNode):
    """Never believes that a peer is gone."""

    def peer_lost(self, peer: NodeId) -> None:
        if any(link.peer == peer for link in self.links()):
            self._detector.watch(peer)


class DropsPushes(SpiderCastNode):
    """One node in three loses all that it is pushed."""

    def receive(self, sender: NodeId, message: Message) -> None:
        if self.id % 3 or not isinstance(message, Push):
            super().receive(sender, message)


class LinksToAll(SpiderCastNode):
    def links(self) -> Iterator[Link]:
        yield from super().links()
        for peer in range(1000):
            yield Link(peer, "extra")


class Crashes(SpiderCastNode):
    def leave(self) -> None:
        raise ZeroDivisionError("a bug")


BROKEN_SEED = 20


def verdict_on(node: type[SpiderCastNode]) -> Verdict:
    """A small scenario with churn, crashes and changes of interest."""
    broken = replace(SPIDERCAST, name="broken", build=node)
    return run_scenario(broken, draw_scenario(BROKEN_SEED, 30))


@pytest.mark.parametrize(
    ("node", "complaint"),
    [
        (DeliversTwice, "twice"),
        (DeliversUnwanted, "which it does not want"),
        (Hoarder, "still keeps state for"),
        (LeavesTimers, "still has a timer 'watchdog' for a departed peer"),
        (KeepsDeadLinks, "link to a node that is gone"),
        (DropsPushes, "missed the event on"),
        (LinksToAll, "more than its limit of"),
    ],
)
def test_a_broken_system_is_found_out(node: type[SpiderCastNode], complaint: str) -> None:
    verdict = verdict_on(node)
    assert not verdict.passed
    assert any(complaint in violation for violation in verdict.violations)


def test_the_healthy_system_passes_the_same_scenario() -> None:
    assert verdict_on(SpiderCastNode).passed


def test_a_node_that_raises_ends_the_run_with_the_seed_noted() -> None:
    with pytest.raises(ZeroDivisionError, match="a bug") as error:
        verdict_on(Crashes)
    assert error.value.__notes__ == ["in the scenario of seed 20 with 30 nodes"]


def test_in_a_campaign_a_node_that_raises_is_a_finding() -> None:
    broken = replace(SPIDERCAST, name="broken", build=Crashes)
    [verdict] = run_campaign(broken, [BROKEN_SEED], nodes=30)
    assert verdict == Verdict(BROKEN_SEED, ("raised ZeroDivisionError: a bug",), events=0, deliveries=0)
    with pytest.raises(ZeroDivisionError):
        list(run_campaign(broken, [BROKEN_SEED], nodes=30, raising=True))


def test_what_a_system_asks_of_its_own_nodes_counts() -> None:
    unhappy = replace(SPIDERCAST, at_rest=lambda nodes: iter([f"{len(nodes)} are unhappy"]))
    verdict = run_scenario(unhappy, draw_scenario(3, nodes=5))
    assert any(violation.endswith(" are unhappy") for violation in verdict.violations)
