"""When real hosts were up: a trace of Gnutella hosts, which stands in for Overnet's and Skype's."""

from __future__ import annotations

import lzma
from functools import cache

from topicweave.data.mending_workloads import data_file

SESSIONS = "churn/gnutella_saroiu_intervals.tsv.xz"


@cache
def host_sessions() -> tuple[tuple[tuple[float, float], ...], ...]:
    """Per host its sessions, (start, end) in seconds, in order."""
    hosts = []
    with lzma.open(data_file(SESSIONS), "rt", encoding="ascii") as lines:
        for line in lines:
            numbers = [float(cell) for cell in line.split("\t")[2:]]
            hosts.append(tuple(sorted(zip(numbers[::2], numbers[1::2], strict=True))))
    return tuple(hosts)
