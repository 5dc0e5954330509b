"""Comparisons from Python: any source, nothing printed, resumable."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import topicweave
from tests.choose.conftest import python
from topicweave.errors import BadInput, UnknownName
from topicweave.model.workload import Workload
from topicweave.report import Comparison

LISTS = {"ann": ["news", "go"], "bob": ["news"], "eve": ["go", "news"]}
QUICK: dict[str, Any] = {
    "systems": ["spidercast", "random"],
    "seeds": 2,
    "events": 10,
    "settle": 3,
    "workers": 1,
}


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("compared") / "out"


@pytest.fixture(scope="module")
def result(out: Path) -> Comparison:
    return topicweave.compare(LISTS, out=out, **QUICK)


@pytest.fixture
def no_more_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_run: object) -> Any:
        raise AssertionError("run again")

    monkeypatch.setattr("topicweave.runs.runner.carry_out", refuse)


def sources(folder: Path) -> dict[str, Any]:
    pairs = {"user": ["ann", "ann", "bob", "eve", "eve"], "topic": ["news", "go", "news", "go", "news"]}
    (folder / "my.csv").write_text("user,topic\nann,news\nann,go\nbob,news\neve,go\neve,news\n")
    return {
        "path": folder / "my.csv",
        "text": str(folder / "my.csv"),
        "workload": Workload.from_lists(LISTS),
        "lists": LISTS,
        "pandas": pd.DataFrame(pairs),
        "arrow": pa.table(pairs),
    }


@pytest.mark.usefixtures("no_more_runs", "result")
@pytest.mark.parametrize("kind", ["path", "text", "workload", "lists", "pandas", "arrow"])
def test_whatever_holds_the_same_subscriptions_gives_the_same_and_is_run_once(
    kind: str, out: Path, tmp_path: Path
) -> None:
    again = topicweave.compare(sources(tmp_path)[kind], out=out, **QUICK)
    assert again["spidercast"].measure("hit_ratio") == 1.0


def test_what_is_no_source_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="int is none of a path"):
        topicweave.compare(7, out=tmp_path, **QUICK)  # type: ignore[arg-type]  # wrong on purpose


def test_an_option_that_there_is_not_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="no option 'sedes'"):
        topicweave.compare(LISTS, out=tmp_path, sedes=3)  # type: ignore[call-arg]  # wrong on purpose


def test_the_result_is_a_table_in_a_session_and_in_a_notebook(result: Any) -> None:
    text = result.table()
    assert repr(result) == repr(text) == str(text)
    assert [line.split()[0] for line in text.splitlines()[3:5]] == ["spidercast", "random"]
    # Below them stand the legend, the times and the membership.
    rows = result.table(width=80).splitlines()[:-3]
    assert max(map(len, rows)) <= 80
    assert "times lan: those of live nodes with this preset" in text
    markup = result._repr_html_()
    assert markup.startswith("<table>")
    assert markup.count("<tr>") == 3
    assert "100%" in markup


def test_the_result_is_a_data_frame_and_a_page(result: Any, tmp_path: Path) -> None:
    frame = result.to_pandas()
    assert list(frame.index) == [("spidercast", 0), ("spidercast", 1), ("random", 0), ("random", 1)]
    assert frame.loc["spidercast"]["hit_ratio"].tolist() == [1.0, 1.0]
    page = result.report(tmp_path / "report.html")
    assert "Systems compared on subscriptions" in page.read_text()


def test_other_times_are_another_run_and_are_told(result: Any, out: Path) -> None:
    slow = topicweave.compare(LISTS, out=out, preset="paper", **QUICK)
    assert "times paper: the papers' own" in slow.table()
    assert "--preset paper" in slow.command
    # Neighbours of a live preset send half as many heartbeats.
    assert slow["spidercast"].measure("control_messages") > result["spidercast"].measure("control_messages")


def test_one_system_of_the_result(result: Any) -> None:
    assert result["random"].system == "random"
    with pytest.raises(UnknownName, match="vitis"):
        result["vitis"]


def test_the_command_in_the_page_gives_the_same_from_the_command_line(result: Any, out: Path) -> None:
    words = result.command.split()
    ended = subprocess.run(
        [sys.executable, "-m", "topicweave.cli", *words[1:], "--out", out, "--workers", "1"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert "4/4 finished in an earlier run" in ended.stderr
    assert str(result.table()) in ended.stdout


def test_nothing_is_printed_and_callers_are_told(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    told: list[tuple[int, int, str]] = []
    notes: list[str] = []
    lists = Workload.from_lists(LISTS, churn=[(1.5, "eve", "leave")])
    one: dict[str, Any] = {**QUICK, "systems": ["random"], "seeds": 1}
    result = topicweave.compare(
        lists, out=tmp_path / "out", progress=lambda *what: told.append(what), note=notes.append, **one
    )
    assert told == [(0, 1, ""), (1, 1, "random")]
    assert notes == list(result.notes)
    assert "joins and leaves" in notes[0]
    assert all(note in result._repr_html_() for note in notes)
    assert capfd.readouterr() == ("", "")


def test_an_interrupted_call_goes_on_where_it_was(tmp_path: Path) -> None:
    code = f"""
