"""Arrays beside messages."""

from topicweave.papers.levels import beside
from topicweave.papers.omen.by_messages import MendedByMessages
from topicweave.papers.omen.mending import Mended
from topicweave.papers.omen.workloads import SyntheticLists


def test_a_ratio_holds_within_a_tenth_and_nothing_agrees_with_nothing() -> None:
    messages = {"a": 10.0, "b": 10.0, "c": 0.0, "d": 0.0}
    arrays = {"a": 10.9, "b": 11.2, "c": 0.0, "d": 1.0}
    assert [row.holds for row in beside({}, messages, arrays, "abcd")] == [True, False, True, False]


def test_omens_nodes_mend_a_lowoda_overlay_as_the_arrays_do() -> None:
    """The same start, the same departures and returns: no topic stays apart, and the degrees come out alike."""
    lists = SyntheticLists(40, 20, "zipf", 3, 8, seed=1)
    messages = MendedByMessages(workload=lists, seed=1, rounds=4, parameters={"resilience": 1}).run()
    arrays = Mended(system="omen", workload=lists, seed=1, rounds=4, looks=4, warm_up=4).run()
    assert messages["looks"][0]["degree_mean"] == arrays["looks"][0]["degree_mean"]
    assert messages["partitioned_topics"] == arrays["partitioned_topics"] == 0
    assert messages["looks"][-1]["nodes"] == arrays["looks"][-1]["nodes"]
    assert abs(messages["degree_mean_mean"] / arrays["degree_mean_mean"] - 1.0) <= 0.1
