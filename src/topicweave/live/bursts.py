"""Bursts: consecutive events of one publisher on one topic. A node takes them and passes them on at once."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from topicweave.port import EventMessage, Message


def burst_from(messages: Sequence[Message], at: int) -> list[EventMessage]:
    """The message at a place and those after it, as long as they are of its kind, with consecutive events of
    its stream, over as many links.
    """
    first = messages[at]
    assert isinstance(first, EventMessage)
    kind, hops, event = type(first), first.hops, first.event
    publisher, topic, epoch, sequence = event.publisher, event.topic, event.epoch, event.sequence
    burst = [first]
    for message in itertools.islice(messages, at + 1, None):
        if type(message) is not kind or message.hops != hops:
            break
        event = message.event
        sequence += 1
        if (
            event.sequence != sequence
            or event.topic != topic
            or event.publisher != publisher
            or event.epoch != epoch
        ):
            break
        burst.append(message)
    return burst
