"""The columns of the telemetry tables.

Common to all: `run` names the run; `time` is in seconds since the run's fixed moment; nodes, peers, senders and
topics are names. Names and kinds are dictionary-encoded; in Parquet they are plain strings to any other reader.

links       one row per link in a snapshot of one node: `node` lists `peer` as a link of a `kind`.
            All rows of one node's snapshot have one `time`; a node without links leaves no row.
publishes   one row per event, written where it was published.
deliveries  one row per *reception* of a message that carries an event, duplicates included. `hops` counts the
            links the message has crossed, `sender` is the last node it came from, `wanted` says whether the
            receiver wanted the topic at that moment. What a publisher hands to itself is no reception.
control     `messages` messages of a `kind`, `bytes` long together, sent by `node` in a period that ended at
            `time` (one row per message, with the period an instant, is fine too). Messages that carry events
            are not control.
interests   `node` wants `topic` from `time` on, or (`wanted` is false) no more. With no topic ("", never
            wanted): it wants nothing any more, because it went away or begins anew. A node that is killed says
            nothing.
"""

from __future__ import annotations

import hashlib
import struct

import pyarrow as pa

from topicweave.model.event import EventId

NAME = pa.dictionary(pa.int32(), pa.string())

SCHEMAS: dict[str, pa.Schema] = {
    "links": pa.schema(
        [("run", NAME), ("time", pa.float64()), ("node", NAME), ("peer", NAME), ("kind", NAME)]
    ),
    "publishes": pa.schema(
        [("run", NAME), ("event", pa.int64()), ("topic", NAME), ("node", NAME), ("time", pa.float64())]
    ),
    "deliveries": pa.schema(
        [
            ("run", NAME),
            ("event", pa.int64()),
            ("node", NAME),
            ("time", pa.float64()),
            ("hops", pa.int32()),
            ("sender", NAME),
            ("wanted", pa.bool_()),
        ]
    ),
    "control": pa.schema(
        [
            ("run", NAME),
            ("time", pa.float64()),
            ("node", NAME),
            ("kind", NAME),
            ("messages", pa.int64()),
            ("bytes", pa.int64()),
        ]
    ),
}

INTERESTS = pa.schema(
    [("run", NAME), ("time", pa.float64()), ("node", NAME), ("topic", NAME), ("wanted", pa.bool_())]
)
RECORDED = {**SCHEMAS, "interests": INTERESTS}
"""All that recorders write. What happened is measured by SCHEMAS' tables, with the interests or with a workload's."""


def file_name(table: str) -> str:
    return f"{table}.parquet"


def event_key(event: EventId) -> int:
    """The key of an event in the tables: the first 63 bits of the SHA-1 of its identifier, so that it fits int64.

    Every node computes the same one. Among ten million events the chance that any two share a key is 5e-6.

    >>> event_key(EventId(publisher=1, topic=2, epoch=3, sequence=4))
    1011580137729681641
    """
    digest = hashlib.sha1(struct.pack(">QQqq", *event), usedforsecurity=False).digest()
    return int.from_bytes(digest[:8], "big") >> 1
