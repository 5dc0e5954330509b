"""A node as the home of prefixes: it keeps the names below them and says which have homes of their own.

Rules kept
----------
1. Names are kept below a prefix, each as long as one of its publishers says so. The root keeps labels only.
2. Where there are too many, those of the fullest label are given to the home of the longer prefix, and so is
   what is said of that label from then on. A label is kept as long as the home below says that there is
   something.
3. A publisher says its names again in a digest. A home that knows other names of it asks for all of them.
4. All is bounded: names below a prefix, of one publisher, labels, prefixes, all names. A home remembers that it
   refused something, and tells watchers that there is more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from topicweave.blocks.name_messages import (
    LabelSaid,
    NamesEnded,
    NamesKept,
    NamesSaid,
    NamesStill,
    RingParcel,
)
from topicweave.blocks.topic_directory.rules import again_after
from topicweave.blocks.topic_names import rules
from topicweave.blocks.topic_names.parameters import NamesParameters
from topicweave.model.ids import NodeId, TopicId

MOST_TERM = 7200.0
MOST_AGE = 1e9
MOST_PREFIXES = 16_384
MOST_NAMES = 65_536
"""Of all prefixes together."""
AT_ONCE = 128
"""Names in one message to another home."""


class KeptName:
    """A name, and who publishes on it."""

    __slots__ = ("born", "by", "topic", "until")

    def __init__(self, topic: TopicId | None, born: float) -> None:
        self.topic = topic  # None: it follows from the name
        self.born = born
        self.by: set[NodeId] = set()
        self.until = 0.0  # for the sake of publishers for whom there was no room


class _Publisher:
    """What one node said of names below a prefix."""

    __slots__ = ("digest", "names", "until")

    def __init__(self) -> None:
        self.names: dict[str, None] = {}
        self.digest = 0
        self.until = 0.0


class KeptPrefix:
    """All that is known below one prefix."""

    __slots__ = ("flat_at", "full_until", "labels", "names", "publishers", "said_above")

    def __init__(self) -> None:
        self.names: dict[str, KeptName] = {}
        self.publishers: dict[NodeId, _Publisher] = {}
        self.labels: dict[str, float] = {}  # those with a home of their own, until when
        self.full_until = 0.0
        self.flat_at = 0  # how many names there were when no label was worth a home of its own
        self.said_above = -1e9  # when the home above was told last

    @property
    def empty(self) -> bool:
        return not (self.names or self.labels)


class NamesNews(Protocol):
    """Who hears of changes."""

    def added(self, prefix: str, name: str) -> None: ...

    def gone(self, prefix: str, name: str) -> None: ...

    def label(self, prefix: str, label: str, there: bool) -> None: ...

    def full(self, prefix: str) -> None: ...


class NamesHome:
    """`post` sends; `owns(prefix)` says whether this node is the home, or keeps records with it."""

    def __init__(
        self,
        parameters: NamesParameters,
        news: NamesNews,
        post: Callable[[RingParcel], None],
        owns: Callable[[str], bool],
    ) -> None:
        self._parameters = parameters
        self._news = news
        self._post = post
        self._owns = owns
        self.prefixes: dict[str, KeptPrefix] = {}
        self.names = 0
        self.refused = 0

    # What publishers say.

    def said(self, said: NamesSaid, now: float) -> bool:
        """Keep names, pass on those that have a home of their own, and answer. Whether anything changed."""
        if not rules.is_sound(said):
            return False
        prefix = said.prefix
        kept = self._at(prefix)
        if kept is None:
            self._answer(said, (), range(len(said.names)), 0.0)
            return False
        term = min(said.term, MOST_TERM)
        publisher = kept.publishers.get(said.by)
        before = dict(publisher.names) if publisher is not None and said.whole else {}
        taken: list[int] = []
        refused: list[int] = []
        deeper: dict[str, list[int]] = {}
        for place, rest in enumerate(said.names):
            name = rules.named(prefix, rest)
            label = rules.label_of(name, prefix) if name is not None else None
            if name is None:
                refused.append(place)
            elif label is not None and label in kept.labels:
                deeper.setdefault(label, []).append(place)
            elif self._keep(prefix, kept, name, said, place, now):
                taken.append(place)
                before.pop(name, None)
            else:
                refused.append(place)
                self._refuse(prefix, kept, now)
        publisher = kept.publishers.get(said.by)
        if publisher is not None:
            publisher.until = max(publisher.until, now + term)
        for name in before:
            self._let_go(prefix, kept, name, said.by)
        if not said.kept:
            for label, places in deeper.items():
                self._post(RingParcel(*_passed_on(said, f"{prefix}{label}/", places), soon=said.number != 0))
            self._answer(said, taken, refused, self._again(kept))
            self._split(prefix, kept, now)
        self._drop_if_empty(prefix, kept)
        return bool(taken or before)

    def _keep(
        self, prefix: str, kept: KeptPrefix, name: str, said: NamesSaid, place: int, now: float
    ) -> bool:
        """Whether there is room."""
        parameters, known = self._parameters, kept.names.get(name)
        publisher = kept.publishers.get(said.by)
        if known is None and (len(kept.names) >= parameters.names or self.names >= MOST_NAMES):
            return False
        if publisher is None:
            publisher = _Publisher()
        if name not in publisher.names and len(publisher.names) >= parameters.names_each:
            return False
        age = min(max(0.0, float(said.ages[place])), MOST_AGE)
        if known is None:
            known = kept.names[name] = KeptName(said.topics[place] if said.topics else None, now - age)
            self.names += 1
            self._news.added(prefix, name)
        known.born = min(known.born, now - age)
        if said.by not in known.by:
            if len(known.by) >= parameters.publishers:
                known.until = max(known.until, now + min(said.term, MOST_TERM))
                return True
            known.by.add(said.by)
            publisher.names[name] = None
            publisher.digest ^= rules.mark_of(name)
            kept.publishers[said.by] = publisher
        return True

    def still(self, still: NamesStill, now: float, soon: bool = False) -> bool:
        """Whether that is what is known here; if so, it is good for another term. `soon`: the publisher waits
        for the answer.
        """
        kept = self.prefixes.get(still.prefix)
        publisher = kept.publishers.get(still.by) if kept is not None else None
        known = kept is not None and publisher is not None and publisher.digest == still.digest
        if known and publisher is not None and rules.is_term(still.term):
            publisher.until = max(publisher.until, now + min(still.term, MOST_TERM))
        if not still.kept and rules.is_prefix(still.prefix):
            again = self._again(kept) if known and kept is not None else 0.0
            said = NamesKept(still.prefix, still.number, again=again, unknown=not known)
            self._post(RingParcel(still.by, said, soon=soon))
        return known

    def ended(self, ended: NamesEnded) -> bool:
        """A publisher is done with names. Whether anything changed."""
        kept = self.prefixes.get(ended.prefix)
        if kept is None:
            return False
        changed = False
        deeper: dict[str, list[str]] = {}
        for rest in ended.names:
            name = rules.named(ended.prefix, rest)
            label = rules.label_of(name, ended.prefix) if name is not None else None
            if name is None:
                continue
            if label is not None and label in kept.labels:
                child = f"{ended.prefix}{label}/"
                deeper.setdefault(child, []).append(rules.rest_of(name, child))
            elif name in kept.names:
                changed = True
                self._let_go(ended.prefix, kept, name, ended.by)
        if not ended.kept:
            for child, names in deeper.items():
                self._post(
                    RingParcel(rules.place_of(child), NamesEnded(child, ended.by, tuple(names)), soon=True)
                )
        self._drop_if_empty(ended.prefix, kept)
        return changed

    def _answer(self, said: NamesSaid, taken: Iterable[int], refused: Iterable[int], again: float) -> None:
        if said.number == 0 or said.kept:
            return
        places = said.places or range(len(said.names))
        there = tuple(places[place] for place in taken)
        not_there = tuple(places[place] for place in refused)
        if there or not_there:
            kept = NamesKept(said.prefix, said.number, there, not_there, again)
            self._post(RingParcel(said.by, kept, soon=True))

    def _refuse(self, prefix: str, kept: KeptPrefix, now: float) -> None:
        if kept.full_until <= now:
            self._news.full(prefix)
        kept.full_until = now + self._parameters.lasts * self._parameters.renew
        self.refused += 1

    def _again(self, kept: KeptPrefix) -> float:
        return again_after(len(kept.publishers), self._parameters.hot, self._parameters.renew)

    # Labels with homes of their own.

    def label_said(self, said: LabelSaid, now: float) -> bool:
        """A home below says that it keeps names. Whether that is new."""
        if not (rules.is_prefix(said.prefix) and rules.is_label(said.label) and rules.is_term(said.term)):
            return False
        kept = self._at(said.prefix)
        if kept is None:
            return False
        new = said.label not in kept.labels
        if new and len(kept.labels) >= self._parameters.labels:
            self._refuse(said.prefix, kept, now)
            return False
        until = now + min(said.term, MOST_TERM)
        kept.labels[said.label] = max(until, kept.labels.get(said.label, 0.0))
        if new:
            self._deepen(said.prefix, kept, said.label, now, hands_over=not said.kept)
        return new

    def _split(self, prefix: str, kept: KeptPrefix, now: float) -> None:
        parameters = self._parameters
        while (
            len(kept.names) > max(parameters.split_at, 1.1 * kept.flat_at)
            and len(kept.labels) < parameters.labels
        ):
            label = rules.fullest_label(kept.names, prefix, parameters.split_least)
            if label is None:
                kept.flat_at = len(kept.names)
                return
            kept.flat_at = 0
            kept.labels[label] = now + parameters.lasts * parameters.renew
            self._deepen(prefix, kept, label, now, hands_over=True)

    def _deepen(self, prefix: str, kept: KeptPrefix, label: str, now: float, hands_over: bool) -> None:
        """From now on the names of a label have a home of their own; those that are here go there."""
        self._news.label(prefix, label, there=True)
        child = f"{prefix}{label}/"
        moved = [name for name in kept.names if rules.label_of(name, prefix) == label]
        if hands_over:
            for said in self._records_of(child, kept, moved, now, kept_too=False):
                self._post(RingParcel(rules.place_of(child), said, soon=True))
        for name in moved:
            for publisher in list(kept.names[name].by):
                self._forget(kept, name, publisher)
            del kept.names[name]
            self.names -= 1

    # What passes.

    def _let_go(self, prefix: str, kept: KeptPrefix, name: str, by: NodeId) -> None:
        known = kept.names[name]
        if by in known.by:
            self._forget(kept, name, by)
            if not known.by and known.until <= 0.0:
                del kept.names[name]
                self.names -= 1
                self._news.gone(prefix, name)

    def _forget(self, kept: KeptPrefix, name: str, by: NodeId) -> None:
        kept.names[name].by.discard(by)
        publisher = kept.publishers.get(by)
        if publisher is not None and name in publisher.names:
            del publisher.names[name]
            publisher.digest ^= rules.mark_of(name)
            if not publisher.names:
                del kept.publishers[by]

    def sweep(self, now: float) -> None:
        """Let go of what is too old."""
        for prefix, kept in list(self.prefixes.items()):
            for by in [by for by, publisher in kept.publishers.items() if publisher.until <= now]:
                for name in list(kept.publishers[by].names):
                    self._let_go(prefix, kept, name, by)
            for name, known in list(kept.names.items()):
                if known.until and known.until <= now:
                    known.until = 0.0
                    if not known.by:
                        del kept.names[name]
                        self.names -= 1
                        self._news.gone(prefix, name)
            for label in [label for label, until in kept.labels.items() if until <= now]:
                del kept.labels[label]
                self._news.label(prefix, label, there=False)
            self._drop_if_empty(prefix, kept)

    def say_above(self, now: float) -> None:
        """Tell the homes above of prefixes that hold something."""
        renew = self._parameters.renew
        for prefix, kept in self.prefixes.items():
            if prefix != rules.ROOT and now - kept.said_above >= 0.75 * renew and self._owns(prefix):
                above, label = rules.parent_of(prefix)
                new = kept.said_above < 0.0
                kept.said_above = now
                said = LabelSaid(above, label, self._parameters.lasts * renew)
                self._post(RingParcel(rules.place_of(above), said, soon=new))

    def _at(self, prefix: str) -> KeptPrefix | None:
        kept = self.prefixes.get(prefix)
        if kept is None and len(self.prefixes) < MOST_PREFIXES:
            kept = self.prefixes[prefix] = KeptPrefix()
        return kept

    def _drop_if_empty(self, prefix: str, kept: KeptPrefix) -> None:
        if kept.empty and self.prefixes.get(prefix) is kept:
            del self.prefixes[prefix]

    # Records that others keep as well.

    def records(self, prefix: str, now: float) -> list[NamesSaid | LabelSaid]:
        """All that is known below a prefix, for one who keeps records with this node."""
        kept = self.prefixes.get(prefix)
        if kept is None:
            return []
        labels = [
            LabelSaid(prefix, label, until - now, kept=True)
            for label, until in kept.labels.items()
            if until > now
        ]
        return [*labels, *self._records_of(prefix, kept, kept.names, now, kept_too=True)]

    def _records_of(
        self, prefix: str, kept: KeptPrefix, names: Iterable[str], now: float, kept_too: bool
    ) -> list[NamesSaid]:
        by: dict[NodeId, list[str]] = {}
        for name in names:
            for publisher in kept.names[name].by:
                by.setdefault(publisher, []).append(name)
        made = []
        for publisher in sorted(by):
            left = kept.publishers[publisher].until - now
            for first in range(0, len(by[publisher]) if left > 0 else 0, AT_ONCE):
                some = by[publisher][first : first + AT_ONCE]
                known = [kept.names[name] for name in some]
                private = any(one.topic is not None for one in known)
                made.append(
                    NamesSaid(
                        prefix,
                        publisher,
                        0,
                        left,
                        tuple(rules.rest_of(name, prefix) for name in some),
                        tuple(int(now - one.born) for one in known),
                        tuple(one.topic or 0 for one in known) if private else (),
                        whole=kept_too and first == 0,
                        kept=kept_too,
                    )
                )
        return made


def _passed_on(said: NamesSaid, child: str, places: list[int]) -> tuple[int, NamesSaid]:
    """The part of an announcement that is for a home below."""
    names = []
    for place in places:
        name = rules.named(said.prefix, said.names[place])
        assert name is not None
        names.append(rules.rest_of(name, child))
    part = NamesSaid(
        child,
        said.by,
        said.number,
        said.term,
        tuple(names),
        tuple(said.ages[place] for place in places),
        tuple(said.topics[place] for place in places) if said.topics else (),
        tuple(said.places[place] for place in places) if said.places else tuple(places),
    )
    return rules.place_of(child), part
