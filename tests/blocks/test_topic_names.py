"""The name directory in whole swarms: what watchers know is what there is, whoever crashes, however many
names there are.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.blocks.names_swarm import NODES, NamesSwarm
from topicweave.blocks.name_messages import LabelSaid, NamesSaid, NamesTold, NamesWatch
from topicweave.blocks.topic_directory.messages import Carry
from topicweave.blocks.topic_names import NamesParameters
from topicweave.blocks.topic_names.home import MOST_NAMES, MOST_PREFIXES
from topicweave.blocks.topic_names.watching import FULL, TOO_MANY, TOO_WIDE
from topicweave.model.ids import ring_id
from topicweave.model.patterns import BadPattern, hidden
from topicweave.testing.hostile import HostileMessages

PATTERNS = (
    "zone/3/#",
    "zone/+/device/+/light",
    "+/x/#",
    "#",
    "zone/3/device/3/light",
    "nothing/+",
    "zone",
    "zone/#",
)
TEXTS = (
    "",
    "/",
    "zone/",
    "zone/3/",
    "zone/#",
    "own1/",
    "/x",
    "/x/1",
    "3",
    "own1",
    "+/x/#",
    "#",
    "x" * 3000,
    "/" * 300,
)
SMALL = NamesParameters(split_at=20, split_least=4, names=80, names_each=80, page=16)


def fill(swarm: NamesSwarm) -> None:
    """Every node publishes on three names of five levels and less."""
    for number, node in enumerate(swarm.members):
        swarm.publishes(
            node,
            f"zone/{number % 7}/device/{number}/temperature",
            f"zone/{number % 7}/device/{number}/light",
            f"own{number % 5}/x/{number}",
        )
    swarm.publishes(next(iter(swarm.members)), "zone", "$SYS/load", "/", "a/")


def test_every_watcher_knows_exactly_the_names_that_match_within_seconds() -> None:
    swarm = NamesSwarm(50)
    fill(swarm)
    swarm.members[NODES[0]].watch(*PATTERNS, "$SYS/#", "+/", "/+")
    swarm.members[NODES[9]].watch("#")
    swarm.run_for(3.0)
    assert swarm.wrong() == []
    swarm.run_for(200.0)  # Renewals and all.
    assert swarm.wrong() == []
    assert swarm.members[NODES[0]].flaps == 0
    assert swarm.members[NODES[0]].incomplete == []


def test_new_names_are_found_and_ended_ones_forgotten_within_two_seconds() -> None:
    swarm = NamesSwarm(30)
    fill(swarm)
    watcher = swarm.members[NODES[4]]
    watcher.watch("zone/+/news/#", "#")
    swarm.run_for(30.0)
    swarm.publishes(NODES[7], "zone/1/news/today", "brand/new")
    swarm.run_for(2.0)
    assert swarm.wrong() == []
    assert 0.0 <= watcher.ages["brand/new"] <= 2.0
    assert watcher.publishers["brand/new"] == NODES[7]
    swarm.ends(NODES[7], "zone/1/news/today")
    swarm.run_for(2.0)
    assert swarm.wrong() == []


def test_a_late_watcher_is_told_how_old_names_are() -> None:
    swarm = NamesSwarm(10)
    swarm.publishes(NODES[1], "a/b")
    swarm.run_for(100.0)
    swarm.publishes(NODES[2], "a/b")
    swarm.run_for(20.0)
    swarm.members[NODES[3]].watch("a/+")
    swarm.run_for(3.0)
    assert 119.0 <= swarm.members[NODES[3]].ages["a/b"] <= 123.0
    swarm.run_for(10.0)
    swarm.members[NODES[4]].watch("a/+")
    swarm.run_for(3.0)
    assert swarm.members[NODES[4]].publishers == {"a/b": None}  # It is no news any more.


def test_a_name_of_two_publishers_ends_with_the_second() -> None:
    swarm = NamesSwarm(12)
    swarm.publishes(NODES[1], "a/b")
    swarm.publishes(NODES[2], "a/b")
    watcher = swarm.members[NODES[3]]
    watcher.watch("a/#")
    swarm.run_for(5.0)
    swarm.ends(NODES[1], "a/b")
    swarm.run_for(5.0)
    assert list(watcher.found["a/#"]) == ["a/b"]
    swarm.members[NODES[2]].names.leave()
    swarm.run_for(5.0)
    assert watcher.found["a/#"] == {}


def test_who_watches_no_more_is_told_nothing_and_forgotten() -> None:
    swarm = NamesSwarm(20)
    fill(swarm)
    watcher = swarm.members[NODES[2]]
    watcher.watch("zone/#")
    swarm.run_for(5.0)
    before = dict(watcher.found_at)
    watcher.names.unwatch("zone/#")
    swarm.publishes(NODES[5], "zone/9/late")
    swarm.run_for(5.0)
    assert watcher.found_at == before
    assert sum(member.names.gauges()["name_watchers"] for member in swarm.members.values()) == 0
    assert watcher.names.gauges()["names_found"] == 0


def test_what_the_crash_of_homes_takes_is_back_within_seconds() -> None:
    swarm = NamesSwarm(40)
    fill(swarm)
    watcher = swarm.members[NODES[0]]
    watcher.watch("zone/3/#", "+/x/#")
    swarm.run_for(20.0)
    homes = {swarm.home_of(prefix).id for prefix in ("zone/", "", "own1/")} - {NODES[0]}
    assert homes
    swarm.crash(sorted(homes))
    publisher = next(node for node in swarm.members if node != NODES[0])
    swarm.publishes(publisher, "zone/3/after/the/crash", "own1/x/after")
    swarm.run_for(30.0)
    assert {"zone/3/after/the/crash"} <= watcher.found["zone/3/#"].keys()
    assert {"own1/x/after"} <= watcher.found["+/x/#"].keys()
    swarm.run_for(150.0)
    assert swarm.wrong() == []
    assert watcher.flaps == 0


def test_names_of_crashed_publishers_are_forgotten_when_their_terms_are_over() -> None:
    swarm = NamesSwarm(40)
    fill(swarm)
    for node in NODES[:3]:
        swarm.members[node].watch("#", "zone/+/device/#")
    swarm.run_for(30.0)
    swarm.crash(NODES[10:16])
    swarm.run_for(2 * NamesParameters().renew + 20.0)
    assert swarm.wrong() == []
    assert [swarm.members[node].flaps for node in NODES[:3]] == [0, 0, 0]


def test_a_watcher_that_restarts_with_its_memory_goes_on() -> None:
    swarm = NamesSwarm(20)
    fill(swarm)
    watcher = swarm.members[NODES[3]]
    watcher.watch("zone/#")
    swarm.run_for(10.0)
    world = swarm.worlds.pop(NODES[3])
    swarm.run_for(30.0)
    swarm.publishes(NODES[8], "zone/5/meanwhile")
    swarm.run_for(30.0)
    world.pending.clear()
    swarm.worlds[NODES[3]] = world
    watcher.start(NODES[4:6])
    swarm.run_for(70.0)
    assert swarm.wrong() == []


# Many names.


def test_full_levels_are_split_and_watchers_follow() -> None:
    swarm = NamesSwarm(40, parameters=SMALL)
    fill(swarm)
    watcher = swarm.members[NODES[0]]
    watcher.watch(*PATTERNS)
    swarm.run_for(15.0)
    assert swarm.wrong() == []
    kept = swarm.home_of("zone/").names.home.prefixes["zone/"]
    assert kept.labels
    assert len(kept.names) <= SMALL.split_at
    swarm.publishes(NODES[5], "zone/3/late/one")
    swarm.run_for(2.5)
    assert swarm.wrong() == []
    late = swarm.add(NODES[60], NODES[:3])
    late.watch(*PATTERNS)
    swarm.run_for(15.0)
    assert swarm.wrong() == []
    swarm.run_for(200.0)
    assert swarm.wrong() == []
    assert watcher.flaps == 0
    assert watcher.incomplete == []
    for number in range(40):
        swarm.ends(NODES[number], f"zone/{number % 7}/device/{number}/light")
    swarm.run_for(3.0)
    assert swarm.wrong() == []


def test_a_publisher_whose_names_were_split_off_says_others_to_the_home_above() -> None:
    swarm = NamesSwarm(20, parameters=SMALL)
    for number in range(30):
        swarm.publishes(NODES[number % 20], f"zone/7/x/{number}")
    swarm.run_for(10.0)
    swarm.publishes(NODES[3], "zone/8/x", "zone/7/late")
    swarm.run_for(3.0)
    assert list(swarm.home_of("zone/").names.home.prefixes["zone/"].labels) == ["7"]
    assert list(swarm.home_of("zone/").names.home.prefixes["zone/"].names) == ["zone/8/x"]
    assert "zone/7/late" in {
        name
        for prefix in ("zone/7/", "zone/7/late/")
        for name in getattr(swarm.home_of(prefix).names.home.prefixes.get(prefix), "names", ())
    }


def test_what_was_split_is_one_again_when_its_names_are_gone() -> None:
    swarm = NamesSwarm(20, parameters=SMALL)
    names = [f"zone/{number % 3}/x/{number}" for number in range(60)]
    for place, name in enumerate(names):
        swarm.publishes(NODES[place % 20], name)
    swarm.members[NODES[0]].watch("zone/#")
    swarm.run_for(10.0)
    assert swarm.home_of("zone/").names.home.prefixes["zone/"].labels
    for place, name in enumerate(names):
        swarm.ends(NODES[place % 20], name)
    swarm.run_for(260.0)
    assert all("zone/" not in member.names.home.prefixes for member in swarm.members.values())
    swarm.publishes(NODES[3], "zone/1/again")
    swarm.run_for(40.0)
    assert swarm.wrong() == []


def test_a_level_with_too_many_names_is_incomplete_and_said_to_be() -> None:
    swarm = NamesSwarm(20, parameters=SMALL)
    watcher = swarm.members[NODES[0]]
    watcher.watch("flat/+", "other/#")
    for number in range(200):
        swarm.members[NODES[number % 20]].names.publishes(f"flat/{number}")
    swarm.publishes(NODES[3], "other/one")
    swarm.run_for(10.0)
    assert len(watcher.found["flat/+"]) == SMALL.names
    assert watcher.incomplete == [("flat/+", "flat/", FULL)]
    assert list(watcher.found["other/#"]) == ["other/one"]
    swarm.run_for(300.0)
    assert watcher.flaps == 0
    for number in range(200):
        swarm.members[NODES[number % 20]].names.ends(f"flat/{number}")
    swarm.run_for(200.0)
    assert watcher.complete == [("flat/+", "flat/")]


def test_first_levels_without_end_make_only_patterns_that_begin_with_a_wildcard_incomplete() -> None:
    parameters = NamesParameters(labels=20)
    swarm = NamesSwarm(20, parameters=parameters)
    for number in range(60):
        swarm.publishes(NODES[number % 20], f"first{number}/x")
    watcher = swarm.members[NODES[0]]
    watcher.watch("+/x", "first37/#", "first59/x")
    swarm.run_for(10.0)
    assert len(watcher.found["+/x"]) == 20
    assert ("+/x", "", FULL) in watcher.incomplete
    assert len(watcher.found["first37/#"]) == len(watcher.found["first59/x"]) == 1
    assert {pattern for pattern, _, _ in watcher.incomplete} == {"+/x"}


def test_a_watcher_takes_no_more_than_it_has_room_for_and_says_so() -> None:
    parameters = NamesParameters(found=10, walked=4)
    swarm = NamesSwarm(12, parameters=parameters)
    for number in range(12):
        swarm.publishes(NODES[number], f"a/{number}", f"b{number}/x")
    many, wide = swarm.members[NODES[0]], swarm.members[NODES[1]]
    many.watch("a/#")
    wide.watch("+/x")
    swarm.run_for(10.0)
    assert len(many.found["a/#"]) == 10
    assert ("a/#", "a/", TOO_MANY) in many.incomplete
    assert wide.names.gauges()["name_prefixes_watched"] == 4
    assert {why for _, _, why in wide.incomplete} == {TOO_WIDE}
    for number in range(6):
        swarm.ends(NODES[number], f"a/{number}")
    swarm.run_for(60.0)
    assert many.complete == [("a/#", "a/")]


def test_a_flood_of_names_fills_no_node_and_leaves_other_names_alone() -> None:
    swarm = NamesSwarm(20)
    fill(swarm)
    swarm.members[NODES[0]].watch("own1/#", "zone/3/#")
    swarm.run_for(5.0)
    victim, attacker = swarm.home_of("zone/"), NODES[150]
    for burst in range(60):
        names = tuple(f"/flood/{burst}/{number}" for number in range(1000))
        swarm.inject(victim, NamesSaid("zone/", attacker + burst, 0, 1e5, names, (0,) * 1000), attacker)
        swarm.inject(victim, LabelSaid(f"x{burst}/", f"l{burst}", 1e5), attacker)
        swarm.inject(victim, NamesSaid(f"y{burst}/", attacker, 0, 1e5, ("/1",), (0,)), attacker)
        if burst % 10 == 0:
            swarm.run_for(0.5)
    swarm.run_for(10.0)
    for member in swarm.members.values():
        assert member.names.home.names <= MOST_NAMES
        assert len(member.names.home.prefixes) <= MOST_PREFIXES
        assert all(len(kept.names) <= 4096 for kept in member.names.home.prefixes.values())
    assert [wrong for wrong in swarm.wrong() if "odd []" not in wrong or "missing []" not in wrong] == []


def test_a_node_does_not_say_more_names_than_it_may() -> None:
    swarm = NamesSwarm(3, parameters=NamesParameters(own=5))
    for number in range(9):
        swarm.members[NODES[0]].names.publishes(f"a/{number}")
    gauges = swarm.members[NODES[0]].names.gauges()
    assert (gauges["names_announced"], gauges["names_refused"]) == (5, 4)


# Names that do not travel.


def test_private_names_match_alike_and_do_not_travel() -> None:
    swarm = NamesSwarm(20, private=True)
    fill(swarm)
    watcher = swarm.members[NODES[0]]
    swarm.listen()
    watcher.watch(*PATTERNS, "$SYS/#")
    swarm.run_for(10.0)
    assert swarm.wrong() == []
    assert set(watcher.found["zone/3/device/3/light"]) == {"zone/3/device/3/light"}
    assert watcher.found["$SYS/#"] == {f"$SYS/{hidden('load')}": ring_id("$SYS/load")}
    said = repr([sent.message for sent in swarm.log])
    assert not any(word in said for word in ("zone", "device", "temperature", "own1", "SYS"))


def test_a_false_topic_of_a_clear_name_is_not_believed() -> None:
    swarm = NamesSwarm(5)
    watcher = swarm.members[NODES[0]]
    watcher.watch("a/#")
    swarm.run_for(3.0)
    swarm.inject(watcher, NamesTold("a/", "a/#", names=("/b",), ages=(3,), topics=(77,)))
    assert watcher.found["a/#"] == {"a/b": ring_id("a/b")}


# Rings.


def test_two_rings_that_find_together_know_each_others_names() -> None:
    swarm = NamesSwarm(0, settle=0.0)
    sides = {node: number % 2 for number, node in enumerate(NODES[:24])}
    swarm.acquainted = lambda one, other: sides[one] == sides[other]
    swarm.cut = lambda one, other: sides.get(one) != sides.get(other)
    for number, node in enumerate(sides):
        swarm.add(node, [peer for peer in list(sides)[:number] if sides[peer] == sides[node]][-3:])
    swarm.run_for(20.0)
    fill(swarm)
    for node in NODES[:2]:
        swarm.members[node].watch("zone/#", "+/x/+")
    swarm.run_for(20.0)
    assert len(swarm.wrong()) == 4  # Each knows the names of its side.
    swarm.cut = lambda _one, _other: False
    swarm.acquainted = lambda _one, _other: True
    swarm.run_for(100.0)
    assert swarm.wrong() == []


def test_a_lone_node_finds_its_own_names() -> None:
    swarm = NamesSwarm(1)
    swarm.publishes(NODES[0], "a/b", "c")
    swarm.members[NODES[0]].watch("#", "a/+")
    swarm.run_for(3.0)
    assert swarm.wrong() == []


def test_newcomers_take_over_as_homes_and_nothing_is_lost() -> None:
    swarm = NamesSwarm(10)
    fill(swarm)
    watcher = swarm.members[NODES[0]]
    watcher.watch("zone/#", "+/x/#")
    swarm.run_for(10.0)
    for number in range(10, 60):
        swarm.add(NODES[number], NODES[:3])
        swarm.run_for(1.0)
    swarm.run_for(40.0)
    assert swarm.wrong() == []
    swarm.publishes(NODES[30], "zone/late/1", "own77/x/1")
    swarm.run_for(2.5)
    assert swarm.wrong() == []
    assert watcher.flaps == 0


def test_lost_messages_are_made_up_for() -> None:
    swarm = NamesSwarm(20)
    swarm.loss = 0.1
    fill(swarm)
    swarm.members[NODES[0]].watch(*PATTERNS)
    swarm.run_for(60.0)
    swarm.loss = 0.0
    swarm.run_for(100.0)
    assert swarm.wrong() == []


levels = st.sampled_from(["a", "b", "c", "", "$x"])
some_names = st.lists(
    st.lists(levels, min_size=1, max_size=4).map("/".join).filter(bool), min_size=1, max_size=25
)
some_patterns = st.lists(
    st.tuples(st.lists(st.sampled_from(["a", "b", "+", "$x", ""]), max_size=3), st.booleans())
    .map(lambda made: "/".join([*made[0], *(["#"] if made[1] else [])]))
    .filter(bool),
    min_size=1,
    max_size=5,
    unique=True,
)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(some_names, some_patterns, st.lists(st.integers(1, 11), max_size=3, unique=True))
def test_found_is_what_matches_whatever_there_is(
    names: list[str], patterns: list[str], crashed: list[int]
) -> None:
    parameters = NamesParameters(
        split_at=4, split_least=2, names=200, names_each=200, page=3, renew=20.0, watch_renew=10.0
    )
    swarm = NamesSwarm(12, parameters=parameters)
    for place, name in enumerate(names):
        swarm.publishes(NODES[place % 12], name)
    swarm.members[NODES[0]].watch(*patterns)
    swarm.run_for(12.0)
    assert swarm.wrong() == []
    swarm.crash([NODES[number] for number in crashed])
    swarm.run_for(100.0)
    assert swarm.wrong() == []


# Hostile peers, and mistakes.


def test_no_parcel_makes_a_node_fail_and_all_names_are_found_again() -> None:
    swarm = NamesSwarm(12)
    fill(swarm)
    swarm.members[NODES[0]].watch("zone/#", "+/x/#")
    swarm.run_for(5.0)
    hostile = HostileMessages([Carry], [*NODES[:12], NODES[150]], [1, 2, 3], seed=4, texts=TEXTS)
    for burst in range(40):
        for _ in range(25):
            swarm.tell(NODES[150], NODES[burst % 12], hostile.draw())
        swarm.run_for(0.5)
    swarm.publishes(NODES[6], "zone/after/it")
    swarm.run_for(150.0)
    assert swarm.wrong() == []


def test_a_flood_of_false_answers_and_news_fills_no_watcher() -> None:
    parameters = NamesParameters(found=300, walked=40, labels=50)
    swarm = NamesSwarm(6, parameters=parameters)
    watcher = swarm.members[NODES[0]]
    watcher.watch("zone/#")
    swarm.run_for(3.0)
    own = watcher.names._watcher
    walked = own.patterns["zone/#"].way["zone/"]
    for burst in range(200):
        names = tuple(f"/{burst}/{number}" for number in range(50))
        labels = tuple(f"l{burst}-{number}" for number in range(20))
        for number, page in ((0, 0), (walked.number, burst), (walked.number, 3)):
            told = NamesTold("zone/", "zone/#", number, page, 4096, names, (0,) * 50, labels=labels)
            swarm.inject(watcher, told)
    assert own.names <= 300
    assert own.walked <= 40
    assert len(walked.labels) <= 50
    assert max(map(len, walked.listed)) <= 300
    assert {why for _, _, why in watcher.incomplete} == {TOO_MANY, TOO_WIDE}
    swarm.publishes(NODES[2], "zone/true")
    swarm.run_for(150.0)
    assert swarm.wrong() == []


def test_a_home_asked_for_what_makes_no_sense_says_nothing() -> None:
    swarm = NamesSwarm(3)
    swarm.listen()
    for pattern, prefix in (("a/#/b", "a/"), ("a/#", "b/"), ("a/#", "a"), ("", "")):
        swarm.inject(swarm.members[NODES[0]], NamesWatch(prefix, pattern, NODES[1], 1, 60.0), NODES[1])
    swarm.run_for(1.0)
    assert swarm.members[NODES[0]].names.gauges()["name_watchers"] == 0


def test_what_is_no_name_and_what_is_no_pattern_is_refused() -> None:
    swarm = NamesSwarm(1)
    with pytest.raises(BadPattern):
        swarm.members[NODES[0]].names.publishes("a/+")
    with pytest.raises(BadPattern):
        swarm.members[NODES[0]].names.watch("a/#/b")


@pytest.mark.parametrize("nodes", [2, 3, 6])
@pytest.mark.parametrize("orderly", [True, False])
def test_a_home_that_comes_back_without_memory_knows_what_it_kept(nodes: int, orderly: bool) -> None:
    swarm = NamesSwarm(nodes)
    names = [f"a{number}/b" for number in range(12)]
    swarm.publishes(NODES[0], *names)
    swarm.run_for(5.0)
    leaver = swarm.members[NODES[1]]
    assert leaver.names.gauges()["names_kept"] > 0
    if orderly:
        leaver.names.leave()
        leaver.ring.leave()
    swarm.crash([NODES[1]])
    swarm.run_for(0.5)
    back = swarm.add(NODES[1], [NODES[0]])
    back.watch("+/b")
    swarm.run_for(12.0)
    assert swarm.wrong() == []
