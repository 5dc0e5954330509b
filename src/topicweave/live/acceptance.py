"""What an event must be before the node sees it: signed by its publisher, allowed by its certificate, of its
publisher's latest life. And what its publisher is told.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

from topicweave.live.clock import Clock
from topicweave.live.counters import Counters
from topicweave.live.gate import Gate, Refusal
from topicweave.live.names import TopicNames
from topicweave.live.transport import Transport
from topicweave.live.wire import VerdictOn, verdicts_frame
from topicweave.model.event import Event, EventId
from topicweave.model.ids import NodeId
from topicweave.port import EventMessage

if TYPE_CHECKING:
    from topicweave.live.keyring import Keyring, Verdict

log = logging.getLogger("topicweave.live")

MOST_HOPS = 10_000
"""An event that has crossed more links is dropped, not held against the neighbour it came from: that one
counted on honestly from what it was told, and what it sends must stay within what decodes.
"""

Observer = Callable[[NodeId, EventMessage, bool], None]
"""Told of every arriving message that carries an event: sender, message, whether its topic is wanted."""


class Acceptance:
    """Looks at what neighbours send."""

    def __init__(
        self,
        clock: Clock,
        counters: Counters,
        gate: Gate,
        topics: TopicNames,
        keyring: Keyring | None,
        failed: Callable[[Exception], None],
    ) -> None:
        self._clock, self._counters, self._gate, self._topics = clock, counters, gate, topics
        self._keyring = keyring
        self._failed = failed
        """Told of an observer that fails."""
        self.transport: Transport | None = None
        self.observers: list[Observer] = []

    def admits(self, sender: NodeId, message: EventMessage, wanted: bool) -> bool:
        """Whether the node may see an event; in any case somebody may have to know that it came."""
        event = message.event
        if message.hops > MOST_HOPS:
            self._counters.far_travelled += 1
            return self._refuse(sender, event, "far-travelled")
        if self._keyring is not None and not self._authentic(self._keyring, sender, event):
            return False
        if sender == event.publisher and event.epoch < self._gate.epochs.get(sender, 0):
            return self._refuse(sender, event, "old-epoch")
        self.note(sender, (message,), wanted)
        return True

    def is_plain(self, burst: Sequence[EventMessage]) -> bool:
        """Whether nothing about a burst calls for a closer look at each of its events."""
        first, gate = burst[0], self._gate
        event, transport = first.event, self.transport
        if transport is None or first.hops > MOST_HOPS or event.publisher == transport.id:
            return False
        if event.epoch < gate.epochs.get(event.publisher, 0):
            return False
        if (keyring := self._keyring) is None:
            return True
        wall = self._clock.trusted()
        return all(self._verdict(keyring, message.event, wall) == "good" for message in burst)

    def note(self, sender: NodeId, burst: Sequence[EventMessage], wanted: bool) -> None:
        """The node may see these."""
        if wanted:
            self._counters.receptions_wanted += len(burst)
        else:
            self._counters.receptions_unwanted += len(burst)
            if sender == burst[-1].event.publisher:
                self._gate.relayed(burst[-1].event)
        for observer in self.observers:
            try:
                for message in burst:
                    observer(sender, message, wanted)
            except Exception as error:  # Who only looks must not keep the node from the event.
                self._failed(error)

    def _authentic(self, keyring: Keyring, sender: NodeId, event: Event) -> bool:
        transport = self.transport
        assert transport is not None
        verdict = self._verdict(keyring, event, self._clock.trusted())
        if verdict == "good":
            return True
        if verdict == "forged":
            # Honest peers verify before they pass on: who sent this is not one.
            self._counters.forged_events += 1
            log.warning("%s: an event with a forged signature", transport.name)
            transport.fault(sender, "forged an event")
            transport.close_link(sender)
        elif verdict != "not-permitted":
            self._counters.unverifiable_events += 1
            if verdict == "unknown-key":
                transport.ask_for_credential(sender, event.publisher, event.payload[:8])
        return self._refuse(sender, event, verdict)

    def _verdict(self, keyring: Keyring, event: Event, wall: float) -> Verdict | Literal["not-permitted"]:
        verdict = keyring.verify(event, wall)
        if verdict != "good":
            return verdict
        credential = keyring.credential(event.publisher, event.payload[:8])
        name = self._topics.known(event.topic)
        if name is None or credential is None or credential.permissions.may_publish(name):
            return "good"
        return "not-permitted"

    def _refuse(self, sender: NodeId, event: Event, reason: Refusal) -> bool:
        """Note it; the publisher, if it handed the event over itself, is told."""
        self._gate.refuse(event.id, reason)
        if sender == event.publisher:
            self._tell(sender, [(event.id, reason)])
        return False

    def asked(self, peer: NodeId, events: Sequence[EventId]) -> None:
        """Answer what is known; what depends on the disk when that is known."""
        known = {event: self._gate.verdict(event) for event in events if event.publisher == peer}
        self._tell(peer, [(event, verdict) for event, verdict in known.items() if verdict is not None])
        later = [event for event, verdict in known.items() if verdict is None]
        if later:
            for promise in self._gate.permanent():
                promise.add_done_callback(lambda _: self.asked(peer, later))

    def _tell(self, peer: NodeId, verdicts: Sequence[tuple[EventId, str]]) -> None:
        link = self.transport.link_to(peer) if self.transport is not None else None
        if link is not None and verdicts:
            epoch = self._gate.epoch_of(peer)
            link.write(verdicts_frame([VerdictOn(event, verdict, epoch) for event, verdict in verdicts]))
