"""Advice: only what keeps to every constraint with every seed; otherwise what binds, and by how much."""

from __future__ import annotations

import math
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.report.comparisons import MEASURES, comparison, entry
from topicweave.live.settings import Settings
from topicweave.report import Entry
from topicweave.report.advice import node_toml, weigh
from topicweave.report.constraints import Constraint, complaints, fits
from topicweave.report.kept import keep, kept_comparison
from topicweave.report.page import comparison_page
from topicweave.systems.parameters import flat
from topicweave.systems.registry import find_system

DEGREE = Constraint("degree_max", "at most", 20.0, "--max-degree 20")
HIT = Constraint("hit_ratio", "at least", 1.0, "--min-hit 1")
NOISE = Constraint("noise", "at most", 0.05, "--max-noise 0.05")


def seeds(system: str, **values: list[Any]) -> Entry:
    count = len(next(iter(values.values())))
    results = tuple(
        {**MEASURES, **{name: given[at] for name, given in values.items()}} for at in range(count)
    )
    return Entry(system, {}, {}, results)


def test_a_bound_that_one_seed_breaks_is_broken() -> None:
    assert fits(seeds("a", degree_max=[19, 20]), [DEGREE])
    assert not fits(seeds("a", degree_max=[10, 21]), [DEGREE])
    assert not fits(seeds("a", hit_ratio=[1.0, 0.999]), [HIT])


def test_a_repair_that_never_came_breaks_any_bound() -> None:
    bound = Constraint("repair_time", "at most", 30.0, "--max-repair 30")
    assert not fits(seeds("a", repair_time=[1.0, math.inf]), [bound])
    assert complaints(seeds("a", repair_time=[1.0, math.inf]), [bound]) == [
        "repair s never, at most 30.0 asked for"
    ]


LATENCY = Constraint("latency_p95", "at most", 0.1, "--max-latency 100")


def test_a_bound_on_what_was_not_measured_is_not_kept() -> None:
    nan = math.nan
    silent, once = seeds("a", latency_p95=[nan, nan]), seeds("a", latency_p95=[0.05, nan])
    assert not fits(silent, [LATENCY])
    assert complaints(silent, [LATENCY]) == ["latency p95 ms not measured, at most 100 asked for"]
    assert complaints(once, [LATENCY]) == [
        "latency p95 ms not measured with 1 of 2 seeds, at most 100 asked for"
    ]
    assert complaints(seeds("a", latency_p95=[0.2, nan]), [LATENCY]) == [
        "latency p95 ms 200, at most 100 asked for"
    ]
    assert complaints(entry("a", hit_ratio=nan), [HIT]) == ["hit ratio not measured, at least 100% asked for"]


def test_a_bound_is_kept_whatever_the_rounding_of_moments() -> None:
    assert fits(seeds("a", latency_p95=[100.3 - 100.2, 1.1 - 1.0]), [LATENCY])
    assert not fits(seeds("a", latency_p95=[0.1001]), [LATENCY])


def test_bounds_are_shown_as_they_were_asked_for() -> None:
    latency = Constraint("latency_p95", "at most", 0.1997, "--max-latency 199.7")
    degree = Constraint("degree_max", "at most", 8.4, "--max-degree 8.4")
    broken = complaints(entry("a", latency_p95=0.19998, degree_max=9.0), [latency, degree])
    assert broken == [
        "latency p95 ms 199.98, at most 199.7 asked for",
        "links max 9, at most 8.4 asked for",
    ]


def test_nobody_is_advised_for_a_bound_that_was_not_measured() -> None:
    advice = weigh(comparison(entry("a", latency_p95=math.nan), asked=(LATENCY, HIT)), "degree_mean", "links")
    assert advice.chosen is None
    assert advice.binding == (
        "a comes closest, but: latency p95 ms not measured, at most 100 asked for",
        "--max-latency 100 binds: without it 1 would fit",
    )


def test_nobody_is_best_in_what_nobody_has() -> None:
    """A value comes before none, be it unknown or a repair that never came; if nobody has one, that is said."""
    never = entry("never", degree_mean=9.0, repair_time=math.inf)
    unknown = entry("unknown", degree_mean=5.0, repair_time=math.nan)
    assert (
        weigh(comparison(unknown, entry("known")), "repair_time", "repair")
        .reasons[0]
        .endswith("it is best in repair.")
    )
    advice = weigh(comparison(never, unknown), "repair_time", "repair")
    assert advice.chosen is unknown
    assert advice.reasons[0] == (
        "Take unknown: of the 2 (of 2) that keep to all constraints with every seed, none has a value for repair; "
        "it has the fewest links."
    )


def test_the_best_of_those_that_fit_is_chosen() -> None:
    lean = entry("lean", degree_mean=5.0, hit_ratio=0.9)
    good, better = entry("good", degree_mean=12.0), entry("better", degree_mean=8.0, latency_p95=0.9)
    advice = weigh(comparison(lean, good, better, asked=(DEGREE, HIT)), "degree_mean", "it")
    assert advice.chosen is better
    assert advice.fitting == (good, better)
    [cost] = advice.given_up
    assert "900" in cost
    assert "good has 350" in cost
    assert weigh(comparison(lean, good, better, asked=(DEGREE, HIT)), "latency_p95", "it").chosen is good


