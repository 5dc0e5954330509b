"""Whether a link that was made by an introduction has done its work: whether there is another way.

An introduction links two parts of a topic. Coverage sees no need for such a link, and it may be the only one. It may
go as soon as there is another way from either of its ends to the other. Labels tell that there is (see
`topic_beacons`): news of a topic's leader goes from neighbour to neighbour, so whoever gets it hangs together with
the leader.

Rules kept, per link and topic that its ends share
--------------------------------------------------
1. Once another neighbour told news that is as new as that of a node nearer to the leader than this one, the node
   tries to do without the link: it takes no news of this leader over it any more.
2. If it goes without newer news for half a label's lifetime, the trial has failed. The node listens again, and makes
   no other trial for `REST` lifetimes. Labels outlive a trial that fails.
3. After a whole lifetime of such a trial, without a change of leader, the link is needless at this end. Where the
   node leads the topic itself, it needs no link for that, once it has led for as long.
4. A link ends when it is needless at both ends, for all topics that they share. Whoever cannot ask the other end ends
   it only if that one surely does not need it: if all that it told meanwhile was news of a node nearer to the leader.

Why several links that end at once do not part a topic
------------------------------------------------------
A link ends after nobody has listened over it for a lifetime. So its end changes nothing about how news goes, and
news goes to all: whoever gets none begins to listen again, long before its own links end. Think of some nodes that
hang together with the others by a few such links only, and of the last of these links to which both ends close their
ears. From then on no news comes in. The other links may end, but this one does not: half a lifetime later its ends
listen again. This holds whatever rule 1 says; that rule only saves trials that would fail.

Stale news proves nothing: after a leader's death there is no newer news of it, so trials end by rule 2, and the news
of its successor begins new ones. What happens in the very last half lifetime, such as the crash of a node on the other
way, may come too late. Then the topic's parts are introduced again. So they are if coverage ends the other way later.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from topicweave.model.ids import NodeId, TopicId

REST = 2.0
"""Lifetimes of labels from a trial that failed to the next one."""


class LastNews(NamedTuple):
    """The leader of a topic, and when newer news of it came last; of a node's own leading there is always news."""

    leader: NodeId
    came: float


class _Link:
    """A link that is watched: since when, per topic, things are as they are."""

    def __init__(self) -> None:
        self.topics: frozenset[TopicId] = frozenset()
        self.tried: dict[TopicId, float] = {}
        """Topics whose news is not taken over the link."""
        self.resting: dict[TopicId, float] = {}
        """Until when nothing is tried after a failure."""
        self.nearer: dict[TopicId, float] = {}
        """Topics on which the other end tells news of a node nearer to the leader."""


def lasting(topics: Iterable[TopicId], since: Mapping[TopicId, float], by: float) -> bool:
    """Whether something began in all topics, at `by` or earlier.

    >>> lasting([1, 2], since={1: 5.0, 2: 8.0}, by=8.0), lasting([1, 2], since={1: 5.0}, by=8.0)
    (True, False)
    """
    return all(since.get(topic, math.inf) <= by for topic in topics)


class OtherWays:
    """What one node knows of other ways than each of the links that it watches. Times are in seconds.

    >>> ways = OtherWays(own=9, lifetime=8.0)
    >>> for now in (0.0, 2.0, 4.0, 6.0, 8.0):  # leader 1 is heard of through 5, beside the link to 7
    ...     ways.review({7: [100]}, {100: LastNews(1, came=now)}, now)
    ...     ways.told(5, [100], now)
    >>> ways.needless(7), list(ways.tried(7))
    (True, [100])
    >>> ways.review({7: [100]}, {100: LastNews(1, came=8.0)}, 12.5)  # through 5 nothing comes any more
    >>> ways.needless(7), list(ways.tried(7))
    (False, [])
    """

    def __init__(self, own: NodeId, lifetime: float) -> None:
        """lifetime: of labels"""
        self._own = own
        self._lifetime = lifetime
        self._links: dict[NodeId, _Link] = {}
        # Per topic of a watched link: its leader, and since when.
        self._leaders: dict[TopicId, NodeId] = {}
        self._led_since: dict[TopicId, float] = {}
        self._now = 0.0

    def __bool__(self) -> bool:
        """Whether there is anything to watch."""
        return bool(self._links)

    def known_peers(self) -> Collection[NodeId]:
        return self._links.keys()

    def tried(self, peer: NodeId) -> Collection[TopicId]:
        """The topics whose news of their leader the node does not take from this one."""
        link = self._links.get(peer)
        return () if link is None else link.tried.keys()

    def tries(self, topic: TopicId) -> bool:
        """Whether the node tries to do without some link, in this topic."""
        return any(topic in link.tried for link in self._links.values())

    def told(
        self, peer: NodeId, nearer: Collection[TopicId], now: float, beside: Collection[TopicId] = ()
    ) -> None:
        """A neighbour told its labels. `nearer`: the topics on which its news is of a node nearer to the leader
        than this one; `beside`: those on which this neighbour does not count as a way.
        """
        own = self._links.get(peer)
        if own is not None:
            ends = own.topics.intersection(nearer)
            own.nearer = {topic: own.nearer.get(topic, now) for topic in ends}
        usable = frozenset(nearer).difference(beside, () if own is None else own.tried)
        for other, link in self._links.items():
            if other != peer:
                for topic in usable & link.topics:
                    if topic not in link.tried and link.resting.get(topic, now) <= now:
                        link.tried[topic] = now

    def review(
        self, links: Mapping[NodeId, Collection[TopicId]], news: Mapping[TopicId, LastNews], now: float
    ) -> None:
        """See what came of the trials. Asked at each telling.

        links   those to watch, and the topics for which each is needed
        news    of all these topics
        """
        self._now = now
        self._links = {peer: self._links.get(peer) or _Link() for peer in links}
        topics = frozenset[TopicId]().union(*links.values())
        for topic in topics:
            leader = news[topic].leader if topic in news else self._own
            if self._leaders.get(topic) != leader:
                self._leaders[topic], self._led_since[topic] = leader, now
        for topic in self._leaders.keys() - topics:
            del self._leaders[topic], self._led_since[topic]
        silent = now - self._lifetime / 2
        for peer, wanted in links.items():
            link = self._links[peer]
            link.topics = frozenset(wanted)
            for topic, since in list(link.tried.items()):
                if topic not in link.topics or since < self._led_since[topic]:
                    del link.tried[topic]
                elif topic not in news or news[topic].came < silent:
                    del link.tried[topic]
                    link.resting[topic] = now + REST * self._lifetime
            link.resting = {topic: until for topic, until in link.resting.items() if until > now}
            link.nearer = {topic: since for topic, since in link.nearer.items() if topic in link.topics}

    def needless(self, peer: NodeId) -> bool:
        """Whether this end can do without the link."""
        link = self._links.get(peer)
        if link is None:
            return False
        others = [topic for topic in link.topics if self._leaders[topic] != self._own]
        by = self._now - self._lifetime
        return lasting(link.topics, self._led_since, by) and lasting(others, link.tried, by)

    def needless_to_both(self, peer: NodeId) -> bool:
        """Whether both ends can do without it, as far as this one knows by itself."""
        link = self._links.get(peer)
        by = self._now - self._lifetime
        return link is not None and self.needless(peer) and lasting(link.topics, link.nearer, by)
