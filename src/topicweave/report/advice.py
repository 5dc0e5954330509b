"""Which of the systems compared to take, under constraints; or, if none will do, what stands in the way."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Any

from topicweave.report.columns import COLUMNS
from topicweave.report.comparison import Comparison, Entry, Shown
from topicweave.report.constraints import Constraint, complaints, fits
from topicweave.systems.parameters import flat
from topicweave.systems.presets import DEFAULT, PAPER
from topicweave.systems.registry import find_system

PREFERENCES = {
    "links": "degree_mean",
    "latency": "latency_p95",
    "control": "control_bytes",
    "noise": "noise",
    "hops": "hops_mean",
    "repair": "repair_time",
    "memory": "memory_bytes",
}
"""In what a system may be best, as the user says it, and the measure that tells."""
NOTABLE = 0.1
"""Being worse than another by less than this share is not worth a word."""


@dataclass(frozen=True, repr=False)
class Advice:
    """An answer, with its reasons."""

    comparison: Comparison
    """The evidence."""
    prefer: str
    """In what the chosen one is best, as the user says it."""
    chosen: Entry | None
    """None if no system fits."""
    fitting: tuple[Entry, ...]
    given_up: tuple[str, ...]
    """Where another fitting system is better, in words."""
    nearest: Entry | None = None
    """If none fits: the one that comes closest."""
    binding: tuple[str, ...] = ()
    """If none fits: what the nearest breaks, and which constraint, if dropped, would let some system in."""
    decided: bool = True
    """Whether what the user prefers decided; not if none that fits has a value for it."""

    def to_json(self) -> dict[str, Any]:
        return {
            "system": self.chosen and self.chosen.system,
            "parameters": self.chosen and self.chosen.parameters,
            "prefer": self.prefer,
            "decided": self.decided,
            "fitting": [entry.label for entry in self.fitting],
            "given_up": list(self.given_up),
            "nearest": self.nearest and self.nearest.label,
            "binding": list(self.binding),
            "constraints": [constraint.option for constraint in self.comparison.constraints],
            "comparison": self.comparison.to_json(),
        }

    @property
    def reasons(self) -> list[str]:
        """The answer in words, a sentence each; what belongs to the one before is indented."""
        if self.chosen is None:
            return [
                "No system keeps to all of that on these subscriptions.",
                *(f"  {line}" for line in self.binding),
            ]
        said = [
            f"Take {self.chosen.label}: of the {len(self.fitting)} (of {len(self.comparison.entries)}) that keep to all "
            "constraints with every seed, "
            + (
                f"it is best in {self.prefer}."
                if self.decided
                else f"none has a value for {self.prefer}; it has the fewest links."
            )
        ]
        if self.given_up:
            said.append("What that gives up, against others that fit:")
            said += [f"  {line}" for line in self.given_up]
        return said

    @property
    def node_toml(self) -> str | None:
        """The chosen system as `topicweave node --config` takes it; None if none fits."""
        setting = self.comparison.setting
        return None if self.chosen is None else node_toml(self.chosen, setting.preset, setting.membership)

    def table(self, width: int | None = None) -> Shown:
        """The evidence as text; see `Comparison.table`."""
        return self.comparison.table(width)

    def to_pandas(self) -> Any:
        """The evidence as a DataFrame; see `Comparison.to_pandas`."""
        return self.comparison.to_pandas()

    def report(self, path: str | Path) -> Path:
        """Write the answer and the evidence as a page, with what breaks which constraint; see `Comparison.report`."""
        return self.comparison.report(path)

    def __repr__(self) -> str:
        return "\n".join(self.reasons)

    def _repr_html_(self) -> str:
        words = "".join(f"<p>{escape(line)}</p>" for line in self.reasons)
        return words + self.comparison._repr_html_()


def node_toml(chosen: Entry, preset: str, membership: str) -> str:
    """Nodes run with the times and the membership that the system was compared with. The papers' times are no
    preset, so that they are named one by one; oracles are no membership of live nodes.
    """
    named = dict(chosen.parameters)
    if preset == PAPER:
        preset = DEFAULT
        system = find_system(chosen.system)
        live = flat(system.settings(**system.paced(preset, {})))
        named |= {name: value for name, value in chosen.settings.items() if live.get(name) != value}
    lines = [f'system = "{chosen.system}"', f'preset = "{preset}"']
    if find_system(chosen.system).needs != "nothing":
        kind, _, capacity = membership.removeprefix("live-").partition(":")
        lines += ['membership = "gossip"'] if kind == "gossip" else []
        lines += [f"view = {capacity}"] if capacity else []
    groups: dict[str, list[str]] = {"": []}
    for name, value in named.items():
        *group, last = name.split(".")
        text = f'"{value}"' if isinstance(value, str) else str(value).lower()
        groups.setdefault(".".join(group), []).append(f"{last} = {text}")
    for name, settings in groups.items():
        if settings:
            lines += ["", f"[parameters.{name}]" if name else "[parameters]", *settings]
    return "\n".join(lines) + "\n"


def weigh(comparison: Comparison, measure: str, prefer: str) -> Advice:
    """Of the systems that keep to all constraints, the one that is best in a measure, which the user calls `prefer`.

    Among equals the one with fewer links, then the one named first.
    """
    comparison = replace(comparison, prefer=prefer, command=_advising(comparison, prefer))
    constraints = comparison.constraints
    fitting = tuple(entry for entry in comparison.entries if fits(entry, constraints))
    if not fitting:
        nearest, binding = _none_fits(comparison.entries, constraints)
        return Advice(comparison, prefer, None, (), (), nearest, tuple(binding))
    better = {column.measure: column.better for column in COLUMNS}
    sign = -1.0 if better.get(measure, "lower") == "higher" else 1.0

    def rank(entry: Entry) -> tuple[bool, float, float]:
        value = entry.measure(measure)
        none = not math.isfinite(value)
        return none, 0.0 if none else sign * value, entry.measure("degree_mean")

    chosen = min(fitting, key=rank)
    decided = math.isfinite(chosen.measure(measure))
    given_up = tuple(_given_up(chosen, fitting))
    return Advice(comparison, prefer, chosen, fitting, given_up, decided=decided)


def _advising(comparison: Comparison, prefer: str) -> str:
    """The command that gives the advice again."""
    words = comparison.command.split(" ")
    if comparison.prefer or words[:2] != ["topicweave", "compare"]:
        return comparison.command
    if not any(constraint.measure == "hit_ratio" for constraint in comparison.constraints):
        words += ["--min-hit", "0"]  # Advice asks for every delivery unless told otherwise.
    return " ".join(["topicweave", "advise", *words[2:], "--prefer", prefer])


def _given_up(chosen: Entry, fitting: Sequence[Entry]) -> list[str]:
    """Column by column, the best other system that fits, if it is better by a notable share."""
    told = []
    for column in COLUMNS:
        sign = 1.0 if column.better == "lower" else -1.0
        own = chosen.measure(column.measure)
        others = [entry for entry in fitting if not math.isnan(entry.measure(column.measure))]
        if math.isnan(own) or not others:
            continue
        best = min(others, key=lambda entry: sign * entry.measure(column.measure))
        theirs = best.measure(column.measure)
        if sign * (own - theirs) > NOTABLE * max(abs(own), abs(theirs)) or (
            math.isinf(own) and own != theirs
        ):
            told.append(f"{column.meaning}: {column.cell(own)}, where {best.label} has {column.cell(theirs)}")
    return told


def _none_fits(entries: Sequence[Entry], constraints: Sequence[Constraint]) -> tuple[Entry, list[str]]:
    def distance(entry: Entry) -> tuple[int, float, float]:
        broken = [constraint for constraint in constraints if constraint.excess(entry) > 0]
        # Nothing is a share of a bound of 0: what exceeds that is compared as it is.
        shares = sum(constraint.relative(entry) for constraint in broken if constraint.bound)
        return (
            len(broken),
            shares,
            sum(constraint.excess(entry) for constraint in broken if not constraint.bound),
        )

    nearest = min(entries, key=distance)
    binding = [f"{nearest.label} comes closest, but: {'; '.join(complaints(nearest, constraints))}"]
    for dropped in constraints:
        rest = [constraint for constraint in constraints if constraint is not dropped]
        let_in = [entry for entry in entries if fits(entry, rest)]
        if let_in:
            least = min(let_in, key=dropped.excess)
            said = f"{dropped.option} binds: without it {len(let_in)} would fit"
            if not math.isnan(worst := dropped.worst(least)):
                exact = dropped.column.exact
                said += f", and with {exact(worst)} instead of {exact(dropped.bound)} {least.label}"
            binding.append(said)
    if len(binding) == 1 and len(constraints) > 1:
        binding.append("no constraint binds alone: at least two would have to give way")
    return nearest, binding
