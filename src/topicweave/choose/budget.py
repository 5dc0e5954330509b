"""A comparison within a budget of time: a sample and seeds that fit, and what that leaves out."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

import topicweave
from topicweave.choose.channel import Channel
from topicweave.choose.planning import (
    MOST_NODES,
    PILOT_NODES,
    WORTH_A_PILOT,
    RunPlan,
    costs_of,
    plan,
    seconds_for,
)
from topicweave.choose.question import Question
from topicweave.choose.running import Engine, run_for, store
from topicweave.data.sampling import neighbourhood
from topicweave.model.workload import Workload
from topicweave.report.files import write_whole
from topicweave.runs.sources import fingerprint


class Budget:
    """What fits. The plan is kept in `out`, so that the same call, later, goes on with the same sample."""

    def __init__(
        self, question: Question, workload: Workload, out: Path, engine: Engine, channel: Channel
    ) -> None:
        self._started = time.perf_counter()
        self._seconds = question.budget
        self._question = question
        self._channel = channel
        self.nodes = min(question.nodes or workload.nodes, workload.nodes)
        self.seeds = question.seeds
        self._kept: Path | None = None
        """Where the plan is; None if there is nothing to plan."""
        if question.budget is None or self.nodes <= WORTH_A_PILOT:
            return
        self._wanted = self.nodes
        self._kept = out / "plans" / f"{_name(question, workload, engine)}.json"
        known = _read(self._kept)
        chosen = known or self._planned(workload, out, engine)
        self.nodes, self.seeds = chosen.nodes, chosen.seeds
        if known is None:
            write_whole(self._kept, msgspec.json.encode(chosen).decode())
        else:
            self._seconds = None  # What was decided then stands.
        for cut in self.cuts:
            channel.note(f"to keep within the budget: {cut} (see --budget, --nodes, --seeds)")

    @property
    def cuts(self) -> list[str]:
        """What is left out, in words."""
        cuts = []
        if self._kept is not None and self.nodes < self._wanted:
            cuts.append(
                f"a sample of {self.nodes:,} of the {self._wanted:,} nodes, by common interests, with all their topics"
            )
        if self.seeds < self._question.seeds:
            cuts.append(f"{self.seeds} of {self._question.seeds} seeds")
        return cuts

    def rounds(self) -> Iterator[tuple[int, ...]]:
        """The seeds to run next, together. With a budget one by one, as long as another one fits."""
        first = self._question.seed
        if self._kept is None or self._seconds is None:
            yield tuple(range(first, first + self.seeds))
            return
        longest = 0.0
        for done in range(self.seeds):
            began = time.perf_counter()
            yield (first + done,)
            longest = max(longest, time.perf_counter() - began)
            left = self._seconds - (time.perf_counter() - self._started)
            if done + 1 < self.seeds and longest > left:
                self.seeds = done + 1
                write_whole(self._kept, msgspec.json.encode(RunPlan(self.nodes, self.seeds)).decode())
                self._channel.note(
                    f"to keep within the budget: {self.seeds} of {self._question.seeds} seeds; "
                    f"another takes {longest:,.0f} s, and {max(left, 0.0):,.0f} s are left"
                )
                return

    def _planned(self, workload: Workload, out: Path, engine: Engine) -> RunPlan:
        question, workers = self._question, engine.at_once
        small, large = (store(neighbourhood(workload, nodes, question.seed), out) for nodes in PILOT_NODES)
        pilots = [
            run_for(question, variant, stored, question.seed)
            for variant in question.variants
            for stored in (small, large)
        ]
        self._channel.note(
            f"pilots with {PILOT_NODES[0]} and {PILOT_NODES[1]} nodes, to see what fits into the budget "
            f"({workers} at a time{', on the cluster' if engine.is_cluster else ''})"
        )
        costs = costs_of(engine.seconds(pilots))
        assert question.budget is not None
        left = question.budget - (time.perf_counter() - self._started)
        most = self.nodes if engine.is_cluster else MOST_NODES
        chosen = plan(costs, self.nodes, question.seeds, left, workers, most)
        takes = seconds_for(costs, chosen.nodes, workers, chosen.seeds)
        self._channel.note(
            f"about {takes:,.0f} s for {chosen.nodes:,} nodes and {chosen.seeds} "
            f"{'seed' if chosen.seeds == 1 else 'seeds'}; {max(left, 0.0):,.0f} s of the budget are left"
        )
        return chosen


def _name(question: Question, workload: Workload, engine: Engine) -> str:
    """Of all that a plan depends on."""
    asked = [
        [(variant.system, variant.changes) for variant in question.variants],
        [question.seeds, question.seed, question.events, question.membership, question.settle],
        [question.latency, question.churn, question.crash, question.nodes, question.budget],
        [fingerprint(workload), engine.at_once, engine.is_cluster, topicweave.__version__],
    ]
    return hashlib.sha1(msgspec.json.encode(asked), usedforsecurity=False).hexdigest()[:16]


def _read(path: Path) -> RunPlan | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=RunPlan)
    except (OSError, msgspec.DecodeError):
        return None
