"""A Vitis node (§III): friends by utility, gateways by election, events flooded in clusters and relayed
between them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence

from topicweave.blocks.descriptors import Descriptor
from topicweave.blocks.views import InterestView
from topicweave.model.event import Event
from topicweave.model.ids import Interest, NodeId, TopicId
from topicweave.port import World
from topicweave.systems.vitis.gateways import GatewayElection
from topicweave.systems.vitis.messages import Profile
from topicweave.systems.vitis.parameters import VitisParameters
from topicweave.systems.vitis.rates import EqualRates, GivenRates, MeasuredRates
from topicweave.systems.vitis.rendezvous import RendezvousNode

_UTILITIES_KEPT = 128


class VitisNode(RendezvousNode):
    """Vitis brings its own peer sampling, Newscast, as in the paper; it asks nothing of the interest view."""

    def __init__(
        self,
        world: World,
        node_id: NodeId,
        subscriptions: Iterable[TopicId],
        _view: InterestView,
        parameters: VitisParameters,
    ) -> None:
        super().__init__(world, node_id, subscriptions, parameters, parameters.small_world)
        self.parameters: VitisParameters = parameters
        self.election = GatewayElection(node_id, parameters.gateway_hops)
        self.election.set_topics(self._interest)
        self._rates = _rates(world, parameters)
        # Topics that the node is gateway for, or was a moment ago: until when it keeps up a relay path.
        self._paths: dict[TopicId, float] = {}
        # Utilities, by profile: those asked for lately, and those of the time before.
        self._kept: dict[Interest, float] = {}
        self._kept_before: dict[Interest, float] = {}

    def _floods(self, topic: TopicId, source: NodeId | None) -> bool:
        return source is None or topic in self._interest or self.parameters.relays_hand_on

    def _utilities(self) -> Callable[[Sequence[Descriptor]], list[float]]:
        return self._utilities_of

    def _utilities_of(self, descriptors: Sequence[Descriptor]) -> list[float]:
        if len(self._kept) > _UTILITIES_KEPT:
            self._kept_before, self._kept = self._kept, {}
        known, before = self._kept, self._kept_before
        mine, utility = self._interest, self._rates.utility
        values = []
        for descriptor in descriptors:
            profile = descriptor.profile
            value = known.get(profile)
            if value is None:
                value = before.get(profile)
                known[profile] = value = utility(mine, profile) if value is None else value
            values.append(value)
        return values

    def _forget_utilities(self) -> None:
        self._kept, self._kept_before = {}, {}

    def _topics_to_relay(self) -> Collection[TopicId]:
        now = self.world.now
        for topic in [topic for topic, until in self._paths.items() if until <= now]:
            del self._paths[topic]
        return self._paths.keys()

    def _request_paths(self) -> None:
        """Ask for a relay path where the node became a gateway (Alg. 5, line 20).

        Where it no longer is one, it keeps its path up as long as news of a gateway that is gone may go round among its
        neighbours: a hop per heartbeat, up to d hops. Otherwise a whole cluster may rely on such a rumour.
        """
        current = dict.fromkeys(self.election.gateway_topics, math.inf)
        new = [topic for topic in current if self._paths.get(topic) != math.inf]
        rumour_dies = self.world.now + (self.parameters.gateway_hops + 1) * self.parameters.heartbeat_period
        for topic, until in self._paths.items():
            if topic not in current and topic in self._interest:
                current[topic] = min(until, rumour_dies)
        self._paths = current
        self.relays.request(new)

    def _proposals(self) -> bytes:
        return self.election.packed()

    def _heard(self, peer: NodeId, message: Profile) -> None:
        self.election.hear(peer, message)

    def _link_ended(self, peer: NodeId) -> None:
        self.election.forget(peer)

    def _before_beat(self) -> None:
        """UpdateProfile (Alg. 5)."""
        if self._rates.revise(self._interest):
            self._forget_utilities()
        if self.election.hold():
            self._profile_is_out_of_date()
            self._request_paths()
        elif not self._paths and self.election.gateway_topics:
            # The first election left everything as it was: the node alone is its own gateway.
            self._request_paths()

    def _wants_something_else(self) -> None:
        self._forget_utilities()
        self.election.set_topics(self._interest)
        self._request_paths()

    def _hand_over(self, event: Event, age: float = 0.0) -> None:
        if event.topic in self.subscriptions:
            self._rates.event(event.topic)
        super()._hand_over(event, age)

    def known_peers(self) -> set[NodeId]:
        return super().known_peers() | self.election.known_peers()


def _rates(world: World, parameters: VitisParameters) -> EqualRates:
    match parameters.rates:
        case "equal":
            return EqualRates()
        case "given":
            return GivenRates(parameters.topic_rates)
        case "measured":
            return MeasuredRates(world, parameters.rate_memory)
