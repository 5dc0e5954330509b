"""What a user asks: which systems, under which conditions, within which bounds."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, NamedTuple, TypedDict, cast, get_args

from topicweave.blocks.membership import Membership
from topicweave.choose.planning import parse_budget
from topicweave.choose.variants import Variant, parse_variants
from topicweave.data.own_latency import Unit
from topicweave.data.text_tables import TableOptions
from topicweave.errors import BadInput, UnknownName
from topicweave.report.constraints import Constraint
from topicweave.sim.faults import parse_loss
from topicweave.systems.presets import DEFAULT, PAPER, Times
from topicweave.systems.system import System

AS_FOUND = TableOptions()
MOST_TIMES = 10.0
"""A run waits for an overlay to settle for at most this many times the system's own time to settle."""
BY_GOSSIP = 2.0
"""An overlay takes this many times as long to settle if nodes must first hear of each other."""
COUNTED_FROM = 60.0
"""The earliest virtual second from which traffic counts. In the first minute membership asks most, and
systems settle at different times.
"""


def membership_of(membership: str, preset: Times) -> str:
    """As runs take it: gossip alone has the pace that the nodes' other times have.

    >>> membership_of("gossip:100", "lan"), membership_of("gossip:100", "paper"), membership_of("full", "lan")
    ('live-gossip:100', 'gossip:100', 'full')
    """
    return f"live-{membership}" if membership.startswith("gossip") and preset != PAPER else membership


class Conditions(TypedDict, total=False):
    """The conditions that all systems get. Defaults are those of `Question`."""

    seeds: int
    seed: int
    events: int
    preset: Times
    membership: str
    settle: float | None
    latency: str
    latency_unit: Unit | None
    loss: str | float
    churn: str
    churn_speed: float
    crash: float
    nodes: int | None
    budget: str | float | None


class Bounds(TypedDict, total=False):
    """The bounds that systems must keep. None or False sets no bound."""

    max_degree: float | None
    max_noise: float | None
    no_relays: bool
    min_hit: float | None
    max_latency: float | None
    max_hops: float | None
    max_control: float | None
    max_repair: float | None


class FileReading(TypedDict, total=False):
    """How a file of subscriptions is read. Fields that are None are found out."""

    node: str | int | None
    topic: str | int | None
    delimiter: str | None
    header: bool | None
    lists: bool | None


class Limit(NamedTuple):
    """The numbers that an option takes. The command line has the same ones; a test compares them."""

    least: float
    most: float = math.inf
    whole: bool = False
    above: bool = False
    """Whether it has to be more than the least."""

    def checked(self, name: str, value: Any) -> float:
        """The number in the form in which runs have it: 3 and 3.0 must not name two runs."""
        kind = Integral if self.whole else Real
        fits = type(value) is not bool and isinstance(value, kind) and math.isfinite(value)
        if not fits or not self.least <= value <= self.most or (self.above and value == self.least):
            start = f"above {self.least:g}" if self.above else f"from {self.least:g}"
            end = f" to {self.most:g}" if self.most < math.inf else "" if self.above else " on"
            raise BadInput(f"{name} {value!r}: give a {'whole ' if self.whole else ''}number {start}{end}")
        return int(value) if self.whole else float(value)


MOST_SEEDS = 1000
"""More make an interval narrower by nothing that can be seen, and would all be planned before the first run."""
LIMITS = {
    "seeds": Limit(1, MOST_SEEDS, whole=True),
    "seed": Limit(0, whole=True),
    "events": Limit(0, whole=True),
    "nodes": Limit(2, whole=True),
    "workers": Limit(1, whole=True),
    "settle": Limit(0),
    "churn_speed": Limit(0, above=True),
    "crash": Limit(0, 0.9),
    "budget": Limit(0, above=True),
    "max_degree": Limit(0),
    "max_noise": Limit(0, 1),
    "min_hit": Limit(0, 1),
    "max_latency": Limit(0),
    "max_hops": Limit(0),
    "max_control": Limit(0),
    "max_repair": Limit(0),
}
KINDS: Mapping[str, tuple[tuple[type, ...], str]] = {
    **dict.fromkeys(("latency", "churn", "membership"), ((str,), "text as on the command line")),
    "budget": ((str, int, float), "text as on the command line, or seconds"),
    "loss": ((str, int, float), "a share, as '1%' or 0.01"),
    "delimiter": ((str,), "the sign between columns"),
    **dict.fromkeys(("node", "topic"), ((str, int), "a column's name, or its number from 1")),
    **dict.fromkeys(("no_relays", "header", "lists"), ((bool,), "True or False")),
}
"""What options take that are neither numbers nor one of a few words."""
WORDS = {"preset": ("preset", get_args(Times)), "latency_unit": ("unit of latency", get_args(Unit))}


