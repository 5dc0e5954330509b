"""Fault scenarios from files: ours pass, theirs are read or refused in one line, and a seed replays."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from topicweave.errors import BadInput
from topicweave.sim.faults import Crash, Loss, Partition, SlowNode
from topicweave.systems.spidercast import SPIDERCAST
from topicweave.systems.system import System
from topicweave.systems.weave import WEAVE
from topicweave.testing import read_scenario, run_scenario, shipped_scenarios

NAMES = ["crash-a-tenth", "lossy-link", "partition", "restart-without-memory", "slow-node"]


def test_which_come_with_the_package() -> None:
    assert shipped_scenarios() == NAMES


@pytest.mark.parametrize("system", [SPIDERCAST, WEAVE], ids=lambda system: system.name)
@pytest.mark.parametrize("name", NAMES)
def test_ours_are_passed(name: str, system: System) -> None:
    verdict = run_scenario(system, read_scenario(name).draw(seed=1))
    assert verdict.violations == ()
    assert verdict.deliveries > verdict.events > 40


def test_a_share_is_drawn_by_the_seed() -> None:
    scenario = read_scenario("crash-a-tenth")
    one, same, other = (scenario.draw(seed) for seed in (1, 1, 2))
    assert replace(same, workload=one.workload) == one
    assert one.workload.tables() == same.workload.tables()
    assert one.faults != other.faults
    assert len(one.faults) == 6
    assert all(isinstance(fault, Crash) and fault.keeps_memory for fault in one.faults)
    assert len(scenario.draw(1, nodes=30).faults) == 3


def written(folder: Path, text: str) -> Path:
    file = folder / "mine.toml"
    file.write_text('title = "mine"\n' + text)
    return file


def test_every_kind_of_fault(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        """
        nodes = 10
        events = 3
        quiet_from = 20.0
        [[fault]]
        kind = "partition"
        start = 1.0
        end = 2.0
        nodes = [3, 1]
        [[fault]]
        kind = "slow"
        start = 3.0
        end = 4.0
        nodes = [0, 9]
        delay = 0.5
        [[fault]]
        kind = "loss"
        start = 5.0
        end = 6.0
        probability = 0.25
        [[fault]]
        kind = "crash"
        start = 7.0
        end = 8.0
        nodes = [4]
        """,
    )
    drawn = read_scenario(file).draw(0)
    assert drawn.faults == (
        Partition(1.0, 2.0, frozenset({1, 3})),
        SlowNode(3.0, 4.0, 0, 0.5),
        SlowNode(3.0, 4.0, 9, 0.5),
        Loss(5.0, 6.0, 0.25, frozenset(range(10))),
        Crash(7.0, 8.0, 4, keeps_memory=False),
    )
    assert drawn.quiet_from == 20.0
    assert len(drawn.publishes) == 3
    assert max(time for time, *_ in drawn.publishes) < 20.0


FAULT = '[[fault]]\nkind = "slow"\nstart = 1.0\nend = 2.0\n'


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("nodes = ", "Invalid value"),
        ("nodes = 1", "`$.nodes`"),
        ("node = 7", "unknown field `node`"),
        ('model = "zipf"', "model 'zipf': say one of"),
        ("interests = [5, 2]", "interests: need"),
        ('membership = "some"', "membership 'some'"),
        (FAULT.replace("slow", "sloww"), "kinds of fault: crash, loss, partition, slow"),
        (FAULT.replace("2.0", "0.5"), "fault 1 ends at 0.5 s, before it starts at 1 s"),
        (FAULT + "nodes = [1]\nshare = 0.5", "both nodes and a share"),
        (FAULT + "nodes = [60]", "there is no node 60; they are 0 to 59"),
        (FAULT + "memory = true", "unknown field `memory`"),
        ("quiet_from = 1.0\n" + FAULT, "a fault lasts until 2 s"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(tmp_path: Path, text: str, complaint: str) -> None:
    file = written(tmp_path, text)
    with pytest.raises(BadInput) as error:
        read_scenario(file)
    said = str(error.value)
    assert complaint in said
    assert said.startswith(f"scenario {file}: ")
    assert "\n" not in said


def test_no_such_scenario(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"No such file"):
        read_scenario(tmp_path / "none.toml")
    with pytest.raises(BadInput, match="or one of crash-a-tenth, lossy-link"):
        read_scenario("partitoin")
    with pytest.raises(BadInput, match="3 nodes are too few"):
        read_scenario(written(tmp_path, FAULT + "nodes = [5]")).draw(0, nodes=3)
