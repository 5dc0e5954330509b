"""A Rappel node: its place, its friends, its trees, and the one ping that serves them all.

Rules kept
----------
1. One ping per period and neighbour, however many roles it has: friend, parent of several feeds. Its answer
   is awaited for the time-out; whoever does not answer has failed. A fan or child not heard of for period
   plus time-out has failed, too.
2. What pings and acks carry rarely changes; they are made once and sent again. In the simulator, where
   messages pass by reference, the receiver sees that it is the very same and has next to nothing to do.
3. Bootstrap (§5): first a place; then friends of the last session, if there are any; then feeds that friends
   cover, at the nearest of them; the others one by one at their publishers, 20 s apart, and all at once after
   the twelfth.
4. The publisher of a feed is given (`publishers`), or else elected: the subscriber that the interest view
   shows first clockwise after the feed's identifier. Views may differ for a while: a root that learns of a
   better one joins its tree, with all its children.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import numpy as np

from topicweave.blocks.interest_node import ViewNode
from topicweave.blocks.topic_directory import Parts
from topicweave.blocks.views import InterestView
from topicweave.model.event import Event
from topicweave.model.ids import Interest, NodeId, TopicId, clockwise
from topicweave.port import Link, Node, Receivers, TimerKey, Timers, World
from topicweave.systems.rappel.friendship import Friendship
from topicweave.systems.rappel.messages import Ack, BetterRoot, Gone, Ping
from topicweave.systems.rappel.parameters import RappelParameters
from topicweave.systems.rappel.place import NetworkPlace
from topicweave.systems.rappel.tree import Tree
from topicweave.systems.rappel.trees import FeedTrees
from topicweave.systems.rappel.updates import Updates

TICK, CHECK, STAGGER, AUDIT = "ra-tick", "ra-check", "ra-stagger", "ra-audit"
NOBODY = "nobody else wants this feed, as far as its home knows"
NOT_IN_TREE = "nobody else is in this feed's tree yet, or its publisher is not known yet"
SUSPECT = 60.0
"""Seconds for which somebody who did not answer is not taken for a publisher."""
_JUST_ASKED = 5.0
"""A ping sent before its sender learnt that it is a child may still be under way for so long."""


class _Contact:
    """Somebody this node pings."""

    __slots__ = ("ack", "answered", "friend", "ping")

    def __init__(self) -> None:
        self.ping: Ping | None = None
        self.ack: Ack | None = None
        self.answered = True
        self.friend = False


class RappelNode(ViewNode):
    """See the module."""

    def __init__(
        self,
        world: World,
        node_id: NodeId,
        subscriptions: Iterable[TopicId],
        view: InterestView,
        parameters: RappelParameters,
    ) -> None:
        super().__init__(world, node_id, subscriptions, view)
        self.parameters = parameters
        self._contacts: dict[NodeId, _Contact] = {}
        self._contacts_stale = True
        self._heard: dict[NodeId, float] = {}  # when a fan or child last pinged
        self._acks: dict[NodeId, tuple[Ping, Ack]] = {}
        self._unjoined: list[TopicId] = []
        self._staggered = 0
        self._suspects: dict[NodeId, float] = {}
        self._started = False
        self.place = NetworkPlace(world, node_id, parameters, self._placed)
        self.friendship = Friendship(world, node_id, parameters, self.place, self._friends_changed)
        self.friendship.subscribed_to(self.subscriptions)
        self.trees = FeedTrees(
            world,
            node_id,
            parameters,
            self.place,
            self._home,
            self.friendship.covering,
            self._joined,
            self._trees_changed,
            self._met,
            self._did_not_answer,
        )
        self.updates = Updates(world, node_id, parameters, self.trees.trees, self._home)
        view.serve(Parts(parameters.silence, self._root_of, self._feeds_led, self._introduced))
        for block in (self.place, self.trees, self.updates):
            self.use(block)
        self._receivers.update(self.friendship.receivers())
        self.use(self)

    def receivers(self) -> Receivers:
        return {
            Ping: self._receive_ping,
            Ack: self._receive_ack,
            BetterRoot: self._receive_better_root,
            Gone: self._receive_gone,
        }

    def timers(self) -> Timers:
        return {TICK: self._tick, CHECK: self._check, STAGGER: self._stagger, AUDIT: self._audit}

    # What the node is told.

    def start(self, contacts: Sequence[NodeId]) -> None:
        super().start(contacts)
        self._heard.clear()
        self._suspects.clear()
        self._started = True
        self._staggered = 0
        self._unjoined = []
        self._stale_friends = self.friendship.begin()
        self.trees.begin()
        self.updates.begin()
        now = self.world.now
        for contact in contacts if self._wants_friends() else ():
            self.friendship.candidates.hear(contact, now)
        self.place.start(contacts)

    def _enter_view(self, contacts: Sequence[NodeId]) -> None:
        if not self._knows_publishers():
            super()._enter_view(contacts)

    def _interest_changed(self, before: Interest) -> None:
        super()._interest_changed(before)
        dropped = before - self._interest
        wanted = sorted(self._interest - before)
        if dropped:
            self._unjoined = [feed for feed in self._unjoined if feed not in dropped]
            self.friendship.subscribed_to(self._interest)
        else:
            self.friendship.subscribed_to(wanted, besides=True)
        self._contacts_stale = True
        self._acks.clear()
        for feed in sorted(dropped):
            self.trees.leave(feed)
            self.updates.forget(feed)
        if wanted and self.place.settled:
            self._join(wanted)

    def _join(self, feeds: Sequence[TopicId]) -> None:
        """Feeds subscribed to in the middle of a session; the first ones of all begin it."""
        if len(feeds) == len(self._interest):
            self._begin_session()
            return
        self._unjoined.extend(feeds)
        self._join_through_friends()
        new = set(feeds)
        alone = [feed for feed in self._unjoined if feed in new]
        self._unjoined = [feed for feed in self._unjoined if feed not in new]
        for feed in alone:
            self.trees.enter(feed, None)

    def _spread(self, event: Event) -> int:
        return self.updates.publish(event)

    def _reached_nobody(self, topic: TopicId) -> str:
        audience = self._others_wanting(topic)
        return NOBODY if audience == 0 else NOT_IN_TREE

    def peer_lost(self, peer: NodeId) -> None:
        self._suspects[peer] = self.world.now + SUSPECT
        self.view.lost(peer)
        self._heard.pop(peer, None)
        self._acks.pop(peer, None)
        self.place.forget(peer)
        self.friendship.lost(peer)
        self.trees.lost(peer)

    def leave(self) -> None:
        for feed in list(self.trees.trees):
            self.trees.leave(feed)
        for peer in self.friendship.known_peers():
            self.world.send(peer, Gone())
        self.view.leave()

    def links(self) -> Iterator[Link]:
        for peer in self.friendship.friends:
            yield Link(peer, "friend")
        for peer in self.friendship.fans:
            yield Link(peer, "fan")
        for peer, kind in self.trees.links():
            yield Link(peer, kind)

    def known_peers(self) -> set[NodeId]:
        return {*self.friendship.known_peers(), *self.trees.known_peers(), *self._heard}

    def gauges(self) -> Mapping[str, float]:
        covered = [feed for feed in self.subscriptions if self.friendship.covering(feed)]
        return {
            "friends": float(len(self.friendship.friends)),
            "fans": float(len(self.friendship.fans)),
            "candidates": float(len(self.friendship.candidates)),
            "coverage": len(covered) / len(self.subscriptions) if self.subscriptions else 1.0,
        }

    # Bootstrap (§5).

    def _wants_friends(self) -> bool:
        return bool(self.subscriptions)

    def _placed(self) -> None:
        if self._wants_friends():
            self._begin_session()

    def _begin_session(self) -> None:
        world, parameters = self.world, self.parameters
        world.set_timer((TICK,), world.random.uniform(0.0, parameters.ping_period))
        self._unjoined = sorted(self.subscriptions - self.trees.trees.keys())
        world.random.shuffle(self._unjoined)
        led = [feed for feed in self._unjoined if self._home(feed) == self.id]
        leads = set(led)
        self._unjoined = [feed for feed in self._unjoined if feed not in leads]
        for feed in led:
            self.trees.enter(feed, None)
        stale, self._stale_friends = self._stale_friends, []
        if stale:
            for peer in stale:
                self.friendship.request(peer)
            world.set_timer((STAGGER,), parameters.join_timeout)
        else:
            self._stagger((STAGGER,))
        if self._unjoined:
            world.set_timer((AUDIT,), parameters.audit_pause)

    def _stagger(self, key: TimerKey) -> None:
        """Join one more feed at its publisher; after the twelfth, all."""
        self._join_through_friends()
        while self._unjoined:
            self._staggered += 1
            self.trees.enter(self._unjoined.pop(), None)
            if self._staggered <= self.parameters.staggered_joins:
                break
        if self._unjoined:
            self.world.set_timer(key, self.parameters.stagger)

    def _join_through_friends(self) -> None:
        if not self.friendship.friends:
            return
        unjoined, self._unjoined = self._unjoined, []
        for feed in unjoined:
            friends = self.friendship.covering(feed)
            if friends:
                self.trees.enter(feed, friends[0])
            else:
                self._unjoined.append(feed)

    def _audit(self, key: TimerKey) -> None:
        """While there are feeds to join, audits are continual (§5.2)."""
        self.friendship.audit()
        lonely = len(self.friendship.friends) < min(2, self.parameters.alpha)
        if (self._unjoined or lonely) and len(self.friendship.candidates):
            self.world.set_timer(key, self.parameters.audit_pause)

    def _friends_changed(self, peer: NodeId | None) -> None:
        self._contacts_stale = True
        self._acks.clear()
        if peer is not None and self._unjoined:
            self._join_through_friends()

    def _joined(self, tree: Tree) -> None:
        self.updates.joined(tree)

    def _trees_changed(self) -> None:
        self._contacts_stale = True
        self._acks.clear()

    def _met(self, peer: NodeId) -> None:
        if peer != self.id:
            self.friendship.candidates.hear(peer, self.world.now)

    # Publishers.

    def _knows_publishers(self) -> bool:
        publishers = self.parameters.publishers
        return bool(publishers) and all(feed in publishers for feed in self.subscriptions)

    def _home(self, feed: TopicId) -> NodeId | None:
        publisher = self.parameters.publishers.get(feed)
        return publisher if publisher is not None else self._elect(feed)

    def _elect(self, feed: TopicId) -> NodeId | None:
        if self._suspects:
            now = self.world.now
            self._suspects = {peer: until for peer, until in self._suspects.items() if until > now}
        best = self.id if feed in self.subscriptions else None
        known = self.view.subscribers(feed)
        passed_over = {*self._suspects, *self._denied(feed)}
        if passed_over:
            known = np.array([peer for peer in known.tolist() if peer not in passed_over], np.uint64)
        if len(known):
            # Unsigned differences wrap as the ring does.
            first = int(known[np.argmin(known - np.uint64(feed))])
            if best is None or clockwise(feed, first) < clockwise(feed, best):
                return first
        return best

    def _denied(self, feed: TopicId) -> Collection[NodeId]:
        """Who said lately that it has no part in a feed's tree: homes and views may name it for longer."""
        tree = self.trees.trees.get(feed)
        if tree is None or not tree.denied:
            return ()
        now = self.world.now
        for peer in [peer for peer, until in tree.denied.items() if until <= now]:
            del tree.denied[peer]
        return tree.denied.keys()

    def _did_not_answer(self, peer: NodeId) -> None:
        self._suspects[peer] = self.world.now + SUSPECT
        self.view.lost(peer)

    def _check_roots(self) -> None:
        """Elected roots only: does somebody come before the one that leads?"""
        for feed, tree in list(self.trees.trees.items()):
            if feed in self.parameters.publishers or not tree.joined:
                continue
            best = self._elect(feed)
            root = self.id if tree.is_root else tree.ancestors[-1]
            if best is None or clockwise(feed, best) >= clockwise(feed, root):
                continue
            if tree.is_root:
                self.trees.search_root(tree, best)
            else:
                self.world.send(root, BetterRoot(feed, best))

    # Parts of a feed are its trees, and their roots name them.

    def _root_of(self, feed: TopicId) -> NodeId | None:
        tree = self.trees.trees.get(feed)
        if tree is None or not tree.joined:
            return None
        return self.id if tree.is_root else tree.ancestors[-1]

    def _feeds_led(self) -> list[TopicId]:
        return [feed for feed, tree in self.trees.trees.items() if tree.is_root]

    def _introduced(self, feed: TopicId, _peer: NodeId, other: NodeId | None) -> None:
        """The feed has another tree. Of two roots the one that comes first after the feed's identifier stays:
        the other one is told.
        """
        root = self._root_of(feed)
        if root is None or other is None or root == other or feed in self.parameters.publishers:
            return
        best, worse = (other, root) if clockwise(feed, other) < clockwise(feed, root) else (root, other)
        if worse != self.id:
            self.world.send(worse, BetterRoot(feed, best))
        else:
            self.trees.search_root(self.trees.trees[feed], best)

    def _receive_better_root(self, sender: NodeId, message: BetterRoot) -> None:
        tree = self.trees.trees.get(message.feed)
        if tree is not None and sender == message.root:
            tree.denied.pop(sender, None)
        if (
            tree is not None
            and tree.is_root
            and message.feed not in self.parameters.publishers
            and self._suspects.get(message.root, 0.0) <= self.world.now
            and message.root not in self._denied(message.feed)
            and clockwise(message.feed, message.root) < clockwise(message.feed, self.id)
        ):
            self.trees.search_root(tree, message.root)

    # Ping and ack (§3.3, §4.1).

    def _tick(self, key: TimerKey) -> None:
        self.world.set_timer(key, self.parameters.ping_period)
        self.world.set_timer((CHECK,), self.parameters.ping_timeout)
        self.trees.keep_up(rejoin=not self._unjoined)
        self._check_roots()
        if self._contacts_stale:
            self._make_contacts()
        send = self.world.send
        for peer, contact in self._contacts.items():
            contact.answered = False
            assert contact.ping is not None
            send(peer, contact.ping)

    def _make_contacts(self) -> None:
        """Whom to ping, and with what: the friends, and the parents of all trees."""
        self._contacts_stale = False
        before, self._contacts = self._contacts, {}
        parents = self.trees.parents()
        friends, names = self.friendship.friends, self.friendship.names
        for peer in {**friends, **parents}:
            contact = self._contacts[peer] = before.get(peer) or _Contact()
            contact.friend = peer in friends
            contact.ping = Ping(
                self.place.version,
                self.friendship.bloom_version,
                contact.friend,
                names,
                tuple(parents.get(peer, ())),
            )

    def _check(self, _key: TimerKey) -> None:
        """The time-out of the last pings is over; then an audit."""
        for peer in [peer for peer, contact in self._contacts.items() if not contact.answered]:
            contact = self._contacts.pop(peer)
            contact.answered = True
            self._contacts_stale = True
            if peer in self.friendship.friends or peer in self.trees.known_peers():
                self.peer_lost(peer)
        now = self.world.now
        limit = now - self.parameters.silence
        heard = self._heard
        for peer in [fan for fan, since in self.friendship.fans.items() if since < limit]:
            if heard.get(peer, limit - 1) < limit:
                self.friendship.drop_fan(peer)
                self._acks.pop(peer, None)
        for feed, tree in self.trees.trees.items():
            for peer in [child for child, since in tree.since.items() if since < limit]:
                if heard.get(peer, limit - 1) < limit:
                    self.trees.drop_child(feed, peer)
        for peer in [peer for peer, time in heard.items() if time < limit]:
            del heard[peer]
            self._acks.pop(peer, None)
        for peer in [peer for peer, until in self._suspects.items() if until <= now]:
            del self._suspects[peer]
        self.friendship.candidates.sweep(now)
        self.friendship.audit()

    def _receive_ping(self, sender: NodeId, ping: Ping) -> None:
        now = self.world.now
        answer = self._acks.get(sender)
        if answer is not None and answer[0] is ping:
            self._heard[sender] = now
            self._hear(sender, ping.friends, now)
            self.world.send(sender, answer[1])
            return
        if sender == self.id or not self.place.settled:
            return
        ack = self._answer(sender, ping)
        if ack.fan or ack.lineages:
            self._heard[sender] = now
            self._acks[sender] = (ping, ack)
            self._hear(sender, ping.friends, now)
        self.friendship.versions(sender, ping.coordinate_version, ping.bloom_version)
        self.world.send(sender, ack)

    def _hear(self, neighbour: NodeId, friends: tuple[NodeId, ...], now: float) -> None:
        """Votes for a neighbour's friends and, if so asked, for the neighbour itself: §3.3 makes room for
        fans among the candidates.
        """
        self.friendship.candidates.hear_list(neighbour, friends, now)
        if self.parameters.neighbours_vote:
            self.friendship.candidates.hear(neighbour, now)

    def _answer(self, sender: NodeId, ping: Ping) -> Ack:
        fan = False
        if ping.friend:
            fan = self.friendship.admit(sender)
        else:
            self.friendship.drop_fan(sender)
        lineages, strangers = [], []
        for feed in ping.feeds:
            tree = self.trees.trees.get(feed)
            if tree is not None and sender in tree.children:
                lineages.append(self.trees.lineage(tree))
            else:
                strangers.append(feed)
        self._drop_unclaimed(sender, ping.feeds)
        return Ack(
            self.place.version,
            self.friendship.bloom_version,
            fan,
            self.friendship.names,
            tuple(lineages),
            tuple(strangers),
        )

    def _drop_unclaimed(self, sender: NodeId, feeds: tuple[TopicId, ...]) -> None:
        """Children that say they are none: the word of their leaving was lost."""
        before = self.world.now - _JUST_ASKED
        for feed, tree in self.trees.trees.items():
            if sender in tree.children and feed not in feeds and tree.since[sender] < before:
                self.trees.drop_child(feed, sender)

    def _receive_ack(self, sender: NodeId, ack: Ack) -> None:
        contact = self._contacts.get(sender)
        if contact is None:
            return
        contact.answered = True
        self._hear(sender, ack.friends, self.world.now)
        if ack is contact.ack:
            return
        contact.ack = ack
        if contact.friend:
            if ack.fan:
                self.friendship.versions(sender, ack.coordinate_version, ack.bloom_version)
            else:
                self.friendship.remove(sender)
        for lineage in ack.lineages:
            self.trees.inform(sender, lineage)
        for feed in ack.strangers:
            self.trees.disowned(sender, feed)

    def _receive_gone(self, sender: NodeId, _message: Gone) -> None:
        self.peer_lost(sender)


def degree_limit(node: Node) -> int:
    """Friends, fans, and per feed a parent and children; one more while a leaving node's child is taken over."""
    assert isinstance(node, RappelNode)
    parameters = node.parameters
    return 3 * parameters.alpha + len(node.trees.trees) * (2 + 2 * parameters.beta)
