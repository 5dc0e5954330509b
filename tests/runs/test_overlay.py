"""A settled overlay, and one under churn: the same figures whenever and wherever they are run."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from topicweave.errors import BadInput, UnknownName
from topicweave.runs import carry_out
from topicweave.runs.churned import ChurnedOverlay
from topicweave.runs.overlay import SettledOverlay
from topicweave.runs.registry import encode
from topicweave.runs.sources import GeneratedWorkload, ModelWorkload, StoredWorkload
from topicweave.sim.simulation import Simulation

SMALL = GeneratedWorkload(nodes=40, topics=12, min_size=2, max_size=5, seed=1)
STATIC = SettledOverlay(system="spidercast", workload=SMALL, seed=1, settle=10.0)


def test_a_result_is_reproducible() -> None:
    assert carry_out(STATIC) == carry_out(STATIC)
    other_seed = msgspec.structs.replace(STATIC, seed=2)
    assert carry_out(other_seed)["kernel_events"] != carry_out(STATIC)["kernel_events"]


def test_a_result_does_not_depend_on_the_hash_seed() -> None:
    """In a process of its own, with other hashes of strings."""
    with_events = msgspec.structs.replace(STATIC, events=5, membership="gossip", settle=5.0)
    program = (
        "import json; from topicweave.runs import carry_out; from topicweave.runs.registry import decode;"
        f"print(json.dumps(carry_out(decode({encode(with_events)!r}))))"
    )
    env = {**os.environ, "PYTHONHASHSEED": "12345"}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=True, text=True, env=env
    )
    assert json.loads(done.stdout) == carry_out(with_events)


def test_an_overlay_is_measured() -> None:
    result = carry_out(msgspec.structs.replace(STATIC, diameters=True, tdi=5, histogram=True))
    assert result["nodes"] == 40
    assert result["partitioned_topics"] == 0
    assert result["components"] == 12
    assert len(result["degrees"]) == 40
    assert sum(result["degrees"]) / 40 == pytest.approx(result["degree_mean"])
    assert max(result["degrees"]) == result["degree_max"]
    assert 1 <= result["topic_diameter_mean"] <= result["topic_diameter_max"] < 12
    assert 0 < result["tdi_5"] <= 100
    assert result["virtual_seconds"] == 10.0
    assert result["k_random"] == 0


def test_events_are_measured() -> None:
    result = carry_out(msgspec.structs.replace(STATIC, events=10))
    assert (result["hit_ratio"], result["noise"]) == (1.0, 0.0)
    assert result["hops_mean"] >= 1
    assert result["control_messages"] > 0


def test_parameters_reach_the_system() -> None:
    few = carry_out(msgspec.structs.replace(STATIC, parameters={"k_greedy": 1}))
    assert few["degree_mean"] < carry_out(STATIC)["degree_mean"]


@pytest.mark.parametrize(
    "workload",
    [SMALL, ModelWorkload("spidercast", {"nodes": 40, "topics": 12, "min_size": 2, "max_size": 5}, seed=1)],
)
def test_churn_gives_snapshots(workload: GeneratedWorkload | ModelWorkload) -> None:
    run = ChurnedOverlay(
        system="spidercast",
        parameters={"bridges": 0},
        workload=workload,
        seed=1,
        duration=40.0,
        mean_up=20.0,
        mean_down=5.0,
        snapshots=4,
    )
    result = carry_out(run)
    assert [snapshot["time"] for snapshot in result["snapshots"]] == [10.0, 20.0, 30.0, 40.0]
    for snapshot in result["snapshots"]:
        assert 10 < snapshot["nodes"] < 40
        assert snapshot["degree_mean"] > 1
    assert result["degree_max"] == max(snapshot["degree_max"] for snapshot in result["snapshots"])
    assert result["partitioned_topics"] == max(s["partitioned_topics"] for s in result["snapshots"])
    assert result["churn_operations"] > 30
    assert 10 < result["messages_per_operation"] < 100
    assert result["bytes_per_operation"] > result["messages_per_operation"]
    assert carry_out(run) == result


def test_a_stored_workload_runs_like_the_one_it_was_saved_from(tmp_path: Path) -> None:
    SMALL.load().save(tmp_path / "workload")
    stored = msgspec.structs.replace(STATIC, workload=StoredWorkload(str(tmp_path / "workload")))
    assert carry_out(stored) == carry_out(STATIC)


def test_mistakes_are_named() -> None:
    with pytest.raises(UnknownName, match="unknown system 'spidercats'"):
        carry_out(msgspec.structs.replace(STATIC, system="spidercats"))
    with pytest.raises(BadInput, match="k_gredy"):
        carry_out(msgspec.structs.replace(STATIC, parameters={"k_gredy": 1}))
    with pytest.raises(BadInput, match="membership 'half'"):
        carry_out(msgspec.structs.replace(STATIC, membership="half"))


def test_a_run_leaves_no_simulation_behind() -> None:
    """A simulation is full of circles; a process that carries out many runs would keep all of them."""

    def simulations() -> int:
        return sum(isinstance(one, Simulation) for one in gc.get_objects())

    before = simulations()
    carry_out(STATIC)
    assert simulations() <= before
