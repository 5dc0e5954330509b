"""Who on a ring is told what, and when: news to the near ones, words between to all links.

What a near node said last is kept, and what it was told: so a word that names a version is enough (`Still`), and
who lacks that version asks for it (`Tell`).
"""

from __future__ import annotations

import math
from collections.abc import Callable

from topicweave.blocks.ring.fingers import Fingers
from topicweave.blocks.ring.messages import Contact, Near, Still, Tell
from topicweave.blocks.ring.near import Nearest
from topicweave.blocks.ring.parameters import RingParameters
from topicweave.blocks.ring.signs import SignsOfLife
from topicweave.model.ids import NodeId
from topicweave.port import Message, Receivers, World

LATE = 0.1
"""By which share of a period a sign of life may be late before it is asked for."""
SPARED = 3
"""Signs of life in a row that other words may stand for: they do not say where a node is, and what it said last."""


class Conversation:
    """`own` says where the node is, None before it has a place; `spoken`: when it said something to whom, on any of
    its rings.
    """

    def __init__(
        self,
        world: World,
        ring: int,
        parameters: RingParameters,
        near: Nearest,
        long: Fingers,
        signs: SignsOfLife,
        own: Callable[[], Contact | None],
        spoken: dict[NodeId, float],
    ) -> None:
        self._world = world
        self._ring = ring
        self._near = near
        self._long = long
        self._signs = signs
        self._own = own
        self._spoken = spoken
        self._late_after = (parameters.signs_every + LATE) * parameters.period
        # Who was spoken to later than that hears from the node in time if there is a sign at the next beat.
        self._soon_enough = (parameters.signs_every - 1 + LATE / 2) * parameters.period
        self._long_ago = self._soon_enough + SPARED * parameters.signs_every * parameters.period
        self._signed: dict[NodeId, float] = {}  # when the last sign of life went
        self.said: dict[NodeId, Near] = {}
        """What near ones said last."""
        self._told: dict[NodeId, Near] = {}
        self._news: Near | None = None
        self._latest: Near | None = None

    def receivers(self) -> Receivers:
        return {Still: self._receive_still, Tell: self._receive_tell}

    def send(self, peer: NodeId, message: Message) -> None:
        """Any message to a peer that may be linked: it is a sign of life."""
        self._spoken[peer] = self._world.now
        self._world.send(peer, message)

    def say(self, peer: NodeId, news: Near) -> None:
        if peer in self._near:
            self._told[peer] = news
            self._signed.pop(peer, None)  # Should this be lost, the next sign shows it.
        self.send(peer, news)

    def answer(self, peer: NodeId) -> None:
        """The news to one who asked, or who is nobody's neighbour here: no sign of life."""
        news = self.news()
        self._world.send(peer, Near(news.ring, news.own, news.others, answer=True, version=news.version))

    def news(self) -> Near:
        """Where the node is, and who is near."""
        own = self._own()
        assert own is not None
        if self._news is None or self._news.own is not own:
            others, latest = tuple(self._near), self._latest
            if latest is None or latest.own != own or latest.others != others:
                version = own.stamp if latest is None else max(own.stamp, latest.version + 1)
                self._latest = latest = Near(self._ring, own, others, version=version)
            self._news = latest
        return self._news

    def others_may_be_near(self) -> None:
        self._news = None

    def moved(self) -> None:
        """The node itself has another place: everybody is due a sign."""
        self._signed.clear()

    def forget_near(self, peer: NodeId) -> None:
        """A peer is not near any more."""
        self.said.pop(peer, None)
        self._told.pop(peer, None)

    def forget_link(self, peer: NodeId) -> None:
        """A peer is not linked any more."""
        self._signed.pop(peer, None)

    def give_signs(self) -> bool:
        """To the near ones what they do not know yet; to all links a word now and then; and to those that are late.
        Returns whether there was other news than at the last time.
        """
        now, before, news = self._world.now, self._latest, self.news()
        near, long, told = self._near, self._long, self._told
        late = dict.fromkeys(self._signs.late(now, self._late_after))
        sign = Still(self._ring, news.version)
        for peer in near.contacts:
            if told.get(peer) is not news:
                self.say(peer, news)
            elif peer not in late and self._due(peer, now):
                self.send(peer, sign)
        for peer in dict.fromkeys((*long.fingers, *long.fans)):
            if peer not in near and peer not in late and self._due(peer, now):
                self.send(peer, long.sign(peer))
        for peer in late:
            if peer in near or peer in long:
                ask = Still(self._ring, news.version, ask=True) if peer in near else long.sign(peer, ask=True)
                self.send(peer, ask)
                self.send(peer, ask)
        return news is not before

    def _due(self, peer: NodeId, now: float) -> bool:
        """Whether it is time for a sign of life, and nothing else was one."""
        if (
            now - self._spoken.get(peer, -math.inf) <= self._soon_enough
            and now - self._signed.get(peer, -math.inf) <= self._long_ago
        ):
            return False
        self._signed[peer] = now
        return True

    def _receive_still(self, sender: NodeId, message: Still) -> None:
        said = self.said.get(sender)
        if self._own() is None:
            return
        self._signs.hear(sender, self._world.now)
        if said is None or said.version != message.version:
            self._world.send(sender, Tell(self._ring))
        if message.ask:
            news = self.news()
            if self._told.get(sender) is news:
                self._world.send(sender, Still(self._ring, news.version))
            else:
                self.say(sender, news)

    def _receive_tell(self, sender: NodeId, _message: Tell) -> None:
        if self._own() is not None:
            self.say(sender, self.news())
