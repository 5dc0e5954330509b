"""Ctrl-C on a running command: one line, and the same command goes on with what is finished."""

import os
import signal
import subprocess
import time
from pathlib import Path

from pyspark.sql import SparkSession

from tests.cli.commands import COMMAND
from tests.pipeline.folders import contents
from topicweave.pipeline.generate import generate


def test_ctrl_c_leaves_finished_parts_and_one_line(spark: SparkSession, tmp_path: Path) -> None:
    """Ten parts of short lists: nine are left when it is pressed."""
    command = [*COMMAND, "workload", "generate", "vitis-low", "--nodes", "200000", "--set", "size=5"]
    process = subprocess.Popen(
        [*command, "--out", str(tmp_path / "out"), "--master", "local[1]"],
        start_new_session=True,  # a terminal sends Ctrl-C to all of a group: to Spark's processes as well
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    parts = tmp_path / "out" / "subscriptions.parquet"
    deadline = time.monotonic() + 240
    while not list(parts.glob("part-*.parquet")) and time.monotonic() < deadline:
        try:
            process.wait(timeout=0.05)
        except subprocess.TimeoutExpired:
            continue
        raise AssertionError(process.communicate()[1])
    os.killpg(process.pid, signal.SIGINT)
    told, said = process.communicate(timeout=240)
    complaints = [line for line in said.splitlines() if "/" not in line[:4]]  # a log has a line per part
    assert (process.returncode, told) == (130, "")
    assert complaints == ["stopped; run the same command again to continue"]

    finished = {part: part.stat().st_mtime_ns for part in parts.glob("part-*.parquet")}
    assert finished
    lists = {"nodes": 200_000, "size": 5}
    generate("vitis-low", lists, 0, tmp_path / "out", spark=spark)
    assert {part: part.stat().st_mtime_ns for part in finished} == finished, "not made again"
    generate("vitis-low", lists, 0, tmp_path / "whole", spark=spark)
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")
