"""The port: nodes route to their parts, and every message of the package survives the wire."""

from __future__ import annotations

import importlib
import math
import pkgutil
import random
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from operator import or_
from types import ModuleType
from typing import Any

import msgspec
import pytest
from msgspec import inspect

import topicweave.blocks
import topicweave.systems
from topicweave.model.event import Event
from topicweave.model.ids import NodeId, TopicId
from topicweave.port import (
    EventMessage,
    InFormat,
    Link,
    Message,
    Node,
    Published,
    Receivers,
    TimerKey,
    Timers,
    World,
)
from topicweave.systems.registry import SYSTEMS

# Routing.


class Hello(Message, frozen=True, array_like=True, tag="test-hello"):
    name: str


class Bye(Message, frozen=True, array_like=True, tag="test-bye"):
    pass


class Recorder:
    """A block that handles one message and one timer, and writes both down."""

    def __init__(self, message: type[Message], timer: str) -> None:
        self._message = message
        self._timer = timer
        self.log: list[tuple[Any, ...]] = []

    def receivers(self) -> Receivers:
        return {self._message: lambda sender, message: self.log.append((sender, message))}

    def timers(self) -> Timers:
        return {self._timer: self.log.append}


class NoWorld:
    """A world nothing is asked of here."""

    now = 0.0
    random = random.Random(0)

    def send(self, peer: NodeId, message: Message) -> None:
        raise AssertionError

    def set_timer(self, key: TimerKey, delay: float) -> None:
        raise AssertionError

    def understands(self, _peer: NodeId, _kind: type[InFormat]) -> bool:
        return True

    def cancel_timer(self, key: TimerKey) -> None:
        raise AssertionError

    def deliver(self, event: Event) -> None:
        raise AssertionError

    most_topics = 16_384
    vouches_by = b""

    def vouch(self, _statement: bytes) -> bytes:
        return b""

    def vouched(self, _by: NodeId, _statement: bytes, _proof: bytes) -> bool:
        return True


class PlainNode(Node):
    def __init__(self, world: World, blocks: Sequence[Recorder], links: Sequence[Link] = ()) -> None:
        super().__init__(world, 1, [7, 8, 7])
        self._links = links
        for block in blocks:
            self.use(block)

    def start(self, contacts: Sequence[NodeId]) -> None: ...

    def subscribe(self, topic: TopicId) -> None: ...

    def unsubscribe(self, topic: TopicId) -> None: ...

    def publish(self, topic: TopicId, payload: bytes = b"") -> Published:
        return Published(Event(1, topic, 0, 0, payload), 0)

    def peer_lost(self, peer: NodeId) -> None: ...

    def leave(self) -> None: ...

    def links(self) -> Iterable[Link]:
        return self._links

    def known_peers(self) -> Iterable[NodeId]:
        return ()


def test_messages_go_to_the_part_that_handles_their_type() -> None:
    greeter, porter = Recorder(Hello, "greet"), Recorder(Bye, "close")
    node = PlainNode(NoWorld(), [greeter, porter])
    node.receive(5, Hello("a"))
    node.receive(6, Bye())
    node.receive(7, Hello("b"))
    assert greeter.log == [(5, Hello("a")), (7, Hello("b"))]
    assert porter.log == [(6, Bye())]
    assert node.message_types == (Hello, Bye)


def test_timers_go_to_the_part_that_their_key_begins_with() -> None:
    greeter, porter = Recorder(Hello, "greet"), Recorder(Bye, "close")
    node = PlainNode(NoWorld(), [greeter, porter])
    node.timer(("greet", 5))
    node.timer(("close",))
    assert greeter.log == [("greet", 5)]
    assert porter.log == [("close",)]


def test_what_nobody_handles_is_an_error_of_ours() -> None:
    node = PlainNode(NoWorld(), [Recorder(Hello, "greet")])
    with pytest.raises(KeyError):
        node.receive(5, Bye())
    with pytest.raises(KeyError):
        node.timer(("close",))


@pytest.mark.parametrize("second", [Recorder(Hello, "other"), Recorder(Bye, "greet")])
def test_what_two_blocks_handle_is_an_error_of_ours(second: Recorder) -> None:
    with pytest.raises(ValueError, match=r"Recorder handles what another block does: (Hello|greet)"):
        PlainNode(NoWorld(), [Recorder(Hello, "greet"), second])


def test_degree_counts_peers_not_links() -> None:
    node = PlainNode(NoWorld(), [], [Link(2, "ring"), Link(2, "friend"), Link(3, "friend")])
    assert node.degree == 2
    assert node.subscriptions == {7, 8}
    assert node.gauges() == {}


