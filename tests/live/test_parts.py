"""The parts of a live node that need no socket."""

from __future__ import annotations

import asyncio
import itertools
import re
from pathlib import Path
from typing import Any, get_type_hints

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import topicweave
from topicweave.errors import BadInput
from topicweave.live import clock
from topicweave.live.addresses import AddressBook
from topicweave.live.counters import Counters
from topicweave.live.event_log import EventLog, Logged
from topicweave.live.frames import HEADER
from topicweave.live.interests import HELD
from topicweave.live.outbox import Outbox
from topicweave.live.ranges import RANGES, check_ranges
from topicweave.live.settings import (
    LONGEST_NAME,
    MOST_BESIDE,
    Address,
    Limits,
    LogLimits,
    Settings,
    load_settings,
    settings_from,
)
from topicweave.live.store import Store
from topicweave.live.wire import VERSIONS, AddressOf, Hello, hello_frame, read_hello
from topicweave.model.event import Event
from topicweave.systems.presets import Preset
from topicweave.systems.registry import SYSTEMS
from topicweave.systems.system import System


@given(st.lists(st.tuples(st.integers(1, 60), st.booleans()), max_size=60))
def test_an_outbox_stays_within_its_bytes_and_loses_nothing_silently(puts: list[tuple[int, bool]]) -> None:
    counters = Counters()
    outbox = Outbox(200, counters)
    events = gossip = refused = 0
    for size, carries_event in puts:
        taken = outbox.put(bytes(size), carries_event)
        refused += carries_event and not taken
        events += carries_event
        gossip += not carries_event
        assert outbox.size <= 200
    left = [(message, True) for message in outbox._events] + [(message, False) for message in outbox._gossip]
    assert sum(len(message) for message, _ in left) == outbox.size
    assert counters.events_dropped == refused
    assert sum(is_event for _, is_event in left) == events - refused, "a queued event is never dropped"
    assert sum(not is_event for _, is_event in left) == gossip - counters.gossip_dropped


def test_the_oldest_gossip_goes_first() -> None:
    outbox = Outbox(100, Counters())
    for number in range(10):
        outbox.put(bytes([number]) * 10, carries_event=number == 0)
    assert outbox.put(b"n" * 10, carries_event=True)
    assert [message[0] for message in outbox.take(1000)] == [4, 5, 6, 7, 8, 9, 0, ord("n")]


def test_what_is_taken_in_parts_is_all_and_gossip_goes_first() -> None:
    outbox = Outbox(1000, Counters())
    for number in range(20):
        outbox.put(bytes([number]) * 10, carries_event=number % 2 == 0)
    parts = []
    while len(outbox):
        parts.append([message[0] for message in outbox.take(35)])
    assert [number for part in parts for number in part] == [*range(1, 20, 2), *range(0, 20, 2)]
    assert {len(part) for part in parts[:-1]} == {3}
    assert outbox.size == 0
    outbox.put(bytes(100), carries_event=True)
    assert len(outbox.take(1)) == 1, "at least one, whatever its size"


def test_hearsay_does_not_replace_what_a_peer_said_itself() -> None:
    book = AddressBook(1, limit=2, proves=None)
    here, there = Address("127.0.0.1", 1), Address("127.0.0.1", 2)
    book.confirm(AddressOf(5, here))
    book.hear(AddressOf(5, there))
    assert book.get(5) == here
    book.failed(5)
    book.hear(AddressOf(5, there))
    assert book.get(5) == there
    book.hear(AddressOf(6, Address("192.0.2.1", 1)))
    assert book.get(6) is None, "without keys, only this machine"
    for peer in (7, 8, 9):
        book.hear(AddressOf(peer, here))
    assert len(book) == 2


def test_with_keys_an_address_counts_if_its_node_signed_it_and_the_later_one_wins() -> None:
    book = AddressBook(1, limit=9, proves=lambda record: record.signature == b"good")
    old, new = Address("192.0.2.1", 1), Address("192.0.2.1", 2)
    assert not book.hear(AddressOf(5, old, 10, b"bad"))
    assert book.get(5) is None
    book.confirm(AddressOf(5, old, 10, b"good"))
    assert book.hear(AddressOf(5, new, 11, b"good"))
    assert book.get(5) == new
    assert book.hear(AddressOf(5, old, 10, b"good"))
    assert book.get(5) == new


