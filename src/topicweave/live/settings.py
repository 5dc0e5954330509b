"""What a live node is to be: plain data, from flags, environment, TOML or a program."""

from __future__ import annotations

import difflib
import ipaddress
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_args, get_type_hints

import msgspec

from topicweave.errors import BadInput
from topicweave.live.names import check_topic, is_text, refuse_reserved
from topicweave.live.ranges import check_ranges
from topicweave.model.patterns import is_pattern
from topicweave.systems.presets import DEFAULT, Preset
from topicweave.systems.system import System

LONGEST_NAME = 200
"""Characters of a node's, a swarm's or a system's name: hellos carry no longer one."""
REDELIVER_AFTER = 30.0
BESIDE = " with "
"""Between a system and what a swarm runs beside it."""
MOST_BESIDE = 40
"""Characters of what a swarm runs beside it."""
PATHS = ("keys", "data", "mqtt_passwords", "mqtt_permissions", "mqtt_certificate", "mqtt_key", "telemetry")


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What others can make this node hold or do."""

    frame_bytes: int = 4 * 1024 * 1024
    """The largest frame that a peer may send; 256 KiB more than `payload_bytes`, and than 8 bytes for each of
    `topics_per_peer`, at least.
    """
    hello_bytes: int = 4096
    """The largest frame that a peer may send before its hello."""
    payload_bytes: int = 1024 * 1024
    """The largest payload of an event."""
    queue_bytes: int = 4 * 1024 * 1024
    """What waits for one peer. When the queue is full, old gossip is dropped, then events are refused. An
    event that is longer never goes to a peer.
    """
    connections: int = 512
    """Unused connections make room for new ones; links of the overlay do not."""
    half_open: int = 128
    """Connections that have not said hello. When there is one more, the oldest one of the address with most
    of them is closed.
    """
    bytes_per_second: int = 256 * 1024 * 1024
    """What one peer may send; works as `messages_per_second` does."""
    messages_per_second: int = 1_000_000
    """What one peer may send. Beyond that the node reads the peer's socket more slowly, so nothing is lost."""
    topics_per_peer: int = 16_384
    """How many topics one peer may want."""
    pattern_topics: int = 8192
    """Topics that all patterns of the node find together. More are left out, and the subscriber is told."""
    addresses: int = 8192
    """Addresses of other nodes that the node remembers."""
    credentials: int = 4096
    """Certificates of other nodes that the node remembers."""
    application_events: int = 65_536
    """Events that wait for the application. Beyond that the oldest is dropped and announced as a gap."""
    application_bytes: int = 64 * 1024 * 1024
    """The same, in bytes."""
    cache_bytes: int = 64 * 1024 * 1024
    """The caches of all topics together."""
    max_memory: int = 512 * 1024 * 1024
    """Bytes that peers and applications can make this node hold, in all. docs/security.md says what counts,
    and the share of each kind.
    """


class LogLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How many events of a topic the data folder keeps for nodes that missed them, beyond the cache."""

    events: int = 0
    """How many events; 0 keeps as many as the cache holds."""
    bytes: int = 256 * 1024 * 1024
    """How many bytes."""
    seconds: float = 0.0
    """For how many seconds after an event came; 0 sets no limit."""


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """The transport's timers, in seconds."""

    hello_timeout: float
    heartbeat: float
    """After so much silence a node asks the peer for a sign of life."""
    dead_after: float
    """After so much silence a link is dead."""
    idle_close: float
    """A connection that is no link of the overlay and carried no message for so long is closed in order."""
    dial_timeout: float
    first_backoff: float
    dial_attempts: int
    """After so many failures in a row a peer counts as unreachable."""
    unreachable_pause: float
    """The pause before an unreachable peer is tried again."""
    catch_up_period: float
    gap_patience: float = 10.0
    """How long a node asks for a missing event before it announces a gap."""


