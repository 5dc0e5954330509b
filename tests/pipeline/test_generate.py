"""Workloads drawn on Spark: the same bytes however they are spread, and gone on with after a stop."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.pipeline.folders import contents
from topicweave.errors import BadInput
from topicweave.model.workload import Workload
from topicweave.pipeline import generate as module
from topicweave.pipeline.generate import generate
from topicweave.pipeline.parts import Part, Target
from topicweave.workloads.catalogue import build


@pytest.mark.parametrize(
    ("model", "parameters"),
    [
        ("vitis-low", {"nodes": 500, "rate_exponent": 0.7}),
        ("magnet-spatial", {"nodes": 400, "average": 6}),
        ("magnet-hierarchical", {"nodes": 300, "topics": 256, "average": 5, "initial_share": 0.4}),
    ],
)
def test_spark_and_one_process_write_the_same_bytes(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    model: str,
    parameters: dict[str, Any],
) -> None:
    monkeypatch.setattr(module, "NODES_PER_PART", 120)  # several parts from few nodes
    here = generate(model, parameters, 3, tmp_path / "here")
    there = generate(model, parameters, 3, tmp_path / "there", spark=spark)
    assert here == there
    assert contents(tmp_path / "here") == contents(tmp_path / "there")
    assert len(list((tmp_path / "here" / "subscriptions.parquet").glob("part-*"))) > 2
    assert Workload.load(tmp_path / "there") == build(model, 3, **parameters)


def test_a_stopped_run_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "NODES_PER_PART", 50)
    whole = generate("vitis-high", {"nodes": 200}, 1, tmp_path / "whole")
    made: list[tuple[str, int]] = []

    def stop_after_three(draw: Any, target: Target, table: str, number: int) -> Part:
        if len(made) == 3:
            raise KeyboardInterrupt
        made.append((table, number))
        return original(draw, target, table, number)

    original = module.make_part
    monkeypatch.setattr(module, "make_part", stop_after_three)
    with pytest.raises(KeyboardInterrupt):
        generate("vitis-high", {"nodes": 200}, 1, tmp_path / "out")
    with pytest.raises(BadInput, match="out: not finished; run the command that makes it again"):
        Workload.load(tmp_path / "out")
    (kept,) = (tmp_path / "out" / "subscriptions.parquet").glob("part-00000-*.parquet")
    before = kept.stat().st_mtime_ns

    monkeypatch.setattr(module, "make_part", original)
    again = generate("vitis-high", {"nodes": 200}, 1, tmp_path / "out")
    assert again == whole._replace(resumed=True)
    assert kept.stat().st_mtime_ns == before
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def test_progress_names_what_was_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "NODES_PER_PART", 2)
    told: list[str] = []
    generate(
        "spidercast",
        {"nodes": 3},
        0,
        tmp_path / "w",
        progress=lambda *said: told.append("{}/{} {}".format(*said)),
    )
    assert told == [
        "0/4 ",
        "1/4 topics",
        "2/4 hosts",
        "3/4 subscriptions, part 1",
        "4/4 subscriptions, part 2",
    ]


def test_parts_of_another_plan_are_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: Any) -> int:
        raise KeyboardInterrupt

    generate("vitis-high", {"nodes": 60}, 1, tmp_path / "one")
    with monkeypatch.context() as patched:
        patched.setattr(module, "finish", stop)
        with pytest.raises(KeyboardInterrupt):
            generate("vitis-high", {"nodes": 60}, 2, tmp_path / "out")
    assert not generate("vitis-high", {"nodes": 60}, 1, tmp_path / "out").resumed
    assert contents(tmp_path / "out") == contents(tmp_path / "one")


def test_an_output_that_is_there_is_replaced_only_when_told(tmp_path: Path) -> None:
    out = tmp_path / "out"
    generate("vitis-high", {"nodes": 60}, 1, out)
    with pytest.raises(BadInput, match=r"out: already there .* add --overwrite"):
        generate("vitis-high", {"nodes": 70}, 1, out)
    assert generate("vitis-high", {"nodes": 70}, 1, out, overwrite=True).nodes == 70
    (out / "thesis.doc").write_text("precious")
    with pytest.raises(BadInput, match=r"'thesis\.doc', which is no table of ours"):
        generate("vitis-high", {"nodes": 60}, 1, out, overwrite=True)
    assert Workload.load(out).nodes == 70


def test_a_file_in_the_place_of_the_output_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(BadInput, match="a file; the output is a folder"):
        generate("vitis-high", {"nodes": 60}, 1, tmp_path / "out", overwrite=True)
