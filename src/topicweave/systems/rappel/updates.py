"""Updates: pushed down the trees, pulled when missed (Rappel §4.1, §2).

Rules kept
----------
1. An update is passed on to all children at its first reception, however it came; a repetition is dropped.
2. Under a new parent a node pulls what the parent keeps and it has not got. Each node keeps the last `cache`
   updates of a feed.
3. Only nodes that want a feed are sent its updates. A node that does not want one it gets says so (`Left`), and
   passes nothing on.
4. An update of anybody but the root goes to the root first (`Submit`), again until the root has it. A
   publisher outside of the tree asks who the root is before it sends anything.
5. Sequence numbers show what is missing: at the next update of the same publisher, or at a void update. A
   node pulls an update that does not come by itself within `gap_patience`: from the parent first, and from
   another ancestor if that did not help.

Signatures are the world's: live nodes sign what they publish and drop what is forged before it gets here. A
void update is not signed; one that lies makes its receivers ask their ancestors in vain, no more.
"""

from __future__ import annotations

import itertools
import math
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping

from topicweave.blocks.seen import SeenEvents
from topicweave.model.event import Event, EventId
from topicweave.model.ids import NodeId, TopicId
from topicweave.port import Message, Receivers, TimerKey, Timers, World
from topicweave.systems.rappel.messages import (
    FindRoot,
    Left,
    Pull,
    RootIs,
    Submit,
    Taken,
    Update,
    UpdateName,
    Void,
)
from topicweave.systems.rappel.parameters import RappelParameters
from topicweave.systems.rappel.tree import Tree

VOID, GAP, SUBMIT = "ra-void", "ra-gap", "ra-submit"
TOGETHER = 1e-3
"""Seconds; void updates that are due so soon after each other go at once."""
MOST_UNSENT = 64
MOST_TRIES = 12
MOST_HOPS = 64
MOST_STREAMS = 64


