"""Do the two worlds agree? The same workload, system and seed, simulated and live (after Rappel's figure 7).

Rappel's authors tested their simulator by how well it predicted the deployment. Here every system runs in the
simulator and over real sockets, with the same latency model, learning of each other as live nodes do in both;
what must agree is printed side by side, the simulated figure in the place of the paper's. A live run needs a
processor that keeps up: run it with `--workers 1`, and see `loop_lag_max` (seconds) for how late the machine
let the nodes act; near a system's timeouts (1 s and more) its figures say nothing about the system.

Nodes start over the same time in both worlds: OMen keeps the links that it made in the crowd of the start.
200 nodes have twice the time to settle, and publish slowly: one machine has to carry all of them. They are
simulated with several seeds, since a live run is a seed of its own: the noise of Vitis differs by a sixth
between two seeds of the simulator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean, stdev
from typing import Any

from topicweave.papers.study import Plan, Row, Scale, Study, Where
from topicweave.runs.live_run import LiveRun
from topicweave.runs.overlay import SettledOverlay
from topicweave.runs.run import Result, Run
from topicweave.runs.sources import GeneratedWorkload
from topicweave.systems.presets import DEFAULT, PAPER
from topicweave.systems.registry import SYSTEMS

MEASURES = ("degree_mean", "noise", "hops_mean", "hit_ratio")
SEEDS = 3
"""Of the simulator, for 200 nodes."""
SLOWER: Mapping[str, Mapping[str, Any]] = {"gossipsub": {"heartbeat_interval": 3.0, "suspect_after": 12.0}}
"""Times for 200 nodes, in both worlds, of what two cores do not keep up with otherwise."""


def plan(scale: Scale, seed: int) -> Plan:
    """50 nodes in one process at the papers' pace, or with `paper` 200 in four at that of live nodes: the
    papers' is more than two cores keep up with.
    """
    whole = scale != "smoke"
    nodes, times = (200, DEFAULT) if whole else (50, PAPER)
    seeds = range(seed, seed + SEEDS) if whole else range(seed, seed + 1)
    spread: dict[str, Any] = {"processes": 4, "preset": "wan"} if whole else {}
    workload = GeneratedWorkload(nodes=nodes, topics=50, min_size=10, max_size=10, seed=seed)
    runs: dict[Any, Run] = {}
    for system in SYSTEMS:
        settle = SYSTEMS[system].settles(times)
        parameters = SYSTEMS[system].paced(times, SLOWER.get(system, {}) if whole else {})
        alike: dict[str, Any] = {"system": system, "parameters": parameters, "workload": workload}
        alike |= {"events": 500, "start_window": nodes / 10, "settle": 2 * settle if whole else settle}
        if whole:
            alike["publishing"] = 25.0
        for one in seeds:
            runs[system, one] = SettledOverlay(**alike, seed=one, membership="directory")
        runs[system, "live"] = LiveRun(**alike, seed=seed, **spread)

    def rows_of(results: Mapping[Any, Result]) -> list[Row]:
        rows = []
        for system in SYSTEMS:
            live = results[system, "live"]
            where = {"system": system, "nodes": nodes}
            rows += [
                beside(where, name, [results[system, one][name] for one in seeds], live[name])
                for name in MEASURES
            ]
            rows.append(Row(where, "loop_lag_max", None, live["loop_lag_max"]))
            rows.append(Row(where, "node_errors", None, live["node_errors"]))
        return rows

    return Plan(runs, rows_of)


def beside(where: Where, measure: str, simulated: Sequence[float], live: float) -> Row:
    """The live figure beside the mean over the simulator's seeds."""
    return Row(where, measure, fmean(simulated), live, stdev(simulated) if len(simulated) > 1 else None)


STUDIES = [
    Study(
        name="agreement",
        title="Simulated and live runs agree on degree, noise, hops and hit ratio",
        source="after Rappel (2009), figure 7",
        plan=plan,
    )
]