def test_a_log_is_bounded_and_its_digest_tells_its_contents() -> None:
    one = EventLog(lambda topic: 3, 1000, lambda: 0.0)
    other = EventLog(lambda topic: 3, 1000, lambda: 0.0)
    events = [Event(1, 7, 1, number, b"x") for number in range(5)]
    for event in events:
        assert one.add(event, 1)
    for event in (events[4], events[2], events[3]):
        other.add(event, 1)
    assert one.events(7) == [event.id for event in events[2:]]
    assert one.digest(7) == other.digest(7) != 0
    assert not one.add(events[4], 1)
    one.drop(7)
    assert (one.digest(7), one.bytes, len(one)) == (0, 0, 0)


def test_a_log_is_bounded_in_bytes_over_all_topics() -> None:
    log = EventLog(lambda topic: 100, 100, lambda: 0.0)
    for number in range(10):
        log.add(Event(1, number, 1, 0, bytes(30)), 1)
    assert log.bytes <= 100
    assert list(log.topics()) == [7, 8, 9]


def test_time_goes_on_from_an_earlier_life_even_if_the_wall_clock_was_set_back() -> None:
    future = clock.Clock().now + 1000.0
    later = clock.Clock(not_before=future)
    assert later.now >= future
    readings = [later.now for _ in range(1000)]
    assert all(b >= a for a, b in itertools.pairwise(readings))


def test_what_is_stored_is_there_after_a_reopening(tmp_path: Path) -> None:
    big = (1 << 64) - 1
    store = Store(tmp_path)
    store.set_fact("name", "alice")
    store.set_peers({big: Address("127.0.0.1", 7)})
    store.add_subscription("news")
    store.set_sequence(big, 12)
    store.set_seen(big, 3, (1, 5, ((0, 1), (3, 3))), 2)
    store.add_event(Event(big, 3, 1, 5, b"payload"), 4, arrived=10.0)
    store.commit()
    store.set_fact("name", "never committed")
    store._db.close()  # As a killed process does: without a word.
    again = Store(tmp_path)
    assert again.fact("name") == "alice"
    assert again.peers() == {big: Address("127.0.0.1", 7)}
    assert again.subscriptions() == ["news"]
    assert again.sequences() == {big: 12}
    assert list(again.seen()) == [(big, 3, (1, 5, ((0, 1), (3, 3))), 2)]
    assert list(again.events()) == [Logged(Event(big, 3, 1, 5, b"payload"), 4, 10.0)]
    again.close()


