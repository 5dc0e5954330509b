"""A finished comparison as plain data: what the table, the JSON and the page are all made from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import topicweave
from topicweave.errors import UnknownName
from topicweave.measures.intervals import half_width, mean, share_half_width
from topicweave.systems.presets import DEFAULT, PAPER

if TYPE_CHECKING:
    from topicweave.report.constraints import Constraint


OWN_BYTES = "own_bytes"
"""Control traffic without that of membership: what the system itself sends."""
UNLISTED = ("coverage", "deliveries_expected", "settle_seconds")
"""Measures that reports look at beside those of the table."""
BY_KIND = ("links", "control_messages", "control_bytes")
"""Measures that are also told by kind, as in `links.cover`; which kinds there are depends on the run."""


@dataclass(frozen=True, repr=False)
class Entry:
    """One system, as it was set, and what came out with each seed."""

    system: str
    parameters: dict[str, Any]
    """Those that were set by hand; a part of a group is named `group.part`."""
    settings: dict[str, Any]
    """All of them, in the same form."""
    results: tuple[dict[str, Any], ...]
    """What the experiments gave, one per seed: measures (numbers) and distributions (lists)."""

    @property
    def label(self) -> str:
        """The system as the command line names it: `spidercast`, or `spidercast:k_greedy=2`."""
        return ":".join(
            [self.system, *(f"{name}={as_text(value)}" for name, value in self.parameters.items())]
        )

    def __repr__(self) -> str:
        count = len(self.results)
        missed = sum(share < 1.0 for share in self.replications("hit_ratio"))
        seeds = f"{count} seed" if count == 1 else f"{count} seeds"
        return f"<Entry {self.label}: {seeds}{f', deliveries missed with {missed}' if missed else ''}>"

    @cached_property
    def measures(self) -> dict[str, float]:
        """Means over the seeds."""
        names = dict.fromkeys(
            name for result in self.results for name, value in result.items() if _is_number(value)
        )
        if {"control_bytes", "membership_bytes"} <= names.keys():
            names[OWN_BYTES] = None
        return {name: mean(self._values(name)) for name in names}

    @cached_property
    def known(self) -> set[str]:
        """The measures that may be asked for: its own, those of the table, and those of what it is compared with."""
        from topicweave.report.columns import COLUMNS

        return {*self.measures, *(column.measure for column in COLUMNS), *UNLISTED}

    def _refuse_unknown(self, name: str) -> None:
        if name not in self.known and name.partition(".")[0] not in BY_KIND:
            raise UnknownName("measure", name, [one for one in self.known if "." not in one])

    def replications(self, name: str) -> list[float]:
        """A measure with each seed; nan where it was not taken. Raises `UnknownName`."""
        self._refuse_unknown(name)
        return self._values(name)

    def _values(self, name: str) -> list[float]:
        if name == OWN_BYTES:
            total, membership = self._values("control_bytes"), self._values("membership_bytes")
            return [_without(*one) for one in zip(total, membership, strict=True)]
        return [float(result[name]) if _is_number(result.get(name)) else math.nan for result in self.results]

    def measure(self, name: str) -> float:
        """A measure, nan if it was not taken. Raises `UnknownName`."""
        self._refuse_unknown(name)
        return self.measures.get(name, math.nan)

    @property
    def reaches_everybody(self) -> bool:
        """Whether every expected delivery was made, with every seed. Not if none was expected: then nobody knows."""
        known = [share for share in self.replications("hit_ratio") if not math.isnan(share)]
        return bool(known) and min(known) == 1.0

    def interval(self, name: str) -> float:
        """Half of the measure's 95 % confidence interval over the seeds (Student's); nan with a single seed.

        A hit ratio is a share of so many deliveries: it is not known better than that allows, whatever seeds agree on.
        Its interval is the wider of that and Wilson's for so many deliveries, which a single seed has, too.
        """
        over_seeds = half_width(self.replications(name))
        if name != "hit_ratio":
            return over_seeds
        of_share = share_half_width(self.measure(name), self.deliveries)
        return max(over_seeds, of_share) if math.isfinite(over_seeds) else of_share

    @property
    def deliveries(self) -> float:
        """How many expected deliveries the hit ratio rests on, all seeds together."""
        return sum(count for count in self.replications("deliveries_expected") if not math.isnan(count))

    # What figures are drawn from: all seeds together.

    def collected(self, name: str) -> list[float]:
        """Values of single nodes, say: those of all seeds one after another."""
        return [value for result in self.results for value in result.get(name, ())]

    def summed(self, name: str) -> list[float]:
        """Counts: added up place by place."""
        return [sum(values) for values in zip_longest(*self._lists(name), fillvalue=0.0)]

    def averaged(self, name: str) -> list[float]:
        """Quantiles, or a curve over time: the mean at each place that all seeds have."""
        return [mean(values) for values in zip(*self._lists(name), strict=False)]

    def first(self, name: str) -> Any:
        """What can't be put together: the first seed's."""
        return self.results[0].get(name) if self.results else None

    def _lists(self, name: str) -> list[Sequence[float]]:
        return [result[name] for result in self.results if result.get(name)]


def _without(total: float, part: float) -> float:
    """A sum of parts may be a rounding error above the total; where there is no such part, all is left."""
    return 0.0 if part > total else total if math.isnan(part) else total - part


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


@dataclass(frozen=True)
class Setting:
    """What all systems of a comparison went through."""

    seeds: tuple[int, ...] = (0,)
    events: int = 200
    preset: str = DEFAULT
    """Whose times nodes ran with."""
    membership: str = "directory"
    settle: float | None = None
    """Virtual seconds before events start; None: each system as long as it takes (its measure `settle_seconds`)."""
    latency: str = "50ms"
    loss: float = 0.0
    """The share of all messages that got lost."""
    churn: str = ""
    crash: float = 0.1


def times_in_words(preset: str) -> str:
    """
    >>> times_in_words("lan")
    'lan: those of live nodes with this preset'
    """
    if preset == PAPER:
        return f"{preset}: the papers' own, and defaults where a paper names none; live nodes have others"
    return f"{preset}: those of live nodes with this preset"


def membership_in_words(membership: str) -> str:
    """What a reader has to know of how nodes knew of each other.

    >>> membership_in_words("full")
    'full: an oracle; nodes know at once what no live node could, and pay nothing for it'
    """
    if membership.startswith("directory"):
        return f"{membership}: as live nodes have it, by gossip and a directory of topics; its traffic counts"
    if membership.startswith(("gossip", "live-gossip")):
        return f"{membership}: by gossip alone, so rare topics may not be found; its traffic counts"
    return f"{membership}: an oracle; nodes know at once what no live node could, and pay nothing for it"


class Shown(str):
    """Text that an interactive session shows as it is, without quotes and with its lines."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


