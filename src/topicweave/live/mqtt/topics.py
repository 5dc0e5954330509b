"""Names of topics and what a subscription names."""

from __future__ import annotations

from topicweave.live.mqtt.packets import MqttError, Reason
from topicweave.model.patterns import MOST_LEVELS

SYSTEM = "$SYS/"
"""Topics below this tell of the door itself; they never leave it."""


def check_topic(topic: str) -> str:
    """A name that can be published to.

    >>> check_topic("sensors/7/temperature")
    'sensors/7/temperature'
    """
    if not topic or "+" in topic or "#" in topic or topic.count("/") >= MOST_LEVELS:
        raise MqttError(Reason.BAD_TOPIC, f"{topic[:80]!r} is no name of a topic")
    if topic.startswith("$"):
        raise MqttError(Reason.NOT_AUTHORIZED, f"{topic[:80]!r}: names that begin with $ are the door's own")
    return topic


def refusal_of(filter_: str) -> Reason | None:
    """Why a subscription cannot be had, if so.

    >>> refusal_of("sensors/7"), refusal_of("sensors/#").name, refusal_of("sensors/#/7").name
    (None, 'NO_WILDCARDS', 'BAD_FILTER')
    """
    levels = filter_.split("/")
    if not filter_ or len(levels) > MOST_LEVELS:
        return Reason.BAD_FILTER
    for place, level in enumerate(levels, start=1):
        if level not in ("+", "#") and ("+" in level or "#" in level):
            return Reason.BAD_FILTER
        if level == "#" and place < len(levels):
            return Reason.BAD_FILTER
    if levels[0] == "$share":
        return Reason.NO_SHARED
    if "+" in levels or "#" in levels:
        return Reason.NO_WILDCARDS
    if filter_.startswith("$") and not filter_.startswith(SYSTEM):
        return Reason.NOT_AUTHORIZED
    return None
