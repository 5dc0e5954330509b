"""Two parts of a topic that nothing but an introduction can join."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from tests.systems.overlays import parted_topics
from tests.systems.parted import PART, Parted
from topicweave.blocks.membership import DIRECTORY
from topicweave.blocks.topic_directory import DirectoryParameters
from topicweave.blocks.topic_directory.home import Home
from topicweave.blocks.topic_directory.messages import Told
from topicweave.model.ids import TopicId
from topicweave.model.workload import Workload
from topicweave.sim.churn import Change, Churn
from topicweave.sim.simulation import Simulation
from topicweave.systems.registry import find_system

SYSTEMS = ["spidercast", "weave", "omen", "gossipsub", "rappel", "ring-per-topic"]
PARTED, ONE, AGAIN, LATER = 12.0, 60.0, 150.0, 90.0


@pytest.mark.parametrize("system", SYSTEMS)
def test_two_parts_that_are_introduced_become_one(system: str, monkeypatch: pytest.MonkeyPatch) -> None:
    swarm = Parted(system, monkeypatch)
    swarm.simulation.run(PARTED)
    assert swarm.apart
    assert swarm.members_known() >= DirectoryParameters().enough, "nobody asks a home for more"
    assert swarm.introduced == 0, "no part is settled yet"
    assert swarm.run_until_one(ONE) is not None
    assert swarm.introduced


@pytest.mark.parametrize("system", SYSTEMS)
def test_without_introductions_they_stay_apart(system: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What joins them above is the introduction, and nothing else."""
    swarm = Parted(system, monkeypatch)
    swarm.introduce_nobody(monkeypatch)
    swarm.simulation.run(PARTED)
    assert swarm.run_until_one(ONE) is None


@pytest.mark.parametrize("system", [system for system in SYSTEMS if system != "rappel"])
def test_parts_that_split_again_are_introduced_again(system: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All links between the two are lost at once. (Rappel's nodes remember friends: they need no introduction.)"""
    swarm = Parted(system, monkeypatch)
    swarm.simulation.run(PARTED)
    assert swarm.run_until_one(ONE) is not None
    swarm.silent = True
    while swarm.links_between() and swarm.simulation.now < 2 * ONE:
        swarm.simulation.run(swarm.simulation.now + 1.0)
    swarm.silent, introduced = False, swarm.introduced
    assert swarm.apart
    again = swarm.run_until_one(swarm.simulation.now + AGAIN)
    assert again is not None
    assert swarm.introduced > introduced
    swarm.simulation.run(again + 30.0)
    assert not swarm.apart


@pytest.mark.parametrize("system", SYSTEMS)
def test_newcomers_that_lead_only_themselves_are_not_introduced(
    system: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They find together by what homes answer, so a storm makes no star around a leader."""
    workload = Workload.from_lists({f"n{number:03d}": ["one", "other"] for number in range(100)})
    introductions: list[object] = []
    real = Home.introductions

    def counted(home: Home, topics: Iterable[TopicId], now: float) -> list[Told]:
        introductions.extend(told := real(home, topics, now))
        return told

    monkeypatch.setattr(Home, "introductions", counted)
    found = find_system(system)
    churn = Churn(frozenset({0}), tuple(Change(number / 10, number, True) for number in range(1, 100)))
    simulation = Simulation(
        workload, found, found.settings(**found.paced("lan", {})), seed=1, membership=DIRECTORY, churn=churn
    )
    simulation.run(20.0)
    assert len(simulation.up()) == 100
    assert introductions == [], "no part has settled"


def test_whom_a_home_introduces_is_in_the_mesh(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection beside it would be let go, and its events come late."""
    swarm = Parted("gossipsub", monkeypatch)
    swarm.simulation.run(PARTED)
    assert swarm.run_until_one(ONE)
    swarm.simulation.run(swarm.simulation.now + 1.0)
    assert {kind for _, _, kind in swarm.links_between()} == {"mesh"}


@pytest.mark.parametrize("bridges", [1, 2])
def test_a_few_who_want_many_topics_that_go_on_elsewhere_hold_them_together(
    bridges: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three hubs link each other and need nobody else; each of their topics has another part. There are more of
    these than the hubs have bridges.
    """
    topics = [f"t{number}" for number in range(3 * bridges + 3)]
    wanted = {f"hub{number}": topics for number in range(3)}
    for topic in topics:
        wanted |= {f"{topic}-{number}": [topic] for number in range(3)}
    settings = {"k_greedy": 2, "bridges": bridges, "margin": 0}
    swarm = Parted("spidercast", monkeypatch, Workload.from_lists(wanted), first=3, **settings)
    swarm.simulation.run(PARTED)
    assert len(parted_topics(swarm.simulation)) == len(topics)
    assert swarm.run_until_one(ONE) is not None
    swarm.simulation.run(ONE + 30.0)
    assert not swarm.apart


def test_full_meshes_let_nobody_go_who_was_introduced(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one link between two parts is in meshes that are cut back again and again."""
    swarm = Parted("gossipsub", monkeypatch, d=3, d_low=3, d_high=4, d_out=1)
    swarm.simulation.run(PARTED)
    assert swarm.run_until_one(ONE) is not None
    assert swarm.parted_within(LATER) == 0


@pytest.mark.parametrize("system", ["spidercast", "weave", "gossipsub"])
def test_links_of_introductions_do_not_pile_up(system: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once there is another way a link ends, and however many end, the parts stay one."""
    swarm = Parted(system, monkeypatch)
    swarm.simulation.run(PARTED)
    assert swarm.run_until_one(ONE) is not None
    swarm.introduce_all(3)
    swarm.simulation.run(swarm.simulation.now + 5.0)
    many = len(swarm.links_between())
    assert many >= 2 * 2 * PART
    assert swarm.parted_within(LATER) == 0
    assert 2 <= len(swarm.links_between()) <= many / 2


@pytest.mark.parametrize("system", ["rappel", "ring-per-topic", "omen"])
def test_what_an_introduction_joined_stays_joined_without_its_link(
    system: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trees and rings grow together at many places; OMen trims no links."""
    swarm = Parted(system, monkeypatch)
    swarm.simulation.run(PARTED)
    assert swarm.run_until_one(ONE) is not None
    introduced = swarm.introduced
    assert swarm.parted_within(ONE) == 0
    assert swarm.introduced == introduced
    lines = {frozenset((node, peer)) for node, peer, _ in swarm.links_between()}
    assert len(lines) == 1 if system == "omen" else len(lines) > introduced
