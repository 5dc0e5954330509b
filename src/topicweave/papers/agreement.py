"""Do the two worlds agree? The same workload, system and seed, simulated and live (after Rappel's figure 7).

Rappel's authors tested their simulator by how well it predicted the deployment. Here every system runs in the simulator and over real sockets, with
the same latency model, learning of each other as live nodes do in both; what must agree is printed side by side, the simulated figure in the
place of the paper's. A live run needs a processor that keeps up: run it with `--workers 1`, and see `loop_lag_max` (seconds) for how late the
machine let the nodes act; near a system's timeouts (1 s and more) its figures say nothing about the system.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from topicweave.papers.study import Plan, Row, Scale, Study, claim, close_to, reported
from topicweave.runs.live_run import LiveRun
from topicweave.runs.overlay import SettledOverlay
from topicweave.runs.run import Result, Run
from topicweave.runs.sources import GeneratedWorkload
from topicweave.systems.presets import DEFAULT, PAPER
from topicweave.systems.registry import SYSTEMS

SHARE = 0.10
"""How far the worlds may be apart."""
MEASURES = ("degree_mean", "noise", "hops_mean", "hit_ratio")


def plan(scale: Scale, seed: int) -> Plan:
    """50 nodes in one process at the papers' pace, or with `paper` 200 in four at that of live nodes: the papers' is more than two cores keep up with."""
    nodes, times = (50, PAPER) if scale == "smoke" else (200, DEFAULT)
    spread: dict[str, Any] = {} if scale == "smoke" else {"processes": 4, "preset": "wan"}
    workload = GeneratedWorkload(nodes=nodes, topics=50, min_size=10, max_size=10, seed=seed)
    runs: dict[Any, Run] = {}
    for system in SYSTEMS:
        settle, parameters = SYSTEMS[system].settles(times), SYSTEMS[system].paced(times, {})
        alike: dict[str, Any] = {"system": system, "parameters": parameters, "workload": workload}
        alike |= {"seed": seed, "settle": settle, "events": 500}
        runs[system, False] = SettledOverlay(**alike, membership="directory")
        runs[system, True] = LiveRun(**alike, **spread)

    def judge(results: Mapping[Any, Result]) -> list[Row]:
        rows = []
        for system in SYSTEMS:
            simulated, live = results[system, False], results[system, True]
            where = {"system": system, "nodes": nodes}
            rows += [close_to(where, name, simulated[name], live[name], SHARE) for name in MEASURES]
            rows.append(reported(where, "loop_lag_max", None, live["loop_lag_max"]))
            rows.append(
                claim(where, "node_errors", "no node fails", live["node_errors"], not live["node_errors"])
            )
        return rows

    return Plan(runs, judge)


STUDIES = [
    Study(
        name="agreement",
        title="Simulated and live runs agree on degree, noise, hops and hit ratio",
        source="after Rappel (2009), figure 7",
        plan=plan,
    )
]
