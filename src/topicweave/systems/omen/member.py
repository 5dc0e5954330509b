"""A node as a member of shadow sets: it reports which parts of topics it is in, and makes the links that a
coordinator chose.
"""

from __future__ import annotations

from collections.abc import Callable

from topicweave.blocks.topic_beacons import TopicBeacons
from topicweave.model.ids import Interest, NodeId
from topicweave.port import Receivers, TimerKey, Timers, World
from topicweave.systems.omen.labels import LabelSpreading
from topicweave.systems.omen.links import OverlayLinks
from topicweave.systems.omen.messages import AddLink, LinkMade, Report, Survey
from topicweave.systems.omen.parameters import OMenParameters

TIMER = "omen-report"
REPORTS_AT_A_TIME = 64
PROMISES_PER_LINK = 8


def reporting_delay(survey: Survey, parameters: OMenParameters) -> float:
    """How long a member waits before it reports."""
    if survey.since is None or parameters.components == "shadow":
        return 0.0
    if parameters.components == "spread":
        return parameters.label_time
    return max(parameters.label_time, parameters.fresh_time - survey.since)


class ShadowMember:
    """`link_made(churned, end, peer)` hears of links that this node was asked for by itself, as a coordinator."""

    def __init__(
        self,
        world: World,
        node_id: NodeId,
        parameters: OMenParameters,
        interest: Callable[[], Interest],
        links: OverlayLinks,
        labels: LabelSpreading,
        beacons: TopicBeacons,
        link_made: Callable[[NodeId, NodeId, NodeId], None],
    ) -> None:
        self._world = world
        self._id = node_id
        self._parameters = parameters
        self._interest = interest
        self._links = links
        self._labels = labels
        self._beacons = beacons
        self._link_made = link_made
        # What this node was asked, by (coordinator, churned node), and when.
        self.surveys: dict[tuple[NodeId, NodeId], tuple[Survey, float]] = {}
        # Links asked for by coordinators, to be confirmed: by peer, (coordinator, churned node).
        self._promised: dict[NodeId, list[tuple[NodeId, NodeId]]] = {}

    def receivers(self) -> Receivers:
        return {Survey: self._receive_survey, AddLink: self._receive_add_link}

    def timers(self) -> Timers:
        return {TIMER: self._report_now}

    def restart(self) -> None:
        """Timers were lost with the last life: forget what waited for them."""
        self.surveys.clear()
        self._promised.clear()

    def known_peers(self) -> set[NodeId]:
        return {peer for asked in self.surveys for peer in asked} | self._promised.keys()

    # Surveys.

    def _receive_survey(self, sender: NodeId, message: Survey) -> None:
        key = (sender, message.churned)
        if len(self.surveys) >= REPORTS_AT_A_TIME and key not in self.surveys:
            return
        self.surveys[key] = (message, self._world.now)
        self.begin(sender, message)
        self._world.set_timer((TIMER, *key), reporting_delay(message, self._parameters))

    def begin(self, coordinator: NodeId, survey: Survey) -> None:
        """As a neighbour of the departed, spread labels where they are asked for, and where it led the topic:
        beacons are of no use there.
        """
        if survey.source:
            led = {topic for topic in survey.topics if self._beacons.leader(topic) == survey.churned}
            topics = (survey.spread | led) & self._interest()
            if topics:
                self._labels.begin((coordinator, survey.churned), topics)

    def _report_now(self, key: TimerKey) -> None:
        survey, asked = self.surveys.pop((key[1], key[2]), (None, 0.0))
        if survey is not None:
            self._world.send(key[1], self.report(key[1], survey, self._world.now - asked))

    def report(self, coordinator: NodeId, survey: Survey, age: float) -> Report:
        """What this node has to say, `age` seconds after it was asked."""
        topics = survey.topics & self._interest()
        known = self._beacons.labels()
        if survey.since is None:
            labels = {topic: leader for topic, (leader, _) in known.items() if topic in topics}
        else:
            # Without a label this node is in a part of its own, as far as anybody knows.
            labels = {
                topic: leader
                if leader != survey.churned and made_ago < survey.since + age and topic not in survey.spread
                else self._id
                for topic, (leader, made_ago) in known.items()
                if topic in topics
            }
            labels.update(self._labels.labels((coordinator, survey.churned), topics))
        neighbours = tuple(peer for peer in survey.members if peer in self._links.neighbours)
        lonely = self._links.lonely() & topics
        degree = len(self._links.neighbours)
        return Report(survey.churned, degree, topics, neighbours, tuple(labels.items()), lonely)

    # Links.

    def _receive_add_link(self, sender: NodeId, message: AddLink) -> None:
        for peer in message.peers:
            self.promise(sender, message.churned, peer)

    def promise(self, coordinator: NodeId, churned: NodeId, peer: NodeId) -> None:
        """Make a link, and confirm it to the coordinator when it stands."""
        if peer in self._links.neighbours:
            self._confirm(coordinator, churned, peer)
        elif self._links.ask(peer):
            promised = self._promised.setdefault(peer, [])
            if (coordinator, churned) not in promised and len(promised) < PROMISES_PER_LINK:
                promised.append((coordinator, churned))

    def link_up(self, peer: NodeId) -> None:
        for coordinator, churned in self._promised.pop(peer, ()):
            self._confirm(coordinator, churned, peer)

    def no_link(self, peer: NodeId) -> None:
        """The peer is gone or does not answer: whoever asked for the link will notice."""
        self._promised.pop(peer, None)

    def _confirm(self, coordinator: NodeId, churned: NodeId, peer: NodeId) -> None:
        if coordinator == self._id:
            self._link_made(churned, self._id, peer)
        else:
            self._world.send(coordinator, LinkMade(churned, peer))
