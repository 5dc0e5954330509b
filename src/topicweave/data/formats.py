"""The formats that traces come in: how each is read, and where the real data sets are.

A format turns a file's lines into rows of one schema (see parsing.py). `topicweave.pipeline.importing` reads
them on Spark into folders of tables, `topicweave.data.reading` in memory.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Literal, NamedTuple

import pyarrow as pa

from topicweave.data import parsing
from topicweave.data.files import first_line
from topicweave.data.lines import Parse
from topicweave.data.parsing import WHITESPACE
from topicweave.data.places import Place
from topicweave.data.sniffing import names_a_column
from topicweave.errors import BadInput, UnknownName

Direction = Literal["follows", "followed", "both"]


@dataclass(frozen=True)
class LineOptions:
    """How to read the lines; what is None is the format's own."""

    delimiter: str | None = None
    header: bool = False
    columns: tuple[str, ...] = ()
    """Names of the columns of a file without a header."""
    node: str | None = None
    topic: str | None = None
    time: str | None = None
    direction: Direction = "follows"
    """Of a graph of users: the first of a line follows the second, is followed by it, or both."""
    max_rejects: float = 0.01
    """The share of wrong lines above which nothing is imported."""


@dataclass(frozen=True)
class Format:
    """One way in which files are written."""

    name: str
    summary: str
    delimiter: str
    columns: pa.Schema
    build: Callable[[LineOptions, str, Path | Place], Parse]
    """(options, delimiter, a first file): what reads the lines."""
    uses: tuple[str, ...] = ()
    """Which of the options mean something here, besides the delimiter."""

    def refuse_unused(self, options: LineOptions) -> None:
        """Raise about an option that says nothing about files of this format: its user expects something of it."""
        plain = LineOptions()
        free = {*self.uses, "max_rejects", *(("delimiter",) if self.delimiter else ())}
        for option in fields(options):
            if option.name not in free and getattr(options, option.name) != getattr(plain, option.name):
                raise BadInput(f"--{option.name} says nothing about the format {self.name!r}; leave it out")

    def taken_for_data(self, options: LineOptions, file: Path | Place) -> str:
        """The first line, if it looks like the names of the columns and nobody said so; else nothing."""
        if "header" not in self.uses or options.header or Place(str(file)).name.endswith(".parquet"):
            return ""
        try:
            line = first_line(file)
        except BadInput:
            return ""  # whoever reads the lines says what is wrong
        delimiter = delimiter_sign(options.delimiter or self.delimiter)
        cells = line.split() if delimiter == WHITESPACE else parsing.cells(line, delimiter)
        named = len(cells) > 1 and not line.startswith("#") and all(map(names_a_column, cells[:2]))
        return line if named else ""

    def parse(self, options: LineOptions, file: Path | Place) -> Parse:
        """What reads the lines of files like this one."""
        return self.build(options, delimiter_sign(options.delimiter or self.delimiter), file)


def delimiter_sign(text: str) -> str:
    """A separator by its name, or as it is."""
    words = {
        "space": " ",
        "tab": "\t",
        "comma": ",",
        "colon": ":",
        "semicolon": ";",
        "pipe": "|",
        "\\t": "\t",
    }
    return words.get(text, text)


def _header(options: LineOptions, delimiter: str, file: Path | Place) -> list[str]:
    if options.columns:
        return list(options.columns)
    line = first_line(file)
    return (
        line.split() if delimiter == WHITESPACE else [name.strip() for name in parsing.cells(line, delimiter)]
    )


def _place(names: list[str], name: str | None, default: int, file: Path | Place) -> int:
    if name is None:
        if default >= len(names):
            raise BadInput(
                f"{file}: {len(names)} columns ({', '.join(names)[:80]}), too few; give the right --delimiter"
            )
        return default
    if name not in names and name.isdecimal() and 1 <= int(name) <= len(names):
        return int(name) - 1
    if name not in names:
        raise BadInput(f"{file}: no column {name!r}; it has {', '.join(names)[:200]}")
    return names.index(name)


def _edges(options: LineOptions, delimiter: str, _file: Path | Place) -> Parse:
    return parsing.pair_lines(delimiter, 2, 0, 1, None, options.header)


def _adjacency(options: LineOptions, delimiter: str, _file: Path | Place) -> Parse:
    return parsing.adjacency_lines("\t" if delimiter == WHITESPACE else delimiter, ",", options.header)


def _pairs(options: LineOptions, delimiter: str, file: Path | Place) -> Parse:
    named = options.header or options.columns
    names = _header(options, delimiter, file) if named else ["node", "topic"]
    node, topic = _place(names, options.node, 0, file), _place(names, options.topic, 1, file)
    if node == topic:
        raise BadInput(f"{file}: --node and --topic are one column, {names[node]!r}; name two")
    return parsing.pair_lines(delimiter, len(names), node, topic, None, options.header)


def _edits(options: LineOptions, delimiter: str, file: Path | Place) -> Parse:
    named = options.header or options.columns
    names = _header(options, delimiter, file) if named else ["user", "page", "time"]
    places = [
        _place(names, name, place, file)
        for place, name in enumerate((options.node, options.topic, options.time))
    ]
    return parsing.pair_lines(delimiter, len(names), places[0], places[1], places[2], options.header)