class Options(Conditions, Bounds, FileReading, total=False):
    """What `compare` and `advise` take besides subscriptions and systems.

    seeds, seed     how many replications, and the first one's seed
    events          how many events are published; 0 looks at links only
    preset          the nodes' timers: those of live nodes with the preset 'lan', 'local' or 'wan'; or 'paper',
                    the papers' own
    membership      how nodes learn of each other: 'directory' as live nodes do, 'gossip' alone; or an oracle:
                    'full', a share such as '5%'
    settle          virtual seconds before events start; None: as long as each system needs
    latency         one way: '50ms', '10-100ms', 'hosts'; or a file or imported folder: a matrix or pairs of
                    round-trip times, or coordinates
    latency_unit    'us', 'ms' or 's': of the numbers in that file; ms if not given
    loss            the share of all messages that gets lost: '1%' or 0.01
    churn           '600/60' (mean seconds up and away), 'trace' (the workload's own), a file or imported folder
                    of sessions, or '' (everybody stays)
    churn_speed     how many seconds of that file pass in one
    crash           the share of nodes that crashes at the end
    nodes           sample so many nodes of a larger workload
    budget          about how long it may take: '5m', seconds, or None for no limit
    max_degree      links of any node
    max_noise       share of received events that were not wanted
    no_relays       no event passes through a node that does not want it
    min_hit         share of the expected deliveries
    max_latency     milliseconds within which 95 % of the deliveries are made
    max_hops        links that an event crosses
    max_control     bytes of control per node and second
    max_repair      seconds after the crash until all subscribers get events again
    node, topic     the columns of nodes and topics in a file, by name or by number from 1
    delimiter       what separates the columns of a file
    header          whether the first line of a file names its columns
    lists           whether a line of a file is a node and all its topics, or a row of columns
    """


@dataclass(frozen=True)
class Question:
    """Everything that decides the answer, except the workload."""

    variants: Sequence[Variant]
    seeds: int = 3
    seed: int = 0
    events: int = 200
    preset: Times = DEFAULT
    membership: str = "directory"
    settle: float | None = None
    latency: str = "50ms"
    latency_unit: Unit | None = None
    loss: float = 0.0
    churn: str = ""
    churn_speed: float = 1.0
    crash: float = 0.1
    nodes: int | None = None
    budget: float | None = None
    constraints: Sequence[Constraint] = ()
    """What systems are held to; they are run all the same."""
    reading: TableOptions = AS_FOUND

    @property
    def all_seeds(self) -> tuple[int, ...]:
        return tuple(range(self.seed, self.seed + self.seeds))

    def time_to_settle(self, system: System) -> tuple[float, float]:
        """Virtual seconds that an overlay is given at least, and at most if it has not settled by then.

        What the user says is neither more nor less.
        """
        if self.settle is not None:
            return self.settle, 0.0
        membership = Membership.parse(self.membership)
        slow = not membership.oracle and (not membership.directory or system.needs == "peers")
        least = system.settles(self.preset) * (BY_GOSSIP if slow else 1.0)
        return least, MOST_TIMES * least

    @property
    def counted_from(self) -> float:
        """When events begin, at the soonest. Oracles ask nothing; what the user says is neither more nor less."""
        oracle = Membership.parse(self.membership).oracle
        return 0.0 if oracle or self.settle is not None else COUNTED_FROM

    def command(self, source: str) -> str:
        """What to type to get the same results; where they go and how fast is not part of it."""
        systems = ",".join(variant.label for variant in self.variants)
        words = ["topicweave", "compare", source, *_reading_words(self.reading), "--systems", systems]
        words += ["--seed", str(self.seed), "--seeds", str(self.seeds), "--events", str(self.events)]
        words += ["--preset", self.preset, "--membership", self.membership]
        if self.settle is not None:
            words += ["--settle", f"{self.settle:g}"]
        words += ["--latency", self.latency, "--crash", f"{self.crash:g}"]
        if self.latency_unit is not None:
            words += ["--latency-unit", self.latency_unit]
        if self.loss:
            words += ["--loss", f"{self.loss:.10g}"]
        if self.churn:
            words += ["--churn", self.churn]
        if self.churn_speed != 1.0:
            words += ["--churn-speed", f"{self.churn_speed:g}"]
        if self.nodes is not None:
            words += ["--nodes", str(self.nodes)]
        for constraint in self.constraints:
            words += constraint.option.split()
        return shlex.join([*words, "--budget", "none"])


