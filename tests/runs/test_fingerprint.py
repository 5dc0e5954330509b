"""What code a result hangs on: all that its run can reach, and no words."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import topicweave
from topicweave.runs.fingerprint import fingerprint, reachable
from topicweave.runs.live_run import LiveRun
from topicweave.runs.overlay import SettledOverlay
from topicweave.runs.sources import GeneratedWorkload
from topicweave.runs.trial import Trial
from topicweave.systems.registry import SYSTEMS

LISTS = GeneratedWorkload(10)
OVERLAY = SettledOverlay(system="spidercast", workload=LISTS)

PROGRAM = """
from topicweave.papers.omen.mending import Mended
from topicweave.runs.fingerprint import fingerprint
from topicweave.runs.live_run import LiveRun
from topicweave.runs.overlay import SettledOverlay
from topicweave.runs.sources import GeneratedWorkload

lists = GeneratedWorkload(10)
for run in (
    SettledOverlay(system="spidercast", workload=lists),
    SettledOverlay(system="vitis", workload=lists),
    LiveRun(system="spidercast", workload=lists),
    Mended(system="omen", workload=lists, rounds=1),
):
    print(fingerprint(run))
"""
RUNS = ("spidercast", "vitis", "live", "mending")


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project's code, to be changed."""
    folder = tmp_path_factory.mktemp("copy")
    source = Path(topicweave.__file__).parent
    shutil.copytree(source, folder / "topicweave", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def fingerprints(folder: Path) -> dict[str, str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(folder)},
    )
    return dict(zip(RUNS, done.stdout.split(), strict=True))


@pytest.fixture(scope="module")
def before(copy: Path) -> dict[str, str]:
    return fingerprints(copy)


def changed(copy: Path, before: dict[str, str], file: str, old: str, new: str) -> set[str]:
    """Which runs a change of the code concerns."""
    path = copy / "topicweave" / file
    whole = path.read_text()
    assert old in whole
    try:
        path.write_text(whole.replace(old, new, 1))
        after = fingerprints(copy)
    finally:
        path.write_text(whole)
    return {run for run in RUNS if after[run] != before[run]}


MORE = "\n\nMORE = 1\n"


@pytest.mark.parametrize(
    ("file", "runs"),
    [
        ("live/transport.py", {"live"}),
        ("systems/vitis/node.py", {"vitis"}),
        ("systems/spidercast/__init__.py", {"spidercast", "live"}),
        ("sim/kernel.py", {"spidercast", "vitis"}),
        ("model/workload.py", set(RUNS)),
        ("bulk/omen/kernels.py", {"mending"}),
        ("systems/omen/repair.py", set()),
        ("papers/omen/degrees.py", set()),
        ("systems/registry.py", set()),
        ("runs/registry.py", set()),
        ("runs/runner.py", set()),
        ("report/page.py", set()),
        ("cli/app.py", set()),
    ],
)
def test_code_counts_for_the_runs_that_reach_it(
    copy: Path, before: dict[str, str], file: str, runs: set[str]
) -> None:
    first = "from __future__ import annotations" if file != "systems/spidercast/__init__.py" else "\n"
    assert changed(copy, before, file, first, f"{first}{MORE}") == runs


def test_words_and_the_order_of_functions_do_not_count(copy: Path, before: dict[str, str]) -> None:
    file = "sim/kernel.py"
    assert changed(copy, before, file, '"""', '"""Well, ') == set()
    assert changed(copy, before, file, "\n\n\n", "\n\n# A remark.\n\n\n\n") == set()
    path = copy / "topicweave" / "sim" / "churn.py"
    text = path.read_text()
    first, second = text.index("\n\n\ndef "), text.index("\n\n\ndef ", text.index("\n\n\ndef ") + 5)
    third = (text + "\n\n\ndef ").index("\n\n\ndef ", second + 5)
    swapped = text[:first] + text[second:third].rstrip() + text[first:second].rstrip() + "\n" + text[third:]
    assert changed(copy, before, "sim/churn.py", text, swapped) == set()


def test_a_live_run_reaches_the_live_code_and_others_do_not() -> None:
    live = LiveRun(system="spidercast", workload=LISTS)
    assert {"topicweave.live.transport", "topicweave.live.node"} <= reachable(live)
    assert not {name for name in reachable(OVERLAY) if name.startswith("topicweave.live")}


@pytest.mark.parametrize("system", list(SYSTEMS))
def test_a_system_is_reached_with_its_description_and_no_other(system: str) -> None:
    run = Trial(system=system, workload=LISTS)
    found = SYSTEMS[system]
    modules = reachable(run)
    assert found.build.__module__ in modules
    assert any(any(value is found for value in vars(sys.modules[name]).values()) for name in modules), (
        "where the system is described"
    )
    described = {other.build.__module__ for name, other in SYSTEMS.items() if name not in {system, "broker"}}
    # Baselines of one paper may share a node's code; nobody reaches all.
    assert len(modules & described) < 4
    assert fingerprint(run) == fingerprint(Trial(system=system, workload=LISTS, seed=1))
