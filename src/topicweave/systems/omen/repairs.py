"""The coordinator's part of a repair: survey the shadow set, choose edges, have them made (§3.2, tasks 1 to 4).

A repair is complete when its links stand, not when they were asked for: an end may die before it makes them,
and then the topics are still apart. So one end of each link confirms it, and what was not confirmed in time
has the shadow set surveyed again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import msgspec

from topicweave.model.ids import Interest, NodeId, TopicId
from topicweave.port import Receivers, TimerKey, Timers, World
from topicweave.systems.omen.member import ShadowMember, reporting_delay
from topicweave.systems.omen.messages import AddLink, LinkMade, Report, Survey
from topicweave.systems.omen.parameters import OMenParameters
from topicweave.systems.omen.repair import Member, repair

TIMER = "omen-repair"
MOST = 8
"""Repairs a node runs at a time."""
ATTEMPTS = 3
LINK_TIME = 3.5
"""How long links have to come about: an end asks three times, a second apart."""

Edge = tuple[NodeId, NodeId]


class Repair(msgspec.Struct):
    """One repair under way."""

    churned: NodeId
    topics: Interest
    members: frozenset[NodeId]
    own: Survey
    """What this node would have been asked, were it another."""
    sources: frozenset[NodeId]
    started: float
    part_of: NodeId | None
    """A node whose part is to be joined to the rest, and nothing else; see `_one_part`."""
    done: Callable[[Collection[NodeId]], None]
    """Told who did not answer."""
    reports: dict[NodeId, Report] = msgspec.field(default_factory=dict)
    unmade: set[Edge] = msgspec.field(default_factory=set)
    """Links asked for, by their lower end first, that nobody has confirmed; the survey is over if there are any."""
    attempts: int = 1


class Repairs:
    """The repairs that this node coordinates.

    `member` is this node itself as one of the shadow set; `highest` gives the highest degree it knows of.
    """

    def __init__(
        self,
        world: World,
        node_id: NodeId,
        parameters: OMenParameters,
        member: ShadowMember,
        highest: Callable[[], int],
    ) -> None:
        self._world = world
        self._id = node_id
        self._parameters = parameters
        self._own = member
        self._highest = highest
        self._running: dict[NodeId, Repair] = {}
        self.completed = 0
        self.edges_added = 0

    def receivers(self) -> Receivers:
        return {Report: self._receive_report, LinkMade: self._receive_link_made}

    def timers(self) -> Timers:
        return {TIMER: self._time_is_up}

    def restart(self) -> None:
        self._running.clear()

    def __contains__(self, churned: NodeId) -> bool:
        return churned in self._running

    @property
    def busy(self) -> bool:
        return len(self._running) >= MOST

    def start(
        self,
        churned: NodeId,
        topics: Interest,
        members: Collection[NodeId],
        done: Callable[[Collection[NodeId]], None],
        *,
        since: float | None = None,
        sources: Collection[NodeId] = (),
        spread: Interest = frozenset(),
        part_of: NodeId | None = None,
    ) -> None:
        """Ask the shadow set (see `Survey` for `since`, `sources` and `spread`)."""
        own = Survey(churned, topics, tuple(sorted(members)), since, spread, self._id in sources)
        run = Repair(
            *(churned, topics, frozenset(members), own, frozenset(sources), self._world.now, part_of, done)
        )
        self._running[churned] = run
        self._ask(run)

    def _ask(self, run: Repair) -> None:
        own = run.own
        for peer in own.members:
            if peer == self._id:
                self._own.begin(self._id, own)
            else:
                self._world.send(peer, msgspec.structs.replace(own, source=peer in run.sources))
        wait = self._parameters.answer_time + reporting_delay(own, self._parameters)
        self._world.set_timer((TIMER, run.churned), wait)

    def known_peers(self) -> set[NodeId]:
        return {peer for run in self._running.values() for peer in (run.churned, *run.members)} - {self._id}

    def _receive_report(self, sender: NodeId, message: Report) -> None:
        run = self._running.get(message.churned)
        if run is None or run.unmade or sender not in run.members or sender == self._id:
            return
        run.reports[sender] = message
        if len(run.reports) == len(run.members - {self._id}):
            self._choose(run)

    def _time_is_up(self, key: TimerKey) -> None:
        run = self._running.get(key[1])
        if run is None:
            return
        if not run.unmade:
            self._choose(run)
        elif run.part_of is not None or run.attempts == ATTEMPTS:
            # A part that still lacks something shows again by itself. After so many attempts the bridges
            # have to do the rest.
            self._complete(run)
        else:
            self._try_again(run)

    def _try_again(self, run: Repair) -> None:
        """Ends went, too: survey those who answered, as things are now."""
        run.attempts += 1
        run.unmade.clear()
        run.members = frozenset(run.reports)
        run.reports = {}
        elapsed = self._world.now - run.started
        run.started = self._world.now
        since = None if run.own.since is None else run.own.since + elapsed
        run.own = msgspec.structs.replace(run.own, members=tuple(sorted(run.members)), since=since)
        self._ask(run)

    def _choose(self, run: Repair) -> None:
        """The survey is over: which links are lacking?"""
        if self._id in run.members:
            run.reports[self._id] = self._own.report(self._id, run.own, self._world.now - run.started)
        members = {}
        if run.part_of is None or run.part_of in run.reports:
            members = {peer: self._member(run, peer, report) for peer, report in run.reports.items()}
        ceiling = self._highest() if self._parameters.ceiling == "all" else 0
        edges = repair(members, run.topics, self._parameters.rho, ceiling)
        if not edges:
            self._complete(run)
            return
        self.edges_added += len(edges)
        run.unmade = set(edges)
        self._world.set_timer((TIMER, run.churned), LINK_TIME)
        by_end: dict[NodeId, list[NodeId]] = {}
        for one, other in edges:
            by_end.setdefault(one, []).append(other)
        for end, peers in by_end.items():
            if end == self._id:
                for peer in peers:
                    self._own.promise(self._id, run.churned, peer)
            else:
                self._world.send(end, AddLink(run.churned, tuple(peers)))

    def link_made(self, churned: NodeId, end: NodeId, peer: NodeId) -> None:
        run = self._running.get(churned)
        if run is not None and (end, peer) in run.unmade:
            run.unmade.discard((end, peer))
            if not run.unmade:
                self._complete(run)

    def _receive_link_made(self, sender: NodeId, message: LinkMade) -> None:
        self.link_made(message.churned, sender, message.peer)

    def _complete(self, run: Repair) -> None:
        del self._running[run.churned]
        self._world.cancel_timer((TIMER, run.churned))
        self.completed += 1
        run.done([peer for peer in run.members if peer not in run.reports])

    def _member(self, run: Repair, peer: NodeId, report: Report) -> Member:
        labels: Mapping[TopicId, NodeId] | None = dict(report.labels)
        if run.part_of is not None:
            owner = run.reports.get(run.part_of)
            labels = _one_part(run.part_of, owner.lonely if owner else frozenset(), peer, report)
        elif not run.own.spread and self._parameters.components == "shadow":
            labels = None
        return Member(report.interest & run.topics, report.degree, frozenset(report.neighbours), labels)


MINE, THE_REST = 1, 0


def _one_part(owner: NodeId, alone: Interest, peer: NodeId, report: Report) -> dict[TopicId, int]:
    """Labels with which repair joins the owner's part of each topic to the rest by one edge, and the rest to nobody.

    When many parts do so at the same time, they must not all join each other. So a part counts as the rest
    only if its label is lower than the owner's name: edges then lead down and never round in a circle. On
    topics where the owner is alone, any part of two or more will do as well.
    """
    if peer == owner:
        return dict.fromkeys(report.interest, MINE)
    return {
        topic: THE_REST if label < owner or (topic in alone and topic not in report.lonely) else MINE
        for topic, label in report.labels
    }