def checked(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options whose numbers and words are such as there are. Raises `BadInput` or `UnknownName`."""
    found = {**options}
    for name, value in options.items():
        if value is None and getattr(Question, name, None) is None:
            continue  # It may be left open.
        kinds, what = KINDS.get(name, ((type(value),), ""))
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise BadInput(f"{name} {value!r}: give {what}")
        if name in ("node", "topic"):
            found[name] = str(value)
        if name in LIMITS and not (name == "budget" and isinstance(value, str)):
            found[name] = LIMITS[name].checked(name, value)
        elif name in WORDS and value not in WORDS[name][1]:
            what, known = WORDS[name]
            raise UnknownName(what, str(value), [*known])
    return found


def ask(systems: Iterable[str], options: Options) -> Question:
    """A question of a user's options, checked; about all systems if none is named.

    Raises `BadInput`, or TypeError about an option that there is not.
    """
    unknown = options.keys() - Options.__annotations__.keys()
    if unknown:
        raise TypeError(f"no option {min(unknown)!r}; there are {', '.join(Options.__annotations__)}")
    options = cast("Options", checked(options))
    variants = parse_variants(systems, options.get("preset", DEFAULT))
    bounds = {name: value for name, value in options.items() if name in Bounds.__annotations__}
    reading = {name: value for name, value in options.items() if name in FileReading.__annotations__}
    conditions = {name: value for name, value in options.items() if name not in {*bounds, *reading}}
    budget = options.get("budget", DEFAULT_BUDGET)
    conditions["budget"] = parse_budget(budget) if isinstance(budget, str) else budget
    conditions["loss"] = parse_loss(options.get("loss", 0.0))
    question = Question(
        variants,
        **conditions,  # type: ignore[arg-type]  # keys of `Conditions`, chosen above
        constraints=constraints_from(**bounds),  # type: ignore[arg-type]  # of `Bounds`
        reading=TableOptions(**reading),  # type: ignore[arg-type]  # of `FileReading`
    )
    for constraint in question.constraints:
        refuse_unmeasured(constraint.option, constraint.measure, question.events, question.crash)
    return question


def _reading_words(reading: TableOptions) -> list[str]:
    given = {"--node": reading.node, "--topic": reading.topic, "--delimiter": reading.delimiter}
    words = [word for option, value in given.items() if value is not None for word in (option, value)]
    if reading.header is not None:
        words.append("--header" if reading.header else "--no-header")
    if reading.lists is not None:
        words.append("--lists" if reading.lists else "--columns")
    return words


DEFAULT_BUDGET = "10m"
OF_EVENTS = frozenset(
    ("hit_ratio", "noise", "relays_per_topic", "latency_p95", "hops_mean", "hops_max", "repair_time")
)
"""Measures that bounds and preferences name, and that only events show."""


def refuse_unmeasured(option: str, measure: str, events: int, crash: float) -> None:
    """Raise if the runs will not measure what an option asks for."""
    if measure in OF_EVENTS and not events:
        missing = "--events 0; publish some (--events 200)"
    elif measure == "repair_time" and not crash:
        missing = "--crash 0; let some nodes crash (--crash 0.1)"
    else:
        return
    instead = "say --min-hit 0" if measure == "hit_ratio" else f"leave {option.split(maxsplit=1)[0]} out"
    raise BadInput(f"{option}: not measured with {missing}, or {instead}")


def constraints_from(
    *,
    max_degree: float | None = None,
    max_noise: float | None = None,
    no_relays: bool = False,
    min_hit: float | None = None,
    max_latency: float | None = None,
    max_hops: float | None = None,
    max_control: float | None = None,
    max_repair: float | None = None,
) -> list[Constraint]:
    """Latency is given in milliseconds; a share of 0 that has to be reached is no bound."""
    at_most = [
        ("degree_max", max_degree, "--max-degree", 1.0),
        ("noise", max_noise, "--max-noise", 1.0),
        ("latency_p95", max_latency, "--max-latency", 1000.0),
        ("hops_max", max_hops, "--max-hops", 1.0),
        ("control_bytes", max_control, "--max-control", 1.0),
        ("repair_time", max_repair, "--max-repair", 1.0),
    ]
    found = [
        Constraint(measure, "at most", bound / unit, f"{option} {bound:g}")
        for measure, bound, option, unit in at_most
        if bound is not None
    ]
    if no_relays:
        found.append(Constraint("relays_per_topic", "at most", 0.0, "--no-relays"))
    if min_hit:  # 0 asks for nothing.
        found.append(Constraint("hit_ratio", "at least", min_hit, f"--min-hit {min_hit:g}"))
    return found
