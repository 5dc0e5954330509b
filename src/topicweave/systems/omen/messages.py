"""What OMen nodes say to each other, gossip (T-Man) and events (broadcast tree) apart."""

from __future__ import annotations

from collections.abc import Iterable

from topicweave.blocks.label_table import LabelTable
from topicweave.model.ids import Interest, NodeId, TopicId
from topicweave.port import Message

TopicLabel = tuple[TopicId, NodeId]
"""A topic, and the name of the component of it that somebody is in."""


class Connect(Message, frozen=True, array_like=True, tag="omen-connect"):
    """You are my neighbour from now on; `answered` when this is the answer to the same."""

    version: int
    interest: Interest
    answered: bool = False


class Unlink(Message, frozen=True, array_like=True, tag="omen-unlink"):
    """You are my neighbour no more: we share no topic."""


class Leaving(Message, frozen=True, array_like=True, tag="omen-leaving"):
    """I am leaving the overlay."""


class Heartbeat(Message, frozen=True, array_like=True, tag="omen-heartbeat"):
    """I am alive. `linked` when I count you as a neighbour; `answer` when you asked by a heartbeat of yours.

    Interests and lists of neighbours seldom change, so only their versions are told each time. `highest` is
    the highest degree heard of, by news `highest_age` seconds old.
    """

    linked: bool
    interest_version: int
    links_version: int
    highest: int
    highest_age: float
    answer: bool = False
    labels: LabelTable | None = None
    asks: bool = False
    """Nothing came from you for a while: are you there?"""


class InterestQuery(Message, frozen=True, array_like=True, tag="omen-interest-query"):
    """Your interest is not the one I know: tell me."""


class InterestUpdate(Message, frozen=True, array_like=True, tag="omen-interest"):
    """This is what I want now."""

    version: int
    interest: Interest


class LinksQuery(Message, frozen=True, array_like=True, tag="omen-links-query"):
    """I stand behind you on the circle: who are your neighbours (getting v.N(v') of Alg. 4)?"""


class Links(Message, frozen=True, array_like=True, tag="omen-links"):
    """My neighbours; the topics that I hold together (two neighbours or more); those on which I have none."""

    version: int
    interest: Interest
    neighbours: tuple[NodeId, ...]
    held: Interest
    lonely: Interest

    def introduces(self) -> Iterable[NodeId]:
        return self.neighbours


class Survey(Message, frozen=True, array_like=True, tag="omen-survey"):
    """From the coordinator of a churn event to the shadow set: report which part of these topics you are in.

    `since`: how many seconds ago the churned node went for sure, or None if nobody went. Labels from before
    that prove nothing, so the answer waits until there was time for new ones. `spread`: the topics through
    which a `source` (a neighbour of the churned node) spreads labels first.
    """

    churned: NodeId
    topics: Interest
    members: tuple[NodeId, ...]
    since: float | None
    spread: Interest
    source: bool


class Label(Message, frozen=True, array_like=True, tag="omen-label"):
    """Along the links of the affected topics: the lowest name heard of in this component."""

    coordinator: NodeId
    churned: NodeId
    labels: tuple[TopicLabel, ...]


class Report(Message, frozen=True, array_like=True, tag="omen-report"):
    """A shadow node's answer to a survey."""

    churned: NodeId
    degree: int
    interest: Interest
    neighbours: tuple[NodeId, ...]
    labels: tuple[TopicLabel, ...]
    lonely: Interest
    """Those of the topics on which it has no neighbour."""


class AddLink(Message, frozen=True, array_like=True, tag="omen-add-link"):
    """From a coordinator to one end of new links (§3.2, task 4): make them, and say so."""

    churned: NodeId
    peers: tuple[NodeId, ...]

    def introduces(self) -> Iterable[NodeId]:
        return self.peers


class LinkMade(Message, frozen=True, array_like=True, tag="omen-link-made"):
    """To the coordinator: the link to this peer stands."""

    churned: NodeId
    peer: NodeId


class Handled(Message, frozen=True, array_like=True, tag="omen-handled"):
    """notifySuccRange (Alg. 6): overlay repair for the departure of this node is complete."""

    churned: NodeId


CONTROL_KINDS = (
    "omen-connect",
    "omen-unlink",
    "omen-leaving",
    "omen-survey",
    "omen-label",
    "omen-report",
    "omen-add-link",
    "omen-link-made",
    "omen-links",
    "omen-handled",
)
"""What churn causes; heartbeats and gossip run all the time."""
