"""Arrays beside messages."""

from typing import Any

import pytest

from topicweave.bulk.omen.engine import MendingEngine
from topicweave.bulk.omen.plan import Mending
from topicweave.errors import BadInput
from topicweave.measures.overlay import coverage
from topicweave.papers.catalogue import STUDIES
from topicweave.papers.claims import load_papers
from topicweave.papers.judging import judge
from topicweave.papers.levels import beside
from topicweave.papers.omen.by_messages import MendedByMessages
from topicweave.papers.omen.mending import Mended
from topicweave.papers.omen.workloads import SyntheticLists
from topicweave.papers.results import Batch, as_numbers
from topicweave.papers.vitis.settings import everything
from topicweave.papers.vitis.synthetic import COMPARED


def test_nothing_agrees_with_nothing() -> None:
    messages = {"a": 10.0, "b": 0.0, "c": 0.0}
    arrays = {"a": 11.0, "b": 0.0, "c": 1.0}
    assert [row.measured for row in beside({}, messages, arrays, "abc")] == [1.1, 1.0, float("inf")]


def test_omens_nodes_mend_a_lowoda_overlay_as_the_arrays_do() -> None:
    """The same start, the same departures and returns: no topic stays apart, and the degrees come out alike."""
    lists = SyntheticLists(40, 20, "zipf", 3, 8, seed=1)
    messages = MendedByMessages(workload=lists, seed=1, rounds=4, parameters={"resilience": 1}).run()
    arrays = Mended(
        system="omen", workload=lists, seed=1, rounds=4, looks=4, warm_up=4, backups=True, labels=True
    ).run()
    assert messages["looks"][0]["degree_mean"] == arrays["looks"][0]["degree_mean"]
    assert messages["partitioned_topics"] == arrays["partitioned_topics"] == 0
    assert messages["unrestored_rounds"] == arrays["unrestored_rounds"] == 0
    assert messages["looks"][-1]["nodes"] == arrays["looks"][-1]["nodes"]
    assert abs(messages["degree_mean_mean"] / arrays["degree_mean_mean"] - 1.0) <= 0.1
    for result in (messages, arrays):
        assert sum(result["backup_sizes"]) == sum(result["backup_in_degrees"]) > 0
        # All four leave.
        sent = result["messages_per_leave"] + result["label_messages_per_leave"]
        assert result["messages_per_event"] == pytest.approx(sent)
    assert sorted(messages["list_sizes"]) == sorted(arrays["list_sizes"])


def test_a_round_in_which_nobody_has_time_to_mend_is_not_restored() -> None:
    """Who leaves is noticed after 4 s; the next look is 2 s after the event."""
    lists = SyntheticLists(40, 20, "zipf", 3, 8, seed=1)
    hurried = MendedByMessages(
        workload=lists, seed=1, rounds=4, pause=3.0, parameters={"resilience": 1, "suspect_after": 4.0}
    ).run()
    assert hurried["unrestored_rounds"] > 0


@pytest.mark.parametrize("name", STUDIES)
def test_smoke_scale_runs_what_paper_scale_runs(name: str) -> None:
    study = STUDIES[name]
    small, large = ({type(run) for run in study.plan(scale, 0).runs.values()} for scale in ("smoke", "paper"))
    assert small == large


@pytest.mark.parametrize("paper", ["omen", "vitis", "magnet"])
def test_levels_run_both_at_smoke_scale(paper: str) -> None:
    runs = STUDIES[f"{paper}/levels"].plan("smoke", 0).runs.values()
    assert {bool(getattr(run, "by_arrays", False)) for run in runs} == {True, False}


class Measured(dict[str, Any]):
    """A result in which every measure is there."""

    def __missing__(self, name: str) -> Any:
        return 1.0


@pytest.mark.parametrize("paper", ["omen", "vitis", "magnet"])
def test_every_ratio_of_levels_is_judged(paper: str) -> None:
    result = Measured(looks=[Measured()])
    for keys, value in (
        (("messages_by_size_join", "messages_by_size_leave"), [(1.0, 2.0), (2.0, 3.0), (3.0, 4.0)]),
        (("list_sizes", "backup_sizes", "backup_in_degrees"), [1, 2, 3]),
        (("overhead_by_node", "overhead_by_node_all"), [0.05] * 20),
        (("degrees", "relays", "wanted", "rates"), list(range(1, 21))),
        (("settling",), [(10.0, 1.0, 2.0)]),
    ):
        result |= dict.fromkeys(keys, value)
    plan = STUDIES[f"{paper}/levels"].plan("paper", 0)
    rows = plan.rows_of(dict.fromkeys(plan.runs, result))
    numbers = as_numbers(Batch(f"{paper}/levels", "paper", 0, "messages"), rows)
    ratios = [number for number in numbers if number.measure.endswith(", arrays over messages")]
    (checks,) = (one.checks for one in load_papers() if one.name == paper)
    unjudged = [
        (one.where, one.measure) for one in ratios if not any(judge(check, [one]).judged for check in checks)
    ]
    assert len(ratios) > 20
    assert unjudged == []


def test_levels_of_vitis_compare_what_its_figures_print() -> None:
    """Paths are printed per topic, and compared per node."""
    printed = {row.measure for row in everything({}, Measured(workload={"topics": 1}))}
    assert printed - {"paths asked for per topic"} < {*COMPARED}
    assert {"hops_max", "requested_paths"} < {*COMPARED}


def test_spidercasts_nodes_cover_themselves_and_arrays_do_so_if_asked() -> None:
    """The nodes drop links that serve neither end; arrays keep them all."""
    lists = SyntheticLists(40, 20, "zipf", 3, 8, seed=1)
    churn: dict[str, Any] = {"workload": lists, "seed": 1, "rounds": 4, "looks": 4}
    own, given = (Mended(system="spidercast", start=start, **churn).run() for start in ("own", "LowODA"))
    messages = MendedByMessages(
        system="spidercast",
        parameters={"k_greedy": 3, "k_random": 1},
        settle=40.0,
        pause=10.0,
        **churn,
    ).run()
    degree = [result["looks"][0]["degree_mean"] for result in (given, messages, own)]
    assert degree == sorted(degree)
    assert messages["partitioned_topics"] == 0
    assert messages["looks"][-1]["nodes"] == own["looks"][-1]["nodes"]
    assert messages["messages_per_leave"] > 0
    assert "backup_sizes" not in messages


def test_every_node_that_can_be_is_covered_when_arrays_begin_with_links_of_their_own() -> None:
    workload = SyntheticLists(60, 20, "zipf", 3, 8, seed=2).load()
    overlay = MendingEngine("spidercast", workload, Mending(rounds=0, start="own"), seed=1).overlay
    assert coverage(overlay.topic_graph(), k=3) == 1.0


def test_omen_does_not_begin_without_links() -> None:
    workload = SyntheticLists(20, 10, "zipf", 2, 4, seed=1).load()
    with pytest.raises(BadInput, match="only spidercast"):
        MendingEngine("omen", workload, Mending(rounds=0, start="own"), seed=1)
