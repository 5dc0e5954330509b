"""A latency model from a word, as the command line and experiments name it."""

from __future__ import annotations

import random
import re
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from topicweave.errors import BadInput
from topicweave.model.workload import Workload
from topicweave.sim.latency import Constant, Coordinates, Latency, RoundTripMatrix, Uniform

HELP = (
    "'50ms' for all, '10-100ms' drawn for each message, 'hosts' by the workload's places, or a file or imported folder of "
    "round-trip times or coordinates"
)
STORED = ".latency.npz"

_RANGE = re.compile(r"(\d+(?:\.\d+)?)(?:-(\d+(?:\.\d+)?))?ms")


@dataclass(frozen=True)
class Distances:
    """Distances between places: round-trip times in milliseconds, slice after slice, or points (and heights)
    one way.
    """

    names: tuple[str, ...]
    rtt_ms: npt.NDArray[np.float64] | None = None
    points: npt.NDArray[np.float64] | None = None
    heights: npt.NDArray[np.float64] | None = None

    def by_name(self, workload: Workload) -> bool:
        """Whether every node has a place of its own name."""
        return set(workload.node_names) <= set(self.names)

    def places(self, workload: Workload) -> list[int]:
        """The place of each node: that of its name if all have one, else in the order of both, again from the first."""
        if self.by_name(workload):
            place = {name: number for number, name in enumerate(self.names)}
            return [place[name] for name in workload.node_names]
        return [index % len(self.names) for index in range(workload.nodes)]

    def latency(self, workload: Workload) -> Latency:
        places = self.places(workload)
        if self.rtt_ms is not None:
            return RoundTripMatrix(list(self.rtt_ms), places=places)
        assert self.points is not None
        return Coordinates(self.points, heights=self.heights, places=places)

    def save(self, path: Path) -> None:
        arrays = {"names": np.array(self.names)}
        for name in ("rtt_ms", "points", "heights"):
            if (array := getattr(self, name)) is not None:
                arrays[name] = array
        np.savez(path, **arrays)  # type: ignore[arg-type]  # one of its options is a bool

    @classmethod
    def load(cls, path: Path) -> Distances:
        with np.load(path, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        return cls(tuple(arrays.pop("names").tolist()), **arrays)


def refuse_unknown(text: str) -> None:
    """Raise about words that `parse_latency` takes for no workload."""
    if not (_RANGE.fullmatch(text.strip()) or text == "hosts" or text.endswith(STORED)):
        raise BadInput(f"latency {text!r}: neither known nor a file; say {HELP}")


def parse_latency(text: str, workload: Workload, seed: int) -> Latency:
    """One-way delays from `50ms`, `10-100ms`, `hosts` (one unit of distance is a millisecond), or a stored `Distances`.

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
    refuse_unknown(text)
    try:
        return Distances.load(Path(text)).latency(workload)
    except (OSError, KeyError, TypeError, ValueError, zipfile.BadZipFile) as error:
        raise BadInput(f"{text}: not a stored latency ({error}); give the file that it was made of") from None
