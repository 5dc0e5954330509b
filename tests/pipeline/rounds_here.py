"""Rounds without Spark, one task after the other: a reference for what Spark's tasks compute."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import pyarrow as pa

from topicweave.pipeline.rounds import TOLD, Inbox, Letter, Work, packed, unpacked


def rounds_here(sources: Iterable[Letter], works: Sequence[Work], tasks: int) -> list[Letter]:
    messages = list(sources)
    for number, work in enumerate(works):
        inboxes: defaultdict[int, Inbox] = defaultdict(Inbox)
        for message in messages:
            if message.round == number:
                inboxes[message.task].put(message.kind, message.rank, message.columns)
        messages = [message for message in messages if message.round != number]
        for _, inbox in sorted(inboxes.items()):
            messages += unpacked(packed(work(inbox)))
    return messages


class LoopHere:
    """A `Loop` in this process."""

    def __init__(self, sources: Iterable[Letter], tasks: int) -> None:
        self.tasks = tasks
        self._messages = list(sources)

    def step(self, *works: Work) -> list[Letter]:
        left = rounds_here([one for one in self._messages if one.round != TOLD], works, self.tasks)
        told = [one for one in [*self._messages, *left] if one.round == TOLD]
        self._messages = [one._replace(round=one.round - len(works)) for one in left if one.round != TOLD]
        return told

    def rows(self, names: Sequence[str]) -> pa.Table:
        tables = [pa.table({name: pa.array(one.columns[name]) for name in names}) for one in self._messages]
        return (
            pa.concat_tables(tables)
            if tables
            else pa.table({name: pa.array([], pa.int64()) for name in names})
        )
