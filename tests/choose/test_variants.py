"""Systems and parameters as typed."""

import pytest

from topicweave.choose.variants import parse_variant, parse_variants
from topicweave.errors import BadInput, UnknownName
from topicweave.systems.registry import SYSTEMS, find_system


def test_values_get_the_types_of_their_parameters() -> None:
    variant = parse_variant("spidercast:k_greedy=2:adaptive=true:suspect_after=7")
    assert variant.parameters == {"k_greedy": 2, "adaptive": True, "suspect_after": 7.0}
    assert isinstance(variant.parameters["suspect_after"], float)
    assert variant.settings["k_random"] == 0


def test_groups_of_parameters_are_reached_by_dots() -> None:
    variant = parse_variant("spidercast:tree.announce_period=0.5")
    assert variant.changes == {"tree": {"announce_period": 0.5}}
    settings = find_system("spidercast").settings(**variant.changes)
    assert settings.tree.announce_period == 0.5
    assert settings.tree.graft_timeout == find_system("spidercast").settings().tree.graft_timeout


def test_all_systems_if_none_is_named() -> None:
    assert [variant.system for variant in parse_variants([])] == list(SYSTEMS)


def test_commas_and_repeated_options_both_list() -> None:
    variants = parse_variants(["random, spidercast:k_greedy=2", "spidercast"])
    assert [(variant.system, variant.parameters) for variant in variants] == [
        ("random", {}),
        ("spidercast", {"k_greedy": 2}),
        ("spidercast", {}),
    ]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("spidercast:k_greedy", "'k_greedy' is no setting; write spidercast:parameter=value"),
        ("spidercast:k_greedy=", "is no setting"),
        ("spidercast:k_greedy=many", "k_greedy"),
        ("spidercast:speed=9", "its parameters: .*k_greedy"),
        ("spidercast:tree.speed=9", "no parameter 'tree.speed'; spidercast has .*tree.announce_period"),
        ("spidercast:tree=9", "tree"),
        ("spidercast:tree=9:tree.announce_period=1", "'tree' is a value"),
    ],
)
def test_what_is_wrong_with_a_setting_is_said(text: str, complaint: str) -> None:
    with pytest.raises(BadInput, match=complaint):
        parse_variant(text)


def test_the_same_thing_twice_is_a_slip() -> None:
    with pytest.raises(BadInput, match="random: named twice"):
        parse_variants(["random,random"])


def test_unknown_systems() -> None:
    with pytest.raises(UnknownName, match=r"known: .*spidercast"):
        parse_variants(["random,spiders"])