class Updates:
    """`home(feed)` names a feed's publisher as far as known."""

    def __init__(
        self,
        world: World,
        node_id: NodeId,
        parameters: RappelParameters,
        trees: Mapping[TopicId, Tree],
        home: Callable[[TopicId], NodeId | None],
    ) -> None:
        self._world = world
        self._id = node_id
        self._parameters = parameters
        self._trees = trees
        self._home = home
        self._seen = SeenEvents()
        self._cache: dict[TopicId, deque[tuple[Event, int]]] = {}
        # The newest update of each stream of a feed: publisher -> (epoch, sequence).
        self._latest: dict[TopicId, OrderedDict[NodeId, tuple[int, int]]] = {}
        self._missing: dict[TopicId, dict[EventId, int]] = {}  # asked how often
        self._unsent: OrderedDict[EventId, tuple[Event, int]] = OrderedDict()  # tries
        # When a void update of each feed is due that this node leads, the first one first; and the timer for it.
        self._voids: dict[TopicId, float] = {}
        self._next_void = -math.inf
        self.pulled = 0

    def receivers(self) -> Receivers:
        return {
            Update: self._receive_update,
            Submit: self._receive_submit,
            Taken: self._receive_taken,
            FindRoot: self._receive_find,
            RootIs: self._receive_root,
            Pull: self._receive_pull,
            Void: self._receive_void,
        }

    def timers(self) -> Timers:
        return {VOID: self._send_voids, GAP: self._mend_gap, SUBMIT: self._resubmit}

    def begin(self) -> None:
        """A new session: timers of the old one are gone."""
        self._missing.clear()
        self._voids.clear()
        self._next_void = -math.inf
        if self._unsent:
            self._world.set_timer((SUBMIT,), self._parameters.join_timeout)

    # What the node tells.

    def publish(self, event: Event) -> int:
        """Send out an update of this node's own; to how many peers it went."""
        tree = self._trees.get(event.topic)
        if tree is not None and tree.is_root:
            self._seen.first_time(event.id)
            self._keep(event, 0)
            return self._push(tree, event, 0, None)
        self._unsent[event.id] = (event, 0)
        if len(self._unsent) > MOST_UNSENT:
            self._unsent.popitem(last=False)
        sent = self._submit(event)
        self._world.set_timer((SUBMIT,), self._parameters.join_timeout)
        return sent

    def joined(self, tree: Tree) -> None:
        """The node has a parent, a new one, or leads the tree."""
        if tree.parent is not None:
            self._world.send(tree.parent, Pull(tree.feed, self._have(tree.feed)))
        elif self._parameters.void_period > 0:
            self._plan_void(tree.feed)
        for event, tries in list(self._unsent.values()):
            if event.topic == tree.feed and tries > 0:
                self._submit(event)

    def forget(self, feed: TopicId) -> None:
        """The node left the feed."""
        self._cache.pop(feed, None)
        self._latest.pop(feed, None)
        self._missing.pop(feed, None)
        self._voids.pop(feed, None)
        self._world.cancel_timer((GAP, feed))

    def cached(self, feed: TopicId) -> Iterable[EventId]:
        return (event.id for event, _ in self._cache.get(feed, ()))

    def has(self, event: EventId) -> bool:
        return event in self._seen

    # Down the tree.

    def _push(self, tree: Tree, event: Event, hops: int, source: NodeId | None) -> int:
        message = Update(event, hops + 1)
        sent = 0
        for child in tree.children:
            if child != source:
                self._world.send(child, message)
                sent += 1
        return sent

    def _receive_update(self, sender: NodeId, message: Update) -> None:
        event = message.event
        tree = self._trees.get(event.topic)
        if tree is None:
            self._world.send(sender, Left(event.topic))
            return
        asked = tree.search is not None and tree.search.target == sender
        if sender != tree.parent and not message.pulled and not asked:
            # Somebody takes this node for its child: an answer was lost, or it came back without memory. One
            # that was asked to is its parent soon: the update overtook the answer.
            self._world.send(sender, Left(event.topic))
        self._accept(tree, event, message.hops, sender)
        self.pulled += message.pulled

    def _accept(self, tree: Tree, event: Event, hops: int, sender: NodeId) -> bool:
        if not self._seen.first_time(event.id):
            return False
        self._keep(event, hops)
        self._push(tree, event, hops, sender)
        if event.publisher == self._id:
            self._unsent.pop(event.id, None)  # handed to the application when it was published
        else:
            self._world.deliver(event)
        missing = self._missing.get(event.topic)
        if missing is not None:
            missing.pop(event.id, None)
        if self._parameters.void_period > 0:
            self._look_for_gap(event)
        return True

    def _keep(self, event: Event, hops: int) -> None:
        cache = self._cache.get(event.topic)
        if cache is None:
            cache = self._cache[event.topic] = deque(maxlen=self._parameters.cache)
        cache.append((event, hops))
        streams = self._latest.setdefault(event.topic, OrderedDict())
        newest = streams.get(event.publisher)
        if newest is None or (event.epoch, event.sequence) > newest:
            streams[event.publisher] = (event.epoch, event.sequence)
            streams.move_to_end(event.publisher)
            if len(streams) > MOST_STREAMS:
                streams.popitem(last=False)

    # Pulls.

    def _have(self, feed: TopicId) -> tuple[UpdateName, ...]:
        return tuple((event.publisher, event.epoch, event.sequence) for event, _ in self._cache.get(feed, ()))

    def _receive_pull(self, sender: NodeId, message: Pull) -> None:
        tree = self._trees.get(message.feed)
        if tree is None:
            return
        have = set(message.have)
        for event, hops in list(self._cache.get(message.feed, ())):
            if (event.publisher, event.epoch, event.sequence) not in have:
                self._world.send(sender, Update(event, hops + 1, pulled=True))

    # Gaps.

    def _plan_void(self, feed: TopicId) -> None:
        """One timer for all: a node may lead thousands of trees."""
        now = self._world.now
        self._voids.pop(feed, None)
        self._voids[feed] = now + self._parameters.void_period
        if self._next_void < now:  # Or it was lost with the last life.
            self._wait_for_void()

    def _wait_for_void(self) -> None:
        self._next_void = next(iter(self._voids.values()))
        self._world.set_timer((VOID,), self._next_void - self._world.now)

    def _send_voids(self, _key: TimerKey) -> None:
        now = self._world.now
        for feed in list(itertools.takewhile(lambda feed: self._voids[feed] <= now + TOGETHER, self._voids)):
            del self._voids[feed]
            tree = self._trees.get(feed)
            if tree is not None and tree.is_root:
                self._voids[feed] = now + self._parameters.void_period
                if tree.children:
                    self._to_children(tree, Void(feed, self._recent(feed)))
        if self._voids:
            self._wait_for_void()

    def _recent(self, feed: TopicId) -> tuple[UpdateName, ...]:
        """The newest of each publisher, of the last few publishers."""
        streams = list(self._latest.get(feed, {}).items())[-self._parameters.cache :]
        return tuple((publisher, epoch, sequence) for publisher, (epoch, sequence) in streams)

    def _to_children(self, tree: Tree, message: Message) -> None:
        for child in tree.children:
            self._world.send(child, message)

    def _receive_void(self, sender: NodeId, message: Void) -> None:
        tree = self._trees.get(message.feed)
        if tree is None or sender != tree.parent:
            return
        latest = message.latest[: self._parameters.cache]
        if tree.children:
            # With what this node has itself: the root may have lost its memory, and knows less than others.
            own = [name for name in self._recent(tree.feed) if name not in latest]
            self._to_children(tree, Void(tree.feed, (*latest, *own)[: 2 * self._parameters.cache]))
        for publisher, epoch, sequence in latest:
            self._expect(EventId(publisher, message.feed, epoch, sequence))

    def _look_for_gap(self, event: Event) -> None:
        if event.sequence > 0:
            self._expect(event.id._replace(sequence=event.sequence - 1))

    def _expect(self, newest: EventId) -> None:
        """Whatever of the last few up to this one is missing should come soon."""
        state = self._seen.state(newest.publisher, newest.topic)
        # A stream never seen before, or a new life of its publisher, has no gap before what is named.
        first = newest.sequence if state is None or state[0] != newest.epoch else 0
        last_kept = max(first, newest.sequence - self._parameters.cache + 1)
        for sequence in range(newest.sequence, last_kept - 1, -1):
            update = newest._replace(sequence=sequence)
            if update in self._seen:
                break
            missing = self._missing.setdefault(newest.topic, {})
            if update not in missing and len(missing) < MOST_STREAMS:
                missing[update] = 0
                self._world.set_timer((GAP, newest.topic), self._parameters.gap_patience)

    def _mend_gap(self, key: TimerKey) -> None:
        feed: TopicId = key[1]
        tree = self._trees.get(feed)
        missing = self._missing.get(feed, {})
        for update in [one for one in missing if one in self._seen]:
            del missing[update]
        if tree is None or not missing or tree.parent is None:
            self._missing.pop(feed, None)
            return
        again = any(missing.values())
        for update in list(missing):
            missing[update] += 1
            if missing[update] > 3:
                del missing[update]  # nobody has it any more
        source = self._world.random.choice(tree.ancestors) if again else tree.parent
        self._world.send(source, Pull(feed, self._have(feed)))
        if missing:
            self._world.set_timer((GAP, feed), 2.0 * self._parameters.gap_patience)

    # Up to the master publisher (§2).

    def _submit(self, event: Event) -> int:
        tree = self._trees.get(event.topic)
        tried = self._unsent[event.id][1]
        self._unsent[event.id] = (event, tried + 1)
        if tree is not None:
            if tree.is_root:
                del self._unsent[event.id]
                return int(self._accept(tree, event, 0, self._id))
            if tree.parent is None:
                return 0  # told when it has one
            self._world.send(tree.ancestors[-1], Submit(event, 1))
            return 1
        home = self._home(event.topic)
        if home is None or home == self._id:
            return 0
        self._world.send(home, FindRoot(event.topic))
        return 1

    def _resubmit(self, _key: TimerKey) -> None:
        for event, tries in list(self._unsent.values()):
            if tries >= MOST_TRIES:
                del self._unsent[event.id]
            else:
                self._submit(event)
        if self._unsent:
            self._world.set_timer((SUBMIT,), self._parameters.join_timeout)

    def _receive_submit(self, sender: NodeId, message: Submit) -> None:
        event = message.event
        tree = self._trees.get(event.topic)
        if tree is None or message.hops > MOST_HOPS:
            return
        if tree.is_root:
            self._accept(tree, event, message.hops, self._id)
            self._world.send(
                event.publisher, Taken(event.topic, (event.publisher, event.epoch, event.sequence))
            )
        elif tree.parent is not None and tree.ancestors[-1] != sender:
            self._world.send(tree.ancestors[-1], Submit(event, message.hops + 1))

    def _receive_taken(self, _sender: NodeId, message: Taken) -> None:
        publisher, epoch, sequence = message.update
        self._unsent.pop(EventId(publisher, message.feed, epoch, sequence), None)

    def _receive_find(self, sender: NodeId, message: FindRoot) -> None:
        tree = self._trees.get(message.feed)
        root = None
        if tree is not None and tree.joined:
            root = self._id if tree.is_root else tree.ancestors[-1]
        self._world.send(sender, RootIs(message.feed, root))

    def _receive_root(self, _sender: NodeId, message: RootIs) -> None:
        if message.root is not None and message.feed not in self._trees:
            for event, _ in list(self._unsent.values()):
                if event.topic == message.feed:
                    self._world.send(message.root, Submit(event, 1))
