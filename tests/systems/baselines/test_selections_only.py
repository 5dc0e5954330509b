"""§3.9.1: the rivals run SpiderCast's own code, "with the exception of the functions for choosing neighbours"."""

from __future__ import annotations

import pytest

from tests.systems.spidercast.lab import Lab
from topicweave.blocks.membership import FULL
from topicweave.blocks.views import Directory
from topicweave.systems.baselines.counted import CountSelection
from topicweave.systems.baselines.ring_per_topic import Nearer, RingNode, RingSelection
from topicweave.systems.registry import find_system
from topicweave.systems.spidercast import CONTROL_KINDS
from topicweave.systems.spidercast.node import OverlayNode
from topicweave.systems.spidercast.parameters import LinkParameters
from topicweave.systems.spidercast.selection import CoverageSelection


def made(system: str) -> OverlayNode:
    found, world = find_system(system), Lab().world(1)
    view = FULL.view(world, 1, frozenset({7}), Directory())
    node = found.build(world, 1, {7}, view, found.settings())
    assert isinstance(node, OverlayNode)
    return node


@pytest.mark.parametrize(
    ("system", "selections"),
    [
        ("spidercast", {"greedy": CoverageSelection, "random": CoverageSelection}),
        ("similarity", {"similar": CountSelection, "random": CountSelection}),
        ("random", {"similar": CountSelection, "random": CountSelection}),
        ("ring-per-topic", {"ring": RingSelection}),
    ],
)
def test_only_the_selections_differ(system: str, selections: dict[str, type]) -> None:
    node, spidercast = made(system), made("spidercast")
    tasks = {name: task for name, task in node.tasks.items() if name != "bridge"}
    assert {name: type(task.selection) for name, task in tasks.items()} == selections
    assert {type(task) for task in tasks.values()} == {type(task) for task in spidercast.tasks.values()}
    own = {Nearer} if system == "ring-per-topic" else set()  # How it finds its neighbours on a ring.
    assert set(node.message_types) == {*spidercast.message_types, *own}
    assert find_system(system).control_kinds == CONTROL_KINDS
    if system != "spidercast":
        assert type(node) is (RingNode if system == "ring-per-topic" else OverlayNode)


@pytest.mark.parametrize("system", ["similarity", "random", "ring-per-topic"])
def test_times_and_margin_are_the_same_by_default(system: str) -> None:
    settings, common = find_system(system).settings(), LinkParameters()
    for field in LinkParameters.__struct_fields__:
        if field != "bridges":
            assert getattr(settings, field) == getattr(common, field)
    assert settings.bridges == 0
