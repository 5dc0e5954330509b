"""Traces read in memory: the rows of a file, and the workload that its subscriptions make.

Whatever fits in memory is read here without Spark. `topicweave.pipeline.importing` does the same to files of
any size; both give the same workload.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from topicweave.data.files import data_file, fingerprint, is_tar, source_files
from topicweave.data.formats import Format, LineOptions, find_format, find_real
from topicweave.data.lines import LineBlock, Piece, Wrong, parsed_blocks
from topicweave.data.opml import opml_block, reader_name
from topicweave.errors import BadInput, UnknownName
from topicweave.model.workload import Workload


class Read(NamedTuple):
    """What a trace says."""

    rows: pa.Table
    """The format's columns, and `file` and `line`."""
    lines: int
    """Lines that were understood."""
    wrong: list[Wrong]


def read_rows(format_name: str, path: Path, options: LineOptions | None = None) -> Read:
    """Every line of a file, or of the files of a folder, as the format understands it."""
    options = options or LineOptions()
    wanted = find_format(format_name)
    wanted.refuse_unused(options)
    tables, lines, wrong = [], 0, []
    for block in _blocks(wanted, path, options):
        lines += block.good
        wrong += block.wrong
        count = block.rows.num_rows
        rows = block.rows.append_column("file", pa.repeat(pa.scalar(block.file), count).dictionary_encode())
        line = pc.add(rows["at"].cast(pa.int64()), block.first)
        tables.append(rows.drop_columns(["at"]).append_column("line", line))
    if not lines + len(wrong):
        raise BadInput(f"{path}: nothing in it but blank lines and comments; give a file with data")
    if wrong:
        refuse_too_many(path, wanted, len(wrong), lines + len(wrong), options.max_rejects, wrong[0])
    return Read(pa.concat_tables(tables), lines, wrong)


def _blocks(wanted: Format, path: Path, options: LineOptions) -> Iterator[LineBlock]:
    files = source_files(path)
    if wanted.name == "opml":
        for file in files:
            yield opml_block(str(file), reader_name(Path(str(file)), path.absolute()))
        return
    parse = wanted.parse(options, files[0])
    for file in files:
        yield from parsed_blocks(Piece(str(file), archive=is_tar(str(file))), parse)


def refuse_too_many(path: Path, wanted: Format, wrong: int, every: int, share: float, first: Wrong) -> None:
    """Raise if more of the lines are wrong than may be."""
    if wrong <= share * every:
        return
    what = "files" if wanted.name == "opml" else "lines"
    raise BadInput(
        f"{path}: {wrong:,} of {every:,} {what} do not fit the format {wanted.name!r}, "
        f"more than the {share:.1%} allowed; the first is line {first.line} of {first.file}, "
        f"{first.text!r}: {first.reason}; choose another format or --delimiter, mend the file, "
        "or allow more with --max-rejects"
    )


def read_workload(format_name: str, path: Path, options: LineOptions | None = None) -> Workload:
    """The workload of a trace of subscriptions: edges, adjacency, pairs, edits or opml."""
    options = options or LineOptions()
    rows = read_rows(format_name, path, options).rows
    if format_name in ("edges", "adjacency"):
        return users(rows, options, path)
    if format_name in ("pairs", "edits", "opml"):
        return pairs(rows, path)
    raise BadInput(f"{path}: a trace of {format_name!r} holds no subscriptions; read it as another format")


def users(rows: pa.Table, options: LineOptions, path: Path) -> Workload:
    """A graph of users: every user is a node and a topic, and wants the topics of those it follows (OMen §6.1)."""
    links = rows.select(["node", "topic"]).drop_null()
    everyone = pc.unique(pa.chunked_array([*rows["node"].chunks, *links["topic"].chunks], pa.string()))
    proper = links.filter(pc.not_equal(links["node"], links["topic"]))
    turned = pa.table({"node": proper["topic"], "topic": proper["node"]})
    wishes = {"follows": proper, "followed": turned, "both": pa.concat_tables([proper, turned])}
    topics = pa.table({"topic": everyone, "rate": pa.repeat(1.0, len(everyone))})
    return _workload(wishes[options.direction], topics, everyone, path)


def pairs(rows: pa.Table, path: Path) -> Workload:
    """Users and topics of two kinds. With times it is an edit log: who edited a page wants it (Magnet §4.5),
    and a page's rate is its edits over the log's length.
    """
    wishes = rows.select(["node", "topic"]).drop_null()
    counts = wishes.group_by("topic", use_threads=False).aggregate([([], "count_all")])
    times = rows["time"].drop_null()
    rate = pa.repeat(1.0, counts.num_rows)
    if len(times):
        ends = pc.min_max(times).as_py()
        rate = pc.divide(counts["count_all"].cast(pa.float64()), (ends["max"] - ends["min"]) or 1.0)
    return _workload(
        wishes, pa.table({"topic": counts["topic"], "rate": rate}), pc.unique(rows["node"]), path
    )


def _workload(wishes: pa.Table, topics: pa.Table, nodes: Any, path: Path) -> Workload:
    distinct = wishes.group_by(["node", "topic"], use_threads=False).aggregate([])
    if not distinct.num_rows:
        raise BadInput(f"{path}: no line holds a subscription; choose another format")
    return Workload.from_tables(distinct, topics, hosts=pa.table({"node": nodes}))


def real_rows(name: str) -> pa.Table:
    """The rows of one of the real data sets."""
    wanted = find_real(name)
    return read_rows(wanted.format, data_file(wanted.file), wanted.options).rows


def real_workload(name: str) -> Workload:
    """The subscriptions of one of the real data sets; the last two are kept."""
    wanted = find_real(name)
    return _read_once(name, str(fingerprint([data_file(wanted.file)])))


GRAPHS = ("facebook", "livejournal", "twitter", "epinions")
"""The data sets that are graphs of users."""


def social_graph(name: str) -> Workload:
    """Who follows whom among the users of a real data set; friends follow each other."""
    if name not in GRAPHS:
        raise UnknownName("social graph", name, list(GRAPHS))
    return real_workload(name)


@lru_cache(maxsize=2)
def _read_once(name: str, _stamp: str) -> Workload:
    wanted = find_real(name)
    return read_workload(wanted.format, data_file(wanted.file), wanted.options)