PACES: dict[Preset, Pace] = {
    "local": Pace(
        hello_timeout=2.0,
        heartbeat=1.0,
        dead_after=4.0,
        idle_close=4.0,
        dial_timeout=3.0,
        first_backoff=0.05,
        dial_attempts=3,
        unreachable_pause=2.0,
        catch_up_period=5.0,
        gap_patience=4.0,
    ),
    "lan": Pace(
        hello_timeout=3.0,
        heartbeat=2.0,
        dead_after=8.0,
        idle_close=6.0,
        dial_timeout=2.0,
        first_backoff=0.1,
        dial_attempts=3,
        unreachable_pause=5.0,
        catch_up_period=10.0,
    ),
    "wan": Pace(
        hello_timeout=10.0,
        heartbeat=10.0,
        dead_after=35.0,
        idle_close=40.0,
        dial_timeout=10.0,
        first_backoff=0.5,
        dial_attempts=4,
        unreachable_pause=20.0,
        catch_up_period=30.0,
        gap_patience=30.0,
    ),
}


class Address(msgspec.Struct, frozen=True, array_like=True):
    """Where a node listens: an IP address. It is never a host name, so no peer can make us ask a name server."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str, what: str = "address") -> Address:
        """From `127.0.0.1:7000` or `[::1]:7000`.

        >>> Address.parse("[::1]:7000")
        Address(host='::1', port=7000)
        """
        host, _, port = text.rpartition(":")
        address = cls(host.removeprefix("[").removesuffix("]"), int(port) if port.isdecimal() else -1)
        if not address.valid(port_0=True):
            raise BadInput(f"{what} {text!r}: say an IP address and a port, such as 127.0.0.1:7000")
        return address

    def valid(self, port_0: bool = False) -> bool:
        try:
            ipaddress.ip_address(self.host)
        except ValueError:
            return False
        return (0 if port_0 else 1) <= self.port <= 65535

    @property
    def loopback(self) -> bool:
        return ipaddress.ip_address(self.host).is_loopback

    @property
    def unspecified(self) -> bool:
        return ipaddress.ip_address(self.host).is_unspecified

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class SeedName(msgspec.Struct, frozen=True):
    """Where to join, as the user wrote it. A host name is looked up."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> SeedName:
        """From `127.0.0.1:7000`, `[::1]:7000` or `seed.example.org:7000`.

        >>> SeedName.parse("seed.example.org:7000")
        SeedName(host='seed.example.org', port=7000)
        """
        host, _, port = text.rpartition(":")
        host = host.removeprefix("[").removesuffix("]")
        if (
            not host
            or not port.isdecimal()
            or not 1 <= int(port) <= 65535
            or len(host) > 253
            or set(host) & set(" /@")
        ):
            raise BadInput(f"join {text!r}: say a host and a port, such as seed.example.org:7000")
        return cls(host, int(port))

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a node is told at its start."""

    name: str = ""
    """The node's name, of at most 200 characters. With keys it is the name in the certificate. Otherwise an
    empty name is drawn at random (and kept with `data`).
    """
    swarm: str = "topicweave"
    """The swarm's name, of at most 200 characters. Nodes of another swarm are refused."""
    system: str = "spidercast"
    """The system that links the nodes, the same for the whole swarm. `topicweave systems` lists all systems."""
    parameters: dict[str, Any] = {}
    """Parameters of the system that differ from the preset's."""
    listen: str = "127.0.0.1:0"
    """IP address and port for other nodes; port 0 takes a free one."""
    advertise: str = ""
    """The address at which others reach the node, if it is not the one that it listens on."""
    join: tuple[str, ...] = ()
    """Hosts and ports of nodes that are up. The node never stops trying those that do not answer."""
    subscribe: tuple[str, ...] = ()
    """Topics and patterns to subscribe to at the start."""
    patterns: Literal["auto", "on", "off"] = "auto"
    """Patterns such as `sensors/+/temperature`. `auto`: on, if the system has a topic directory. `on`: with
    any system, the same for the whole swarm. `off`: this node announces no names and takes no patterns.
    """
    private_names: bool = False
    """Announce names as hashes, level by level; the same for the whole swarm."""
    preset: Preset = DEFAULT
    """Timers that fit the swarm's network: `local` (one machine), `lan` or `wan`."""
    membership: Literal["directory", "gossip"] = "directory"
    """How the node learns who wants its topics. `directory`: by gossip, and from the homes of topics. `gossip`:
    by gossip alone; then rare topics may not be found, and there are no patterns (docs/membership.md).
    """
    view: int = 1000
    """How many peers' interests the node remembers."""
    keys: str = ""
    """The folder that `topicweave keys issue` made."""
    insecure: bool = False
    """No keys: no TLS, no signatures, on loopback only."""
    unproven_contacts: bool = False
    """With keys: believe what homes say of subscribers without the subscribers' signature. Set it while the
    swarm holds nodes of versions whose wire format is 5 or 6.
    """
    data: str = ""
    """The folder for data that survives a restart."""
    cache: int = 100
    """How many events of each topic the node keeps for neighbours that missed them; 0 turns catching up off."""
    caches: dict[str, int] = {}
    """The same for single topics."""
    log: LogLimits = LogLimits()
    """How many events of each topic the data folder keeps; needs `data`."""
    logs: dict[str, LogLimits] = {}
    """The same for single topics."""
    retained: tuple[str, ...] = ()
    """Topics whose last event is kept whatever the limits say."""
    delivery: Literal["at-most-once", "at-least-once"] = "at-most-once"
    """With `at-least-once` the application gets an event again that it has not acknowledged."""
    redeliver_after: float = REDELIVER_AFTER
    """How many seconds the node waits for the acknowledgement; needs `at-least-once`."""
    when_disk_fails: Literal["hold", "hand-over"] = "hold"
    """What the node does with events while the data folder takes nothing, as docs/delivery-contract.md says;
    needs `data`.
    """
    http: str = ""
    """The address on which to serve HTTP; none if empty."""
    token: str = ""
    """The token that HTTP clients must send, in printable ASCII; needs `http`. HTTP outside loopback needs one."""
    mqtt: str = ""
    """The address on which to serve MQTT clients; none if empty."""
    mqtt_passwords: str = ""
    """The file of MQTT clients' names and passwords. MQTT outside loopback needs one."""
    mqtt_permissions: str = ""
    """The file that says what each MQTT client may publish and subscribe to."""
    mqtt_certificate: str = ""
    """Serve MQTT over TLS with this file: the certificate and those above it."""
    mqtt_key: str = ""
    """The certificate's key, if it is in a file of its own."""
    telemetry: str = ""
    """The folder for the telemetry tables."""
    limits: Limits = Limits()
    """Limits on what others can make this node hold or do."""

    def __post_init__(self) -> None:
        check_ranges(self)
        self._check_names()
        self._check_keys()
        self._check_addresses()
        self._check_companions()

    def _check_names(self) -> None:
        for what, name, least, most in (
            ("name", self.name, 0, LONGEST_NAME),
            ("swarm", self.swarm, 1, LONGEST_NAME),
            ("system", self.system, 1, LONGEST_NAME - MOST_BESIDE),
        ):
            if not least <= len(name) <= most:
                raise BadInput(f"{what} {name[:40]!r} has {len(name)} characters: say {least} to {most}")
            if not is_text(name):
                raise BadInput(f"{what} {name[:40]!r} is no UTF-8 text: say another")
        for setting in ("caches", "logs", "retained"):
            for topic in getattr(self, setting):
                check_topic(topic)
                if is_pattern(topic):
                    raise BadInput(f"{setting}, {topic[:40]!r} is a pattern: name single topics")

        for setting in PATHS:
            if "\0" in getattr(self, setting):
                raise BadInput(f"{setting} {getattr(self, setting)[:40]!r} is no path: it holds a NUL")
        if not (self.token.isascii() and self.token.isprintable() and self.token == self.token.strip()):
            raise BadInput("token: say printable ASCII with no blank at its ends, or no header can carry it")

    def _check_keys(self) -> None:
        if self.keys and self.insecure:
            raise BadInput("keys and insecure: choose one")
        if not self.keys and not self.insecure:
            raise BadInput(
                "a node needs keys (topicweave keys new-swarm, keys issue), or --insecure on loopback"
            )
        if self.insecure and self.unproven_contacts:
            raise BadInput("unproven_contacts needs keys: without them nobody proves anything")

    def _check_addresses(self) -> None:
        listen = Address.parse(self.listen, "listen")
        if self.insecure and not listen.loopback:
            raise BadInput(f"insecure nodes listen on loopback only, not on {self.listen}: give it keys")
        if listen.unspecified and not self.advertise:
            raise BadInput(f"listen {self.listen}: say with `advertise` where others reach this node")
        if self.advertise:
            advertise = Address.parse(self.advertise, "advertise")
            if advertise.unspecified:
                raise BadInput(
                    f"advertise {self.advertise}: nobody reaches a node there; say its own address"
                )
            if self.insecure and not advertise.loopback:
                raise BadInput(
                    f"insecure nodes reach each other on loopback only, not at {self.advertise}: give it keys"
                )
        for address in self.join:
            SeedName.parse(address)
        refuse_reserved(self.subscribe)
        if self.http and not Address.parse(self.http, "http").loopback and not self.token:
            raise BadInput(f"http {self.http} is not loopback: set a token")
        if self.mqtt and not Address.parse(self.mqtt, "mqtt").loopback and not self.mqtt_passwords:
            raise BadInput(f"mqtt {self.mqtt} is not loopback: give a file of passwords (mqtt_passwords)")
        taken: dict[Address, str] = {}
        for what, text in (("listen", self.listen), ("http", self.http), ("mqtt", self.mqtt)):
            address_of = Address.parse(text, what) if text else None
            if address_of is not None and address_of.port and address_of in taken:
                raise BadInput(f"{what} {text} is the address of {taken[address_of]}: say another port")
            if address_of is not None:
                taken[address_of] = what

    def _check_companions(self) -> None:
        """Settings that do nothing without another one."""
        for given, setting, needed, why in (
            (self.log != LogLimits(), "log", "data", "it says what the data folder keeps"),
            (self.logs, "logs", "data", "they say what the data folder keeps"),
            (self.when_disk_fails != "hold", "when_disk_fails", "data", "no disk is written to otherwise"),
            (self.token, "token", "http", "HTTP clients send it"),
            (self.mqtt_passwords, "mqtt_passwords", "mqtt", "it is for MQTT clients"),
            (self.mqtt_permissions, "mqtt_permissions", "mqtt", "it is for MQTT clients"),
            (
                self.mqtt_permissions,
                "mqtt_permissions",
                "mqtt_passwords",
                "any client could take any user's name",
            ),
            (self.mqtt_certificate, "mqtt_certificate", "mqtt", "it is for MQTT clients"),
            (self.mqtt_key, "mqtt_key", "mqtt_certificate", "it is the key of that certificate"),
        ):
            if given and not getattr(self, needed):
                raise BadInput(f"{setting} needs {needed} ({why}): set both or neither")
        if self.redeliver_after != REDELIVER_AFTER and self.delivery != "at-least-once":
            raise BadInput(
                'redeliver_after needs delivery = "at-least-once": nothing is given again otherwise'
            )

    @property
    def pace(self) -> Pace:
        return PACES[self.preset]

    def has_names(self, system: System) -> bool:
        """Whether nodes of this swarm keep names for patterns."""
        return self.has_directory(system) or self.patterns == "on"

    def has_directory(self, system: System) -> bool:
        """Whether this node runs the topic directory."""
        return system.needs == "subscribers" and self.membership == "directory"

    def spoken_system(self, system: System) -> str:
        """The system as a hello says it: where names are kept beside it, all nodes have to."""
        beside = system.needs != "subscribers" and self.patterns == "on"
        return (
            self.system
            + (f"{BESIDE}patterns" if beside else "")
            + (f"{BESIDE}private-names" if self.has_names(system) and self.private_names else "")
        )

    def system_parameters(self, system: System) -> Any:
        """The system's parameters: its defaults, the preset's times, and what the user changed. Refuses
        settings that do nothing with this system.
        """
        if self.membership == "gossip":
            self._check_gossip(system)
        if self.private_names and not self.has_names(system):
            raise BadInput(
                f'private_names needs names: system {self.system!r} has them with patterns = "on" only'
            )
        return system.settings(**system.paced(self.preset, self.parameters))

    def _check_gossip(self, system: System) -> None:
        if system.needs == "nothing":
            raise BadInput(
                f'membership = "gossip": system {self.system!r} has a membership of its own; leave the setting out'
            )
        if system.needs == "subscribers" and (self.patterns == "on" or self.private_names):
            setting = "private_names" if self.private_names else 'patterns = "on"'
            raise BadInput(
                f'{setting} and membership = "gossip": names are found through the topic directory; choose one'
            )


