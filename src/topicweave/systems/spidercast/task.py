"""The neighbour maintenance task (§2.3.1, Figures 2 and 4).

Theory of operation: a task owns a set of neighbours and strives for what its `Selection` asks. While something is
lacking and there is room (`L^max`), it asks one peer after another to connect; otherwise it offers links that it
does not need to their other ends, and a link goes when both can spare it. `L` is the degree the task aims at;
neighbours learn `degree` and `L` from heartbeats and judge by them who can spare a link.

Rules kept beyond the paper's
-----------------------------
1. Every question is answered, also by a refusal: LEAVE to a CONNECT that cannot be redirected, or DISCONNECT-NO. A
   task asks nobody to connect while it awaits another's answer. Otherwise, where messages take longer than
   `connect_timeout`, nodes would ask several peers for the same coverage, and never settle.
2. A link on offer counts as gone. Otherwise a task would offer two links that each replace the other, lose both,
   and make them again, for ever.
3. A task offers only links that serve nothing here. It offers them to neighbours that said in a heartbeat that the
   link serves nothing there either; above `L^max` also to those that reached their target. The paper goes by the
   target alone, and nine in ten of its offers are refused, again and again. Above `L^max` it also gives up links
   that it needs.
4. A task may lack something that nobody can give, or that it has no room for. It does not wait for that: it gives up
   links that serve nothing, like a task that lacks nothing. The paper's task keeps everything while a topic of its
   node has fewer than K other subscribers, and with exactly `L^max` neighbours it does nothing at all.
5. Above `L^max + margin` links end without consent. Only a node whose wishes shrink, and its `L^max` with them, gets
   there.
6. A peer may turn out not to want what the view says. The task does not ask it again until the view may know better.

The task sleeps between steps. The paper's loop wakes every `connect_timeout`. Here it sleeps a whole heartbeat period
if the last step found nothing to do, and wakes when something may give it work.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec

from topicweave.model.ids import Interest, NodeId
from topicweave.port import TimerKey, World
from topicweave.systems.spidercast import rules
from topicweave.systems.spidercast.messages import (
    Connect,
    ConnectOk,
    Disconnect,
    DisconnectNo,
    DisconnectOk,
    Leave,
    Redirect,
    TaskState,
)
from topicweave.systems.spidercast.parameters import LinkParameters
from topicweave.systems.spidercast.selection import Selection, Shared

MOST_REDIRECTS = 32
REFUSED = 12
"""After a definite answer, do not ask this peer again for this many quarantine periods. An answer is definite
if the peer refused an offer, or if the link that it made did not help.
"""


class TaskNeighbour(msgspec.Struct):
    """What a task knows of one neighbour (Figure 1)."""

    degree: int
    target: int
    interest: Interest
    shared: Shared
    spare: bool = False
    """The neighbour said that it could do without this link."""


class MaintenanceTask:
    """One of a node's tasks: `name` tells them apart in messages and timers.

    `own_interest()` returns the node's interest and its version. `changed(peer)` tells the node that a link
    came, went or changed; `unanswered(peer)` tells it that a peer did not answer a CONNECT.
    """

    def __init__(
        self,
        world: World,
        own_id: NodeId,
        name: str,
        selection: Selection,
        parameters: LinkParameters,
        own_interest: Callable[[], tuple[int, Interest]],
        changed: Callable[[NodeId], None],
        unanswered: Callable[[NodeId], None],
    ) -> None:
        self.name = name
        self.selection = selection
        self.neighbours: dict[NodeId, TaskNeighbour] = {}
        self.target = 0
        self._world = world
        self._id = own_id
        self._parameters = parameters
        self._own_interest = own_interest
        self._changed = changed
        self._unanswered = unanswered
        self._redirected_to: dict[NodeId, None] = {}
        # Peers that were asked lately, and until when they are not asked again.
        self._asked_to_connect: dict[NodeId, float] = {}
        self._asked_to_part: dict[NodeId, float] = {}
        # Those of them that have not answered; of a CONNECT, until when nobody else is asked.
        self._awaited: dict[NodeId, float] = {}
        self._on_offer: dict[NodeId, None] = {}
        # Something is lacking, and nothing can be done about it.
        self._stuck = False
        self._timer: TimerKey = ("maintain", name)
        self._wake_at = 0.0

    # Figure 2.

    def start(self) -> None:
        """(Re)start the loop at a random phase, so that nodes that start together do not act in step."""
        self.target = self.selection.limit()
        for memory in (self._redirected_to, self._asked_to_connect, self._asked_to_part):
            memory.clear()
        self._awaited.clear()
        self._on_offer.clear()
        self._stuck = False
        self._sleep(self._world.random.random() * self._parameters.connect_timeout)

    def step(self) -> None:
        """One round of MAINTAINNEIGHBORS."""
        self._end_quarantines()
        if not self.selection.enabled():
            self._wake_at = math.inf
            return
        limit = self.selection.limit()
        lacking = self.selection.lacking()
        busy = False
        if lacking:
            self.target = limit
        literal = self._parameters.disconnect != "agreed"
        if lacking and len(self.neighbours) < limit:
            busy = self._connect()
        else:
            # Hints for a search that is over; one that a bounded node never takes up would outlive the peer it names.
            self._redirected_to.clear()
        self._stuck = lacking > 0 and not busy
        if literal and (not lacking or len(self.neighbours) > limit):
            busy = self._disconnect_literally(limit)
        elif not literal and not busy:
            busy = self._disconnect(limit)
        self._sleep(self._parameters.connect_timeout if busy else self._parameters.heartbeat_period)

    def _end_quarantines(self) -> None:
        now = self._world.now
        for peer in [peer for peer, until in self._asked_to_part.items() if until <= now]:
            del self._asked_to_part[peer]
            self._on_offer.pop(peer, None)
        for peer in [peer for peer, until in self._asked_to_connect.items() if until <= now]:
            del self._asked_to_connect[peer]
            if self._awaited.pop(peer, None) is not None:
                self._unanswered(peer)

    def _connect(self) -> bool:
        """Ask a peer, or wait for one that was asked. False if there is no peer to ask."""
        now = self._world.now
        if any(now < until for until in self._awaited.values()):
            return True
        peer = self._next_redirect()
        if peer is None:
            excluded = [self._id, *self.neighbours, *self._asked_to_connect]
            peer = self.selection.choose(excluded, self._world.random)
        if peer is None:
            return False
        self._asked_to_connect[peer] = now + self._parameters.quarantine
        self._awaited[peer] = now + self._parameters.answer_timeout
        self._ask(peer)
        return True

    def _ask(self, peer: NodeId) -> None:
        version, interest = self._own_interest()
        self._world.send(peer, Connect(self.name, len(self.neighbours), self.target, version, interest))

    def _next_redirect(self) -> NodeId | None:
        while self._redirected_to:
            peer, _ = self._redirected_to.popitem()
            if peer not in self.neighbours and peer not in self._asked_to_connect and peer != self._id:
                return peer
        return None

    def _disconnect(self, limit: int) -> bool:
        self.target = min(limit, len(self.neighbours))
        over = len(self.neighbours) - len(self._on_offer) - limit
        forced = over > self._parameters.margin
        with self._without_those_on_offer():
            loss = {
                peer: self.selection.lacking_without(peer, neighbour.shared)
                for peer, neighbour in self.neighbours.items()
                if (peer not in self._on_offer if forced else self._is_spare(peer, neighbour, over > 0))
            }
        candidates, _ = rules.disconnect_candidates(loss)
        if not candidates:
            return False
        peer = candidates[self._world.random.randrange(len(candidates))]
        if forced:
            self.part(peer)
        else:
            self._asked_to_part[peer] = self._world.now + self._parameters.quarantine
            self._on_offer[peer] = None
            self._world.send(peer, Disconnect(self.name))
        return True

    def _disconnect_literally(self, limit: int) -> bool:
        """DISCONNECT and DISCONNECTCANDIDATE of Figures 2 and 3: links on offer still count, and above L^max
        even needed links go.
        """
        self.target = min(limit, len(self.neighbours))
        above = self._parameters.disconnect == "printed"
        loss = {
            peer: self.selection.lacking_without(peer, neighbour.shared)
            for peer, neighbour in self.neighbours.items()
            if peer not in self._asked_to_part
            and rules.can_spare_a_link(neighbour.degree - above, neighbour.target)
        }
        candidates, least = rules.disconnect_candidates(loss)
        if not candidates or (least and len(self.neighbours) <= self.target):
            return False
        peer = candidates[self._world.random.randrange(len(candidates))]
        self._asked_to_part[peer] = self._world.now + self._parameters.quarantine
        self._world.send(peer, Disconnect(self.name))
        return True

    def _is_spare(self, peer: NodeId, neighbour: TaskNeighbour, over: bool) -> bool:
        """Whether a link is of no use to this node, and perhaps of none to the other end."""
        return (
            peer not in self._asked_to_part
            and (neighbour.spare or (over and rules.can_spare_a_link(neighbour.degree, neighbour.target)))
            and not self._serves(peer)
        )

    def _serves(self, peer: NodeId) -> bool:
        neighbour = self.neighbours.get(peer)
        return neighbour is not None and self.selection.serves(peer, neighbour.shared)

    @contextmanager
    def _without_those_on_offer(self) -> Iterator[None]:
        """Show the selection the links as they will be when all offers are accepted."""
        leaving = [(peer, self.neighbours[peer].shared) for peer in self._on_offer]
        for peer, shared in leaving:
            self.selection.removed(peer, shared)
        yield
        for peer, shared in leaving:
            self.selection.added(peer, shared)

    # Figure 4.

    def receive_connect(self, sender: NodeId, message: Connect) -> None:
        self._awaited.pop(sender, None)
        if self._has_room_for(sender):
            new = self._add(sender, message.degree, message.target, message.interest)
            version, interest = self._own_interest()
            self._world.send(
                sender, ConnectOk(self.name, len(self.neighbours), self.target, version, interest)
            )
            if new:
                self._raise_target()
            return
        known = {peer: (n.degree, n.target, n.interest) for peer, n in self.neighbours.items()}
        candidates = rules.redirect_candidates(message.interest, known, self._parameters.margin)
        if candidates:
            peer = candidates[self._world.random.randrange(len(candidates))]
            self._world.send(sender, Redirect(self.name, peer))
        else:
            self._world.send(sender, Leave(self.name))

    def receive_redirect(self, sender: NodeId, message: Redirect) -> None:
        """The node redirected *to* is the candidate (§2.3.1 speaks of the sender in one place: a slip).

        Only a peer that was asked may redirect. Others could keep the task busy with made-up names.
        """
        if self._awaited.pop(sender, None) is not None and len(self._redirected_to) < MOST_REDIRECTS:
            self._redirected_to[message.peer] = None

    def awaits(self, peer: NodeId) -> bool:
        """Whether this peer was asked to connect and has not answered."""
        return peer in self._awaited

    def in_vain(self, peer: NodeId) -> bool:
        """Whether this peer was asked lately and will not help: it did not answer in time, or not as hoped."""
        return peer in self._asked_to_connect and self._world.now >= self._awaited.get(peer, 0.0)

    def refused(self, peer: NodeId, ask_again: bool) -> None:
        """A peer that was asked to connect refused. The selection decides whether to ask it again."""
        self._awaited.pop(peer, None)
        if ask_again:
            self._asked_to_connect.pop(peer, None)

    def receive_connect_ok(self, sender: NodeId, message: ConnectOk) -> None:
        self._awaited.pop(sender, None)
        if not self._has_room_for(sender):
            self._world.send(sender, Leave(self.name))
            return
        if self._add(sender, message.degree, message.target, message.interest):
            self._raise_target()
        lacking = self.selection.lacking()
        no_help = not self._serves(sender) and (lacking or not self.neighbours[sender].shared)
        if no_help and sender in self._asked_to_connect:
            # It does not want what the view said: old news, which may take a while to be replaced.
            self._asked_to_connect[sender] = self._world.now + REFUSED * self._parameters.quarantine
        if lacking:
            self.wake()

    def receive_disconnect(self, sender: NodeId) -> None:
        if sender not in self.neighbours:
            self._world.send(sender, DisconnectOk(self.name))
            return
        if sender in self._on_offer:
            spared = True  # Both want to part.
        elif self._parameters.disconnect != "agreed":
            spared = not self.selection.lacking_without(sender, self.neighbours[sender].shared)
        else:
            with self._without_those_on_offer():
                spared = self.content() and not self._serves(sender)
        if spared or len(self.neighbours) > self.target:
            self.remove(sender)
            self._world.send(sender, DisconnectOk(self.name))
            if spared:
                self.target = min(self.selection.limit(), len(self.neighbours))
        else:
            self._world.send(sender, DisconnectNo(self.name))

    def receive_disconnect_no(self, sender: NodeId) -> None:
        if sender in self._on_offer:
            del self._on_offer[sender]
            self._asked_to_part[sender] = self._world.now + REFUSED * self._parameters.quarantine
            self.neighbours[sender].spare = False

    def receive_leave(self, sender: NodeId) -> None:
        self._awaited.pop(sender, None)
        self.remove(sender)

    def remove(self, peer: NodeId) -> None:
        """REMOVECONNECTION: the link is gone, whichever end closed it."""
        neighbour = self.neighbours.pop(peer, None)
        if neighbour is None:
            return
        self._asked_to_part.pop(peer, None)
        self._on_offer.pop(peer, None)
        self.selection.removed(peer, neighbour.shared)
        self._changed(peer)
        if len(self.neighbours) < self.target or self.selection.lacking():
            self.wake()

    def exchange(self) -> None:
        """Make room for a better neighbour, if one is known."""
        if self.neighbours and not self.selection.lacking():
            shared = {peer: neighbour.shared for peer, neighbour in self.neighbours.items()}
            peer = self.selection.exchange(shared, self.known_peers())
            if peer is not None:
                self.part(peer)

    def part(self, peer: NodeId) -> None:
        """End a link without asking."""
        self._world.send(peer, Leave(self.name))
        self.remove(peer)

    def forget(self, peer: NodeId) -> None:
        """The peer is gone for good."""
        self.remove(peer)
        for memory in (self._redirected_to, self._asked_to_connect, self._awaited):
            memory.pop(peer, None)

    def receive_state(self, sender: NodeId, state: TaskState) -> None:
        neighbour = self.neighbours.get(sender)
        if neighbour is not None:
            if state.spare and not neighbour.spare:
                self._may_offer_again(sender)
            neighbour.degree, neighbour.target, neighbour.spare = state.degree, state.target, state.spare
        elif sender in self._awaited:
            # It counts us in, but its CONNECT-OK was lost or overtaken.
            self._ask(sender)
        else:
            # It counts us in, we do not: some message was lost or overtaken. One word sets it right.
            self._world.send(sender, Leave(self.name))

    def state(self, peer: NodeId) -> TaskState:
        """What a heartbeat tells a neighbour."""
        spare = self.content() and not self._serves(peer)
        return TaskState(self.name, len(self.neighbours), self.target, spare)

    def content(self) -> bool:
        """Whether the task has all that it can get."""
        return self._stuck or not self.selection.lacking()

    # Changes of interest (§2.4).

    def interest_changed(self, change: tuple[Interest, Interest] | None = None) -> None:
        """The node itself wants something else now: these topics came, and those went, as far as that is known."""
        _, interest = self._own_interest()
        self.selection.reset(interest)
        for peer, neighbour in self.neighbours.items():
            if change is None:
                neighbour.shared = tuple(sorted(neighbour.interest & interest))
            else:
                neighbour.shared = _with_change(neighbour.shared, neighbour.interest, *change)
            self.selection.added(peer, neighbour.shared)
            self._may_offer_again(peer)
        # Who was of no help may be so now.
        for peer in [peer for peer in self._asked_to_connect if peer not in self._awaited]:
            del self._asked_to_connect[peer]
        self.target = self.selection.limit()
        self.wake()

    def neighbour_changed(self, peer: NodeId, interest: Interest) -> None:
        """A neighbour wants something else now."""
        neighbour = self.neighbours.get(peer)
        if neighbour is not None:
            self._add(peer, neighbour.degree, neighbour.target, interest)
            self.wake()

    def known_peers(self) -> set[NodeId]:
        return {*self.neighbours, *self._redirected_to, *self._asked_to_connect, *self._asked_to_part}

    def _has_room_for(self, peer: NodeId) -> bool:
        return (
            peer in self.neighbours or len(self.neighbours) < self.selection.limit() + self._parameters.margin
        )

    def _add(self, peer: NodeId, degree: int, target: int, interest: Interest) -> bool:
        """ADDCONNECTION, or news of a neighbour. Returns whether the neighbour is new."""
        old = self.neighbours.get(peer)
        if old is not None and old.interest == interest:
            old.degree, old.target = degree, target
            return False
        _, own = self._own_interest()
        if old is None:
            shared: Shared = tuple(sorted(interest & own))
        else:
            self.selection.removed(peer, old.shared)
            self._may_offer_again(peer)
            shared = _with_change(old.shared, own, interest - old.interest, old.interest - interest)
        self.neighbours[peer] = TaskNeighbour(degree, target, interest, shared)
        self.selection.added(peer, shared)
        self._changed(peer)
        return old is None

    def _may_offer_again(self, peer: NodeId) -> None:
        if peer not in self._on_offer:
            self._asked_to_part.pop(peer, None)

    def _raise_target(self) -> None:
        if (
            self.target < self.selection.limit()
            and len(self.neighbours) < self.target + self._parameters.margin
        ):
            self.target += 1

    def _sleep(self, seconds: float) -> None:
        self._wake_at = self._world.now + seconds
        self._world.set_timer(self._timer, seconds)

    def look_again(self) -> None:
        """The node has learnt of more peers."""
        if self._stuck:
            self.wake()

    def wake(self) -> None:
        """Act soon. If neighbours acted at once, one departure would make all of them act in the same instant."""
        soon = self._parameters.connect_timeout * self._world.random.random()
        if self.selection.enabled() and self._world.now + soon < self._wake_at:
            self._sleep(soon)


def _with_change(shared: Shared, other: Interest, came: Interest, went: Interest) -> Shared:
    """What two ends share, in order, after topics came to one of them and went; `other` is what the other wants."""
    came, went = came & other, went & other
    if not came and not went:
        return shared
    return tuple(sorted([*(topic for topic in shared if topic not in went), *came]))
