"""How long sessions last: the estimate of Kaplan and Meier (1958) from who came and went.

A session begins with a join and ends with a leave; one that still goes on when the record ends is known to
last at least so long. Lengths are counted in whole units of `resolution` seconds, rounded up: at that
resolution the histogram, and so the curve, is exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from topicweave.model.arrays import FloatArray, IntArray
from topicweave.pipeline.measuring.sources import Scan
from topicweave.pipeline.rounds import TOLD, Inbox, Letter, Loop, Work, hashes, spread


class Survival(NamedTuple):
    """By length: what ended, what was only seen to last so long, and the share of sessions that last longer."""

    seconds: FloatArray
    ended: IntArray
    lasting: IntArray
    longer: FloatArray

    @property
    def median(self) -> float:
        """The length that half the sessions do not outlast; nan if more than half outlast the record."""
        within = np.flatnonzero(self.longer <= 0.5)
        return float(self.seconds[within[0]]) if len(within) else float("nan")


def scan_churn(tasks: int) -> Scan:
    def scan(_source: str, rows: pa.Table, rank: int) -> Iterator[Letter]:
        node, time = hashes(rows["node"]), rows["time"].to_numpy()
        joins = pc.equal(rows["change"].cast(pa.string()), "join").to_numpy()
        yield Letter(TOLD, 0, "last", {"time": np.array([time.max()])})
        yield from spread(0, "changes", node, tasks, {"node": node, "time": time, "joins": joins}, rank)

    return scan


def sessions(resolution: float, end: float | None) -> Work:
    """Round 0: lengths of sessions, counted; of those that go on, when they began."""

    def work(inbox: Inbox) -> Iterator[Letter]:
        rows = inbox.take("changes", node=np.int64, time=np.float64, joins=np.bool_)
        order = np.lexsort((rows["time"], rows["node"]))
        node, time, joins = (rows[name][order] for name in ("node", "time", "joins"))
        follows = np.append(node[1:] == node[:-1], False) if len(node) else np.empty(0, np.bool_)
        after = np.append(time[1:], 0.0) if len(time) else time
        # A join while up is a restart: it ends a session, too.
        over, open_ = joins & follows, joins & ~follows
        units, times = np.unique(np.ceil((after[over] - time[over]) / resolution), return_counts=True)
        yield Letter(TOLD, 0, "ended", {"units": units.astype(np.int64), "times": times})
        begun, times = np.unique(
            time[open_] if end is None else np.minimum(time[open_], end), return_counts=True
        )
        yield Letter(TOLD, 0, "open", {"begun": begun, "times": times})

    return work


def survival(loop: Loop, resolution: float = 1.0, end: float | None = None) -> Survival:
    """Of what `scan_churn` has sent; the record ends at `end`, by default with its last change."""
    told = loop.step(sessions(resolution, end))

    def all_of(kind: str, name: str) -> FloatArray:
        columns = [np.asarray(one.columns[name], np.float64) for one in told if one.kind == kind]
        return np.concatenate([np.empty(0), *columns])

    if end is None:
        end = float(np.max(all_of("last", "time"), initial=0.0))
    ended, lasted = all_of("ended", "units"), np.floor((end - all_of("open", "begun")) / resolution)
    units, code = np.unique(np.concatenate([ended, lasted]), return_inverse=True)
    times = np.concatenate([all_of("ended", "times"), all_of("open", "times")]).astype(np.int64)
    counts = np.zeros((2, len(units)), np.int64)
    np.add.at(counts, (np.repeat([0, 1], [len(ended), len(lasted)]), code), times)
    at_risk = counts.sum() - np.cumsum(counts.sum(axis=0)) + counts.sum(axis=0)
    longer = np.cumprod(1 - counts[0] / np.maximum(at_risk, 1))
    return Survival(units * resolution, counts[0], counts[1], longer)