def _machine_events(_options: LineOptions, delimiter: str, _file: Path | Place) -> Parse:
    return parsing.machine_event_lines(delimiter)


def _availability(_options: LineOptions, delimiter: str, _file: Path | Place) -> Parse:
    return parsing.availability_lines(delimiter)


def _rtt(_options: LineOptions, delimiter: str, file: Path | Place) -> Parse:
    return parsing.rtt_lines(delimiter, len(first_line(file).split(delimiter)))


def _coordinates(options: LineOptions, delimiter: str, file: Path | Place) -> Parse:
    names = _header(options, delimiter, file) if options.header or options.columns else ["node", "x", "y"]
    return parsing.place_lines(
        delimiter,
        len(names),
        _place(names, options.node or "node", 0, file),
        _place(names, "x", 1, file),
        _place(names, "y", 2, file),
        options.header,
    )


def _as_graph(_options: LineOptions, delimiter: str, file: Path | Place) -> Parse:
    return parsing.as_link_lines(delimiter, len(re.split(re.escape(delimiter), first_line(file))) > 2)


def _no_lines(_options: LineOptions, _delimiter: str, _file: Path | Place) -> Parse:
    raise AssertionError("OPML is read file by file")


FORMATS: dict[str, Format] = {
    one.name: one
    for one in (
        Format(
            "edges",
            "who follows whom, a pair per line (SNAP)",
            WHITESPACE,
            parsing.PAIR,
            _edges,
            ("header", "direction"),
        ),
        Format(
            "adjacency",
            "a user, a tab, and all it follows, between commas",
            "\t",
            parsing.PAIR,
            _adjacency,
            ("header", "direction"),
        ),
        Format(
            "pairs",
            "user and topic in named columns",
            ",",
            parsing.PAIR,
            _pairs,
            ("header", "columns", "node", "topic"),
        ),
        Format(
            "edits",
            "user, page and seconds of each edit; rates from how often",
            WHITESPACE,
            parsing.PAIR,
            _edits,
            ("header", "columns", "node", "topic", "time"),
        ),
        Format(
            "machine-events",
            "Google ClusterData2011-2 machine_events: who comes and goes",
            ",",
            parsing.CHANGE,
            _machine_events,
        ),
        Format(
            "availability",
            "a host, its number of sessions, their starts and ends in seconds",
            "\t",
            parsing.CHANGE,
            _availability,
        ),
        Format(
            "rtt",
            "square matrices of round trips in ms; a .tar holds several in time",
            "\t",
            parsing.RTT,
            _rtt,
        ),
        Format(
            "coordinates",
            "hosts and their x, y (and Vivaldi height)",
            WHITESPACE,
            parsing.PLACE,
            _coordinates,
            ("header", "columns", "node"),
        ),
        Format(
            "as-graph", "neighbouring ASes, with or without their relation", ",", parsing.AS_LINK, _as_graph
        ),
        Format("opml", "a folder of OPML files, one per reader", "", parsing.PAIR, _no_lines),
    )
}


def find_format(name: str) -> Format:
    try:
        return FORMATS[name]
    except KeyError:
        raise UnknownName("format", name, list(FORMATS)) from None


class RealFile(NamedTuple):
    """One of the real data sets, under TOPICWEAVE_DATASETS."""

    file: str
    format: str
    options: LineOptions = LineOptions()


REAL = {
    "facebook": RealFile("subscriptions/facebook_combined.txt.gz", "edges", LineOptions(direction="both")),
    "twitter": RealFile(
        "subscriptions/ego-twitter_undirected.csv.xz", "edges", LineOptions(direction="both", delimiter=",")
    ),
    "twitter-followers": RealFile(
        "subscriptions/twitter_followers_100users.csv.xz",
        "pairs",
        LineOptions(header=True, node="follower", topic="followed"),
    ),
    "epinions": RealFile("subscriptions/soc-Epinions1.txt.xz", "edges"),
    "livejournal": RealFile("subscriptions/soc-LiveJournal1Adj.txt.xz", "adjacency"),
    "wikipedia": RealFile("subscriptions/wikipedia_edits_jodie.txt.xz", "edits"),
    "youtube": RealFile(
        "subscriptions/youtube_groupmemberships.tsv.xz", "pairs", LineOptions(delimiter="tab")
    ),
    "github": RealFile("subscriptions/github_watch_2009.txt.xz", "pairs", LineOptions(delimiter=":")),
    "google": RealFile("churn/google2011_machine_events.csv.gz", "machine-events"),
    "gnutella": RealFile("churn/gnutella_saroiu_intervals.tsv.xz", "availability"),
    "planetlab": RealFile("latency/planetlab490_rtt_18slices.tar.xz", "rtt"),
    "king": RealFile("latency/vivaldi_median_p2psim.syscoord.xz", "coordinates"),
    "oversim": RealFile(
        "latency/oversim_2d_coords.csv.xz", "coordinates", LineOptions(delimiter=",", header=True)
    ),
    "caida": RealFile("latency/as-caida20071105_undirected.csv.xz", "as-graph"),
    "as-2013": RealFile("latency/as_rel_2013.txt.xz", "as-graph", LineOptions(delimiter="|")),
}


def find_real(name: str) -> RealFile:
    try:
        return REAL[name]
    except KeyError:
        raise UnknownName("data set", name, list(REAL)) from None
