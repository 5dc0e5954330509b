"""Comparisons from the command line, on a small workload."""

import json
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.cli.commands import call, interrupt_after, run
from topicweave.model.workload import Workload
from topicweave.runs.run import carry_out
from topicweave.runs.trial import Trial
from topicweave.workloads import generate

SYSTEMS = "spidercast,random,spidercast:k_greedy=2"


def few(workload: Path, out: Path, *more: object) -> list[object]:
    """In processes of this machine, unless told otherwise: the first `--workers` may be overruled by another."""
    words = ["compare", workload, "--systems", SYSTEMS, "--events", 20, "--settle", 5, "--seeds", 1]
    return [*words, "--out", out, "--runs", out / "runs", "--workers", 2, *more]


def check_schema(told: dict[str, Any]) -> None:
    schema = json.loads((Path(__file__).parents[2] / "docs/compare.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(told, schema)


@pytest.fixture
def no_more_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on every experiment that is run fails the test."""

    def refuse(trial: Trial) -> Any:
        raise AssertionError(f"{trial.system} is run again")

    monkeypatch.setattr("topicweave.runs.runner.carry_out", refuse)


@pytest.fixture(scope="module")
def finished(workload: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a comparison that has run."""
    out = tmp_path_factory.mktemp("finished")
    assert call(*few(workload, out, "--workers", 1)).exit_code == 0
    return out


def stored(out: Path) -> dict[str, int]:
    return {file.name: file.stat().st_mtime_ns for file in (out / "runs").glob("*.json")}


def test_json_and_nothing_else_on_stdout_and_the_same_page_again(
    workload: Path, finished: Path, tmp_path: Path
) -> None:
    """As a user runs it, with other hashes and in two processes: what comes out is the same to the byte."""
    ended = run(*few(workload, tmp_path, "--format", "json"), PYTHONHASHSEED="7")
    assert ended.returncode == 0
    assert (tmp_path / "report.html").read_bytes() == (finished / "report.html").read_bytes()
    assert (tmp_path / "compare.json").read_bytes() == (finished / "compare.json").read_bytes()
    told = json.loads(ended.stdout)
    assert {"workload", "seeds", "events", "systems"} <= told.keys()
    assert (told["workload"]["nodes"], told["workload"]["topics"]) == (40, 12)
    assert (told["seeds"], told["events"]) == ([0], 20)
    assert [(one["system"], one["parameters"]) for one in told["systems"]] == [
        ("spidercast", {}),
        ("random", {}),
        ("spidercast", {"k_greedy": 2}),
    ]
    for one in told["systems"]:
        assert {"degree_mean", "partitioned_topics", "hit_ratio", "noise", "control_bytes"} <= one[
            "measures"
        ].keys()
    check_schema(told)
    links = [one["measures"]["degree_mean"] for one in told["systems"]]
    assert links[2] < links[0]  # Covering each topic twice takes fewer links than thrice.
    assert json.loads((tmp_path / "compare.json").read_text()) == told
    assert "3/3" in ended.stderr


@pytest.mark.usefixtures("no_more_runs")
def test_a_second_time_nothing_is_run_again(workload: Path, finished: Path) -> None:
    before = stored(finished)
    ended = call(*few(workload, finished))
    assert ended.exit_code == 0
    assert "3/3 finished in an earlier run" in ended.stderr
    assert stored(finished) == before
    assert len(before) == 3


@pytest.mark.usefixtures("no_more_runs")
def test_the_table_shows_every_system(workload: Path, finished: Path) -> None:
    shown = call(*few(workload, finished)).stdout
    labels = [line.split()[0] for line in shown.splitlines()[3:6]]
    assert labels == SYSTEMS.split(",")
    assert "▴" in shown
    assert "▾" in shown
    assert f"report: {finished}/report.html" in shown


@pytest.mark.usefixtures("no_more_runs")
@pytest.mark.parametrize("change", ["seed", "events", "membership", "settle"])
def test_other_inputs_are_run_anew(change: str, workload: Path, finished: Path) -> None:
    values = {"seed": 1, "events": 3, "membership": "gossip", "settle": 4}
    with pytest.raises(AssertionError, match="is run again"):
        call(*few(workload, finished, "--workers", 1, f"--{change}", values[change]))


@pytest.mark.usefixtures("no_more_runs")
def test_a_folder_whose_contents_changed_is_another_workload(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, out = tmp_path / "w", tmp_path / "out"
    generate(10, 4, min_size=2, max_size=2, seed=1).save(folder)
    words = [
        "compare",
        folder,
        "--systems",
        "random",
        "--events",
        0,
        "--settle",
        1,
        "--out",
        out,
        "--workers",
        1,
    ]
    with monkeypatch.context() as allowed:
        allowed.setattr("topicweave.runs.runner.carry_out", lambda _: {"degree_mean": 1.0})
        assert call(*words).exit_code == 0
    assert call(*words).exit_code == 0
    generate(10, 4, min_size=2, max_size=2, seed=2).save(folder, overwrite=True)
    with pytest.raises(AssertionError, match="is run again"):
        call(*words)


# With two workers and one experiment left, one of them has nothing to do: it must keep quiet as well.
@pytest.mark.parametrize(("workers", "moment"), [(1, "1/3"), (2, "2/3")])
def test_an_interrupted_comparison_goes_on_where_it_was(
    workers: int, moment: str, workload: Path, tmp_path: Path
) -> None:
    words = [*few(workload, tmp_path), "--workers", workers]
    ended = interrupt_after(moment, words)
    assert ended.returncode == 130
    assert ended.stderr.splitlines()[-1] == "stopped; run the same command again to continue"
    assert "Traceback" not in ended.stderr
    assert ended.stdout == ""
    kept = stored(tmp_path)
    assert 1 <= len(kept) < 3
    again = call(*words)
    assert again.exit_code == 0
    assert f"{len(kept)}/3 finished in an earlier run" in again.stderr
    after = stored(tmp_path)
    assert len(after) == 3
    assert kept.items() <= after.items()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("user,topic\nann,x\nann,y\n", "one node ('ann'); need at least two to compare systems"),
        ("user,topic\nann,x\nbob,y\n", "none of the 2 topics has more than one subscriber"),
        ('user,topic\nann,"x\nbob,x\neve,y\n', "line 2: a quote that is not closed"),
        ("<html><body>a,b</body></html>\n", "an HTML page, not a table"),
    ],
)
def test_what_cannot_be_compared_is_said_in_a_line_and_leaves_nothing(
    tmp_path: Path, text: str, complaint: str
) -> None:
    (tmp_path / "my.csv").write_text(text)
    ended = call("compare", tmp_path / "my.csv", "--out", tmp_path / "out")
    assert ended.exit_code != 0
    assert complaint in ended.stderr.splitlines()[-1]
    assert not (tmp_path / "out").exists()


def test_what_was_understood_is_said_first_and_can_be_overridden(tmp_path: Path) -> None:
    (tmp_path / "h.csv").write_text("member_id,group_id,home\n1,a,x\n2,a,x\n3,b,x\n")
    words = ["compare", tmp_path / "h.csv", "--systems", "random", "--settle", 1, "--events", 0, "--seeds", 1]
    words += ["--workers", 1, "--out", tmp_path / "out", "--format", "json"]
    ended = call(*words)
    assert (
        "nodes from column 'member_id', topics from column 'group_id', 3 rows" in ended.stderr.splitlines()[0]
    )
    assert json.loads(ended.stdout)["workload"]["topics"] == 2
    ended = call(*words, "--topic", "home")
    assert "topics from column 'home'" in ended.stderr.splitlines()[0]
    assert json.loads(ended.stdout)["workload"]["topics"] == 1
    assert "--topic home" in (tmp_path / "out" / "report.html").read_text()


def test_a_measure_without_a_value_is_null(tmp_path: Path) -> None:
    Workload.from_lists({"ann": ["news"], "bob": ["news"]}).save(tmp_path / "w")
    words = [
        "compare",
        tmp_path / "w",
        "--events",
        0,
        "--systems",
        "random",
        "--settle",
        1,
        "--out",
        tmp_path / "out",
        "--workers",
        1,
    ]
    told = json.loads(call(*words, "--format", "json").stdout)
    assert told["systems"][0]["measures"]["hit_ratio"] is None
    assert "–" in call(*words).stdout


def test_joins_and_leaves_that_are_not_asked_for_are_noted(tmp_path: Path) -> None:
    lists = {"a": ["x"], "b": ["x"], "c": ["x"]}
    Workload.from_lists(lists, churn=[(1.5, "c", "leave")]).save(tmp_path / "w")
    words = ["compare", tmp_path / "w", "--systems", "random", "--settle", 1, "--workers", 1, "--seeds", 1]
    words += ["--out", tmp_path / "out", "--format", "json"]
    assert "left out without --churn trace" in call(*words).stderr
    with_trace = call(*words, "--churn", "trace")
    assert "left out" not in with_trace.stderr
    assert json.loads(with_trace.stdout)["churn"] == "trace"


@pytest.mark.usefixtures("no_more_runs")
def test_without_plotly_the_rest_works(
    workload: Path, finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    (finished / "report.html").rename(finished / "kept.html")
    ended = call(*few(workload, finished))
    (finished / "kept.html").rename(finished / "report.html")
    assert ended.exit_code == 0
    assert "pip install 'topicweave[report]'" in ended.stdout
    assert "spidercast" in ended.stdout


def test_several_seeds_give_intervals(workload: Path, tmp_path: Path) -> None:
    words = ["compare", workload, "--systems", "random", "--events", 20, "--settle", 5, "--seeds", 3]
    told = json.loads(call(*words, "--workers", 1, "--out", tmp_path, "--format", "json").stdout)
    check_schema(told)
    assert told["seeds"] == [0, 1, 2]
    [system] = told["systems"]
    replications = system["replications"]["hit_ratio"]
    assert len(set(replications)) > 1  # other seeds, other chances
    assert system["measures"]["hit_ratio"] == pytest.approx(sum(replications) / 3)
    assert system["intervals"]["hit_ratio"] > 0
    assert "±" in call(*words, "--workers", 1, "--out", tmp_path).stdout


@pytest.fixture
def large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """A comparison of which only a part is begun, however fast the machine."""
    generate(500, 20, min_size=3, max_size=3, seed=1).save(tmp_path / "w")
    monkeypatch.setattr("topicweave.choose.planning.CAREFUL", 1e-6)
    words = ["compare", tmp_path / "w", "--systems", "random,broker", "--events", 10, "--settle", 3]
    return [*words, "--seeds", 2, "--workers", 1, "--out", tmp_path / "out", "--format", "json"]


def test_a_budget_that_is_too_small_cuts_and_says_so(large: list[object]) -> None:
    ended = call(*large, "--budget", "10m")
    told = json.loads(ended.stdout)
    check_schema(told)
    assert told["workload"]["nodes"] == 100
    assert len(told["seeds"]) == 1
    assert "by common interests" in told["cuts"][0]
    assert told["workload"]["sampled_from"]["nodes"] == 500
    assert "subscribers per topic (" in ended.stderr
    assert "to keep within the budget" in ended.stderr
    pilots = [line for line in ended.stderr.splitlines() if " pilot of " in line]
    assert [line.split(",")[0] for line in pilots] == [
        "1/4 pilot of random",
        "2/4 pilot of broker",
        "3/4 pilot of random",
        "4/4 pilot of broker",
    ]


def test_the_same_budget_again_goes_on_with_the_same_sample(large: list[object], tmp_path: Path) -> None:
    first = call(*large, "--budget", "10m")
    before = stored(tmp_path / "out")
    again = call(*large, "--budget", "10m")
    assert again.stdout == first.stdout
    assert stored(tmp_path / "out") == before
    assert "pilots" not in again.stderr


def test_pilots_that_finished_before_an_interruption_are_not_run_again(
    large: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[Trial] = []

    def twice(run: Trial) -> Any:
        begun.append(run)
        if len(begun) == 3:
            raise RuntimeError("interrupted")
        return carry_out(run)

    monkeypatch.setattr("topicweave.choose.planning.carry_out", twice)
    with pytest.raises(RuntimeError, match="interrupted"):
        call(*large, "--budget", "10m")
    ended = call(*large, "--budget", "10m")
    assert [line for line in ended.stderr.splitlines() if "/4 " in line] == [
        "2/4 finished in an earlier run",
        "3/4 pilot of random",
        "4/4 pilot of broker",
    ]
    assert len(begun) == 5
    assert len(list((tmp_path / "out" / "plans").iterdir())) == 1, "only the plan is kept"


def test_if_pilots_take_too_long_what_they_found_is_the_answer(
    large: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The small pilots are finished, the large ones are not."""
    call(*large, "--budget", "10m")
    pilots = {file.name for file in (tmp_path / "runs").iterdir()}
    monkeypatch.setattr("topicweave.choose.budget.PILOT_SHARE", 1.0)  # no time for pilots at all
    ended = call(*large, "--budget", "9m")
    told = json.loads(ended.stdout)
    assert "pilots take more than" in ended.stderr
    assert (told["workload"]["nodes"], told["seeds"]) == (50, [0])
    assert {file.name for file in (tmp_path / "runs").iterdir()} == pilots, "nothing is run again"


def endless(monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on no run ends by itself."""

    def for_ever(_: Trial) -> Any:
        while True:
            pass

    monkeypatch.setattr("topicweave.runs.runner.carry_out", for_ever)


def test_when_the_time_is_up_whole_seeds_count(
    workload: Path, finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = few(workload, tmp_path, "--runs", finished / "runs", "--workers", 1, "--format", "json")
    endless(monkeypatch)
    ended = call(*words, "--seeds", 3, "--budget", "1s")
    told = json.loads(ended.stdout)
    check_schema(told)
    assert told["seeds"] == [0]
    assert told["cuts"] == ["1 of 3 seeds"]
    assert "the time is up: 1 of 3 seeds; finished runs are kept" in ended.stderr


def test_who_has_no_result_in_time_is_named(
    workload: Path, finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = few(workload, tmp_path, "--runs", finished / "runs", "--workers", 1, "--format", "json")
    endless(monkeypatch)
    told = json.loads(call(*words, "--systems", "broker", "--budget", "1s").stdout)
    assert [one["system"] for one in told["systems"]] == ["spidercast", "random", "spidercast"]
    assert told["cuts"] == ["no result in time: broker"]


def test_if_nothing_is_finished_in_time_that_is_said(
    workload: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    endless(monkeypatch)
    ended = call(*few(workload, tmp_path), "--workers", 1, "--budget", "1s")
    assert ended.exit_code == 2
    assert "no run was finished within 1 s; give it more time (--budget)" in ended.stderr


@pytest.mark.parametrize("typed", ["0", "-1", "inf", "nan"])
def test_a_number_out_of_range_is_answered_by_the_name_of_its_option(workload: Path, typed: str) -> None:
    ended = call("compare", workload, "--churn", "trace", "--churn-speed", typed)
    assert ended.exit_code == 2
    assert f"--churn-speed {float(typed)}: give a number above 0" in ended.stderr


def test_constraints_mark_those_who_break_them(workload: Path, finished: Path) -> None:
    shown = call(*few(workload, finished, "--max-degree", 1, "--no-relays")).stdout
    assert "✗ random: links max" in shown
    assert "relays" not in shown.split("✗", 1)[1]  # none of them relays


def test_spark_and_processes_give_the_same(
    workload: Path, finished: Path, tmp_path: Path, spark: object
) -> None:
    words = few(workload, tmp_path)
    words[words.index("--workers") : words.index("--workers") + 2] = ["--master", "local[2]"]
    assert call(*words).exit_code == 0
    assert (tmp_path / "compare.json").read_bytes() == (finished / "compare.json").read_bytes()


def test_spark_and_processes_at_once_are_refused(workload: Path, tmp_path: Path) -> None:
    ended = call(*few(workload, tmp_path, "--master", "local[2]"))
    assert ended.exit_code == 2
    assert "choose one" in ended.stderr


@pytest.mark.parametrize(
    ("option", "value", "complaint"),
    [
        ("--latency", "quick", "neither known nor a file"),
        ("--latency", "hosts", "no places of nodes"),
        ("--churn", "much", "neither known nor a file"),
        ("--budget", "soon", "say seconds, minutes or hours"),
    ],
)
def test_options_that_make_no_sense_are_refused_before_anything_runs(
    option: str, value: str, complaint: str, workload: Path, tmp_path: Path
) -> None:
    ended = call(*few(workload, tmp_path / "out", option, value))
    assert ended.exit_code == 2
    assert complaint in ended.stderr
    assert not (tmp_path / "out").exists()
