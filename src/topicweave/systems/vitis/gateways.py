"""The gateway election of one node (§III-B): what its neighbours propose, and what it proposes itself.

Proposals are arrays over the node's topics, in the order of their identifiers, and travel as such
(`messages.Profile`). Where in a neighbour's columns the common topics stand is worked out once per neighbour
and profile. What neighbours say is only laid aside; an election reads all of it at once, with one gathering.
An election in which no neighbour said anything new is not held at all: after a few rounds that is most of
them.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from topicweave.model.arrays import IdArray, IntArray
from topicweave.model.ids import Interest, NodeId, TopicId
from topicweave.systems.vitis.messages import Profile
from topicweave.systems.vitis.rules import GATEWAYS, HOPS, PARENTS, Offers, elect_gateways

_WIRE = np.dtype("<u8")
_NOTHING: IdArray = np.empty((3, 0), np.uint64)
_NOWHERE: IntArray = np.empty(0, np.int64)


class _Heard:
    """What a neighbour said last, as far as it concerns topics that both want."""

    __slots__ = ("mine", "profile", "said", "theirs")

    def __init__(self, profile: Interest, mine: IntArray, theirs: IntArray, said: bytes) -> None:
        self.profile = profile
        self.mine = mine
        """The places of the common topics among our own."""
        self.theirs = theirs
        """The places of the common topics in each of the neighbour's three columns."""
        self.said = said

    @property
    def tells(self) -> bool:
        """Columns of a wrong length say nothing."""
        return len(self.mine) > 0 and len(self.said) == 24 * len(self.profile)


class GatewayElection:
    """Holds the proposals of a node and its neighbours."""

    def __init__(self, own: NodeId, most_hops: int) -> None:
        self._own = own
        self._most_hops = most_hops
        self._topics: list[TopicId] = []
        self._points: IdArray = np.empty(0, np.uint64)
        self._heard: dict[NodeId, _Heard] = {}
        self._proposals = _NOTHING
        self._packed = b""
        self._changed = True
        # What of `Offers` depends on who the neighbours are, and not on what they say.
        self._telling: _Telling | None = None
        self.gateway_topics: list[TopicId] = []
        """The topics that this node is a gateway for, as of the last election."""

    def set_topics(self, topics: Collection[TopicId]) -> None:
        """Take part in the election for these topics from now on: as before where it did, by proposing itself
        elsewhere.
        """
        before, known = self._proposals, {topic: place for place, topic in enumerate(self._topics)}
        self._topics = sorted(topics)
        self._points = np.array(self._topics, dtype=np.uint64)
        self._proposals = np.full((3, len(self._topics)), np.uint64(self._own))
        self._proposals[HOPS] = 0
        for place, topic in enumerate(self._topics):
            if topic in known:
                self._proposals[:, place] = before[:, known[topic]]
        self._heard = {peer: self._compared(heard.profile, heard.said) for peer, heard in self._heard.items()}
        self._telling = None
        self._pack()
        self._changed = True

    def hear(self, neighbour: NodeId, message: Profile) -> None:
        """What a neighbour proposes."""
        profile, said = message.descriptor.profile, message.proposals
        heard = self._heard.get(neighbour)
        if heard is None or (heard.profile is not profile and heard.profile != profile):
            self._heard[neighbour] = self._compared(profile, said)
            self._telling = None
            self._changed = True
        elif said is not heard.said and said != heard.said:
            if len(said) != len(heard.said):
                self._telling = None
            heard.said = said
            # Where nothing is in common, nothing that is said matters.
            self._changed = self._changed or len(heard.mine) > 0

    def forget(self, neighbour: NodeId) -> None:
        """No link leads there any more."""
        if self._heard.pop(neighbour, None) is not None:
            self._telling = None
            self._changed = True

    def hold(self) -> bool:
        """Propose anew (Alg. 5); returns whether anything changed."""
        if not self._changed:
            return False
        self._changed = False
        offers, links = self._offers()
        self._proposals = elect_gateways(self._own, self._points, offers, links, self._most_hops)
        return self._pack()

    def _pack(self) -> bool:
        """Bring all that follows from the proposals up to date; returns whether they changed."""
        packed = self._proposals.astype(_WIRE, copy=False).tobytes()
        if packed == self._packed:
            return False
        self._packed = packed
        own = (self._proposals[GATEWAYS] == np.uint64(self._own)).nonzero()[0].tolist()
        self.gateway_topics = [self._topics[place] for place in own]
        return True

    def packed(self) -> bytes:
        """The proposals as a profile carries them."""
        return self._packed

    def proposal(self, topic: TopicId) -> tuple[NodeId, NodeId, int]:
        """(gateway, parent, hops) for one topic."""
        gateway, parent, hops = self._proposals[[GATEWAYS, PARENTS, HOPS], self._topics.index(topic)].tolist()
        return gateway, parent, hops

    def known_peers(self) -> set[NodeId]:
        """Neighbours heard; the gateways they name are what they say, not peers that state is kept for."""
        return set(self._heard)

    def _compared(self, profile: Interest, said: bytes) -> _Heard:
        if profile.isdisjoint(self._topics):
            return _Heard(profile, _NOWHERE, _NOWHERE, said)
        theirs = _ordered(profile)
        places = self._points.searchsorted(theirs)
        places[places == len(self._points)] = 0
        common = (self._points[places] == theirs).nonzero()[0]
        return _Heard(profile, places[common], common, said)

    def _offers(self) -> tuple[Offers, IdArray]:
        if self._telling is None:
            self._telling = _Telling.of(self._heard)
        telling = self._telling
        said = np.frombuffer(b"".join([heard.said for heard in telling.speakers]), _WIRE)[telling.cells]
        return Offers(telling.topic, telling.neighbour, said), telling.links


class _Telling(NamedTuple):
    """Which neighbours have something to say, and where in all their columns, one after another, it stands."""

    speakers: list[_Heard]
    topic: IntArray
    neighbour: IdArray
    cells: IntArray
    links: IdArray

    @classmethod
    def of(cls, everybody: dict[NodeId, _Heard]) -> _Telling:
        peers = sorted(everybody)  # in order of their identifiers, as the rule wants them
        speakers = [(peer, heard) for peer in peers if (heard := everybody[peer]).tells]
        counts = [len(heard.mine) for _, heard in speakers]
        widths = [len(heard.profile) for _, heard in speakers]
        starts = (3 * np.array([0, *widths[:-1]], np.int64).cumsum()).repeat(counts) if speakers else _NOWHERE
        first = starts + np.concatenate([_NOWHERE, *(heard.theirs for _, heard in speakers)])
        width = np.array(widths, np.int64).repeat(counts)
        return cls(
            [heard for _, heard in speakers],
            np.concatenate([_NOWHERE, *(heard.mine for _, heard in speakers)]),
            np.array([peer for peer, _ in speakers], dtype=np.uint64).repeat(counts),
            np.stack([first, first + width, first + 2 * width]),
            np.array(peers, dtype=np.uint64),
        )


_sorted_profiles: WeakKeyDictionary[Interest, IdArray] = WeakKeyDictionary()


def _ordered(profile: Interest) -> IdArray:
    """A profile's topics in growing order, once for all nodes of a process that know it, and as long as they do."""
    topics = _sorted_profiles.get(profile)
    if topics is None:
        topics = _sorted_profiles[profile] = np.sort(np.fromiter(profile, np.uint64, len(profile)))
    return topics
