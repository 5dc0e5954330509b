"""A Magnet node (§3): a place among its likes on the skewed ring, and the trees that run over it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from topicweave.blocks.growing_ids import Position, position_of
from topicweave.blocks.harmonic_links import HarmonicLinks
from topicweave.blocks.interest_samples import Interested, InterestSamples, choose_guides
from topicweave.blocks.likeness import likeness
from topicweave.blocks.oscar import Oscar
from topicweave.blocks.ring.messages import Contact
from topicweave.blocks.ring.places import RingPlaces
from topicweave.blocks.views import InterestView
from topicweave.model.ids import Interest, NodeId, TopicId
from topicweave.port import World
from topicweave.systems.magnet.home_trees import ByRing, HomeTreeNode
from topicweave.systems.magnet.parameters import MagnetParameters
from topicweave.systems.magnet.rules import most_similar_peer

CONTROL, SKEWED = 0, 1


class MagnetNode(HomeTreeNode):
    """Magnet brings its own interest-aware membership (§3.4); it asks nothing of the interest view."""

    parameters: MagnetParameters

    def __init__(
        self,
        world: World,
        node_id: NodeId,
        subscriptions: Iterable[TopicId],
        _view: InterestView,
        parameters: MagnetParameters,
    ) -> None:
        super().__init__(world, node_id, subscriptions, parameters, rings=2, most_bytes=parameters.most_bytes)
        self.parameters = parameters
        self._rates = parameters.topic_rates if parameters.rates == "given" else None
        self._interested: Interested | None = None
        self.samples = InterestSamples(
            world,
            self.control,
            self.subscriptions,
            self._own_sample,
            parameters.samples,
            parameters.max_topics,
        )
        self.places = RingPlaces(world, self.overlay, self._given_place, parameters.most_bytes)
        self.oscar = Oscar(
            world, self.overlay, lambda: self._interest, self._like, parameters.oscar, parameters.max_topics
        )
        self.control_links = HarmonicLinks(
            world, self.control, parameters.control_fingers, parameters.control_lookups
        )
        self.use(ByRing([self.control_links, None]))
        self.use(ByRing([None, self.oscar]))
        self.use(ByRing([None, self.places]))
        self._receivers.update(self.samples.receivers())
        self._timers.update(self.oscar.timers())
        self._contacts: list[NodeId] = []
        self._place_by = 0.0
        self._asked_at = 0.0
        self._asked_alike = 0.0
        self._alike = 0.0
        """How similar the node is to the one it took its place next to."""
        self._improve_at = 0.0
        self._improvements = parameters.improvements
        self._changes = 0
        self.moves = 0
        """How often the node took a place by Algorithm 1."""

    # What the base asks for.

    def _blocks(self) -> Iterable[Any]:
        return (self.samples, self.oscar, self.control_links)

    def _guides(self, topics: Collection[TopicId]) -> Mapping[NodeId, list[TopicId]]:
        view = {peer: person.interest for peer, person in self.samples.view().items()}
        return choose_guides(topics, view)

    def _begin(self, contacts: Sequence[NodeId]) -> None:
        self.oscar.restart()
        self.places.give_up()
        self._contacts = list(contacts)
        self._place_by = self.world.now + self.parameters.view_patience
        self._improve_at = self.world.now
        self.control.join(position_of(self.id), contacts)
        if self.overlay.own is not None:
            self.overlay.join(self.overlay.own.position, contacts)
        self.samples.hurry()

    def _beat_more(self) -> None:
        self.control_links.beat()
        self.samples.beat()
        self._take_a_place()
        self.oscar.beat()

    def _interest_changed(self, before: Interest) -> None:
        self._changes += 1
        self._interested = None
        self.samples.hurry()
        super()._interest_changed(before)

    def gauges(self) -> Mapping[str, float]:
        own = self.overlay.own
        return {
            **super().gauges(),
            "place_bits": 8.0 * len(own.position) if own is not None else 0.0,
            "moves": float(self.moves),
            "respaced": float(self.places.moves),
            "alike": self._alike,
        }

    # Identifier acquisition (§3.2, Algorithm 1).

    def _like(self, theirs: Interest) -> float:
        return likeness(self._interest, theirs, self._rates)

    def _own_sample(self) -> Interested | None:
        own = self.overlay.own
        if own is None:
            return None
        known = self._interested
        if known is None or known.contact is not own or known.interest is not self._interest:
            known = self._interested = Interested(own, self._interest)
        return known

    def _take_a_place(self) -> None:
        """Begin, go on with, or repeat the search for a place."""
        now, parameters = self.world.now, self.parameters
        if (asked := self.places.asking) is not None:
            if now - self._asked_at < parameters.place_patience:
                return
            # No answer: it is left out, and the search begins anew.
            self.places.give_up()
            self.samples.exclude(asked)
            self._ask_best(anywhere=self.overlay.own is None)
        elif self.overlay.own is None:
            joined = len(self.control.table) > 1
            if (joined and self.samples.answered()) or now >= self._place_by:
                self._ask_best(anywhere=True)
        elif now >= self._improve_at:
            if self._changes >= parameters.changes_before_move:
                self._changes = 0
                self._alike = 0.0
                self._ask_best()
            elif self._improvements > 0 and self.world.random.random() < 0.5:
                # Not all at once: whoever a node wants to be next to should stay where it is meanwhile.
                self._ask_best()

    def _ask_best(self, anywhere: bool = False) -> None:
        """Ask the most similar node known for the place after it; with nobody known, go where the name is hashed to."""
        now, parameters = self.world.now, self.parameters
        self._improve_at = now + parameters.improve_period * self.world.random.uniform(0.8, 1.2)
        view = {peer: person.interest for peer, person in self.samples.view().items()}
        best = most_similar_peer(view, self._like, self.world.random)
        if best is not None and (anywhere or best[1] > self._alike + parameters.improve_by):
            self._asked_at, self._asked_alike = now, best[1]
            self.places.ask(best[0])
        elif anywhere:
            self.overlay.join(position_of(self.id), [*self._contacts, *self.control.fingers])
            self.oscar.moved()
            self.samples.hurry()

    def _given_place(self, position: Position | None, by: NodeId, near: tuple[Contact, ...]) -> None:
        if position is None:
            return  # No room yet: the next beat asks again.
        own = self.overlay.own
        if own is not None:
            self._improvements = max(0, self._improvements - 1)
            if own.position == position:
                return
        else:
            self.samples.hurry()  # The others should know of a newcomer soon.
        self._alike = self._asked_alike
        self.moves += 1
        self.overlay.join(position, [by], near)
        self.oscar.moved()