ENVIRONMENT = "TOPICWEAVE_"
NOT_SETTINGS = frozenset({"BENCH", "DATASETS", "DEBUG", "NODE", "PYTHON", "SEEDS"})
"""Variables that other parts of Topicweave read."""


def load_settings(
    file: str | Path | None = None,
    environment: Mapping[str, str] = os.environ,
    flags: Mapping[str, Any] | None = None,
) -> Settings:
    """Settings from a TOML file, then `TOPICWEAVE_…` variables, then flags. The later source wins.

    Lists in variables are separated by commas. A variable that names no setting is refused: it is a typing error.
    """
    given: dict[str, Any] = {}
    if file is not None:
        try:
            given.update(tomllib.loads(Path(file).read_text(encoding="utf-8")))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise BadInput(f"{file}: {error}") from None
    names = [field.name.upper() for field in msgspec.structs.fields(Settings)]
    for variable in environment:
        name = variable.removeprefix(ENVIRONMENT)
        if name != variable and name not in NOT_SETTINGS and name not in names:
            near = difflib.get_close_matches(name, names, 1)
            hint = f": did you mean {ENVIRONMENT}{near[0]}?" if near else ""
            raise BadInput(f"{variable} names no setting{hint}")
    for field in msgspec.structs.fields(Settings):
        value = environment.get(ENVIRONMENT + field.name.upper())
        if value is not None:
            if field.name in _lists():
                given[field.name] = [part.strip() for part in value.split(",") if part.strip()]
            else:
                given[field.name] = value
    given.update(flags or {})
    if not given.get("http") and given.get("token") == environment.get(f"{ENVIRONMENT}TOKEN"):
        given.pop("token", None)  # The variable is for clients, too.
    return settings_from(given)


