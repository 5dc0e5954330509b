"""Carrying what nobody waits for: renewals, the questions that go with them, and the answers to these.

Rules kept
----------
1. It goes hop by hop, as with `carrier`, but waits at each hop until it can take the place of a sign of life to the
   next one, and no longer than the pause between two of these. So a network of nodes that each renew thousands
   of topics sends few messages more than one of idle nodes.
2. Each hop acknowledges with the next thing that it sends this way, or in place of its own sign of life. What was
   not acknowledged, and what waits for a hop that is no contact by then, goes on with `carrier`, at its pace.
3. So does what goes to a hop with an earlier wire format.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from topicweave.blocks.topic_directory.carrier import MOST_ITEMS, Waiting, loads, part_of, sound
from topicweave.blocks.topic_directory.messages import Announcement, Carry, SlowCarry, Told
from topicweave.blocks.topic_directory.parameters import DirectoryParameters
from topicweave.blocks.topic_directory.ring import HomesRing
from topicweave.model.ids import NodeId
from topicweave.port import Receivers, World

MOST_OWED = 64
"""Messages of one peer that are yet to be acknowledged. It sends far fewer."""


class _Lane:
    """What goes to one hop next."""

    __slots__ = ("owed", "since", "things")

    def __init__(self, now: float) -> None:
        self.since = now
        self.things = Waiting()
        self.owed: list[int] = []


class _Sent(NamedTuple):
    at: float
    peer: NodeId
    message: SlowCarry


class SlowCarrier:
    """`arrived(sender, announcements, told)` gets what ends here; `go_on(carry)` what has to go another way. It has
    no timer: `flush` is called once per tick.
    """

    def __init__(
        self,
        world: World,
        ring: HomesRing,
        parameters: DirectoryParameters,
        arrived: Callable[[NodeId, list[Announcement], list[Told]], None],
        go_on: Callable[[Carry], None],
    ) -> None:
        self._world = world
        self._ring = ring
        self._parameters = parameters
        self._arrived = arrived
        self._go_on = go_on
        self._lanes: dict[NodeId, _Lane] = {}
        self._sent: dict[int, _Sent] = {}
        self._number = 0

    def receivers(self) -> Receivers:
        return {SlowCarry: self._receive}

    def restart(self) -> None:
        self._lanes.clear()
        self._sent.clear()

    def known_peers(self) -> set[NodeId]:
        return {*self._lanes, *(sent.peer for sent in self._sent.values())}

    @property
    def patience(self) -> float:
        """Seconds after which a message counts as lost: its receiver may wait, too, and have little to say."""
        return 2 * self._parameters.finger_period + self._parameters.hop_timeout

    def announce(self, announcement: Announcement) -> None:
        self._pass_on(self._ring.id, (announcement,), ())

    def tell(self, answers: list[Told]) -> None:
        self._pass_on(self._ring.id, (), tuple(answers))

    def flush(self) -> None:
        """Send what has waited for long enough. To be called before the ring's signs of life."""
        now, contacts = self._world.now, self._ring.contacts()
        lost = [number for number, sent in self._sent.items() if sent.peer not in contacts]
        late = [number for number, sent in self._sent.items() if now - sent.at > self.patience]
        for number in dict.fromkeys((*lost, *late)):
            message = self._sent.pop(number).message
            self._go_on(Carry(0, message.announcements, message.told))
        for peer, lane in list(self._lanes.items()):
            if peer not in contacts:
                del self._lanes[peer]
                self._go_on(lane.things.to_be_routed())
            elif self._ring.sign_due(peer, lane.since):
                del self._lanes[peer]
                self._send(peer, lane, now)

    def _send(self, peer: NodeId, lane: _Lane, now: float) -> None:
        got = tuple(lane.owed)
        if not self._world.understands(peer, SlowCarry):
            self._go_on(lane.things.to_be_routed())
            return
        made = loads(lane.things, self._number + 1)
        for carry in made:
            self._number = carry.number
            message = SlowCarry(carry.number, got, carry.announcements, carry.told)
            self._sent[carry.number] = _Sent(now, peer, message)
            self._ring.send(peer, message)
            got = ()
        if got:
            self._ring.send(peer, SlowCarry(0, got))

    def _lane(self, peer: NodeId) -> _Lane:
        lane = self._lanes.get(peer)
        if lane is None:
            lane = self._lanes[peer] = _Lane(self._world.now)
        return lane

    def _pass_on(
        self, sender: NodeId, announcements: tuple[Announcement, ...], answers: tuple[Told, ...]
    ) -> None:
        ring = self._ring
        said: list[Announcement] = []
        told: list[Told] = []
        # A node that does not know its place yet can neither keep anything nor say where it goes.
        for announcement in announcements if ring.ready else ():
            ways: dict[NodeId, list[int]] = {}
            for place, topic in enumerate(announcement.topics):
                ways.setdefault(ring.next_hop(topic, announcement.attempt), []).append(place)
            for hop, places in ways.items():
                part = part_of(announcement, places)
                (said if hop == ring.id else self._lane(hop).things.announcements).append(part)
        for answer in answers:
            hop = ring.next_hop(answer.to)
            (told if hop == ring.id else self._lane(hop).things.told).append(answer)
        if said or told:
            self._arrived(sender, said, told)

    def _receive(self, sender: NodeId, message: SlowCarry) -> None:
        self._ring.hear(sender)
        for number in message.got:
            sent = self._sent.get(number)
            if sent is not None and sent.peer == sender:
                del self._sent[number]
        if message.number and sender in self._ring.contacts():
            lane = self._lane(sender)
            if len(lane.owed) < MOST_OWED:
                lane.owed.append(message.number)
        size = len(message.told)
        for announcement in message.announcements:
            size += len(announcement.topics)
        if size <= MOST_ITEMS and all(map(sound, message.announcements)):
            self._pass_on(sender, message.announcements, message.told)
