"""Continuing the results of all studies: which runs are still to be made, and what numbers come of those that
are there.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from topicweave.papers.physics import world_of
from topicweave.papers.results import Batch, Number, as_numbers
from topicweave.papers.study import Plan, Scale, Study
from topicweave.runs.fingerprint import fingerprint_of_all
from topicweave.runs.run import Run
from topicweave.runs.runner import finished_runs

KEPT = Path("docs/results")
"""Where this project keeps what came out at the papers' sizes."""

Label = tuple[str, int, Any]
"""A run among those of all studies: the study, its seed, and the study's own label."""


def results_folder(scale: str, out: Path) -> Path:
    """Where results go if nobody says: to those that the project keeps, where it is here."""
    return KEPT if scale == "paper" and KEPT.is_dir() else out / "results"


def batch_of(study: Study, plan: Plan, scale: Scale, seed: int, code: str = "", made: str = "") -> Batch:
    seeds, world = study.seeds.get(scale, 1), world_of(study, plan)
    return Batch(study.name, scale, seed, study.level, seeds, code, made, world)


@dataclass(frozen=True)
class _Part:
    """A study with one seed."""

    study: Study
    seed: int
    plan: Plan
    code: str
    known: bool
    """Its numbers are among the earlier results, made by the same code."""

    def labelled(self) -> dict[Label, Run]:
        return {(self.study.name, self.seed, label): run for label, run in self.plan.runs.items()}


@dataclass(frozen=True)
class Reproduction:
    """Studies at one scale, beside the results of earlier runs."""

    scale: Literal["smoke", "paper"]
    parts: tuple[_Part, ...]

    @classmethod
    def of(
        cls,
        studies: Iterable[Study],
        scale: Literal["smoke", "paper"],
        seeds: Iterable[int],
        earlier: Sequence[Number],
    ) -> Reproduction:
        """A study is known if earlier results are of its code: not of its plan, which may ask for other rows. Leave
        its earlier results out then.
        """
        known = {(number.batch, number.code) for number in earlier}
        seeds, parts = tuple(seeds), []
        for study in studies:
            for seed in seeds:
                plan = study.plan(scale, seed)
                code = fingerprint_of_all(plan.runs.values())[:12]
                parts.append(_Part(study, seed, plan, code, ((study.name, scale, seed), code) in known))
        return cls(scale, tuple(parts))

    def todo(self) -> dict[Label, Run]:
        """The runs of studies that are not known."""
        return {label: run for part in self.parts if not part.known for label, run in part.labelled().items()}

    def finished(self, store: Path, *, of_all: bool) -> dict[Label, Any]:
        """What was run already.

        What is known needs no run; where its runs are still kept its rows are made again, since a study may keep more
        than it did.
        """
        parts = (part for part in self.parts if of_all or part.known)
        return dict(
            finished_runs({label: run for part in parts for label, run in part.labelled().items()}, store)
        )

    def numbers(
        self, found: Mapping[Label, Any], failures: Mapping[Label, str], day: str
    ) -> tuple[list[Number], dict[str, str]]:
        """Those of all studies that were run to their end, and why others were not."""
        later: list[Number] = []
        lost = {}
        for part in self.parts:
            name, runs = part.study.name, part.labelled()
            missing = [label for label in runs if label not in found]
            if not missing:
                rows = part.plan.rows_of({label[2]: found[label] for label in runs})
                later += as_numbers(
                    batch_of(part.study, part.plan, self.scale, part.seed, part.code, day), rows
                )
            elif not part.known:
                why = failures.get(missing[0], "not run yet")
                lost[name] = f"{len(missing)} of {len(runs)} runs with seed {part.seed} are missing: {why}"
        return later, lost

    def papers(self) -> list[str]:
        names = (part.study.name.partition("/") for part in self.parts)
        return list(dict.fromkeys(paper for paper, slash, _ in names if slash))

    def first(self) -> Iterator[_Part]:
        """Each study once, with the first seed."""
        return (part for part in self.parts if part.seed == self.parts[0].seed)

    def small(self, studies: Container[str], earlier: Sequence[Number]) -> Reproduction:
        """Some studies at smoke scale with the first seed. The numbers bear the name of the code that runs
        *this* scale.
        """
        known = {(number.batch, number.code) for number in earlier}
        parts = (
            replace(
                part,
                plan=part.study.plan("smoke", part.seed),
                known=((part.study.name, "smoke", part.seed), part.code) in known,
            )
            for part in self.first()
            if part.study.name in studies and not part.study.clocked
        )
        return Reproduction("smoke", tuple(parts))
