"""The long links across a ring: fingers, which a node chose, and fans, which chose the node.

The other end holds a finger as a fan, from when it is asked (`Hold`) and says so (`Held`). From then on the
same words are the signs of life of both ends, and neither answers the other's unless it is asked. A node that
has as many fans as it can bear refuses (`Decline`). A node that is not that finger, or not a fan, says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from topicweave.blocks.ring.messages import Contact, Decline, Held, Hold, Release
from topicweave.blocks.ring.signs import SignsOfLife
from topicweave.model.ids import NodeId
from topicweave.port import Message, Receivers, World


class Fingers:
    """`own` says where the node is; `learn` takes over where a peer is, and returns whether that changed the
    ring's table; `changed` is called when fingers or fans did; `unlinked` when somebody is a finger or fan no
    more.
    """

    def __init__(
        self,
        world: World,
        ring: int,
        most_fans: int,
        most_bytes: int,
        signs: SignsOfLife,
        own: Callable[[], Contact | None],
        learn: Callable[[Contact], bool],
        changed: Callable[[], None],
        unlinked: Callable[[NodeId], None],
    ) -> None:
        self._world = world
        self._ring = ring
        self._most_fans = most_fans
        self._most_bytes = most_bytes
        self._signs = signs
        self._own = own
        self._learn = learn
        self._changed = changed
        self._unlinked = unlinked
        self.fingers: dict[NodeId, Contact] = {}
        self.fans: dict[NodeId, Contact] = {}
        self._held: Held | None = None
        self._hold: Hold | None = None

    def receivers(self) -> Receivers:
        return {
            Hold: self._receive_hold,
            Held: self._receive_held,
            Release: self._receive_release,
            Decline: self._receive_decline,
        }

    def __contains__(self, peer: NodeId) -> bool:
        return peer in self.fingers or peer in self.fans

    def choose(self, fingers: Iterable[Contact]) -> None:
        """Hold these and no others."""
        chosen = {contact.id: contact for contact in fingers}
        for peer in [peer for peer in self.fingers if peer not in chosen]:
            del self.fingers[peer]
            self._unlinked(peer)
            self._world.send(peer, Release(self._ring))
        new = {peer: contact for peer, contact in chosen.items() if peer not in self.fingers}
        self.fingers.update(new)
        for peer in new:
            self._signs.watch(peer, self._world.now)
        self.hold(new)
        self._changed()

    def hold(self, peers: Iterable[NodeId]) -> None:
        """Ask for fingers, for the first time or again; they answer."""
        hold = Hold(self._ring, self._place(), ask=True)
        for peer in peers:
            self._world.send(peer, hold)

    def sign(self, peer: NodeId, ask: bool = False) -> Message:
        """A sign of life to a finger or fan."""
        if ask:
            return (Hold if peer in self.fingers else Held)(self._ring, self._place(), ask)
        if peer in self.fingers:
            if self._hold is None:
                self._hold = Hold(self._ring, self._place())
            return self._hold
        if self._held is None:
            self._held = Held(self._ring, self._place())
        return self._held

    def moved(self) -> None:
        """The node itself has another place."""
        self._hold = self._held = None

    def _place(self) -> Contact:
        own = self._own()
        assert own is not None
        return own

    def renew(self, contact: Contact) -> bool:
        """Take over where somebody is; returns whether that is news."""
        changed = False
        for links in (self.fingers, self.fans):
            known = links.get(contact.id)
            if known is not None and known.stamp < contact.stamp:
                links[contact.id] = contact
                changed = True
        return changed

    def drop(self, peer: NodeId) -> Contact | None:
        """Forget a peer; returns where it was."""
        finger, fan = self.fingers.pop(peer, None), self.fans.pop(peer, None)
        return finger or fan

    def _receive_hold(self, sender: NodeId, message: Hold) -> None:
        if self.fans.get(sender) is message.own and not message.ask:
            # In the simulator, where messages pass by reference, this is most of them.
            self._signs.heard[sender] = self._world.now
            return
        own, theirs = self._own(), message.own
        if theirs.id != sender or not theirs.believable(self._most_bytes):
            return
        known = self.fans.get(sender)
        if own is None or (known is None and len(self.fans) >= self._most_fans):
            self._world.send(sender, Decline(self._ring))
            return
        self._signs.hear(sender, self._world.now)
        self.fans[sender] = theirs
        self._signs.heard[sender] = self._world.now
        if not self._learn(theirs) and (known is None or known.place != theirs.place):
            self._changed()
        if message.ask or known is None:
            self._world.send(sender, Held(self._ring, own))

    def _receive_held(self, sender: NodeId, message: Held) -> None:
        if self.fingers.get(sender) is message.own and sender in self._signs.heard:
            self._signs.heard[sender] = self._world.now
        elif message.own.id == sender and message.own.believable(self._most_bytes):
            self._signs.hear(sender, self._world.now)
            self._learn(message.own)
        if sender not in self.fingers:
            self._world.send(sender, Release(self._ring))
        elif message.ask:
            self._world.send(sender, self.sign(sender))

    def _receive_release(self, sender: NodeId, _message: Release) -> None:
        self._end(sender, self.fans)

    def _receive_decline(self, sender: NodeId, _message: Decline) -> None:
        self._end(sender, self.fingers)

    def _end(self, peer: NodeId, links: dict[NodeId, Contact]) -> None:
        known = links.pop(peer, None)
        self._unlinked(peer)
        if known is not None:
            self._changed()
