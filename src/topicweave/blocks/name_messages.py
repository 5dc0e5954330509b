"""Messages of the name directory: the contents of parcels that travel over the ring of homes. See `topic_names`.

A prefix is levels with `/` after each. Names travel as what follows the last level of their prefix. A message
that a home passes on to the nodes that keep its records is marked `kept`.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from topicweave.model.ids import NodeId, TopicId


class NamesSaid(msgspec.Struct, frozen=True, array_like=True, tag="said", gc=False):
    """I publish on these names."""

    prefix: str
    by: NodeId
    number: int
    """Of the announcement, for the answer; 0: none is wanted."""
    term: float
    """Seconds for which this is good."""
    names: tuple[str, ...]
    ages: tuple[int, ...]
    """Seconds since the birth of each name."""
    topics: tuple[TopicId, ...] = ()
    """Of private names: they do not follow from what is told of the names."""
    places: tuple[int, ...] = ()
    """Where these names stood in the announcement as it was made; empty: as here."""
    whole: bool = False
    """All that was said of names below the prefix earlier is void."""
    kept: bool = False


class NamesStill(msgspec.Struct, frozen=True, array_like=True, tag="still", gc=False):
    """I still publish on the names below a prefix that I said, and on no other."""

    prefix: str
    by: NodeId
    number: int
    term: float
    digest: int
    kept: bool = False


class NamesEnded(msgspec.Struct, frozen=True, array_like=True, tag="ended", gc=False):
    """I publish on these no more."""

    prefix: str
    by: NodeId
    names: tuple[str, ...]
    kept: bool = False


class NamesKept(msgspec.Struct, frozen=True, array_like=True, tag="kept", gc=False):
    """A home's answer to who said names."""

    prefix: str
    number: int
    places: tuple[int, ...] = ()
    """The names of the announcement that are kept here."""
    refused: tuple[int, ...] = ()
    again: float = 0.0
    """Seconds after which it is time to say so again."""
    unknown: bool = False
    """To `NamesStill`: that is not what is known here. Say them all."""


class LabelSaid(msgspec.Struct, frozen=True, array_like=True, tag="label", gc=False):
    """There are names below this label of a prefix, and a home of their own."""

    prefix: str
    label: str
    term: float
    kept: bool = False


class NamesWatch(msgspec.Struct, frozen=True, array_like=True, tag="watch", gc=False):
    """Tell me of names below a prefix that match a pattern, for as long as the term lasts."""

    prefix: str
    pattern: str
    watcher: NodeId
    number: int
    term: float
    digest: int | None = None
    """Of what is known already; None: nothing is."""
    kept: bool = False


class NamesTold(msgspec.Struct, frozen=True, array_like=True, tag="told", gc=False):
    """What a home has to say to a watcher: an answer in pages, or news."""

    prefix: str
    pattern: str
    number: int = 0
    """Of the question; 0: nobody asked, it is news."""
    page: int = 0
    pages: int = 1
    names: tuple[str, ...] = ()
    ages: tuple[int, ...] = ()
    topics: tuple[TopicId, ...] = ()
    labels: tuple[str, ...] = ()
    """Names below these have homes of their own."""
    gone: tuple[str, ...] = ()
    no_labels: tuple[str, ...] = ()
    """Names below these have none any more."""
    same: bool = False
    """What is known is right."""
    full: bool = False
    """There is more than the home keeps."""
    again: float = 0.0
    by: tuple[NodeId, ...] = ()
    """Of each name that is young a publisher, so that its first events can be had; 0: none. Empty: none of any."""


class NamesWanted(msgspec.Struct, frozen=True, array_like=True, tag="want", gc=False):
    """I keep these records, too, or from now on: those of one prefix, or of all that lie after `start` and up to me."""

    by: NodeId
    start: int
    prefix: str | None = None


NameContent = (
    NamesSaid | NamesStill | NamesEnded | NamesKept | LabelSaid | NamesWatch | NamesTold | NamesWanted
)


class RingParcel(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Something that goes to the home of a point, or to a node."""

    to: int
    content: NameContent
    attempt: int = 0
    """How many times it went unanswered."""
    soon: bool = False
    """Somebody waits for it."""


def introduced_by(parcel: RingParcel) -> Iterable[NodeId]:
    """Peers whom the receiver may contact because of it: publishers of new names."""
    content = parcel.content
    if isinstance(content, NamesSaid):
        return (content.by,)
    return filter(None, content.by) if isinstance(content, NamesTold) else ()


def weight(parcel: RingParcel) -> int:
    """How many ordinary things it weighs: it may hold a name of a thousand bytes, or many.

    >>> weight(RingParcel(1, NamesStill("zone/", 2, 3, 60.0, 4)))
    1
    >>> weight(RingParcel(1, NamesEnded("zone/", 2, ("x" * 64,) * 8)))
    10
    """
    content = parcel.content
    size = 0
    if isinstance(content, NamesSaid | NamesEnded | NamesTold):
        size += sum(map(len, content.names)) + 8 * len(content.names)
    if isinstance(content, NamesTold):
        for texts in (content.labels, content.gone, content.no_labels):
            size += sum(map(len, texts)) + 2 * len(texts)
    return 1 + size // 64
