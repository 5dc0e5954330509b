"""Networks with true distances for experiments: the AS model and the measured matrix of Rappel §6.1.

All matrices here are **round-trip times in milliseconds**; the latency models made of them give one-way seconds.
Real files are read from the folder that the environment variable TOPICWEAVE_DATASETS names.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from topicweave.data.as_network import (
    ASGraph,
    FluctuatingDelays,
    Matrix,
    PairDelays,
    generated_graph,
    plain_view,
    round_trips,
    spread_out,
)
from topicweave.data.files import data_file, fingerprint, first_line
from topicweave.data.formats import find_format, find_real
from topicweave.data.lines import Piece, parsed_blocks
from topicweave.data.parsing import rtt_lines
from topicweave.data.reading import real_rows
from topicweave.errors import BadInput
from topicweave.sim.latency import Latency

GENERATED_ASES = 26_000
SLICE_SECONDS = 800.0
"""The paper's trace covers 4 h; ours has 18 slices without times, so each stands for a part of those 4 h."""
LEAST_RTT = 1.0
"""Milliseconds between hosts at one place of the measured matrix."""


class NetworkSpec(msgspec.Struct, frozen=True):
    """`as`: the AS model on the measured graph; `generated`: on a generated one; `planetlab`: the measured matrix.

    More hosts than the matrix has places share places, evenly.
    """

    kind: Literal["as", "generated", "planetlab"] = "as"
    seed: int = 0
    fluctuates: bool = True
    """Delays change in time as measured; else they are the medians."""
    landmarks: Literal["spread", "random"] = "spread"
    """Which hosts come first: some as far apart as possible, or any."""

    @property
    def data_sets(self) -> tuple[str, ...]:
        """The files that it reads."""
        if self.kind == "as":
            return ("caida", "planetlab") if self.fluctuates else ("caida",)
        return ("planetlab",) if self.kind == "planetlab" else ()

    def round_trips(self, hosts: int) -> Matrix:
        """Medians in time, milliseconds."""
        if self.kind == "planetlab":
            places = self._places(hosts)
            rtt = np.maximum(np.median(measured_slices(), axis=0), LEAST_RTT)[np.ix_(places, places)]
            np.fill_diagonal(rtt, 0.0)
            matrix: Matrix = rtt.astype(np.float32)
            return matrix
        graph = measured_graph() if self.kind == "as" else generated_graph(GENERATED_ASES, self.seed)
        return round_trips(graph, hosts, self.seed)

    def _places(self, hosts: int) -> npt.NDArray[np.int64]:
        rng = np.random.default_rng([self.seed, 0x71])
        size = len(measured_slices()[0])
        rounds = [rng.permutation(size) for _ in range(-(-hosts // size))]
        return np.concatenate(rounds)[:hosts]

    def build(self, hosts: int, first: int) -> BuiltNetwork:
        """A network in which the `first` hosts are the landmarks."""
        rtt = self.round_trips(hosts)
        if not 0 <= first <= hosts:
            raise BadInput(f"network: {first} landmarks among {hosts} hosts")
        if self.landmarks == "random":
            chosen = np.random.default_rng([self.seed, 0x6C6D]).permutation(hosts)[:first].tolist()
        else:
            chosen = spread_out(rtt, first, int(np.median(rtt, axis=1).argmin())) if first else []
        others = np.setdiff1d(np.arange(hosts), chosen, assume_unique=True)
        order = np.concatenate([np.array(chosen, np.int64), others])
        if self.kind == "planetlab" and self.fluctuates:
            places = self._places(hosts)[order]
            return BuiltNetwork(rtt[np.ix_(order, order)], _MeasuredDelays(places))
        rtt = rtt[np.ix_(order, order)]
        if self.fluctuates and self.kind == "as":
            return BuiltNetwork(rtt, FluctuatingDelays(rtt, list(measured_slices()), SLICE_SECONDS))
        return BuiltNetwork(rtt, PairDelays(rtt))


class BuiltNetwork:
    def __init__(self, rtt_ms: Matrix, latency: Latency) -> None:
        self.rtt_ms = rtt_ms
        self.latency = latency


class _MeasuredDelays:
    """The measured matrix itself, slice after slice, for hosts at given places."""

    def __init__(self, places: npt.NDArray[np.int64]) -> None:
        self._places: list[int] = places.tolist()
        self._slices = [plain_view(np.maximum(one, LEAST_RTT) / 2000.0) for one in measured_slices()]

    def delay(self, source: int, target: int, now: float) -> float:
        matrix = self._slices[int(now / SLICE_SECONDS) % len(self._slices)]
        seconds: float = matrix[self._places[source], self._places[target]]
        return seconds


def measured_slices() -> npt.NDArray[np.float64]:
    """PlanetLab's round-trip times, slice after slice."""
    return _measured(str(data_file(find_real("planetlab").file)), _stamp("planetlab"))


@lru_cache(maxsize=1)
def _measured(file: str, _stamp: str) -> npt.NDArray[np.float64]:
    return read_slices(Path(file))


def read_slices(file: Path) -> npt.NDArray[np.float64]:
    """Matrices of an archive, in the order of the numbers in their names; as they are, unscaled."""
    wanted = find_format("rtt")
    slices: dict[str, list[npt.NDArray[np.float64]]] = {}
    parse = rtt_lines(wanted.delimiter, len(first_line(file).split(wanted.delimiter)), per_second=1.0)
    for block in parsed_blocks(Piece(str(file), archive=True), parse):
        if block.wrong:
            raise BadInput(f"{block.file}, line {block.wrong[0].line}: {block.wrong[0].reason}")
        slices.setdefault(block.file, []).append(block.rows["rtt"].to_numpy())
    in_order = sorted(slices, key=lambda name: (int((re.findall(r"\d+", name) or ["0"])[-1]), name))
    rows = [np.concatenate(slices[name]) for name in in_order]
    size = math.isqrt(len(rows[0]))
    if any(len(row) != size * size for row in rows):
        raise BadInput(f"{file}: matrices of round trips must be square and of one size")
    return np.stack([row.reshape(size, size) for row in rows])


def measured_graph() -> ASGraph:
    """CAIDA's AS graph of November 2007."""
    return _read_graph("caida", _stamp("caida"))


@lru_cache(maxsize=1)
def _read_graph(name: str, _stamp: str) -> ASGraph:
    links = real_rows(name)
    return ASGraph.of_links(*(links[end].cast(pa.int64()).to_numpy() for end in ("source", "target")))


def _stamp(name: str) -> str:
    return str(fingerprint([data_file(find_real(name).file)]))