def test_a_measure_that_is_better_when_higher_is_preferred_so() -> None:
    one, other = entry("one", hit_ratio=0.8, degree_mean=1.0), entry("other", hit_ratio=0.9)
    assert weigh(comparison(one, other, asked=()), "hit_ratio", "it").chosen is other


def test_if_none_fits_the_binding_constraint_is_named_with_its_excess() -> None:
    wide = entry("wide", degree_max=25.0)
    noisy = entry("noisy", degree_max=45.0, noise=0.2)
    advice = weigh(comparison(wide, noisy, asked=(DEGREE, HIT, NOISE)), "degree_mean", "it")
    assert advice.chosen is None
    assert advice.nearest is wide
    assert advice.binding[0] == "wide comes closest, but: links max 25, at most 20 asked for"
    assert (
        advice.binding[1] == "--max-degree 20 binds: without it 1 would fit, and with 25 instead of 20 wide"
    )
    assert len(advice.binding) == 2


def test_constraints_that_bind_together_are_told() -> None:
    bad = entry("bad", degree_max=25.0, noise=0.2)
    advice = weigh(comparison(bad, asked=(DEGREE, NOISE)), "degree_mean", "it")
    assert advice.binding[-1].startswith("no constraint binds alone")
    assert advice.to_json()["system"] is None


def test_the_closest_is_the_one_that_is_named_next_whatever_the_bound() -> None:
    none = Constraint("degree_max", "at most", 0.0, "--max-degree 0")
    wide, wider, least = (
        entry("wide", degree_max=40.0),
        entry("wider", degree_max=90.0),
        entry("least", degree_max=11.0),
    )
    advice = weigh(comparison(wide, wider, least, asked=(none, HIT)), "degree_mean", "it")
    assert advice.nearest is least
    assert advice.binding[0].startswith("least comes closest, but: links max 11")
    assert advice.binding[1].endswith("with 11 instead of 0 least")


@pytest.mark.parametrize("preset", ["lan", "wan", "paper"])
def test_a_node_with_the_advice_runs_with_the_times_of_the_comparison(preset: str) -> None:
    system = find_system("rappel")
    measured = system.settings(**system.paced(preset, {"alpha": 7}))
    toml = node_toml(Entry("rappel", {"alpha": 7}, flat(measured), ()), preset, "directory")
    assert Settings(insecure=True, **tomllib.loads(toml)).system_parameters(system) == measured


@pytest.mark.parametrize(
    ("system", "membership", "meant"),
    [
        ("rappel", "directory", ("directory", 1000)),
        ("rappel", "directory:50", ("directory", 50)),
        ("rappel", "gossip:50", ("gossip", 50)),
        ("broker", "live-gossip", ("gossip", 1000)),
        ("rappel", "full", ("directory", 1000)),
        ("vitis", "gossip:50", ("directory", 1000)),
    ],
)
def test_a_node_with_the_advice_has_the_membership_of_the_comparison(
    system: str, membership: str, meant: tuple[str, int]
) -> None:
    """An oracle is no membership of a live node, and who has a membership of its own takes no other."""
    toml = node_toml(Entry(system, {}, {}, ()), "lan", membership)
    settings = Settings(insecure=True, **tomllib.loads(toml))
    settings.system_parameters(find_system(system))
    assert (settings.membership, settings.view) == meant


def test_advice_gives_its_evidence_as_a_comparison_does(tmp_path: Path) -> None:
    compared = comparison(entry("good"), entry("wide", degree_max=30.0), asked=(DEGREE,))
    advice = weigh(compared, "degree_mean", "links")
    assert repr(advice.table(80)) == str(compared.table(80))
    assert advice.to_pandas().equals(compared.to_pandas())
    assert "wide" in advice.report(tmp_path / "advice.html").read_text()


def test_the_page_of_advice_names_the_one_to_take_and_why(tmp_path: Path) -> None:
    """What it says first is the advice, also where another system has fewer links."""
    lean = entry("lean", degree_mean=4.0, latency_p95=0.3)
    quick = entry("quick", degree_mean=8.0, latency_p95=0.1)
    advice = weigh(comparison(lean, quick, asked=(DEGREE,)), "latency_p95", "latency")
    page = advice.report(tmp_path / "advice.html").read_text()
    assert "<title>Advice on feeds: take quick</title>" in page
    assert "<h1>Advice on feeds: take quick</h1>" in page
    assert page.count('class="headline"') == 1
    assert (
        '<p class="headline">Take quick: of the 2 (of 2) that keep to all constraints with every seed, it is best in latency.</p>'
        in page
    )
    assert "<p>What that gives up, against others that fit:</p>" in page
    assert ", where lean has 4.0</li>" in page
    assert "lean does so with the fewest" in page
    again = "topicweave advise data/feeds --systems alpha,beta --seed 7 --min-hit 0 --prefer latency"
    assert f"<pre><code>{again}</code></pre>" in page
    keep(advice.comparison, tmp_path)
    assert comparison_page(kept_comparison(tmp_path)) == page


def test_the_page_of_advice_says_that_nobody_fits(tmp_path: Path) -> None:
    advice = weigh(comparison(entry("wide", degree_max=30.0), asked=(DEGREE, HIT)), "degree_mean", "links")
    page = advice.report(tmp_path / "advice.html").read_text()
    assert "<title>Advice on feeds: no system fits</title>" in page
    assert '<p class="headline">No system keeps to all of that on these subscriptions.</p>' in page
    assert "<li>wide comes closest, but: links max 30, at most 20 asked for</li>" in page
