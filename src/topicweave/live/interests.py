"""Long interests travel by name: in full once over each connection, and in 16 bytes from then on. See
docs/wire-format.md.

Gossip repeats all the time what nodes want, and this seldom changes. With thousands of topics per node that
would be most of what a swarm sends and decodes. So before a message leaves, each long interest in it is
replaced by its name (a digest of its topics). If the connection has not carried the name yet, its topics go
ahead. The other end puts the topics back before any node sees the message.

Rules kept
----------
1. The sender decides what the receiver holds: it tells topics, and takes names back when they become too
   many. So both ends agree without a further word, and an unknown name is a protocol error.
2. An interest that does not fit travels in full, as short interests do.
3. Names are checked against their topics. Equal interests are one object, whoever sent them, so comparing
   them is cheap.
4. The room for all interests that peers sent is bounded. A peer that exceeds its share is cut off. When all
   together are too many, new ones count as empty, and are counted.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from types import GenericAlias
from typing import Annotated, Any, NamedTuple
from weakref import WeakSet, WeakValueDictionary

import msgspec
import numpy as np

from topicweave.live.frames import ProtocolError, TooManyTopics
from topicweave.live.memory import Memory
from topicweave.model.ids import Interest

LONG = 32
"""Topics from which an interest goes by name."""
NAME = 16
"""Bytes of a name."""
HELD = 1 << 18
"""Topics that one connection's names stand for together, at most."""
KNOWN = 2 * HELD
"""Topics of the interests whose names are kept."""
TOPIC_BYTES = 140
"""What a topic of an interest takes up in memory, at most: Python's sets are half empty."""
SHARE = 8
"""One peer may fill this part of the memory for interests."""
FRAME = 64 * 1024
"""Interests of about so many bytes go into one frame."""

Name = Annotated[bytes, msgspec.Meta(min_length=NAME, max_length=NAME)]


class NamedInterest(NamedTuple):
    name: bytes
    topics: bytes
    """8 bytes each, big-endian, ascending."""


