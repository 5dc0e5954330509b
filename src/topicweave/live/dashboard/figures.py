"""The time series of a picture: what happened in each second, and what became of events. No I/O, no clock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set

from topicweave.live.dashboard.words import Figures, Hop, NodeKey, NodeTick, TopicKey

JUDGED_AFTER = 5.0
"""Seconds after which an event should be everywhere."""
MOST_EVENTS = 20_000
"""On their way at a time; beyond that the hit ratio is not known."""


class _Event:
    """Its receivers may tell of it before its publisher does."""

    __slots__ = ("expected", "got", "heard", "sent")

    def __init__(self, heard: float) -> None:
        self.heard = heard
        self.sent: float | None = None
        self.expected: set[NodeKey] = set()
        self.got: dict[NodeKey, float] = {}


class Course:
    """Fed with ticks; asked once a second."""

    def __init__(self) -> None:
        self._events: dict[str, _Event] = {}
        self._counts: dict[NodeKey, dict[str, int]] = {}
        self._latencies: list[float] = []
        self._sums: dict[str, int] = {}
        self._relays: set[NodeKey] = set()
        self._unknown_until = 0.0

    def take(self, tick: NodeTick, wanting: Mapping[TopicKey, Set[NodeKey]]) -> None:
        """`wanting`: who of those that are up wants each topic."""
        known = self._counts.setdefault(tick.node, {})
        for name in ("publishes", "deliveries"):
            if name in tick.counts:
                # A node that was restarted counts from 0 again.
                before = known.get(name, 0)
                now = tick.counts[name]
                self._add(name, now - before if now >= before else now)
                known[name] = now
        self._add("control_messages", tick.control[0])
        self._add("control_bytes", tick.control[1])
        if tick.left_out:
            self._unknown_until = tick.time + JUDGED_AFTER + 1.0
        for sent in tick.sent:
            event = self._event(sent.event, sent.time)
            if event is not None:
                event.sent = sent.time
                event.expected = set(wanting.get(sent.topic, ())) - {tick.node}
                self._latencies += [max(0.0, time - sent.time) for time in event.got.values()]
        for hop in tick.hops:
            self._take_hop(hop)

    def _take_hop(self, hop: Hop) -> None:
        """Figures mean what `topicweave.measures.traffic` means by their names."""
        if not hop.wanted:
            self._relays.add(hop.receiver)
        if not hop.first:
            self._add("again", 1)
            return
        self._add("wanted" if hop.wanted else "unwanted", 1)
        event = self._event(hop.event, hop.time) if hop.wanted else None
        if event is not None:
            event.got[hop.receiver] = hop.time
            if event.sent is not None:
                self._latencies.append(max(0.0, hop.time - event.sent))

    def _event(self, key: str, time: float) -> _Event | None:
        event = self._events.get(key)
        if event is None:
            if len(self._events) >= MOST_EVENTS:
                self._unknown_until = time + JUDGED_AFTER + 1.0
                return None
            event = self._events[key] = _Event(time)
        return event

    def _add(self, name: str, count: int) -> None:
        self._sums[name] = self._sums.get(name, 0) + count

    def second(self, now: float, seconds: float, up: Set[NodeKey]) -> Figures:
        """What happened since the last time, `seconds` ago; `up` are those that are there."""
        sums, self._sums = self._sums, {}
        latencies, self._latencies = sorted(self._latencies), []
        relays, self._relays = self._relays, set()
        nodes = max(1, len(up))
        wanted, unwanted = sums.get("wanted", 0), sums.get("unwanted", 0)
        return {
            "published": sums.get("publishes", 0) / seconds,
            "delivered": sums.get("deliveries", 0) / seconds,
            "latency_p50": _quantile(latencies, 0.5),
            "latency_p95": _quantile(latencies, 0.95),
            "hit_ratio": self._hit_ratio(now, up),
            "duplicates": sums.get("again", 0) / wanted if wanted else None,
            "noise": unwanted / (wanted + unwanted) if wanted + unwanted else None,
            "relays": float(len(relays)),
            "control_messages": sums.get("control_messages", 0) / seconds / nodes,
            "control_bytes": sums.get("control_bytes", 0) / seconds / nodes,
        }

    def _hit_ratio(self, now: float, up: Set[NodeKey]) -> float | None:
        """Of the events that should be everywhere: of those who wanted them and are still there, how many got them."""
        wanted = got = 0
        for key, event in list(self._events.items()):
            if event.heard <= now - JUDGED_AFTER:
                expected = event.expected & up
                wanted += len(expected)
                got += len(expected & event.got.keys())
                del self._events[key]
        return got / wanted if wanted and now >= self._unknown_until else None


def _quantile(ordered: list[float], share: float) -> float | None:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else None


def parts(members: Set[NodeKey], links: Mapping[NodeKey, Iterable[NodeKey]]) -> int:
    """Into how many parts nodes fall, if only links among themselves count.

    >>> parts({"a", "b", "c"}, {"a": ["b"], "c": ["z"]})
    2
    """
    parent = {member: member for member in members}

    def root(member: NodeKey) -> NodeKey:
        while parent[member] != member:
            parent[member] = parent[parent[member]]
            member = parent[member]
        return member

    count = len(members)
    for member in members:
        for peer in links.get(member, ()):
            if peer in parent:
                one, other = root(member), root(peer)
                if one != other:
                    parent[one] = other
                    count -= 1
    return count
