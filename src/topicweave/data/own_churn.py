"""Comings and goings of one's own: sessions or changes from a file or from a folder that `workload import` made.

A file holds sessions (`node,start,end`), changes (`time,node,change`), availability lines (`host n start end
…`) or Google's machine events. Times are seconds.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from topicweave.data.availability import alternating, with_churn
from topicweave.data.reading import Read, read_rows
from topicweave.data.sniffing import words
from topicweave.data.text_tables import TableOptions, TextRows, counted, read_text, whole
from topicweave.errors import BadInput
from topicweave.model.workload import Workload

HELP = "'600/60' (seconds up and away, on average), 'trace' (the workload's own), or a file or imported folder of sessions"

_UP = {"join", "up", "add", "start", "online", "connect", "arrive", "1", "true"}
_DOWN = {"leave", "down", "remove", "stop", "end", "offline", "disconnect", "depart", "0", "false"}


class Trace(NamedTuple):
    """When hosts came and went."""

    changes: pa.Table
    """time, node, change; those of a host alternate."""
    hosts: pa.Table
    """node, and of a trace of sessions how many `sessions` each had."""
    notes: tuple[str, ...] = ()
    """What was left out."""

    @property
    def seconds(self) -> float:
        return float(pc.max(self.changes["time"]).as_py() or 0.0)


def read_trace(path: Path) -> Trace:
    """The comings and goings in a file or folder."""
    if not path.exists():
        raise BadInput(f"churn {str(path)!r}: neither known nor a file; say {HELP}")
    if path.is_dir():
        if not (path / "churn.parquet").exists() or not (path / "hosts.parquet").exists():
            raise BadInput(
                f"{path}: no churn in it; make it by `topicweave workload import availability` or `machine-events`"
            )
        changes = pq.read_table(path / "churn.parquet", columns=["time", "node", "change"])
        trace = Trace(changes, pq.read_table(path / "hosts.parquet"))
    else:
        rows = read_text(path, whole(path), TableOptions())
        trace = (
            _availability(path) if rows.table.column_names == ["1st name", "others"] else _table(path, rows)
        )
        trace = trace._replace(notes=(*rows.notes, *trace.notes))
    if not trace.changes.num_rows:
        raise BadInput(f"{path}: nobody comes or goes in it; give a trace with sessions")
    return trace


def lived(workload: Workload, trace: Trace, *, speed: float = 1.0, seed: int = 0) -> tuple[Workload, str]:
    """The workload with the trace's changes, its time passing `speed` times as fast; and whose life which
    node lives.
    """
    if not speed > 0:
        raise BadInput(f"churn speed {speed:g}: must be more than 0; 60 makes a minute of the trace a second")
    hosts = set(trace.hosts["node"].to_pylist())
    if hosts & set(workload.node_names) and set(workload.node_names) <= hosts:
        known = trace.changes.filter(
            pc.is_in(trace.changes["node"], value_set=pa.array(workload.node_names, pa.string()))
        )
        tables = workload.tables()
        time = pc.divide(known["time"], speed)
        changed = Workload.from_tables(
            tables["subscriptions"],
            tables["topics"],
            pa.table({"time": time, "node": known["node"], "change": known["change"]}),
            tables.get("hosts"),
        )
        return changed, "each node lives the life of the host of its name"
    changed = with_churn(workload, trace.changes, trace.hosts, seconds=trace.seconds / speed, seed=seed)
    return changed, f"each node lives the life of a random one of {len(hosts):,} hosts"


def _availability(path: Path) -> Trace:
    read = read_rows("availability", path)
    rows = read.rows
    up = rows.filter(pc.is_valid(rows["change"]))
    wrong = _left_out(read)
    hosts = rows.group_by("node", use_threads=False).aggregate([("sessions", "sum")])
    return Trace(
        up.select(["time", "node", "change"]), hosts.rename_columns(["node", "sessions"]).cast(_HOSTS), wrong
    )


def _left_out(read: Read) -> tuple[str, ...]:
    if not read.wrong:
        return ()
    first = read.wrong[0]
    return (f"{counted(len(read.wrong), 'line')} left out, first line {first.line}: {first.reason}",)


_HOSTS = pa.schema([("node", pa.string()), ("sessions", pa.int64())])


def _table(path: Path, rows: TextRows) -> Trace:
    names = rows.table.column_names
    if len(names) == 6 and not rows.header:
        read = read_rows("machine-events", path)
        hosts = pa.table({"node": pc.unique(read.rows["node"])})
        return Trace(alternating(read.rows), hosts, _left_out(read))
    node = _column(names, ("node", "host", "user", "machine", "peer", "client", "name", "id"))
    start, end = (
        _column(names, ("start", "from", "begin", "join", "up")),
        _column(names, ("end", "to", "until", "leave", "down")),
    )
    time, change = (
        _column(names, ("time", "timestamp", "when", "seconds")),
        _column(names, ("change", "event", "action", "state")),
    )
    if not rows.header and len(names) == 3:
        texts = [rows.table[name][0].as_py().strip() for name in names]
        if texts[2].lower() in _UP | _DOWN and not _is_number(texts[1]):
            time, node, change = names
        else:
            node, start, end = names
    if node and start and end:
        return _sessions(path, rows, node, start, end)
    if node and time and change:
        return _changes(path, rows, node, time, change)
    raise BadInput(
        f"{path}: columns {', '.join(names)[:80]}; need node, start and end of each session, or time, node and change"
    )


def _column(names: list[str], wanted: tuple[str, ...]) -> str | None:
    return next((name for word in wanted for name in names if word in words(name)), None)


def _sessions(path: Path, rows: TextRows, node: str, start: str, end: str) -> Trace:
    """Sessions of a host that touch or overlap are one; those of no length are none."""
    hosts = [name.strip() for name in rows.table[node].to_pylist()]
    begin, finish = _times(path, rows, start), _times(path, rows, end)
    if (finish < begin).any():
        row = int(np.argmax(finish < begin))
        raise BadInput(
            f"{path}, line {rows.first_line + row}: a session that ends before it starts; swap the two"
        )
    found: list[tuple[float, str, str]] = []
    last: dict[str, int] = {}
    sessions: dict[str, int] = dict.fromkeys(hosts, 0)
    for at in np.lexsort((finish, begin)).tolist():
        host = hosts[at]
        sessions[host] += 1
        if begin[at] == finish[at]:
            continue
        if host in last and found[last[host]][0] >= begin[at]:
            place = last[host]
            found[place] = (max(found[place][0], float(finish[at])), host, "leave")
            continue
        found.append((float(begin[at]), host, "join"))
        last[host] = len(found)
        found.append((float(finish[at]), host, "leave"))
    listed = pa.table({"node": list(sessions), "sessions": list(sessions.values())})
    return Trace(_as_table(found), listed.cast(_HOSTS))


def _changes(path: Path, rows: TextRows, node: str, time: str, change: str) -> Trace:
    said = [word.strip().lower() for word in rows.table[change].to_pylist()]
    for row, word in enumerate(said):
        if word not in _UP | _DOWN:
            raise BadInput(f"{path}, line {rows.first_line + row}: {word!r} is neither 'join' nor 'leave'")
    hosts = [name.strip() for name in rows.table[node].to_pylist()]
    times = _times(path, rows, time)
    found = sorted(zip(times.tolist(), hosts, said, strict=True), key=lambda row: row[:2])
    state: dict[str, bool] = {}
    kept = []
    for moment, host, word in found:
        up = word in _UP
        if state.get(host) is not up:
            kept.append((moment, host, "join" if up else "leave"))
            state[host] = up
    again = len(found) - len(kept)
    notes = (f"{counted(again)} left out: the host was up, or away, already",) if again else ()
    return Trace(_as_table(kept), pa.table({"node": list(dict.fromkeys(hosts))}), notes)


def _times(path: Path, rows: TextRows, column: str) -> Any:
    texts = rows.table[column].to_pylist()
    for row, text in enumerate(texts):
        if not _is_number(text) or not 0 <= float(text) < float("inf"):
            raise BadInput(
                f"{path}, line {rows.first_line + row}: {text!r} is not a time; give seconds from the start, 0 or more"
            )
    return np.array([float(text) for text in texts])


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _as_table(rows: list[tuple[float, str, str]]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    return pa.table(
        {
            "time": pa.array(columns[0], pa.float64()),
            "node": pa.array(columns[1], pa.string()),
            "change": pa.array(columns[2], pa.string()),
        }
    )
