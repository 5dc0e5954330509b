"""The settings of the topic directory (seconds unless said otherwise)."""

from __future__ import annotations

import msgspec


class DirectoryParameters(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The ring of homes, what is carried over it, and what homes keep."""

    tick: float = 1.0
    """How often what waits for the same next hop is sent on together."""
    near_period: float = 3.0
    """Between two signs of life to a ring neighbour, if nothing else was sent to it. Who is late with its own
    is asked.
    """
    near_silence: float = 5.0
    """Silence after which a ring neighbour is taken for dead."""
    finger_period: float = 6.0
    """The same for the other contacts."""
    finger_silence: float = 10.0
    hop_timeout: float = 1.5
    """A hop that has not acknowledged for so long, and said nothing else, is dead: another one is taken."""
    sides: int = 3
    """Ring neighbours known on either side; a home's records are kept by so many successors, too."""
    doubt: float = 20.0
    """For how long hearsay about one that was found dead is not believed."""
    look_around: float = 20.0
    """How often a node has itself looked up by way of a random peer: so two rings find together."""
    refresh: float = 120.0
    """How often the fingers are looked up again."""

    renew: float = 60.0
    """A subscriber announces each of its topics so often, at least;"""
    renew_per_topic: float = 0.06
    """and no more often than this, times its topics."""
    lasts: float = 2.0
    """A record lives for so many of its subscriber's renewals."""
    records: int = 64
    """Subscribers that a home knows of a topic, at most."""
    contacts: int = 8
    """Subscribers named in an answer, at most."""
    enough: int = 4
    """A node that knows so many subscribers of a topic does not ask for more."""
    ask_timeout: float = 3.0
    """A question that was not answered is asked again; and again in twice the time, while nobody is found."""
    hot: float = 5.0
    """Announcements per second that a home takes of one topic."""
    budget: float = 20.0
    """Answers per second that a home gives one asker, with 25 seconds' worth at once."""
    introduce_every: float = 10.0
    """Between two rounds of introductions between the parts of a topic."""

    def __post_init__(self) -> None:
        near, finger = self.near_period, self.finger_period
        if not 0 < self.tick <= near <= self.near_silence - self.tick <= self.finger_silence - self.tick:
            raise ValueError("need 0 < tick <= near_period, and a tick more than that until near_silence")
        if not near <= finger <= self.finger_silence - self.tick:
            raise ValueError(
                "need near_period <= finger_period, and a tick more than that until finger_silence"
            )
        if self.sides < 1 or self.records < self.contacts or self.contacts < 1:
            raise ValueError(
                "need at least one ring neighbour on each side, one contact, and room for the records of an answer"
            )
