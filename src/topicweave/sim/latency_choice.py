"""A latency model from a word, as the command line and experiments name it."""

from __future__ import annotations

import random
import re
from pathlib import Path

import numpy as np

from topicweave.errors import BadInput
from topicweave.model.workload import Workload
from topicweave.sim.latency import Constant, Coordinates, Latency, RoundTripMatrix, Uniform

HELP = "'50ms' for all, '10-100ms' drawn for each message, 'hosts' by the workload's places, or a file with a matrix of RTTs in ms"

_RANGE = re.compile(r"(\d+(?:\.\d+)?)(?:-(\d+(?:\.\d+)?))?ms")


def parse_latency(text: str, workload: Workload, seed: int) -> Latency:
    """One-way delays from `50ms`, `10-100ms`, `hosts` (one unit of distance is a millisecond), or a file of round-trip times.

    >>> parse_latency("20ms", Workload.from_lists({"a": ["x"]}), seed=0)
    Constant(seconds=0.02)
    """
    if found := _RANGE.fullmatch(text.strip()):
        low, high = (None if ms is None else float(ms) / 1000 for ms in found.groups())
        assert low is not None
        return Constant(low) if high is None else Uniform(low, high, random.Random(f"latency/{seed}"))
    if text == "hosts":
        if workload.hosts is None:
            raise BadInput(
                "latency 'hosts': this workload has no places of nodes (table hosts); say '50ms', for instance"
            )
        return Coordinates(workload.hosts)
    path = Path(text)
    if not path.is_file():
        raise BadInput(f"latency {text!r}: neither known nor a file; say {HELP}")
    try:
        matrix = np.loadtxt(path, delimiter="," if path.suffix == ".csv" else None, ndmin=2)
    except (ValueError, UnicodeDecodeError) as error:
        raise BadInput(f"{path}: not a matrix of numbers ({error})") from None
    return RoundTripMatrix([matrix])
