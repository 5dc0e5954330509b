"""A comparison within a budget of time: a sample and seeds that fit, and what that leaves out.

A guess from pilots decides what is begun; the clock decides what is finished. When the time is up, runs under way are
ended, and the answer rests on what there is.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
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
from topicweave.choose.running import Engine, RunPlace, run_for, store
from topicweave.data.sampling import neighbourhood
from topicweave.errors import TopicweaveError
from topicweave.model.workload import Workload
from topicweave.report.files import write_whole
from topicweave.runs.background import OutOfTime
from topicweave.runs.sources import fingerprint
from topicweave.runs.store import ResultStore

PILOT_SHARE = 0.5
"""Of the budget, what is left for the comparison itself, whatever pilots take."""
END_SHARE = 0.05
"""Of the budget, what is left for the table and the report."""


class Budget:
    """What fits. The plan is kept in `out`, so that the same call, later, goes on with the same sample."""

    def __init__(
        self,
        question: Question,
        workload: Workload,
        out: Path,
        store: ResultStore,
        engine: Engine,
        channel: Channel,
        began: float,
    ) -> None:
        """began: when it was asked for, by `time.perf_counter`; reading the subscriptions counts, too."""
        self._seconds = question.budget
        self._until = None if question.budget is None else began + (1 - END_SHARE) * question.budget
        """When the time is up, by `time.perf_counter`."""
        self._store = store
        engine.until = self._until
        self._question = question
        self._channel = channel
        self._whole = self.nodes = min(question.nodes or workload.nodes, workload.nodes)
        self.seeds = question.seeds
        self._unfinished: list[str] = []
        """Systems without any result."""
        if self._seconds is None or self.nodes <= WORTH_A_PILOT:
            return
        kept = out / "plans" / f"{_name(question, workload, engine)}.json"
        times = kept.with_suffix(".pilots.json")
        known = _read(kept)
        chosen = known or self._planned(workload, out, engine, times)
        self.nodes, self.seeds = chosen.nodes, chosen.seeds
        if known is None:
            write_whole(kept, msgspec.json.encode(chosen).decode())
            times.unlink(missing_ok=True)
        for cut in self.cuts:
            channel.note(f"to keep within the budget: {cut} (see --budget, --nodes, --seeds)")

    @property
    def cuts(self) -> list[str]:
        """What is left out, in words."""
        cuts = []
        if self.nodes < self._whole:
            cuts.append(
                f"a sample of {self.nodes:,} of the {self._whole:,} nodes, by common interests, with all their topics"
            )
        if self.seeds < self._question.seeds:
            cuts.append(f"{self.seeds} of {self._question.seeds} seeds")
        if self._unfinished:
            cuts.append(f"no result in time: {', '.join(self._unfinished)}")
        return cuts

    def close(self, results: Mapping[RunPlace, object]) -> list[int]:
        """The places of the systems that have a result for every seed, after as many seeds as are finished.

        A seed counts if all systems have it. If not even the first does, those that have it are left.
        """
        question = self._question
        places = range(len(question.variants))
        whole = [
            all((place, seed) in results for place in places) for seed in question.all_seeds[: self.seeds]
        ]
        if all(whole):
            return list(places)
        self.seeds = max(1, whole.index(False))
        there = [place for place in places if (place, question.seed) in results]
        if not there:
            raise TopicweaveError(
                f"no run was finished within {self._seconds:,.0f} s; "
                "give it more time (--budget), or take fewer nodes (--nodes) or systems (--systems)"
            )
        self._unfinished = [question.variants[place].label for place in places if place not in there]
        self._channel.note(
            f"the time is up: {'; '.join(self.cuts)}; finished runs are kept, and the same command goes on from there"
        )
        return there

    def _planned(self, workload: Workload, out: Path, engine: Engine, times: Path) -> RunPlan:
        question, workers = self._question, engine.at_once
        small, large = (store(neighbourhood(workload, nodes, question.seed), out) for nodes in PILOT_NODES)
        pilots = [
            run_for(question, variant, stored, question.seed)
            for stored in (small, large)
            for variant in question.variants
        ]
        self._channel.note(
            f"pilots with {PILOT_NODES[0]} and {PILOT_NODES[1]} nodes, to see what fits into the budget "
            f"({workers} at a time{', on the cluster' if engine.is_cluster else ''})",
            passing=True,
        )
        assert self._seconds is not None
        assert self._until is not None
        try:
            until = self._until - PILOT_SHARE * self._seconds
            costs = costs_of(engine.seconds(pilots, self._store, times, until, self._channel.progress))
        except OutOfTime:
            self._channel.note(
                f"pilots take more than {1 - PILOT_SHARE:.0%} of the budget: as few nodes as possible",
                passing=True,
            )
            return RunPlan(PILOT_NODES[0], 1)
        left = self._until - time.perf_counter()
        most = self.nodes if engine.is_cluster else MOST_NODES
        chosen = plan(costs, self.nodes, question.seeds, left, workers, most)
        takes = seconds_for(costs, chosen.nodes, workers, chosen.seeds)
        self._channel.note(
            f"about {takes:,.0f} s for {chosen.nodes:,} nodes and {chosen.seeds} "
            f"{'seed' if chosen.seeds == 1 else 'seeds'}; {max(left, 0.0):,.0f} s of the budget are left",
            passing=True,
        )
        return chosen


def _name(question: Question, workload: Workload, engine: Engine) -> str:
    """Of all that a plan depends on."""
    asked = [
        [(variant.system, variant.changes) for variant in question.variants],
        [
            question.seeds,
            question.seed,
            question.events,
            question.preset,
            question.membership,
            question.settle,
        ],
        [question.latency, question.churn, question.crash, question.nodes, question.budget],
        [fingerprint(workload), engine.at_once, engine.is_cluster, topicweave.__version__],
    ]
    return hashlib.sha1(msgspec.json.encode(asked), usedforsecurity=False).hexdigest()[:16]


def _read(path: Path) -> RunPlan | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=RunPlan)
    except (OSError, msgspec.DecodeError):
        return None
