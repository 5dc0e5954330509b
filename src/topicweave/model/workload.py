"""Workloads: who wants what, how often topics publish, who comes and goes, and where nodes are.

On disk a workload is a folder of Parquet tables (or folders of part files, as Spark writes them):

    subscriptions.parquet   node, topic          required; one row per node and topic it wants
    topics.parquet          topic, rate          if there, it lists every topic; rate in events per second
    churn.parquet           time, node, change   seconds from the start; 'join' or 'leave'
    hosts.parquet           node[, x, y]         if there, it lists every node

Without `topics` every rate is 1, without `churn` everybody stays, without `hosts` nobody has a place. A node
that wants nothing is known by its row in `hosts` (whose `x` and `y` may both be left out), a topic that
nobody wants by its row in `topics`. Further columns are ignored.

Nodes that have changes start in the state opposite to their first one; all others are up throughout.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from topicweave.errors import BadInput
from topicweave.model import validation
from topicweave.model.arrays import FloatArray, IndexArray
from topicweave.model.ids import ring_ids
from topicweave.model.tables import from_arrow, from_rows
from topicweave.model.validation import CHANGE_WORDS, UP
from topicweave.model.workload_folder import read_folder, write_folder


@dataclass(frozen=True, eq=False, repr=False)
class Workload:
    """A workload in memory: names once, everything else as read-only arrays of their indexes.

    Make one with `from_lists`, `from_tables` or `load`: they check it, and bring it into the one order that
    makes equal workloads equal to the byte (see `topicweave.model.validation`).

    >>> workload = Workload.from_lists({"alice": ["news", "sport"], "bob": ["sport"], "carol": []})
    >>> workload
    Workload(nodes=3, topics=2, subscriptions=3, changes=0, hosts=False)
    >>> [workload.topic_names[topic] for topic in workload.interests(workload.node_names.index("bob"))]
    ['sport']
    """

    node_names: tuple[str, ...]
    topic_names: tuple[str, ...]
    offsets: npt.NDArray[np.int64]
    """Node i wants `topic_index[offsets[i]:offsets[i + 1]]`."""
    topic_index: IndexArray
    rates: FloatArray
    """Events per second on each topic."""
    churn: npt.NDArray[np.void]
    """Records of (time, node, change) by time, then node; a change is `UP` (1) or `DOWN` (0)."""
    hosts: FloatArray | None
    """One row (x, y) per node."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

    @classmethod
    def load(cls, folder: str | Path) -> Workload:
        """Read a folder of tables; raises `BadInput` about the first thing that is wrong with them."""
        return cls(*read_folder(Path(folder)))

    @classmethod
    def from_tables(
        cls, subscriptions: Any, topics: Any = None, churn: Any = None, hosts: Any = None
    ) -> Workload:
        """Check tables in memory (pyarrow.Table, with the columns of the files)."""
        return cls(
            *validation.check_tables(
                from_arrow("subscriptions", subscriptions, validation.SUBSCRIPTIONS),
                None if topics is None else from_arrow("topics", topics, validation.TOPICS),
                None if churn is None else from_arrow("churn", churn, validation.CHURN),
                None
                if hosts is None
                else from_arrow("hosts", hosts, validation.HOSTS, validation.COORDINATES),
            )
        )

    @classmethod
    def from_lists(
        cls,
        subscriptions: Mapping[str, Iterable[str]],
        rates: Mapping[str, float] | None = None,
        churn: Iterable[tuple[float, str, str]] | None = None,
        hosts: Mapping[str, tuple[float, float]] | None = None,
    ) -> Workload:
        """Check Python values; a node's list may be empty. Errors count rows in the order given."""
        wishes = []
        for node, topics in subscriptions.items():
            if isinstance(topics, str | bytes):
                raise BadInput(f"subscriptions: node {node!r}: {topics!r} is one name; give a list of topics")
            if isinstance(topics, Mapping) or not isinstance(topics, Iterable):
                shown = repr(topics) if len(repr(topics)) <= 60 else f"{repr(topics)[:60]}…"
                raise BadInput(
                    f"subscriptions: node {node!r}: {shown} is no list; give a list of topics, [] for none"
                )
            wishes += [(node, topic) for topic in topics]
        return cls.from_tables(
            from_rows("subscriptions", validation.SUBSCRIPTIONS, wishes),
            None if rates is None else from_rows("topics", validation.TOPICS, rates.items()),
            None if churn is None else from_rows("churn", validation.CHURN, churn),
            _host_table(subscriptions, hosts),
        )

    def save(self, folder: str | Path, overwrite: bool = False) -> None:
        """Write the tables into a folder, all or nothing; equal workloads give equal bytes."""
        write_folder(Path(folder), self.tables(), overwrite)

    def tables(self) -> dict[str, Any]:
        """The tables (name -> pyarrow.Table) that give this workload; those that add nothing are left out."""
        node_index, topic_index = self.subscription_pairs()
        tables = {
            "subscriptions": pa.table(
                {"node": _named(node_index, self.node_names), "topic": _named(topic_index, self.topic_names)}
            ),
            "topics": pa.table({"topic": pa.array(self.topic_names, pa.string()), "rate": self.rates}),
        }
        if self.churn.size:
            words = sorted(CHANGE_WORDS, key=CHANGE_WORDS.__getitem__)
            tables["churn"] = pa.table(
                {
                    "time": np.ascontiguousarray(self.churn["time"]),
                    "node": _named(self.churn["node"], self.node_names),
                    "change": _named(self.churn["change"], words),
                }
            )
        wants_nothing = np.diff(self.offsets) == 0
        if self.hosts is not None or wants_nothing.any():
            hosts = {"node": pa.array(self.node_names, pa.string())}
            if self.hosts is not None:
                hosts |= {"x": pa.array(self.hosts[:, 0]), "y": pa.array(self.hosts[:, 1])}
            tables["hosts"] = pa.table(hosts)
        return tables

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        return len(self.node_names)

    @property
    def topics(self) -> int:
        """How many topics there are."""
        return len(self.topic_names)

    def interests(self, node_index: int) -> IndexArray:
        """The topics a node wants, as growing indexes."""
        return self.topic_index[self.offsets[node_index] : self.offsets[node_index + 1]]

    def subscribers(self, topic_index: int) -> IndexArray:
        """The nodes that want a topic, as growing indexes."""
        offsets, node_index = self._by_topic
        return node_index[offsets[topic_index] : offsets[topic_index + 1]]

    def subscription_pairs(self) -> tuple[IndexArray, IndexArray]:
        """All subscriptions as (node indexes, topic indexes), by node, then topic."""
        nodes = np.arange(self.nodes, dtype=np.int32)
        return np.repeat(nodes, np.diff(self.offsets)), self.topic_index

    def initially_up(self) -> npt.NDArray[np.bool_]:
        """Which nodes are up at time 0, before any change."""
        up = np.ones(self.nodes, np.bool_)
        changing, first_change = np.unique(self.churn["node"], return_index=True)
        up[changing] = self.churn["change"][first_change] != UP
        return up

    @cached_property
    def node_ids(self) -> list[int]:
        """Each node's identifier on the ring."""
        return _distinct_ids("node", self.node_names)

    @cached_property
    def topic_ids(self) -> list[int]:
        """Each topic's identifier on the ring."""
        return _distinct_ids("topic", self.topic_names)

    def names(self) -> tuple[dict[int, str], dict[int, str]]:
        """Of nodes and of topics, by their ids: what those want to know who write down what happens to them."""
        nodes = dict(zip(self.node_ids, self.node_names, strict=True))
        return nodes, dict(zip(self.topic_ids, self.topic_names, strict=True))

    @cached_property
    def _by_topic(self) -> tuple[npt.NDArray[np.int64], IndexArray]:
        node_index, topic_index = self.subscription_pairs()
        offsets = np.zeros(self.topics + 1, np.int64)
        np.cumsum(np.bincount(topic_index, minlength=self.topics), out=offsets[1:])
        return offsets, node_index[np.argsort(topic_index, kind="stable")]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Workload):
            return NotImplemented
        return all(
            np.array_equal(mine, theirs) if isinstance(mine, np.ndarray) else mine == theirs
            for mine, theirs in (
                (getattr(self, field.name), getattr(other, field.name)) for field in fields(self)
            )
        )

    def __hash__(self) -> int:
        return hash((self.node_names, self.topic_names, self.topic_index.tobytes()))

    def __repr__(self) -> str:
        return (
            f"Workload(nodes={self.nodes}, topics={self.topics}, subscriptions={self.topic_index.size}, "
            f"changes={self.churn.size}, hosts={self.hosts is not None})"
        )

    def _repr_html_(self) -> str:
        from topicweave.model.notebook import facts_markup

        facts = {
            "nodes": f"{self.nodes:,}",
            "topics": f"{self.topics:,}",
            "subscriptions": f"{self.topic_index.size:,}",
            "topics per node": f"{self.topic_index.size / self.nodes:.1f}",
            "subscribers per topic": f"{self.topic_index.size / max(self.topics, 1):.1f}",
            "joins and leaves": f"{self.churn.size:,}",
            "places of hosts": "no" if self.hosts is None else "yes",
        }
        return facts_markup("Workload", facts)


