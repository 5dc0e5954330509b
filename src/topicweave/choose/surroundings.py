"""Latency and churn of the user's own: read once, and made part of what the runs are given.

Runs know no files of the user's. A latency is stored beside the results under the hash of its contents, and
comings and goings become the workload's; so a result belongs to what was in the files.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from topicweave.choose.channel import Note
from topicweave.data.own_churn import lived, read_trace
from topicweave.data.own_latency import Unit, read_network, typical_rtt
from topicweave.errors import BadInput
from topicweave.model.workload import Workload
from topicweave.runs.trial import CHURN_SPREAD, SESSIONS, planned_churn
from topicweave.sim.latency_choice import STORED, Distances

SHOWN = 5


def own_latency(text: str, unit: Unit | None, workload: Workload, note: Note) -> Distances | None:
    """The network in the user's file; None if the text is no file's name."""
    if text == "hosts" or re.fullmatch(r"[\d.]+(-[\d.]+)?ms", text.strip()) or text.endswith(STORED):
        if unit is not None:
            raise BadInput(f"--latency-unit says nothing about --latency {text}; leave it out")
        low, _, high = text.strip().removesuffix("ms").partition("-")
        if re.fullmatch(r"\d+(\.\d+)?-\d+(\.\d+)?", f"{low}-{high}") and float(low) > float(high):
            raise BadInput(f"--latency {text}: from more to less; say {high}-{low}ms")
        return None
    network = read_network(Path(text), unit, note)
    kind = "coordinates" if network.rtt_ms is None else "round-trip times"
    slices = (
        ""
        if network.rtt_ms is None or len(network.rtt_ms) == 1
        else f" in {len(network.rtt_ms)} slices of time"
    )
    note(
        f"{text}: {kind} of {len(network.names):,} places{slices}, median round trip {typical_rtt(network):.3g} ms"
    )
    note(f"{text}: {mapping(network, workload)}")
    return network


def mapping(network: Distances, workload: Workload) -> str:
    """Which node is at which place, in a sentence."""
    if network.by_name(workload):
        return "each node is at the place of its name"
    places = network.places(workload)
    first = ", ".join(
        f"{workload.node_names[index]} at {network.names[places[index]]}"
        for index in range(min(SHOWN, workload.nodes))
    )
    again = ", then again from the first" if workload.nodes > len(network.names) else ""
    return f"names do not match, so nodes take places in order{again}: {first}{', …' if workload.nodes > SHOWN else ''}"


def stored_latency(network: Distances, folder: Path) -> str:
    """The name to give to runs; the file is named by what is in it."""
    digest = hashlib.sha256("\n".join(network.names).encode())
    for array in (network.rtt_ms, network.points, network.heights):
        digest.update(b"-" if array is None else array.tobytes())
    path = (folder / digest.hexdigest()[:16]).with_suffix(STORED).absolute()
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        network.save(path)
    return str(path)


def own_churn(text: str, speed: float, workload: Workload, seed: int, note: Note) -> tuple[str, Workload]:
    """The word to give to runs, and the workload with the comings and goings of the user's file if the text
    names one.
    """
    if text in ("", "trace") or re.fullmatch(r"[\d.]+/[\d.]+", text):
        if speed != 1.0:
            raise BadInput("--churn-speed says nothing without a file or folder of --churn; leave it out")
        return text, workload
    trace = read_trace(Path(text))
    for one in trace.notes:
        note(f"{text}: {one}")
    changed, whose = lived(workload, trace, speed=speed, seed=seed)
    note(
        f"{text}: {trace.changes.num_rows:,} joins and leaves of {trace.hosts.num_rows:,} hosts in "
        f"{trace.seconds / speed:,.0f} s; {whose}"
    )
    churn = planned_churn(SESSIONS, changed, seed)
    first, played = len(churn.up_at_start), sum(change.time <= CHURN_SPREAD for change in churn.changes)
    if first < min(2, workload.nodes):
        raise BadInput(
            f"{text}: {first} of {workload.nodes:,} nodes are up at time 0, and an overlay needs two to settle; times are "
            "seconds from the start of the trace: let it start when hosts are up, or raise --churn-speed"
        )
    note(f"{text}: {first:,} of {workload.nodes:,} nodes are up at time 0; {_played(played)}")
    return SESSIONS, changed


def _played(changes: int) -> str:
    events = f"while events go out ({CHURN_SPREAD:g} s)"
    return (
        f"{changes:,} joins and leaves happen {events}"
        if changes
        else f"nobody comes or goes {events}: raise --churn-speed"
    )