def test_messages_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        Hello("a").name = "b"  # type: ignore[misc]  # frozen
    assert list(Hello("a").introduces()) == []


# All messages of the package.


def import_all(package: ModuleType) -> None:
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        importlib.import_module(module.name)


def descendants(kind: type[Message]) -> Iterator[type[Message]]:
    for child in kind.__subclasses__():
        yield child
        yield from descendants(child)


for package in (topicweave.blocks, topicweave.systems):
    import_all(package)
ALL = sorted(
    # Tests define messages, too; EventMessage is a base that is never sent.
    {
        kind
        for kind in descendants(Message)
        if kind.__module__.startswith("topicweave.") and kind is not EventMessage
    },
    key=lambda kind: (kind.__module__, kind.__qualname__),
)


def test_the_messages_of_the_package_are_found() -> None:
    names = {f"{kind.__module__}.{kind.__name__}" for kind in ALL}
    assert "topicweave.blocks.broadcast_tree.messages.Push" in names
    assert "topicweave.systems.spidercast.messages.Heartbeat" in names


def test_no_two_messages_have_the_same_tag() -> None:
    named: dict[Any, type[Message]] = {}
    for kind in ALL:
        tag = kind.__struct_config__.tag
        assert tag not in named, f"{kind} and {named[tag]} are both {tag!r}"
        named[tag] = kind


def test_event_messages_put_event_and_hops_first() -> None:
    """The world reads them without knowing the system."""
    for kind in ALL:
        if issubclass(kind, EventMessage):
            assert kind.__struct_fields__[:2] == ("event", "hops")


def example(type_: inspect.Type, draw: random.Random) -> Any:
    """Some value of a type; identifiers take all of their 64 bits now and then."""
    many = range(draw.randrange(4))
    match type_:
        case inspect.IntType(ge=least, le=most):
            drawn = draw.choice([0, 1, draw.getrandbits(31), draw.getrandbits(64), 2**64 - 1])
            return min(max(drawn, least or 0), 2**64 - 1 if most is None else most)
        case inspect.FloatType(ge=lowest, le=highest):
            drawn_float = draw.choice([0.0, -1.5, draw.random() * 1e6, math.inf])
            at_least = -math.inf if lowest is None else lowest
            return min(max(drawn_float, at_least), math.inf if highest is None else highest)
        case inspect.BoolType():
            return draw.random() < 0.5
        case inspect.StrType():
            return draw.choice(["", "greedy", "ünï"])
        case inspect.BytesType():
            return draw.randbytes(draw.randrange(5))
        case inspect.NoneType():
            return None
        case inspect.LiteralType(values=values):
            return draw.choice(values)
        case inspect.VarTupleType(item_type=item):
            return tuple(example(item, draw) for _ in many)
        case inspect.ListType(item_type=item):
            return [example(item, draw) for _ in many]
        case inspect.FrozenSetType(item_type=item):
            return frozenset(example(item, draw) for _ in many)
        case inspect.TupleType(item_types=items):
            return tuple(example(item, draw) for item in items)
        case inspect.DictType(key_type=key, value_type=value):
            return {example(key, draw): example(value, draw) for _ in many}
        case inspect.UnionType(types=types):
            return example(draw.choice(types), draw)
        case inspect.StructType(cls=cls, fields=fields) | inspect.NamedTupleType(cls=cls, fields=fields):
            return cls(**{field.name: example(field.type, draw) for field in fields})
    raise AssertionError(f"no example of a {type_}: teach this test to make one")


@pytest.fixture(scope="module")
def any_message() -> msgspec.msgpack.Decoder[Any]:
    """Tells all messages of the package apart, as a node's decoder does with those it understands."""
    return msgspec.msgpack.Decoder(reduce(or_, ALL))


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: str(kind.__struct_config__.tag))
def test_every_message_survives_the_wire(
    kind: type[Message], any_message: msgspec.msgpack.Decoder[Any]
) -> None:
    draw = random.Random(kind.__qualname__)
    for _ in range(30):
        message = example(inspect.type_info(kind), draw)
        back = any_message.decode(msgspec.msgpack.encode(message))
        assert type(back) is kind
        assert back == message
        hash(back)  # immutable all the way down, for the simulator passes messages by reference
        assert all(isinstance(peer, int) for peer in back.introduces())


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: str(kind.__struct_config__.tag))
def test_messages_are_compact_and_immutable(kind: type[Message]) -> None:
    config = kind.__struct_config__
    assert config.frozen
    assert config.array_like
    assert isinstance(config.tag, str)


def test_every_system_is_found_under_its_name() -> None:
    assert all(name == system.name for name, system in SYSTEMS.items())
