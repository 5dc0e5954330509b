"""What a user asks: which systems, under which conditions, within which bounds."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

from topicweave.blocks.membership import Membership
from topicweave.choose.planning import parse_budget
from topicweave.choose.variants import Variant
from topicweave.data.own_latency import Unit
from topicweave.data.text_tables import TableOptions
from topicweave.report.constraints import Constraint
from topicweave.sim.faults import parse_loss
from topicweave.systems.presets import DEFAULT, Times
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

    node: str | None
    topic: str | None
    delimiter: str | None
    header: bool | None
    lists: bool | None


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


def ask(variants: Sequence[Variant], options: Options) -> Question:
    """A question of a user's options, checked. Raises `BadInput`, or TypeError about an option that there is not."""
    unknown = options.keys() - Options.__annotations__.keys()
    if unknown:
        raise TypeError(f"no option {min(unknown)!r}; there are {', '.join(Options.__annotations__)}")
    bounds = {name: value for name, value in options.items() if name in Bounds.__annotations__}
    reading = {name: value for name, value in options.items() if name in FileReading.__annotations__}
    conditions = {name: value for name, value in options.items() if name not in {*bounds, *reading}}
    budget = options.get("budget", DEFAULT_BUDGET)
    conditions["budget"] = parse_budget(budget) if isinstance(budget, str) else budget
    conditions["loss"] = parse_loss(options.get("loss", 0.0))
    for name in ("settle", "crash", "churn_speed"):  # 3 and 3.0 must not name two runs.
        if isinstance(given := conditions.get(name), int):
            conditions[name] = float(given)
    return Question(
        variants,
        **conditions,  # type: ignore[arg-type]  # keys of `Conditions`, chosen above
        constraints=constraints_from(**bounds),  # type: ignore[arg-type]  # of `Bounds`
        reading=TableOptions(**reading),  # type: ignore[arg-type]  # of `FileReading`
    )


def _reading_words(reading: TableOptions) -> list[str]:
    given = {"--node": reading.node, "--topic": reading.topic, "--delimiter": reading.delimiter}
    words = [word for option, value in given.items() if value is not None for word in (option, value)]
    if reading.header is not None:
        words.append("--header" if reading.header else "--no-header")
    if reading.lists is not None:
        words.append("--lists" if reading.lists else "--columns")
    return words


DEFAULT_BUDGET = "10m"


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
    """Latency is given in milliseconds."""
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
    if min_hit is not None:
        found.append(Constraint("hit_ratio", "at least", min_hit, f"--min-hit {min_hit:g}"))
    return found
