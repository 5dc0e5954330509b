"""Names of topics and what a subscription names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from topicweave.live.mqtt.packets import MqttError, Reason
from topicweave.live.names import LONGEST_TOPIC, RETAINED
from topicweave.live.patterns import split_each
from topicweave.model.patterns import MOST_BYTES, MOST_LEVELS, BadPattern, check_pattern

SYSTEM = "$SYS/"
"""Topics below this tell of the door itself; they never leave it."""
SHARE = "$share/"


def check_topic(topic: str) -> str:
    """A name that can be published to.

    >>> check_topic("sensors/7/temperature")
    'sensors/7/temperature'
    """
    if not topic or "+" in topic or "#" in topic:
        raise MqttError(Reason.BAD_TOPIC, f"{topic[:80]!r} is no name of a topic")
    if topic.startswith("$"):
        raise MqttError(Reason.NOT_AUTHORIZED, f"{topic[:80]!r}: names that begin with $ are the door's own")
    return topic


def too_long(name: str) -> bool:
    """Whether a name is longer than the mesh takes, also with `names.RETAINED` in front of it.

    >>> too_long("a" * 990), too_long("a" * 991), too_long("/" * 126), too_long("/" * 127)
    (False, True, False, True)
    """
    value = RETAINED + name
    return len(value) > LONGEST_TOPIC or len(value.encode()) > MOST_BYTES or value.count("/") >= MOST_LEVELS


def speakable(topic: str) -> bool:
    """Whether a client can be sent this name; other applications of the mesh may use names that MQTT does not know.

    >>> speakable("languages/c"), speakable("languages/c++")
    (True, False)
    """
    return not ("+" in topic or "#" in topic or "\0" in topic)


def share_of(filter_: str) -> tuple[str, str]:
    """The group of a shared subscription, and what it names; no group, if it is not shared.

    >>> share_of("$share/workers/jobs/#"), share_of("jobs/#")
    (('workers', 'jobs/#'), ('', 'jobs/#'))
    """
    if not filter_.startswith(SHARE):
        return "", filter_
    group, _, named = filter_.removeprefix(SHARE).partition("/")
    return group, named


def refusal_of(filter_: str) -> Reason | None:
    """Why a subscription cannot be had by anybody, if so.

    >>> refusal_of("sensors/+/7"), refusal_of("$share/g/a/#")
    (None, None)
    >>> refusal_of("sensors/#/7").name, refusal_of("$share/g").name
    ('BAD_FILTER', 'BAD_FILTER')
    """
    group, named = share_of(filter_)
    if filter_.startswith(SHARE) and (not group or "+" in group or "#" in group):
        return Reason.BAD_FILTER
    try:
        check_pattern(named)
    except BadPattern:
        return Reason.BAD_FILTER
    if too_long(named):
        return Reason.BAD_FILTER
    if named.startswith("$") and not named.startswith(SYSTEM):
        return Reason.NOT_AUTHORIZED
    return None


class Wishes(NamedTuple):
    """What filters ask of the node."""

    names: list[str]
    patterns: list[str]
    values: list[str]
    """Topics of retained values, and patterns of such."""
    value_patterns: list[str]

    @classmethod
    def of(cls, filters: Iterable[str]) -> Wishes:
        """Shared subscriptions get no retained values; the door's own topics (`$SYS`) do not concern the node."""
        shares = [share_of(filter_) for filter_ in filters]
        mesh = [(group, named) for group, named in shares if not named.startswith(SYSTEM)]
        values = [RETAINED + named for group, named in mesh if not group]
        return cls(*split_each([named for _, named in mesh]), *split_each(values))
