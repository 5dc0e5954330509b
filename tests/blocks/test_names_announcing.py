"""A publisher of names, message by message: when it says them again, to whom, and what it believes."""

from __future__ import annotations

import pytest

from topicweave.blocks.name_messages import NamesKept, NamesSaid, NamesStill, RingParcel
from topicweave.blocks.topic_names import NamesParameters
from topicweave.blocks.topic_names.announcing import NameAnnouncer
from topicweave.model.ids import ring_id
from topicweave.testing.network import VirtualNetwork

ME, NAME, AT = 11, "zone/7", "zone/"
PARAMETERS = NamesParameters()


class Publisher:
    """With one name, below `zone/`. Whoever it tells answers after `takes` seconds that the name is kept,
    unless all is `deaf`.
    """

    def __init__(self) -> None:
        network = VirtualNetwork()
        self.now = 0.0
        self.sent: list[tuple[float, RingParcel]] = []
        self.answers: list[tuple[float, NamesKept]] = []
        self.takes = 1.0
        self.deaf = False
        self._world = network.world(ME)
        self._network = network
        self.announcer = NameAnnouncer(self._world, ME, PARAMETERS, self._post, lambda: None, private=False)
        self.announcer.publishes(NAME, ring_id(NAME))

    def _post(self, parcel: RingParcel) -> None:
        self.sent.append((self.now, parcel))
        if self.deaf:
            return
        content = parcel.content
        assert isinstance(content, NamesSaid | NamesStill)
        places = (0,) if isinstance(content, NamesSaid) else ()
        self.answers.append((self.now + self.takes, NamesKept(AT, content.number, places)))

    def run(self, seconds: float) -> None:
        end = self.now + seconds
        while self.now < end:
            self.now += 1.0
            self._network.run(self.now)
            due = [answer for at, answer in self.answers if at <= self.now]
            self.answers = [one for one in self.answers if one[0] > self.now]
            for answer in due:
                self.announcer.answered(answer)
            self.announcer.say()

    def renewals(self, since: float) -> list[tuple[float, RingParcel]]:
        return [
            (at, parcel) for at, parcel in self.sent if at >= since and isinstance(parcel.content, NamesStill)
        ]


@pytest.mark.parametrize("takes", [1.0, 4.0, 8.0, 20.0])
def test_a_renewal_that_was_lost_is_made_up_for_however_slowly_homes_answer(takes: float) -> None:
    publisher = Publisher()
    publisher.run(5.0)
    publisher.deaf = True
    publisher.run(100.0)
    assert publisher.renewals(0.0)
    publisher.deaf, publisher.takes = False, takes
    publisher.run(60.0)
    began = publisher.now
    publisher.run(240.0)
    to_the_home = [at for at, parcel in publisher.renewals(began) if parcel.attempt == 0]
    assert 3 <= len(to_the_home) <= 6, "once per period"


def test_a_home_that_is_silent_is_tried_again_after_its_successors() -> None:
    publisher = Publisher()
    publisher.run(5.0)
    publisher.deaf = True
    publisher.run(200.0)
    attempts = [parcel.attempt for _, parcel in publisher.renewals(0.0)]
    assert attempts[:5] == [0, 1, 2, 3, 4]
    assert attempts.count(0) > 1
