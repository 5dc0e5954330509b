"""What code a result hangs on: all that its run can reach, and no words."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

import pytest

import topicweave
from topicweave.runs.fingerprint import _reachable, _roots, fingerprint
from topicweave.runs.live_run import LiveRun
from topicweave.runs.overlay import SettledOverlay
from topicweave.runs.run import Run
from topicweave.runs.sources import GeneratedWorkload
from topicweave.runs.trial import Trial
from topicweave.systems.registry import SYSTEMS

LISTS = GeneratedWorkload(10)
OVERLAY = SettledOverlay(system="spidercast", workload=LISTS)

PROGRAM = """
import os
import sys

from topicweave.papers.omen.mending import Mended
from topicweave.runs.fingerprint import fingerprint
from topicweave.runs.live_run import LiveRun
from topicweave.runs.overlay import SettledOverlay
from topicweave.runs.sources import GeneratedWorkload

lists = GeneratedWorkload(10)
for _ in sys.stdin:
    if os.fork():
        if os.wait()[1]:
            sys.exit("no answer")
        continue
    for run in (
        SettledOverlay(system="spidercast", workload=lists),
        SettledOverlay(system="vitis", workload=lists),
        LiveRun(system="spidercast", workload=lists),
        Mended(system="omen", workload=lists, rounds=1),
    ):
        print(fingerprint(run), end=" ")
    print(flush=True)
    os._exit(0)
"""
"""Answers every line with the fingerprints of the code that lies there by then, each from a process that
remembers no other answer.
"""
RUNS = ("spidercast", "vitis", "live", "mending")


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project's code, to be changed."""
    folder = tmp_path_factory.mktemp("copy")
    source = Path(topicweave.__file__).parent
    shutil.copytree(source, folder / "topicweave")  # with what Python has compiled of it
    return folder


class Fingerprints:
    """Of the code in a folder; libraries are loaded once for all questions."""

    def __init__(self, program: subprocess.Popen[str]) -> None:
        self._program = program

    def now(self) -> dict[str, str]:
        assert self._program.stdin is not None
        assert self._program.stdout is not None
        self._program.stdin.write("\n")
        self._program.stdin.flush()
        return dict(zip(RUNS, self._program.stdout.readline().split(), strict=True))


@pytest.fixture(scope="module")
def fingerprints(copy: Path) -> Iterator[Fingerprints]:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=copy,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(copy)},
    ) as program:
        yield Fingerprints(program)


@pytest.fixture(scope="module")
def before(fingerprints: Fingerprints) -> dict[str, str]:
    return fingerprints.now()


@pytest.fixture
def changed(copy: Path, fingerprints: Fingerprints, before: dict[str, str]) -> Callable[..., set[str]]:
    """Which runs a change of the code concerns."""

    def runs(file: str, old: str, new: str) -> set[str]:
        path = copy / "topicweave" / file
        whole = path.read_text()
        assert old in whole
        try:
            path.write_text(whole.replace(old, new, 1))
            after = fingerprints.now()
        finally:
            path.write_text(whole)
        return {run for run in RUNS if after[run] != before[run]}

    return runs


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
    changed: Callable[..., set[str]], file: str, runs: set[str]
) -> None:
    first = "from __future__ import annotations" if file != "systems/spidercast/__init__.py" else "\n"
    assert changed(file, first, f"{first}{MORE}") == runs


def test_words_and_the_order_of_functions_do_not_count(copy: Path, changed: Callable[..., set[str]]) -> None:
    file = "sim/kernel.py"
    assert changed(file, '"""', '"""Well, ') == set()
    assert changed(file, "\n\n\n", "\n\n# A remark.\n\n\n\n") == set()
    path = copy / "topicweave" / "sim" / "churn.py"
    text = path.read_text()
    first, second = text.index("\n\n\ndef "), text.index("\n\n\ndef ", text.index("\n\n\ndef ") + 5)
    third = (text + "\n\n\ndef ").index("\n\n\ndef ", second + 5)
    swapped = text[:first] + text[second:third].rstrip() + text[first:second].rstrip() + "\n" + text[third:]
    assert changed("sim/churn.py", text, swapped) == set()


def reachable(run: Run) -> set[str]:
    """The modules that the fingerprint is made of."""
    return _reachable(frozenset(_roots(run)))


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
    assert any(any(value is found for value in vars(import_module(name)).values()) for name in modules), (
        "where the system is described"
    )
    described = {other.build.__module__ for name, other in SYSTEMS.items() if name not in {system, "broker"}}
    # Baselines of one paper may share a node's code; nobody reaches all.
    assert len(modules & described) < 4
    assert fingerprint(run) == fingerprint(Trial(system=system, workload=LISTS, seed=1))
