"""Kinds and sources by tag: all of ours are there, others can be brought, and what a kind does not have is refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

import topicweave
from tests.runs.strangers import a_package
from topicweave.errors import BadInput, UnknownName
from topicweave.papers import STUDIES
from topicweave.runs.registry import (
    KINDS,
    PAPERS,
    SOURCES,
    decode,
    encode,
    find_kind,
    find_source,
    from_plain,
)
from topicweave.runs.run import Run, Source

SMALL = {"type": "generated", "nodes": 10}
MENDING = {"type": "mending", "workload": SMALL, "rounds": 1}


@pytest.mark.parametrize("tag", KINDS)
def test_kinds_are_where_the_table_says(tag: str) -> None:
    kind = find_kind(tag)
    assert issubclass(kind, Run)
    assert kind.__struct_config__.forbid_unknown_fields
    assert kind.__struct_config__.frozen


@pytest.mark.parametrize("tag", SOURCES)
def test_sources_are_where_the_table_says(tag: str) -> None:
    source = find_source(tag)
    assert issubclass(source, Source)
    assert source.__struct_config__.forbid_unknown_fields
    assert source.__struct_config__.frozen


def test_every_paper_is_registered_and_has_studies() -> None:
    rooms = {file.parent.name for file in (Path(topicweave.__file__).parent / "papers").glob("*/claims.toml")}
    assert set(PAPERS) == rooms == {name.split("/")[0] for name in STUDIES if "/" in name}


@pytest.mark.parametrize("scale", ["smoke", "paper"])
def test_every_run_of_every_study_is_plain_data(scale: str) -> None:
    for study in STUDIES.values():
        for run in study.plan(scale, 1).runs.values():  # type: ignore[arg-type]  # of any scale
            assert decode(encode(run)) == run


@pytest.mark.parametrize(
    ("plain", "words"),
    [
        (
            {"type": "overlay", "system": "opt", "workload": SMALL, "latency": "5ms"},
            "`latency`; its fields: .*settle",
        ),
        (
            {"type": "live", "system": "opt", "workload": SMALL, "membership": "full"},
            "unknown field `membership`",
        ),
        ({"type": "vitis-cycles", "system": "opt", "workload": SMALL}, "Invalid enum value 'opt'"),
        ({"type": "filter-errors", "workload": SMALL}, "unknown field `workload`"),
        (
            {"type": "magnet-trees", "system": "strawman", "workload": SMALL, "samples": 0},
            "the strawman chooses neither",
        ),
        (
            {"type": "magnet-messages", "system": "magnet", "workload": SMALL, "lag": 99},
            "lag: by messages samples lag as far behind as reports take",
        ),
        ({**MENDING, "system": "lowoda-re", "resilience": 7}, "resilience: lowoda-re makes no use of it"),
        ({**MENDING, "system": "lowoda-re", "k_greedy": 9}, "k_greedy: lowoda-re makes no use of it"),
        (
            {**MENDING, "system": "lowoda-inc", "builder": "greedy"},
            "builder: lowoda-inc makes no use of it; it uses .*resilience",
        ),
        ({**MENDING, "system": "spidercast", "warm_up": 6}, "warm_up: spidercast .*k_greedy, k_random"),
        ({**MENDING, "system": "omen", "k_random": 0}, "k_random: omen makes no use of it"),
        (
            {**MENDING, "system": "omen", "global_view": True, "warm_up": 6},
            "warm_up: omen with a global view makes no use of it",
        ),
        ({"type": "overlay", "system": "opt", "workload": {**SMALL, "colour": 3}}, "unknown field `colour`"),
        ({"type": "trial", "system": "opt", "workload": SMALL, "crash": -3}, "crash -3: choose .* 0 to 0.9"),
        (
            {"type": "trial", "system": "opt", "workload": SMALL, "events": -5},
            "events -5: choose .* 0 to inf",
        ),
        ({"type": "trial", "system": "opt", "workload": SMALL, "settle": -1.0}, "settle -1: choose"),
        ({"type": "overlay", "system": "opt"}, "missing required field `workload`"),
        ({"type": "overlay", "system": "opt", "workload": 3}, "workload"),
    ],
)
def test_what_a_kind_does_not_have_is_refused(plain: dict[str, object], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        from_plain(plain)


@pytest.mark.parametrize(
    "plain",
    [
        {"system": "omen", "resilience": 2, "builder": "greedy", "warm_up": 6},
        {"system": "omen", "global_view": True, "coverage": 3, "backups": True, "k_greedy": 3},
        {"system": "lowoda-inc", "resilience": 2, "labels": True, "looks": 3},
        {"system": "lowoda-re", "rho": 2.0, "diameters": True},
        {"system": "spidercast", "k_greedy": 4, "k_random": 0},
    ],
)
def test_what_a_system_uses_is_taken(plain: dict[str, object]) -> None:
    from_plain({**MENDING, **plain})


def test_unknown_tags_are_named() -> None:
    with pytest.raises(UnknownName, match=r"unknown run kind 'overly'; known: .*overlay"):
        from_plain({"type": "overly"})
    with pytest.raises(UnknownName, match="unknown workload source 'genrated'"):
        from_plain({"type": "overlay", "system": "opt", "workload": {"type": "genrated"}})


def test_a_kind_and_a_source_of_another_package_run_in_processes(tmp_path: Path) -> None:
    """Also with another package's code in the fingerprint: changed, the runs are carried out again."""
    site = a_package(tmp_path)
    program = tmp_path / "program.py"
    program.write_text(
        """
from pathlib import Path
from topicweave.runs import Processes, run_all
from topicweave.runs.registry import from_plain

if __name__ == "__main__":
    runs = {
        seed: from_plain({"type": "count", "workload": {"type": "line", "nodes": 3}, "seed": seed})
        for seed in (1, 2)
    }
    news = []
    results = run_all(runs, Path("kept"), Processes(2), lambda *what: news.append(what))
    print(results, news[0][0])
"""
    )

    def printed() -> str:
        return subprocess.run(
            [sys.executable, str(program)],
            capture_output=True,
            text=True,
            check=True,
            cwd=tmp_path,
            env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(site)},
        ).stdout

    told = "{1: {'nodes': 3, 'seed': 1}, 2: {'nodes': 3, 'seed': 2}}"
    assert printed() == f"{told} 0\n"
    assert printed() == f"{told} 2\n", "finished in an earlier run"
    module = site / "strange_runs.py"
    module.write_text(module.read_text().replace('"nodes": workload.nodes', '"nodes": 1 * workload.nodes'))
    assert printed() == f"{told} 0\n"


def test_a_tag_that_is_not_the_structs_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KINDS, "overlap", KINDS["overlay"])
    with pytest.raises(BadInput, match="no struct with that tag"):
        find_kind("overlap")


def test_structs_say_what_they_are() -> None:
    told = msgspec.json.decode(encode(from_plain({"type": "filter-errors", "sizes": [10]})))
    assert told == {"type": "filter-errors", "sizes": [10], "filters": 200, "tries": 5000, "seed": 0}
