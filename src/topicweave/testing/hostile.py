"""Messages that decode, and that nobody honest would send: made from the messages' own types.

Values are drawn from what is at hand (ids, topics, numbers seen in real messages) and from the ends of what
their types allow; tuples hold the same thing twice, or nothing, or a lot. Tuples of one message are mostly of
one length, and fields that are named after topics mostly hold topics: a message that is thrown away at the
first look finds nothing.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import msgspec

from topicweave.model.ids import NodeId, TopicId
from topicweave.port import Message

ENDS = (0, 1, -1, 2, 3, 7, 255, 2**31, 2**53, 2**63 - 1, -(2**63), 2**63, 2**64 - 1)
SMALL = list(range(20))
COUNTED = (
    "hops",
    "stamp",
    "sequence",
    "first",
    "last",
    "epoch",
    "version",
    "count",
    "ring",
    "number",
    "degree",
    "round",
)
"""Words in the names of fields that hold small numbers."""
FLOATS = (0.0, -1.0, 0.5, 1.0, 1e-9, 1e9, -1e9, 1e300, float("inf"), float("nan"))


TEXTS = ("", "a", "greedy", "random", "x" * 100)

_info = lru_cache(maxsize=None)(msgspec.inspect.type_info)


class HostileMessages:
    """`nodes` and `topics` are those of the swarm, `texts` such as its messages hold."""

    def __init__(
        self,
        types: Sequence[type[Message]],
        nodes: Sequence[NodeId],
        topics: Sequence[TopicId],
        seed: int,
        texts: Sequence[str] = TEXTS,
    ) -> None:
        self._types = list(types)
        self._nodes, self._topics = list(nodes), list(topics)
        self._texts = texts
        self._known = self._nodes
        self._length: int | None = None
        self._random = random.Random(seed)
        self._encode = msgspec.msgpack.Encoder().encode
        self._decoders = {type_: msgspec.msgpack.Decoder(type_).decode for type_ in self._types}

    def draw(self, type_: type[Message] | None = None) -> Message:
        """One that decodes."""
        while True:
            chosen = type_ or self._random.choice(self._types)
            try:
                self._length = self._random.choice((None, 1, 2, 2, 3))
                encoded = self._encode(self._struct(chosen))
                return self._decoders[chosen](encoded)
            except (msgspec.ValidationError, OverflowError, ValueError, TypeError):
                continue

    def _struct(self, type_: type[msgspec.Struct]) -> Any:
        info = _info(type_)
        assert isinstance(info, msgspec.inspect.StructType)
        values = []
        for field in info.fields:
            self._known = self._kind_of(field.name)
            values.append(self._value(field.type))
        return type_(*values)

    def _kind_of(self, field: str) -> list[int]:
        if "topic" in field or "feed" in field:
            return self._topics
        return SMALL if any(word in field for word in COUNTED) else self._nodes

    def _value(self, kind: Any) -> Any:
        inspect, rng = msgspec.inspect, self._random
        match kind:
            case inspect.Metadata(type=inner):
                return self._value(inner)
            case inspect.IntType():
                return self._number(kind)
            case inspect.FloatType():
                return rng.choice(FLOATS) if rng.random() < 0.7 else rng.random()
            case inspect.BoolType():
                return rng.random() < 0.5
            case inspect.StrType():
                return rng.choice(self._texts)
            case inspect.BytesType():
                return rng.randbytes(rng.choice((0, 1, 8, 16, 64, 200)))
            case inspect.LiteralType(values=values):
                return rng.choice(list(values))
            case inspect.NoneType():
                return None
            case inspect.UnionType(types=types):
                return self._value(rng.choice(list(types)))
            case inspect.StructType(cls=cls):
                return self._struct(cls)
            case inspect.NamedTupleType(cls=cls, fields=fields):
                return cls(*[self._value(field.type) for field in fields])
            case inspect.TupleType(item_types=items):
                return tuple(self._value(item) for item in items)
            case inspect.VarTupleType(item_type=item) | inspect.ListType(item_type=item):
                return self._several(item)
            case inspect.FrozenSetType(item_type=item) | inspect.SetType(item_type=item):
                return frozenset(self._several(item))
            case inspect.DictType(key_type=key, value_type=value):
                return {self._value(key): self._value(value) for _ in range(rng.randrange(4))}
        raise TypeError(f"no rule for {kind}")

    def _number(self, kind: Any) -> int:
        rng = self._random
        if rng.random() < 0.6:
            return rng.choice(self._known)
        number = rng.choice(ENDS) if rng.random() < 0.7 else rng.randrange(20)
        low = kind.ge if kind.ge is not None else number
        high = kind.le if kind.le is not None else number
        return max(low, min(high, number))

    def _several(self, item: Any) -> tuple[Any, ...]:
        rng = self._random
        known, count = self._known, self._length or rng.choice((0, 1, 1, 2, 3, 8))
        drawn: list[Any] = []
        for _ in range(count):
            self._known = known
            again = drawn and rng.random() < 0.4
            drawn.append(rng.choice(drawn) if again else self._value(item))
        return tuple(drawn)
