"""One spanning tree per feed, rooted at its publisher (Rappel §4.2 to §4.4).

Rules kept
----------
1. A parent is nearer to the publisher than its children, in coordinates, ties by identifier. The parent
   checks it, when it takes a child and whenever the publisher's place turns out to be another one. So there
   are no loops as long as all agree on where the publisher is; while they do not, a node that finds itself
   among its ancestors starts over.
2. A search for a parent goes from node to node: whoever is asked accepts, or names the next one (Algorithm
   2). It is the searching node that asks, waits, and goes on elsewhere when nobody answers: along its
   ancestors, then at friends who want the feed, then at the publisher.
3. A new parent is found before the old one is left (proper rejoin); a failed periodic rejoin changes nothing.
4. A child stays as long as its pings come; one that pings without being a child is told so, and searches.
5. The children of an elected root know each other. If it dies, they go to the nearest one that still answers,
   and that one leads. Each by itself would choose among the few subscribers that it knows.
6. At most beta children. A child handed over by a leaving node is taken beyond that, and the farthest makes
   room at the next ping.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from topicweave.blocks.vivaldi import Coordinate
from topicweave.model.ids import NodeId, TopicId
from topicweave.port import Receivers, TimerKey, Timers, World
from topicweave.systems.rappel.messages import (
    Adopt,
    ChangeParent,
    Heirs,
    Join,
    JoinDeny,
    JoinForward,
    JoinOK,
    Left,
    Lineage,
    NewLineage,
)
from topicweave.systems.rappel.parameters import RappelParameters
from topicweave.systems.rappel.place import NetworkPlace
from topicweave.systems.rappel.rules import (
    ROOT,
    Child,
    JoinCase,
    decide_join,
    is_place,
    nearest_to,
    rank,
    rejoin_ancestor,
)
from topicweave.systems.rappel.tree import Search, Tree

JOIN = "ra-join"
MOST_HOPS = 50
"""A search that was led to so many nodes, and then to one that it asked already, starts over at the
publisher: it goes round in circles.
"""
DEEPEST = 255
"""So does one that was led to so many: no tree is deeper."""


class FeedTrees:
    """All trees of a node.

    `home(feed)` names the feed's publisher as far as known; `friends(feed)` friends who seem to want it,
    nearest first. `joined(tree)` is called on every new parent; `changed()` whenever parents, children or
    lineages changed; `met(peer)` for whoever was dealt with; `unreachable(peer)` for whoever did not answer.
    """

    def __init__(
        self,
        world: World,
        node_id: NodeId,
        parameters: RappelParameters,
        place: NetworkPlace,
        home: Callable[[TopicId], NodeId | None],
        friends: Callable[[TopicId], list[NodeId]],
        joined: Callable[[Tree], None],
        changed: Callable[[], None],
        met: Callable[[NodeId], None],
        unreachable: Callable[[NodeId], None],
    ) -> None:
        self._world = world
        self._id = node_id
        self._parameters = parameters
        self._place = place
        self._home = home
        self._friends = friends
        self._joined = joined
        self._changed = changed
        self._met = met
        self._unreachable = unreachable
        self.trees: dict[TopicId, Tree] = {}
        self.rejoins_received = 0
        """Periodic rejoin requests that came, for Fig. 11a."""

    def receivers(self) -> Receivers:
        return {
            Join: self._receive_join,
            JoinOK: self._receive_ok,
            JoinForward: self._receive_forward,
            JoinDeny: self._receive_deny,
            ChangeParent: self._receive_change,
            NewLineage: self._receive_lineage,
            Left: lambda sender, message: self.drop_child(message.feed, sender),
            Adopt: self._receive_adopt,
            Heirs: self._receive_heirs,
        }

    def timers(self) -> Timers:
        return {JOIN: self._no_answer}

    # What the node asks.

    def parents(self) -> dict[NodeId, list[TopicId]]:
        """Each parent with the feeds it is the parent for."""
        found: dict[NodeId, list[TopicId]] = {}
        for feed, tree in self.trees.items():
            if tree.parent is not None:
                found.setdefault(tree.parent, []).append(feed)
        return found

    def known_peers(self) -> set[NodeId]:
        peers: set[NodeId] = set()
        for tree in self.trees.values():
            peers.update(tree.children)
            if tree.parent is not None:
                peers.add(tree.parent)
        return peers

    def lineage(self, tree: Tree) -> Lineage:
        if tree.lineage is None:
            assert tree.publisher is not None
            ancestors = (self._id, *tree.ancestors[: DEEPEST - 1])
            tree.lineage = Lineage(tree.feed, ancestors, tree.publisher)
        return tree.lineage

    # What the node tells.

    def begin(self) -> None:
        """A new session: nobody's child or parent any more."""
        for feed in self.trees:
            self._world.cancel_timer((JOIN, feed))
        self.trees.clear()
        self._changed()

    def enter(self, feed: TopicId, at: NodeId | None) -> None:
        """Join the tree of a feed, asking `at` first, or the publisher."""
        if feed in self.trees:
            return
        tree = self.trees[feed] = Tree(feed)
        tree.search = Search("first", self._world.now)
        if at is None:
            self._go_on(tree)
        else:
            self._ask(tree, at)

    def leave(self, feed: TopicId) -> None:
        """Leave a tree in order (§4.4).

        The parent takes the child nearest to the publisher, the others are sent to that one. The paper lets a
        leaving node forward updates until its children have found new parents; but whoever unsubscribed does
        not want them any more, and would receive noise. So it leaves at once, and the children pull from
        their new parents what came in between.
        """
        tree = self.trees.pop(feed, None)
        if tree is None:
            return
        self._world.cancel_timer((JOIN, feed))
        if tree.search is not None and tree.search.target is not None:
            self._world.send(tree.search.target, Left(feed))
        parent = tree.parent
        if tree.children:
            heir = min(tree.children, key=lambda child: tree.children[child].rank)
            if parent is not None:
                self._world.send(parent, Adopt(feed, heir, tree.children[heir].coordinate))
                self._world.send(heir, ChangeParent(feed, parent))
            for child in tree.children:
                if child != heir:
                    self._world.send(child, ChangeParent(feed, heir))
                elif parent is None:
                    self._world.send(child, ChangeParent(feed, child))
        if parent is not None:
            self._world.send(parent, Left(feed))
        self._changed()

    def lost(self, peer: NodeId) -> None:
        """A peer is gone."""
        for tree in self.trees.values():
            if tree.children.pop(peer, None) is not None:
                del tree.since[peer]
            if tree.parent == peer:
                tree.parent = None
                self._orphaned(tree)
            elif tree.search is not None and tree.search.target == peer:
                self._give_up_target(tree)
        self._changed()

    def disowned(self, peer: NodeId, feed: TopicId) -> None:
        """A parent says that it is none."""
        tree = self.trees.get(feed)
        if tree is not None and tree.parent == peer:
            tree.parent = None
            self._changed()
            self._orphaned(tree)

    def drop_child(self, feed: TopicId, peer: NodeId) -> None:
        tree = self.trees.get(feed)
        if tree is not None and tree.children.pop(peer, None) is not None:
            del tree.since[peer]
            self._changed()

    def inform(self, sender: NodeId, lineage: Lineage) -> None:
        """A parent told the lineage."""
        tree = self.trees.get(lineage.feed)
        if tree is not None and tree.parent == sender:
            self._take_lineage(tree, lineage)

    def keep_up(self, rejoin: bool) -> None:
        """Once per ping period: too many children, who they are, periodic rejoins if it is time for them (§4.3),
        searches that ended nowhere.
        """
        now = self._world.now
        parameters = self._parameters
        for tree in list(self.trees.values()):
            while len(tree.children) > parameters.beta:
                self._evict(tree, max(tree.children, key=lambda child: tree.children[child].rank))
            if tree.is_root and self._elects(tree.feed):
                self._name_heirs(tree)
            if tree.search is None and not tree.joined:
                self._orphaned(tree)
            if rejoin and tree.search is None and tree.joined and now >= tree.rejoin_at:
                tree.rejoin_at += parameters.rejoin_period
                if tree.skip_rejoin:
                    tree.skip_rejoin = False
                    continue
                ancestor = rejoin_ancestor(tree.ancestors, parameters.beta, self._world.random.random())
                if ancestor is not None:
                    tree.search = Search("periodic", self._world.now)
                    self._ask(tree, ancestor)

    def become_root(self, tree: Tree) -> None:
        """Lead the tree."""
        former, tree.parent = tree.parent, None
        tree.search = None
        tree.waited, tree.patience = False, None
        self._world.cancel_timer((JOIN, tree.feed))
        if former is not None:
            self._world.send(former, Left(tree.feed))
        tree.ancestors = ()
        tree.publisher = self._place.coordinate
        tree.rank = ROOT
        tree.lineage = None
        for child, known in tree.children.items():
            tree.children[child] = self._child(tree, child, known.coordinate)
        self._tell_children(tree)
        self._changed()
        self._joined(tree)

    def search_root(self, tree: Tree, root: NodeId) -> None:
        """A root found that another one comes before it: join that one's tree, with all children. If it is in this
        tree, it takes over when it is asked. Many may think that they come first: the root asks one at a time.
        """
        if tree.search is None:
            tree.search = Search("root", self._world.now)
            self._ask(tree, root, as_root=True)

    # Searching (§4.2).

    def _orphaned(self, tree: Tree) -> None:
        if tree.search is None or tree.search.reason == "periodic":
            target = tree.search.target if tree.search is not None else None
            tree.search = Search("orphan", self._world.now)
            if target is not None:
                # The periodic rejoin under way may find a parent as well as any other search.
                tree.search.target = target
                return
            self._go_on(tree)

    def _go_on(self, tree: Tree) -> None:
        """Ask the next one that may know a parent."""
        search = tree.search
        assert search is not None
        lasts = self._parameters.silence + self._parameters.ping_period
        leave_it = self._elects(tree.feed) and tree.leaves_it_to_the_root(self._world.now, lasts)
        for heir in tree.heirs_left() if search.reason == "orphan" and not leave_it else ():
            nobody_left = heir == self._id
            asked = tree.ancestors[0] if nobody_left else heir  # The root may live: only a ping was lost.
            if asked not in search.tried:
                self._ask(tree, asked)
                return
            if nobody_left:
                self.become_root(tree)
                return
        # A parent that failed is not asked again, unless it is the root, which may have sent this child elsewhere.
        above = tree.ancestors if tree.waited and len(tree.ancestors) == 1 else tree.ancestors[1:]
        for peer in (*above, *self._friends(tree.feed)):
            if peer not in search.tried and peer != self._id:
                self._ask(tree, peer)
                return
        home = self._home(tree.feed)
        early = leave_it or (home == self._id and bool(tree.denied) and not tree.waited)
        if home == self._id and not early:
            self.become_root(tree)
        elif home is None or home == search.asked_root or early:
            # Nobody to ask, or the root led to nodes that died, or all who come before this node have no part in
            # the tree, perhaps not yet: start over in a while.
            tree.search = None
            tree.waited = True
            tree.denied.clear()
            self._world.set_timer((JOIN, tree.feed), 2.0 * self._parameters.join_timeout)
        else:
            self._ask(tree, home, as_root=True)

    def _ask(self, tree: Tree, peer: NodeId, as_root: bool = False) -> None:
        search = tree.search
        assert search is not None
        search.target = peer
        search.tried.add(peer)
        if as_root:
            # Also of one that was asked before, as a friend say: it may have sent this node to itself, having
            # no root either.
            search.asked_root = peer
        search.hops += 1
        periodic = search.reason == "periodic"
        self._world.send(peer, Join(tree.feed, self._place.coordinate, periodic, as_root))
        self._world.set_timer((JOIN, tree.feed), self._parameters.join_timeout)

    def _no_answer(self, key: TimerKey) -> None:
        tree = self.trees.get(key[1])
        if tree is None:
            return
        if tree.search is None:
            if not tree.joined:
                self._orphaned(tree)
        elif tree.search.target is not None:
            self._unreachable(tree.search.target)
            self._give_up_target(tree)

    def _give_up_target(self, tree: Tree) -> None:
        search = tree.search
        assert search is not None
        search.target = None
        self._world.cancel_timer((JOIN, tree.feed))
        if search.reason in {"periodic", "root"} and tree.joined:
            tree.search = None
        else:
            self._go_on(tree)

    def _receive_forward(self, sender: NodeId, message: JoinForward) -> None:
        tree = self.trees.get(message.feed)
        self._met(sender)
        if tree is None or tree.search is None or tree.search.target != sender:
            return
        tree.search.root_lives |= bool(tree.ancestors) and sender == tree.ancestors[-1]
        hops = tree.search.hops
        circling = hops >= DEEPEST or (hops >= MOST_HOPS and message.to in tree.search.tried)
        if message.to == self._id or circling:
            self._give_up_target(tree)
        elif message.to == tree.parent and tree.search.reason == "periodic":
            # Led back to where it is.
            self._give_up_target(tree)
        else:
            self._ask(tree, message.to)

    def _receive_deny(self, sender: NodeId, message: JoinDeny) -> None:
        tree = self.trees.get(message.feed)
        if tree is not None and tree.search is not None and tree.search.target == sender:
            if sender == tree.search.asked_root or tree.search.reason == "root":
                tree.denied[sender] = self._world.now + self._parameters.denied
            self._give_up_target(tree)

    def _receive_change(self, sender: NodeId, message: ChangeParent) -> None:
        tree = self.trees.get(message.feed)
        if tree is None or tree.parent != sender:
            return
        tree.parent = None
        tree.skip_rejoin = True
        self._changed()
        if tree.search is not None and tree.search.reason != "periodic":
            return
        tree.search = Search("moved", self._world.now)
        tree.search.root_lives = tree.ancestors == (sender,)
        if message.to == self._id and tree.ancestors == (sender,) and self._elects(tree.feed):
            # The root left the feed. Others may take it for the one to lead for as long as homes and views name it.
            self.become_root(tree)
        elif message.to == self._id:
            self._go_on(tree)
        else:
            self._ask(tree, message.to)

    def _receive_ok(self, sender: NodeId, message: JoinOK) -> None:
        lineage = message.lineage
        tree = self.trees.get(lineage.feed)
        self._met(sender)
        if tree is not None and tree.parent == sender:
            # Led back to where it is, or said twice.
            if tree.search is not None and tree.search.target == sender:
                tree.search = None
                self._world.cancel_timer((JOIN, tree.feed))
            self._take_lineage(tree, lineage)
            return
        asked = tree is not None and tree.search is not None and tree.search.target == sender
        handed_over = (
            tree is not None
            and message.instead_of is not None
            and (tree.parent == message.instead_of or (tree.parent is None and not tree.is_root))
        )
        if tree is None or not (asked or handed_over) or not self._sound(sender, lineage):
            self._world.send(sender, Left(lineage.feed))
            if asked and tree is not None:
                self._give_up_target(tree)
            return
        former, tree.parent = tree.parent, sender
        tree.search = None
        self._world.cancel_timer((JOIN, tree.feed))
        if former is not None and former != message.instead_of:
            self._world.send(former, Left(tree.feed))
        tree.waited, tree.patience = False, None
        now = self._world.now
        if tree.joined_at < 0:
            tree.rejoin_at = now + self._parameters.rejoin_period * self._world.random.uniform(0.5, 1.0)
        tree.joined_at = now
        self._take_lineage(tree, lineage)
        if tree.parent is not None:
            self._changed()
            self._joined(tree)

    def _sound(self, sender: NodeId, lineage: Lineage) -> bool:
        ancestors = lineage.ancestors
        right = 0 < len(ancestors) < DEEPEST and ancestors[0] == sender and self._id not in ancestors
        return right and is_place(lineage.publisher, self._parameters.dimensions)

    # Lineage.

    def _receive_lineage(self, sender: NodeId, message: NewLineage) -> None:
        self.inform(sender, message.lineage)

    def _take_lineage(self, tree: Tree, lineage: Lineage) -> None:
        if lineage is tree.lineage:
            return
        if not self._sound(lineage.ancestors[0] if lineage.ancestors else self._id, lineage):
            # A loop, or nonsense: start over.
            if tree.parent is not None:
                self._world.send(tree.parent, Left(tree.feed))
            tree.parent = None
            tree.ancestors = ()
            self._changed()
            self._orphaned(tree)
            return
        before = (tree.ancestors[-1] if tree.ancestors else None, tree.publisher)
        if tree.ancestors != lineage.ancestors or tree.publisher != lineage.publisher:
            tree.ancestors = lineage.ancestors
            tree.publisher = lineage.publisher
            tree.lineage = None
            self._changed()
        if (lineage.ancestors[-1], lineage.publisher) != before:
            self._moved_under(tree)

    def _moved_under(self, tree: Tree) -> None:
        """The publisher is another one, or elsewhere: who may be whose child has to be seen anew."""
        assert tree.publisher is not None
        tree.rank = rank(self._place.coordinate, tree.publisher, self._id)
        for child, known in list(tree.children.items()):
            again = self._child(tree, child, known.coordinate)
            if again.rank < tree.rank or child in tree.ancestors:
                del tree.children[child], tree.since[child]
                assert tree.parent is not None
                self._world.send(child, ChangeParent(tree.feed, tree.parent))
            else:
                tree.children[child] = again
        self._tell_children(tree)

    def _tell_children(self, tree: Tree) -> None:
        if tree.children:
            message = NewLineage(self.lineage(tree))
            for child in tree.children:
                self._world.send(child, message)

    # Children.

    def _child(self, tree: Tree, child: NodeId, coordinate: Coordinate) -> Child:
        assert tree.publisher is not None
        return Child(rank(coordinate, tree.publisher, child), coordinate)

    def _receive_join(self, sender: NodeId, message: Join) -> None:
        feed = message.feed
        tree = self.trees.get(feed)
        coordinate = message.coordinate
        self._met(sender)
        if message.as_root and tree is not None and self._should_lead(tree, sender):
            self.become_root(tree)
        if (
            tree is None
            or tree.publisher is None
            or sender == self._id
            or not is_place(coordinate, self._parameters.dimensions)
        ):
            self._world.send(sender, JoinDeny(feed))
            return
        self.rejoins_received += message.periodic
        joining = self._child(tree, sender, coordinate)
        decision = decide_join(tree.rank, sender, joining, tree.children, self._parameters.beta)
        match decision.case:
            case JoinCase.KEEP:
                tree.children[sender] = joining
                if joining.rank < tree.rank:  # it came back, at another place
                    self.drop_child(feed, sender)
                    self._forward_up(tree, sender)
                else:
                    self._world.send(sender, JoinOK(self.lineage(tree)))
            case JoinCase.UP:
                self._forward_up(tree, sender)
            case JoinCase.DOWN:
                assert decision.forward is not None
                self._world.send(sender, JoinForward(feed, decision.forward))
            case _:
                if sender in tree.ancestors:
                    self._world.send(sender, JoinDeny(feed))
                    return
                if decision.evicted is not None:
                    assert decision.forward is not None
                    del tree.children[decision.evicted], tree.since[decision.evicted]
                    self._world.send(decision.evicted, ChangeParent(feed, decision.forward))
                tree.children[sender] = joining
                tree.since[sender] = self._world.now
                self._world.send(sender, JoinOK(self.lineage(tree)))
                self._changed()

    def _should_lead(self, tree: Tree, asked_by: NodeId) -> bool:
        """Whether a node that is asked as if it were the root has to become the root.

        Either the old root has left, and others noticed first. Or the old root has left and gossip still
        names it, for up to a minute. Then this node hangs below the asking node, which has no parent, so
        neither has a root above it. If there is a root after all, the two roots find each other.
        """
        if tree.is_root:
            return False
        return self._home(tree.feed) == self._id or (self._elects(tree.feed) and asked_by in tree.ancestors)

    def _elects(self, feed: TopicId) -> bool:
        """Whether no publisher is given for a feed."""
        return feed not in self._parameters.publishers

    def _forward_up(self, tree: Tree, sender: NodeId) -> None:
        # The ancestors of an orphan begin with the parent that failed.
        upward = tree.parent if tree.parent is not None else (None, *tree.ancestors)[-1]
        if upward is None or upward == sender:
            self._world.send(sender, JoinDeny(tree.feed))
        else:
            self._world.send(sender, JoinForward(tree.feed, upward))

    def _evict(self, tree: Tree, child: NodeId) -> None:
        known = tree.children.pop(child)
        del tree.since[child]
        self._world.send(child, ChangeParent(tree.feed, nearest_to(known.coordinate, tree.children)))
        self._changed()

    def _receive_adopt(self, sender: NodeId, message: Adopt) -> None:
        tree = self.trees.get(message.feed)
        if (
            tree is None
            or sender not in tree.children
            or tree.publisher is None
            or not is_place(message.coordinate, self._parameters.dimensions)
            or message.child == self._id
            or message.child in tree.ancestors
            or len(tree.children) > 2 * self._parameters.beta
        ):
            return
        joining = self._child(tree, message.child, message.coordinate)
        if joining.rank < tree.rank:
            return
        tree.children[message.child] = joining
        tree.since[message.child] = self._world.now
        self._world.send(message.child, JoinOK(self.lineage(tree), sender))
        self._changed()

    # Heirs.

    def _name_heirs(self, tree: Tree) -> None:
        heirs = tuple(sorted(tree.children, key=lambda child: tree.children[child].rank))
        if (heirs, self._id) != (tree.heirs, tree.heirs_of):
            tree.heirs, tree.heirs_of = heirs, self._id
            message = Heirs(tree.feed, heirs)
            for child in heirs:
                if self._world.understands(child, Heirs):
                    self._world.send(child, message)

    def _receive_heirs(self, sender: NodeId, message: Heirs) -> None:
        tree = self.trees.get(message.feed)
        if tree is not None and tree.parent == sender and len(message.heirs) <= 2 * self._parameters.beta:
            tree.heirs, tree.heirs_of = message.heirs, sender

    def links(self) -> Iterable[tuple[NodeId, str]]:
        for tree in self.trees.values():
            if tree.parent is not None:
                yield tree.parent, "parent"
            for child in tree.children:
                yield child, "child"