def test_a_data_folder_serves_one_process_at_a_time(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with pytest.raises(BadInput, match="another process"):
        Store(tmp_path)
    store.close()


def test_garbage_is_no_data_folder(tmp_path: Path) -> None:
    (tmp_path / "node.sqlite").write_bytes(b"garbage" * 1000)
    with pytest.raises(BadInput, match="not a node's data folder"):
        Store(tmp_path)


def test_settings_come_from_file_environment_and_flags_in_this_order(tmp_path: Path) -> None:
    file = tmp_path / "node.toml"
    file.write_text(
        'insecure = true\nsystem = "random"\npreset = "wan"\nsubscribe = ["a"]\n[limits]\nconnections = 7\n'
    )
    environment = {"TOPICWEAVE_PRESET": "lan", "TOPICWEAVE_JOIN": "127.0.0.1:1, 127.0.0.1:2"}
    settings = load_settings(file, environment, {"preset": "local"})
    assert (settings.system, settings.preset, settings.subscribe) == ("random", "local", ("a",))
    assert settings.join == ("127.0.0.1:1", "127.0.0.1:2")
    assert settings.limits.connections == 7


def test_a_variable_that_names_no_setting_is_refused() -> None:
    with pytest.raises(BadInput, match="TOPICWEAVE_JION names no setting: did you mean TOPICWEAVE_JOIN"):
        load_settings(None, {"TOPICWEAVE_JION": "127.0.0.1:1"}, {"insecure": True})
    others = {"TOPICWEAVE_NODE": "127.0.0.1:8000", "TOPICWEAVE_DEBUG": "1", "OTHER_JION": ""}
    assert load_settings(None, others, {"insecure": True}).join == ()


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({}, "needs keys"),
        ({"insecure": True, "keys": "k"}, "choose one"),
        ({"insecure": True, "listen": "192.0.2.1:7000"}, "loopback only"),
        ({"insecure": True, "listen": "localhost:7000"}, "say an IP address"),
        ({"keys": "k", "listen": "0.0.0.0:7000"}, "advertise"),
        ({"insecure": True, "http": "0.0.0.0:80"}, "set a token"),
        ({"insecure": True, "token": "hush"}, "token needs http"),
        ({"insecure": True, "http": "127.0.0.1:80", "token": "größe"}, "token: .* printable ASCII"),
        ({"insecure": True, "http": "127.0.0.1:80", "token": "a\nb"}, "token: .* printable ASCII"),
        ({"insecure": True, "http": "127.0.0.1:80", "token": "hush "}, "token: .* no blank at its ends"),
        ({"insecure": True, "data": "a\0b"}, "data .* no path"),
        ({"insecure": True, "telemetry": "a\0b"}, "telemetry .* no path"),
        ({"insecure": True, "cache": -1}, "cache is -1: say 0 to"),
        ({"insecure": True, "caches": {"a": -1}}, "caches.a is -1"),
        ({"insecure": True, "view": -5}, "view is -5: say 1 to"),
        ({"insecure": True, "redeliver_after": -1.0, "delivery": "at-least-once"}, "redeliver_after is -1.0"),
        ({"insecure": True, "redeliver_after": 5.0}, 'needs delivery = "at-least-once"'),
        ({"insecure": True, "limits": Limits(payload_bytes=50)}, "payload_bytes is 50.*a signature takes 72"),
        (
            {"insecure": True, "limits": Limits(payload_bytes=8 << 20)},
            "frame_bytes .* must be 8650752 at least",
        ),
        ({"insecure": True, "limits": Limits(queue_bytes=-1)}, "queue_bytes is -1"),
        ({"insecure": True, "limits": Limits(connections=0)}, "connections is 0: say 1 to"),
        ({"insecure": True, "limits": Limits(max_memory=1000)}, "max_memory is 1000"),
        ({"insecure": True, "data": "d", "log": LogLimits(events=-1)}, "log.events is -1"),
        ({"insecure": True, "data": "d", "logs": {"t": LogLimits(seconds=-1.0)}}, "logs.t.seconds is -1.0"),
        ({"insecure": True, "log": LogLimits(events=5)}, "log needs data"),
        ({"insecure": True, "logs": {"t": LogLimits(events=100)}}, "logs needs data"),
        ({"insecure": True, "when_disk_fails": "hand-over"}, "when_disk_fails needs data"),
        ({"insecure": True, "mqtt": "127.0.0.1:0", "mqtt_key": "k"}, "mqtt_key needs mqtt_certificate"),
        ({"insecure": True, "mqtt_passwords": "p"}, "mqtt_passwords needs mqtt"),
        ({"insecure": True, "unproven_contacts": True}, "needs keys"),
        ({"insecure": True, "advertise": "192.0.2.1:7000"}, "on loopback only"),
        ({"keys": "k", "advertise": "0.0.0.0:7000"}, "nobody reaches"),
        (
            {"insecure": True, "listen": "127.0.0.1:70", "http": "127.0.0.1:70"},
            "http .* is the address of listen",
        ),
        ({"insecure": True, "name": "x" * 5000}, "name 'x+' has 5000 characters: say 0 to 200"),
        ({"insecure": True, "name": "\udcff"}, "name .* is no UTF-8 text"),
        ({"insecure": True, "swarm": ""}, "swarm '' has 0 characters: say 1 to 200"),
        ({"insecure": True, "system": "x" * 201}, "system 'x+' has 201 characters"),
        ({"insecure": True, "retained": ("x" * 1001,)}, "1 to 1000 characters"),
        ({"insecure": True, "retained": ("\udcff",)}, "no UTF-8 text"),
        ({"insecure": True, "caches": {"zone/#": 5}}, "caches, 'zone/#' is a pattern"),
    ],
)
def test_settings_that_would_be_unsafe_or_senseless_are_refused(changes: dict[str, object], why: str) -> None:
    with pytest.raises(BadInput, match=why):
        Settings(**changes)  # type: ignore[arg-type]  # wrong on purpose


def numbers(struct: type[msgspec.Struct], before: str = "") -> set[str]:
    kinds = {name: str(kind) for name, kind in get_type_hints(struct).items()}
    return {before + name for name, kind in kinds.items() if re.search(r"\b(int|float)\b", kind)}