@dataclass(frozen=True, repr=False)
class Comparison:
    """Several systems on one workload and the same events.

    A notebook shows it as a table; `comparison["spidercast"]` is one system's part.
    """

    workload: dict[str, Any]
    """Facts: name, nodes, topics, subscriptions, …"""
    setting: Setting
    entries: tuple[Entry, ...]
    command: str
    """What to type to get the same again."""
    cuts: tuple[str, ...] = ()
    """What was left out to keep within a budget of time, in words."""
    constraints: tuple[Constraint, ...] = ()
    """What the user holds systems to."""
    notes: tuple[str, ...] = ()
    """What the user should know of how it went, in words."""
    prefer: str = ""
    """If it was made for advice: in what the one to be taken is best, as the user says it."""

    def __post_init__(self) -> None:
        """What one system has, the others may be asked for: they have no value."""
        names = {name for entry in self.entries for name in entry.measures}
        for entry in self.entries:
            entry.known.update(names)

    def __getitem__(self, label: str) -> Entry:
        """A system as it was named: `spidercast`, or `spidercast:k_greedy=2`."""
        for entry in self.entries:
            if entry.label == label:
                return entry
        raise UnknownName("system", label, [entry.label for entry in self.entries])

    @property
    def crashing(self) -> str:
        """Who crashes in the end: a share of the nodes, or how many where it is no whole number of them, or no share
        in few digits.
        """
        share, nodes = self.setting.crash, int(self.workload["nodes"])
        number = 1 + max(0, min(nodes - 2, round(share * nodes) - 1))
        percent = f"{100 * share:.4g}"
        exact = math.isclose(number, share * nodes) and math.isclose(float(percent), 100 * share)
        if self.setting.churn or exact:
            return f"{percent}% of the nodes crash"
        return f"{number:,} of {nodes:,} nodes {'crashes' if number == 1 else 'crash'}"

    @property
    def shared_topics(self) -> int:
        """Topics with two subscribers or more."""
        return int(self.workload["topics"]) - int(self.workload.get("lonely_topics", 0))

    @property
    def deliveries(self) -> float:
        """How many expected deliveries every hit ratio rests on, or more."""
        return min((entry.deliveries for entry in self.entries), default=0.0)

    def table(self, width: int | None = None) -> Shown:
        """The table as text: in one piece, or in several with lines of at most `width` characters."""
        from topicweave.report.terminal import as_plain_text

        return Shown(as_plain_text(self, width))

    def __repr__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        from topicweave.report.notebook import comparison_markup

        return comparison_markup(self)

    def to_pandas(self) -> Any:
        """A DataFrame: a row per system (by its label) and seed, a column per measure."""
        import pandas as pd

        rows = [
            {
                "system": entry.label,
                "seed": seed,
                **{name: entry.replications(name)[place] for name in entry.measures},
            }
            for entry in self.entries
            for place, seed in enumerate(self.setting.seeds)
        ]
        return pd.DataFrame(rows).set_index(["system", "seed"])

    def report(self, path: str | Path) -> Path:
        """Write the whole page, one HTML file that needs nothing but itself. Raises `PlotlyMissing`."""
        from topicweave.report.files import write_whole
        from topicweave.report.page import comparison_page

        path = Path(path)
        write_whole(path, comparison_page(self))
        return path

    def to_json(self) -> dict[str, Any]:
        """With keys that stay; a measure that has no value (a mean of nothing, a repair that never came) is null."""
        from topicweave.report.constraints import complaints

        return {
            "version": topicweave.__version__,
            "workload": self.workload,
            "seeds": list(self.setting.seeds),
            "events": self.setting.events,
            "preset": self.setting.preset,
            "membership": self.setting.membership,
            "settle": self.setting.settle,
            "latency": self.setting.latency,
            "loss": self.setting.loss,
            "churn": self.setting.churn,
            "crash": self.setting.crash,
            "constraints": [constraint.option for constraint in self.constraints],
            "cuts": list(self.cuts),
            "notes": list(self.notes),
            "systems": [
                _entry_json(entry) | {"breaks": complaints(entry, self.constraints)} for entry in self.entries
            ],
        }


def _entry_json(entry: Entry) -> dict[str, Any]:
    names = sorted(entry.measures)
    return {
        "system": entry.system,
        "parameters": entry.parameters,
        "measures": {name: _plain(entry.measure(name)) for name in names},
        "intervals": {name: _plain(entry.interval(name)) for name in names},
        "replications": {name: [_plain(value) for value in entry.replications(name)] for name in names},
    }


def _plain(value: float) -> float | None:
    return value if math.isfinite(value) else None


def as_text(value: Any) -> str:
    """A parameter's value as the command line takes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
