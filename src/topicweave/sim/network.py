"""The network between hosts: delays, faults, and the bookkeeping of all that passes."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from topicweave.model.event import Event
from topicweave.model.ids import NodeId
from topicweave.port import EventMessage, Message
from topicweave.sim.faults import FaultyLinks
from topicweave.sim.kernel import Kernel
from topicweave.sim.latency import Latency
from topicweave.sim.proofs import SimulatedProofs
from topicweave.telemetry.schema import event_key
from topicweave.telemetry.writer import Telemetry

if TYPE_CHECKING:
    from topicweave.sim.host import Host


DeliveryObserver = Callable[["Host", Event], None]
"""Told when an application was handed an event."""

ReceptionObserver = Callable[["Host", NodeId, EventMessage], None]
"""Told when a message that carries an event arrived: at whom, from whom."""


EVENT_KEYS = 65_536
"""How many events' keys are kept at hand; those of a long run would fill the memory."""


class Network:
    """Carries messages from host to host and writes down what the measures need."""

    def __init__(
        self,
        kernel: Kernel,
        latency: Latency,
        rng: random.Random,
        telemetry: Telemetry | None,
    ) -> None:
        self.kernel = kernel
        self.faults = FaultyLinks(rng)
        self.hosts: dict[NodeId, Host] = {}
        self.proofs: SimulatedProofs | None = None
        """By which nodes vouch for what they say; None: they do not."""
        self.observers: list[DeliveryObserver] = []
        self.reception_observers: list[ReceptionObserver] = []
        self._delay = latency.delay
        self._telemetry = telemetry
        self._counts = telemetry is not None and telemetry.counts_control
        self._encode = msgspec.msgpack.Encoder().encode
        # An event is received many times within a short time.
        self._key = lru_cache(maxsize=EVENT_KEYS)(event_key)
        # Sent since the last flush: (node, type of message) -> [messages, bytes].
        self._sent: dict[tuple[NodeId, type[Message]], list[int]] = {}
        # A broadcast sends one object many times; its size is computed once.
        self._last_message: Message | None = None
        self._last_size = 0

    def send(self, source: Host, peer: NodeId, message: Message) -> None:
        if self._counts and not message.carries_event:
            if message is not self._last_message:
                self._last_message = message
                self._last_size = len(self._encode(message))
            tally = self._sent.get(key := (source.name, type(message)))
            if tally is None:
                tally = self._sent[key] = [0, 0]
            tally[0] += 1
            tally[1] += self._last_size
        target = self.hosts.get(peer)
        if target is None:
            return  # A peer made up by someone: nobody is there.
        kernel = self.kernel
        delay = self._delay(source.index, target.index, kernel.now)
        if not self.faults.active:
            kernel.at(kernel.now + delay, target.arrive, source.name, message)
            return
        for extra in self.faults.fates(source.index, target.index):
            kernel.after(delay + extra, target.arrive, source.name, message)

    def flush_control(self) -> None:
        """Write down what was sent since the last call."""
        if self._telemetry is not None:
            for (node, kind), (messages, size) in self._sent.items():
                self._telemetry.control(
                    self.kernel.now, node, str(kind.__struct_config__.tag), messages, size
                )
        self._sent.clear()

    def published(self, source: Host, event: Event) -> None:
        if self._telemetry is not None:
            self._telemetry.publish(self._key(event.id), event.topic, source.name, self.kernel.now)

    def received(self, target: Host, sender: NodeId, message: EventMessage) -> None:
        if self._telemetry is not None:
            event = message.event
            wanted = target.node is not None and event.topic in target.node.subscriptions
            self._telemetry.reception(
                self._key(event.id), target.name, self.kernel.now, message.hops, sender, wanted
            )
        for observer in self.reception_observers:
            observer(target, sender, message)

    def delivered(self, target: Host, event: Event) -> None:
        for observer in self.observers:
            observer(target, event)