def test_every_number_among_the_settings_has_a_range_that_holds_its_default() -> None:
    assert RANGES.keys() == numbers(Settings) | numbers(Limits, "limits.") | numbers(LogLimits, "log.")
    assert RANGES["limits.topics_per_peer"].most == HELD
    check_ranges(Settings(insecure=True))


@pytest.mark.parametrize("letter", ["x", "\N{SNOWMAN}", "\U0001f9f6"])
def test_a_hello_with_the_longest_names_fits_every_limit(letter: str) -> None:
    name = letter * LONGEST_NAME
    where = Address("::ffff:255.255.255.255", 65535)
    beside = Settings(
        insecure=True, system="x" * (LONGEST_NAME - MOST_BESIDE), patterns="on", private_names=True
    )
    spoken = beside.spoken_system(SYSTEMS["vitis"])
    assert len(spoken) <= LONGEST_NAME
    said = Hello(
        *("topicweave", VERSIONS, name, name, (1 << 64) - 1, name, where, (1 << 63) - 1),
        *(2.0**33, 1 << 33, bytes(128)),
    )
    told = hello_frame(said)
    assert len(told) - 4 <= RANGES["limits.hello_bytes"].least
    assert read_hello(told[HEADER:]).name == name


def test_names_that_nodes_keep_private_need_names() -> None:
    private = Settings(insecure=True, system="vitis", private_names=True)
    with pytest.raises(BadInput, match="private_names needs names"):
        private.system_parameters(SYSTEMS["vitis"])


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ({"limits": {"max_memory": 1 << 22}}, {"limits": Limits(max_memory=1 << 22)}),
        ({"join": "127.0.0.1:7000"}, {"join": ("127.0.0.1:7000",)}),
        ({"subscribe": "a, b"}, {"subscribe": ("a, b",)}),
        ({"subscribe": {"a"}, "view": "20"}, {"subscribe": ("a",), "view": 20}),
        ({"data": Path("d"), "log": {"events": 7}}, {"data": "d", "log": LogLimits(events=7)}),
    ],
)
def test_what_has_one_meaning_is_taken(given: dict[str, Any], meant: dict[str, Any]) -> None:
    assert settings_from({"insecure": True, **given}) == Settings(insecure=True, **meant)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"listen": 7000}, r"Expected `str`, got `int` - at `\$.listen`"),
        ({"listen": None}, r"got `null` - at `\$.listen`"),
        ({"cache": "x"}, r"Expected `int`, got `str` - at `\$.cache`"),
        ({"limits": {"nope": 1}}, r"unknown field `nope` - at `\$.limits`"),
        ({"subscribe": [b"a"]}, r"got `bytes` - at `\$.subscribe"),
        ({"subscribe": (topic for topic in "ab")}, "what is <generator"),
        ({"view": -5}, "view is -5: say 1 to 1000000"),
    ],
)
def test_settings_of_wrong_types_are_one_clear_line(given: dict[str, Any], why: str) -> None:
    async def test() -> None:
        async with topicweave.connect(**{"insecure": True, **given}):
            raise AssertionError("it started")

    with pytest.raises(BadInput, match=why) as refused:
        asyncio.run(test())
    assert "\n" not in str(refused.value)


def test_an_unknown_setting_is_named() -> None:
    with pytest.raises(BadInput, match="colour"):
        load_settings(environment={}, flags={"insecure": True, "colour": "red"})


def test_a_systems_own_times_go_with_the_preset_and_the_users_before_both() -> None:
    system = SYSTEMS["rappel"]
    times = {
        preset: Settings(insecure=True, preset=preset).system_parameters(system).ping_period
        for preset in ("local", "lan", "wan")
    }
    assert times == {"local": 3.0, "lan": 6.0, "wan": system.settings().ping_period}
    assert (
        Settings(insecure=True, preset="local", parameters={"ping_period": 9.0})
        .system_parameters(system)
        .ping_period
        == 9.0
    )


@pytest.mark.parametrize("system", SYSTEMS.values(), ids=SYSTEMS)
@pytest.mark.parametrize("preset", ["local", "lan", "wan"])
def test_every_preset_suits_every_system(system: System, preset: Preset) -> None:
    """Times that a system does not have, or that do not go together, are refused."""
    assert set(system.paces) <= {"local", "lan", "wan"}
    Settings(insecure=True, preset=preset).system_parameters(system)