class InterestsTold(msgspec.Struct, frozen=True, array_like=True):
    """A frame: take these names for forgotten, and hold these interests."""

    forget: Annotated[tuple[Name, ...], msgspec.Meta(max_length=HELD // LONG)]
    topics: Annotated[tuple[bytes, ...], msgspec.Meta(max_length=HELD // LONG)]


NOTHING: Interest = frozenset()


def name_of(topics: bytes) -> bytes:
    return hashlib.blake2b(topics, digest_size=NAME).digest()


class InterestNames:
    """The names of interests that this node speaks of."""

    def __init__(self, memory: Memory | None = None) -> None:
        self._memory = memory or Memory()
        self.most_topics = self._memory.share("interests") // TOPIC_BYTES
        self.refused = 0
        """Interests that there was no memory for."""
        self._told = 0
        # By identity: comparing thousands of topics to find out that they are the same takes longer than all else here.
        self._named: OrderedDict[int, tuple[Interest, NamedInterest | None]] = OrderedDict()
        self._topics = 0
        self._interned: WeakValueDictionary[bytes, Interest] = WeakValueDictionary()

    def of(self, interest: Interest) -> NamedInterest | None:
        """None if it must be sent as it is: it is short, or holds what is no topic."""
        if len(interest) < LONG:
            return None
        known = self._named.get(id(interest))
        if known is not None:
            self._named.move_to_end(id(interest))
            return known[1]
        named = None
        if len(interest) <= HELD and min(interest) >= 0:
            topics = np.array(sorted(interest), ">u8").tobytes()
            named = NamedInterest(name_of(topics), topics)
            self._interned.setdefault(named.name, interest)
        self._named[id(interest)] = interest, named
        self._topics += len(interest)
        while self._topics > KNOWN and len(self._named) > 1:
            _, (oldest, _) = self._named.popitem(last=False)
            self._topics -= len(oldest)
        return named

    def admit(self, interest: Interest) -> bool:
        """Whether there is memory for one more interest that a peer told."""
        if self._take(len(interest)):
            return True
        # Some of those told have been forgotten since: count what is left.
        left = sum(map(len, self._interned.values()))
        self._memory.settle("interests", self._told * TOPIC_BYTES, left * TOPIC_BYTES)
        self._told = left
        if self._take(len(interest)):
            return True
        self.refused += 1
        return False

    def _take(self, topics: int) -> bool:
        taken = self._memory.take("interests", topics * TOPIC_BYTES)
        self._told += topics if taken else 0
        return taken

    def read(self, topics: bytes, most: int) -> tuple[bytes, Interest, bool]:
        """The name and the interest behind what a peer told, and whether it is new here."""
        count = len(topics) // 8
        if count > most:
            raise TooManyTopics(f"more than {most} topics of one node (limits.topics_per_peer)")
        if len(topics) % 8 or count < LONG:
            raise ProtocolError(f"an interest of {len(topics)} bytes; {LONG} to {most} topics are allowed")
        name = name_of(topics)
        interest = self._interned.get(name)
        if interest is None:
            points = np.frombuffer(topics, ">u8")
            if not (points[1:] > points[:-1]).all():
                raise ProtocolError("an interest whose topics are not in order")
            interest = frozenset(points.tolist())
            if not self.admit(interest):
                return name, NOTHING, False
            self._interned[name] = interest
            return name, interest, True
        return name, interest, False

    def intern(self, interest: Interest) -> tuple[Interest, bool]:
        """The same for an interest that came in full."""
        if min(interest) < 0:
            return interest, False
        _, known, new = self.read(np.array(sorted(interest), ">u8").tobytes(), len(interest))
        return known, new


class TellingInterests:
    """What the other end of a connection holds of this one's names."""

    def __init__(self) -> None:
        self._told: OrderedDict[bytes, int] = OrderedDict()
        self._topics = 0

    @property
    def names(self) -> list[bytes]:
        return list(self._told)

    def news(self, mentioned: Iterable[NamedInterest]) -> list[InterestsTold]:
        """What must be told before messages that mention these, in frames."""
        waiting = {named.name: named for named in mentioned}
        new = [named for named in waiting.values() if named.name not in self._told]
        for name in waiting:
            if name in self._told:
                self._told.move_to_end(name)
        if not new:
            return []
        self._topics += sum(len(named.topics) // 8 for named in new)
        forget = []
        for name in list(self._told):
            if self._topics <= HELD or name in waiting:
                break  # Those that are mentioned now were moved to the end.
            self._topics -= self._told.pop(name)
            forget.append(name)
        self._told.update((named.name, len(named.topics) // 8) for named in new)
        frames: list[list[bytes]] = [[]]
        for named in new:
            if sum(map(len, frames[-1])) >= FRAME:
                frames.append([])
            frames[-1].append(named.topics)
        return [
            InterestsTold(() if number else tuple(forget), tuple(topics))
            for number, topics in enumerate(frames)
        ]


class HearingInterests:
    """What this end holds of the other's names."""

    def __init__(self, names: InterestNames, most_topics: int) -> None:
        self.held: dict[bytes, Interest] = {}
        self._names = names
        self._most = most_topics
        self._topics = 0
        self._introduced: WeakSet[Interest] = WeakSet()
        self._introduced_topics = 0

    def full(self, interest: Interest | bytes) -> Interest:
        """What stands for an interest in a message of this connection."""
        if isinstance(interest, bytes):
            known = self.held.get(interest)
            if known is None:
                raise ProtocolError("the name of an interest that was never told")
            return known
        if len(interest) > self._most:
            raise TooManyTopics(f"more than {self._most} topics of one node (limits.topics_per_peer)")
        if len(interest) < LONG:
            return interest
        known, new = self._names.intern(interest)
        if new:
            self._introduce(known)
        return known

    def _introduce(self, interest: Interest) -> None:
        """One peer may not fill the memory for all."""
        share = max(self._names.most_topics // SHARE, self._most)
        self._introduced.add(interest)
        self._introduced_topics += len(interest)
        if self._introduced_topics > share:
            self._introduced_topics = sum(map(len, self._introduced))
            if self._introduced_topics > share:
                raise ProtocolError(f"interests of more than {share} topics")

    def hear(self, told: InterestsTold) -> None:
        for name in told.forget:
            self._topics -= len(self.held.pop(name, ()))
        for topics in told.topics:
            name, interest, new = self._names.read(topics, self._most)
            if new:
                self._introduce(interest)
            if name not in self.held:
                self.held[name] = interest
                self._topics += len(interest)
                if self._topics > HELD:
                    raise ProtocolError(f"names that stand for more than {HELD} topics")


class Shape:
    """Where a message, or a struct in it, holds interests; and its twin, in which a name may stand for each.

    Interests are the only sets in messages, so one rule covers the messages of all systems, also of those yet to come.
    """

    def __init__(self, type_: type[msgspec.Struct]) -> None:
        self._type = type_
        self._sets: list[int] = []
        self._nested: list[tuple[int, Shape]] = []
        info = msgspec.inspect.type_info(type_)
        assert isinstance(info, msgspec.inspect.StructType)
        fields: list[Any] = []
        for place, (field, shown) in enumerate(zip(msgspec.structs.fields(type_), info.fields, strict=True)):
            kind, twin = shown.type, field.type
            if isinstance(kind, msgspec.inspect.FrozenSetType):
                self._sets.append(place)
                twin = field.type | Name
            elif isinstance(kind, msgspec.inspect.VarTupleType):
                item = kind.item_type
                if isinstance(item, msgspec.inspect.StructType) and (inner := shape_of(item.cls)):
                    self._nested.append((place, inner))
                    twin = GenericAlias(tuple, (inner.twin, ...))
            default = () if field.required else (field.default,)
            fields.append((field.name, twin, *default))
        config = type_.__struct_config__
        self.twin: type[msgspec.Struct] = msgspec.defstruct(
            type_.__name__, fields, tag=config.tag, array_like=True, frozen=True, gc=False
        )

    @property
    def empty(self) -> bool:
        return not self._sets and not self._nested

    def interests(self, struct: msgspec.Struct) -> Iterator[Interest]:
        values = msgspec.structs.astuple(struct)
        for place in self._sets:
            yield values[place]
        for place, shape in self._nested:
            for item in values[place]:
                yield from shape.interests(item)

    def shortened(
        self, struct: msgspec.Struct, names: Callable[[Interest], NamedInterest | None]
    ) -> msgspec.Struct:
        """With names for interests that have one: to be encoded, and for nothing else."""

        def short(interest: Interest) -> Interest | bytes:
            named = names(interest)
            return interest if named is None else named.name

        return self._changed(struct, short, lambda shape, item: shape.shortened(item, names))

    def restored(self, twin: msgspec.Struct, full: Callable[[Interest | bytes], Interest]) -> msgspec.Struct:
        """The message that a twin stands for."""
        return self._changed(twin, full, lambda shape, item: shape.restored(item, full))

    def _changed(
        self,
        struct: msgspec.Struct,
        change: Callable[[Any], Any],
        change_item: Callable[[Shape, msgspec.Struct], msgspec.Struct],
    ) -> msgspec.Struct:
        values = list(msgspec.structs.astuple(struct))
        for place in self._sets:
            values[place] = change(values[place])
        for place, shape in self._nested:
            values[place] = tuple([change_item(shape, item) for item in values[place]])
        return self._type(*values)


@cache
def shape_of(type_: type[msgspec.Struct]) -> Shape | None:
    """None if there are no interests in it."""
    shape = Shape(type_)
    return None if shape.empty else shape