if __name__ == "__main__":
    import os, signal, topicweave
    def stop(done, total, what):
        if what:
            os.kill(os.getpid(), signal.SIGINT)
    same = dict(systems=["random", "broker", "opt"], seeds=2, events=10, settle=3, workers=2)
    try:
        topicweave.compare({LISTS}, progress=stop, **same)
    except KeyboardInterrupt:
        print("stopped")
    told = []
    topicweave.compare({LISTS}, progress=lambda *what: told.append(what), **same)
    print(0 < told[0][0] < 6, told[0][1:], told[-1][:2])
"""
    (tmp_path / "program.py").write_text(code)
    run = "import runpy; runpy.run_path('program.py', run_name='__main__')"
    assert python(run, tmp_path, tmp_path).splitlines() == ["stopped", "True (6, '') (6, 6)"]


def test_a_ratio_of_a_few_deliveries_is_called_so(tmp_path: Path) -> None:
    one: dict[str, Any] = {**QUICK, "systems": ["random"], "seeds": 1, "out": tmp_path}
    assert any("rests on" in note for note in topicweave.compare(LISTS, **one).notes)


def test_the_front_door_is_light(tmp_path: Path) -> None:
    heavy = "{'pyspark', 'numba', 'plotly', 'pandas', 'pyarrow', 'scipy', 'rich', 'typer', 'asyncio'}"
    code = f"import sys, topicweave; dir(topicweave); print({heavy} & set(sys.modules))"
    assert python(code, tmp_path, tmp_path).strip() == "set()"


def test_there_is_nothing_behind_a_name_that_the_front_door_does_not_have() -> None:
    for name in topicweave.__all__:
        assert getattr(topicweave, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = topicweave.nonsense


# Systems of other packages.


def test_a_strangers_system_is_compared_like_ours(installed: Path, tmp_path: Path) -> None:
    code = f"""
if __name__ == "__main__":
    import topicweave
    result = topicweave.compare({LISTS}, systems=["flock", "spidercast"], seeds=1, events=10, settle=3, workers=2)
    print([entry.measure("hit_ratio") for entry in result.entries])
    print([topicweave.simulate({LISTS}, "flock:k_greedy=2")])
"""
    (tmp_path / "program.py").write_text(code)
    told = python("import runpy; runpy.run_path('program.py', run_name='__main__')", installed, tmp_path)
    assert told.splitlines() == [
        "[1.0, 1.0]",
        "[SimulatedSwarm(flock, 0 of 3 nodes up, at 0 s)]",
    ]


def test_it_is_listed_and_campaigned(installed: Path, tmp_path: Path) -> None:
    command = "from topicweave.cli import main; import sys; sys.argv[1:] = {}; main()"
    listed = python(command.format(["systems"]), installed, tmp_path)
    assert "flock: a stranger's system" in listed
    assert "system 'herd' of package 'flock-systems' cannot be used (ModuleNotFoundError: No module" in listed
    assert "system 'spidercast' of package 'flock-systems' cannot be used (ValueError" in listed
    assert (
        "system 'pack' of package 'flock-systems' cannot be used (TypeError: its entry point gives a str"
        in listed
    )
    assert "\nspidercast: each node covers" in "\n" + listed
    tried = python(
        command.format(["campaign", "flock", "--seeds", "1", "--nodes", "10", "--workers", "1"]),
        installed,
        tmp_path,
    )
    assert "flock: 1 of 1 seeds passed" in tried


def test_live_nodes_of_it_pass_events_on(installed: Path, tmp_path: Path) -> None:
    code = """
