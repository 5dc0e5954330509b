"""Systems and parameters as typed."""

import pytest

from topicweave.choose.variants import parse_variant, parse_variants
from topicweave.errors import BadInput, UnknownName
from topicweave.live.settings import Settings
from topicweave.systems.presets import Preset
from topicweave.systems.registry import SYSTEMS, find_system


def test_a_text_is_split_as_on_the_command_line() -> None:
    assert parse_variants("random, weave:max_degree=8") == parse_variants(["random", "weave:max_degree=8"])


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


@pytest.mark.parametrize("preset", ["local", "lan", "wan"])
@pytest.mark.parametrize("name", SYSTEMS)
def test_a_comparison_runs_what_live_nodes_with_that_preset_run(name: str, preset: Preset) -> None:
    system = find_system(name)
    live = Settings(insecure=True, preset=preset, system=name).system_parameters(system)
    variant = parse_variant(name, preset)
    assert system.settings(**variant.changes) == live
    assert variant.label == name


def test_what_is_set_by_hand_goes_before_the_presets_times_and_leaves_the_rest_of_its_group() -> None:
    variant = parse_variant("spidercast:tree.announce_period=0.5:heartbeat_period=1.5", "lan")
    assert variant.parameters == {"tree.announce_period": 0.5, "heartbeat_period": 1.5}
    settings = find_system("spidercast").settings(**variant.changes)
    assert (settings.tree.announce_period, settings.heartbeat_period) == (0.5, 1.5)
    assert settings.tree.graft_timeout == parse_variant("spidercast", "lan").settings["tree.graft_timeout"]


def test_the_papers_times_are_the_defaults() -> None:
    assert parse_variant("rappel", "paper").changes == {}
    assert parse_variant("rappel", "paper").settings["ping_period"] == 30.0