def _named(index: npt.NDArray[Any], names: Iterable[str]) -> Any:
    return pa.DictionaryArray.from_arrays(index.astype(np.int32), pa.array(names, pa.string()))


def _host_table(
    subscriptions: Mapping[str, Iterable[str]], hosts: Mapping[str, tuple[float, float]] | None
) -> Any:
    """The hosts table of Python values: with places if given, else with the names of all nodes."""
    if hosts is None:
        return from_rows("hosts", validation.HOSTS, [(node,) for node in subscriptions])
    # A node that wants nothing has no subscription row by which the tables' check would miss its place.
    for node in subscriptions:
        if node not in hosts:
            raise BadInput(f"hosts: no place for node {node!r}; give every node one, or leave hosts out")
    return from_rows(
        "hosts",
        {**validation.HOSTS, **validation.COORDINATES},
        [(node, *place) for node, place in hosts.items()],
    )


def _distinct_ids(what: str, names: tuple[str, ...]) -> list[int]:
    ids = ring_ids(names)
    if len(set(ids)) < len(ids):
        seen: dict[int, str] = {}
        for name, ring_id in zip(names, ids, strict=True):
            if ring_id in seen:
                raise BadInput(
                    f"{what}s {seen[ring_id]!r} and {name!r} have the same identifier; rename one of them"
                )
            seen[ring_id] = name
    return ids