import asyncio, topicweave

async def main():
    common = {"insecure": True, "system": "flock", "listen": "127.0.0.1:0"}
    async with topicweave.connect(**common, subscribe=["news"]) as ann:
        async with topicweave.connect(**common, subscribe=["news"], join=[str(ann.address)]) as bob:
            while not ann.node.degree:
                await asyncio.sleep(0.01)
            await ann.publish("news", b"hello")
            async for event in bob.events():
                print(bob.system.name, event.payload)
                break

asyncio.run(asyncio.wait_for(main(), 300))
"""
    assert python(code, installed, tmp_path) == "flock b'hello'\n"


def test_a_broken_one_is_told_in_a_line(installed: Path, tmp_path: Path) -> None:
    code = f"""
import topicweave
from topicweave.errors import TopicweaveError
try:
    topicweave.simulate({LISTS}, "herd")
except TopicweaveError as error:
    print(error)
"""
    told = python(code, installed, tmp_path)
    assert told.startswith("system 'herd' of package 'flock-systems' cannot be used (ModuleNotFoundError")
    assert len(told.splitlines()) == 1


def test_latency_and_churn_of_ones_own(tmp_path: Path) -> None:
    lists = {f"n{number}": ["x", f"t{number % 3}"] for number in range(12)}
    (tmp_path / "rtt.csv").write_text("0,80,60\n80,0,100\n60,100,0\n")
    (tmp_path / "up.csv").write_text(
        "node,start,end\n" + "".join(f"h{n},{n % 3},{40 + n}\n" for n in range(6))
    )
    notes: list[str] = []
    words: dict[str, Any] = {"systems": ["random"], "seeds": 1, "events": 10, "settle": 2.0, "workers": 1}
    own: dict[str, Any] = {"latency": str(tmp_path / "rtt.csv"), "churn": str(tmp_path / "up.csv")}
    result = topicweave.compare(lists, out=tmp_path / "out", note=notes.append, **words, **own)
    assert [note.split(": ", 1)[1] for note in notes[:4]] == [
        "12 joins and leaves of 6 hosts in 45 s; each node lives the life of a random one of 6 hosts",
        "4 of 12 nodes are up at time 0; 20 joins and leaves happen while events go out (60 s)",
        "round-trip times of 3 places, median round trip 80 ms",
        "names do not match, so nodes take places in order, then again from the first: "
        "n0 at 0, n1 at 1, n2 at 2, n3 at 0, n4 at 1, …",
    ]
    assert (result.setting.latency, result.setting.churn) == (own["latency"], own["churn"])
    assert f"--latency {own['latency']}" in result.command
    assert f"--churn {own['churn']}" in result.command
    slow = result["random"].measure("latency_max")
    # The same file with other contents is another network.
    (tmp_path / "rtt.csv").write_text("0,8,6\n8,0,10\n6,10,0\n")
    fast = topicweave.compare(lists, out=tmp_path / "out", **words, **own)["random"].measure("latency_max")
    assert slow is not None
    assert fast is not None
    assert 0 < fast < slow


@pytest.mark.parametrize(
    ("own", "complaint"),
    [
        ({"latency": "nowhere.csv"}, "neither known nor a file"),
        ({"churn": "nowhere.csv"}, "neither known nor a file"),
        ({"churn": "often"}, "neither known nor a file"),
        ({"latency": "soon"}, "neither known nor a file"),
    ],
)
def test_what_is_no_file_is_said_at_once(tmp_path: Path, own: dict[str, Any], complaint: str) -> None:
    with pytest.raises(BadInput, match=complaint):
        topicweave.compare({"a": ["x"], "b": ["x"]}, out=tmp_path / "out", **own)
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").glob("latency"))


@pytest.mark.parametrize("wrong", ["soon", "100%", "-1%", 1.5, "nan"])
def test_a_loss_that_is_no_share_is_refused(tmp_path: Path, wrong: str | float) -> None:
    with pytest.raises(BadInput, match="say which share of the messages gets lost"):
        topicweave.compare(LISTS, out=tmp_path / "out", loss=wrong)
    with pytest.raises(BadInput, match="say which share of the messages gets lost"):
        topicweave.simulate(LISTS, loss=wrong)


@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        ({"events": 0, "max_latency": 100}, "--max-latency 100: not measured with --events 0"),
        ({"events": 0, "max_hops": 3}, "--max-hops 3: not measured with --events 0"),
        ({"events": 0, "max_noise": 0.1}, "--max-noise 0.1: not measured with --events 0"),
        ({"events": 0, "no_relays": True}, "--no-relays: not measured with --events 0"),
        ({"events": 0, "min_hit": 0.9}, "--min-hit 0.9: not measured with --events 0.*--min-hit 0"),
        ({"events": 0, "max_repair": 5}, "--max-repair 5: not measured with --events 0"),
        ({"crash": 0, "max_repair": 5}, "--max-repair 5: not measured with --crash 0"),
    ],
)
@pytest.mark.parametrize("choose", [topicweave.compare, topicweave.advise])
def test_a_bound_that_nothing_can_show_is_refused(
    choose: Any, asked: dict[str, Any], complaint: str, tmp_path: Path
) -> None:
    with pytest.raises(BadInput, match=complaint):
        choose(LISTS, out=tmp_path / "out", **{"min_hit": None, **asked})
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        ({"events": 0}, "--min-hit 1: not measured with --events 0.*or say --min-hit 0"),
        ({"events": 0, "min_hit": 0, "prefer": "latency"}, "--prefer latency: not measured with --events 0"),
        ({"events": 0, "min_hit": 0, "prefer": "noise"}, "--prefer noise: not measured with --events 0"),
        ({"events": 0, "min_hit": 0, "prefer": "hops"}, "--prefer hops: not measured with --events 0"),
        ({"crash": 0.0, "prefer": "repair"}, "--prefer repair: not measured with --crash 0"),
    ],
)
def test_advice_for_what_is_not_measured_is_refused(
    asked: dict[str, Any], complaint: str, tmp_path: Path
) -> None:
    with pytest.raises(BadInput, match=complaint):
        topicweave.advise(LISTS, out=tmp_path / "out", **asked)
    assert not (tmp_path / "out").exists()


def test_advice_on_links_alone_needs_no_events(tmp_path: Path) -> None:
    few: dict[str, Any] = {"systems": ["random"], "seeds": 1, "settle": 1, "workers": 1}
    advice = topicweave.advise(LISTS, out=tmp_path, events=0, min_hit=0, **few)
    assert advice.chosen is not None
    assert advice.comparison.constraints == ()


def test_lost_messages_cost_deliveries_and_are_told(tmp_path: Path) -> None:
    """A random overlay sends each event once per link and repairs nothing."""
    lists = {f"n{number}": ["news"] for number in range(30)}
    words: dict[str, Any] = {
        **QUICK,
        "systems": ["random"],
        "settle": 10,
        "crash": 0,
        "out": tmp_path / "out",
    }
    heard = topicweave.compare(lists, **words)
    lossy = topicweave.compare(lists, **words, loss="60%")
    assert (heard.setting.loss, lossy.setting.loss) == (0.0, 0.6)
    assert "--loss 0.6" in lossy.command
    assert "--loss" not in heard.command
    assert lossy.to_json()["loss"] == 0.6
    duplicates = [comparison["random"].measure("duplicates") for comparison in (heard, lossy)]
    assert duplicates[0] is not None
    assert duplicates[1] is not None
    assert duplicates[1] < duplicates[0]


def test_a_simulated_swarm_loses_what_it_is_told_to() -> None:
    lists = {f"n{number}": ["news"] for number in range(12)}
    got = {}
    for loss in ("0%", "60%"):
        swarm = topicweave.simulate(lists, "random", seed=1, membership="full", loss=loss)
        swarm.run(until=10.0)
        for _ in range(20):
            swarm.publish("n0", "news", b"")
        swarm.run(until=20.0)
        got[loss] = swarm.measures()["duplicates"]
    assert got["60%"] < got["0%"]


def test_systems_are_counted_at_the_same_time_though_they_settle_at_different_times() -> None:
    asked: dict[str, Any] = {"systems": ["spidercast", "broker"], "seeds": 1, "events": 3, "crash": 0.0}
    heard = topicweave.compare(LISTS, **asked)
    told = topicweave.compare(LISTS, membership="full", **asked)
    moments = [entry.measures["settle_seconds"] for entry in heard.entries]
    assert moments == [60.0, 60.0]
    assert all(entry.measures["settle_seconds"] < 60.0 for entry in told.entries), "an oracle asks nothing"