def settings_from(given: Mapping[str, Any]) -> Settings:
    """Settings by name, as files and programs give them. Raises `BadInput` for all that makes no sense.

    A single text stands for a list of one, a mapping for a group such as `limits`, and a path for its text.
    """
    lists = _lists()
    listed = {
        name: [value] if name in lists and isinstance(value, str) else value for name, value in given.items()
    }
    try:
        plain = msgspec.to_builtins(listed, builtin_types=(bytes, bytearray), enc_hook=_path_text)
        return msgspec.convert(plain, Settings, strict=False)
    except (TypeError, msgspec.ValidationError) as error:
        raise BadInput(f"settings: {error}{_choices(str(error))}") from None


def _choices(refusal: str) -> str:
    """What may be said in the place of a word that is none of those that a setting takes.

    >>> _choices("Invalid enum value 'x' - at `$.membership`")
    '; choose from directory, gossip'
    """
    hint = get_type_hints(Settings).get(refusal.rpartition("`$.")[2].rstrip("`"))
    return f"; choose from {', '.join(get_args(hint))}" if "enum" in refusal and hint else ""


def _lists() -> frozenset[str]:
    """The settings that are lists of texts."""
    return frozenset(name for name, hint in get_type_hints(Settings).items() if hint == tuple[str, ...])


def _path_text(value: Any) -> str:
    if not isinstance(value, os.PathLike):
        raise TypeError(f"what is {value!r:.40}? Say text, a number, or a list or mapping of these")
    return os.fsdecode(value)
