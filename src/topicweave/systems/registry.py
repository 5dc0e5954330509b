"""The systems that can be run, by name.

A system of this repository has a line here. A system of another package is an entry point of the group
`topicweave.systems` in that package's metadata. The entry point's object is a `System`:

    [project.entry-points."topicweave.systems"]
    mine = "my_package:MINE"
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

from topicweave.errors import TopicweaveError, UnknownName
from topicweave.systems.alternatives.broker import BROKER
from topicweave.systems.alternatives.gossipsub import GOSSIPSUB
from topicweave.systems.baselines import (
    opt,
    random_overlay,
    ring_per_topic,
    rvr,
    scribe,
    similarity,
    strawman,
)
from topicweave.systems.magnet import MAGNET
from topicweave.systems.omen import OMEN
from topicweave.systems.rappel import RAPPEL
from topicweave.systems.spidercast import SPIDERCAST
from topicweave.systems.system import System
from topicweave.systems.vitis import VITIS
from topicweave.systems.weave import WEAVE

GROUP = "topicweave.systems"


class Systems(Mapping[str, System]):
    """Our systems, then those of other packages. These are imported when a caller asks for one of them, or for all."""

    def __init__(self, ours: Iterable[System]) -> None:
        self._ours = {system.name: system for system in ours}
        self._loaded: dict[str, System] = {}
        self._broken: dict[str, str] = {}

    def __getitem__(self, name: str) -> System:
        if name in self._ours:
            return self._ours[name]
        self._load(name)
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        self._load_all()
        yield from self._ours
        yield from sorted(self._loaded)

    def __len__(self) -> int:
        self._load_all()
        return len(self._ours) + len(self._loaded)

    @property
    def broken(self) -> dict[str, str]:
        """Systems of other packages that cannot be used: the name, and the reason in a line."""
        self._load_all()
        return dict(self._broken)

    def why_not(self, name: str) -> str | None:
        """Why a system of another package cannot be used, if there is one of that name."""
        self._load(name)
        return self._broken.get(name)

    @cached_property
    def _offered(self) -> dict[str, Any]:
        """Entry points by name; the packages behind them are not imported yet."""
        from importlib.metadata import entry_points

        found: dict[str, Any] = {}
        for entry in sorted(entry_points(group=GROUP), key=lambda entry: (entry.name, entry.value)):
            first = found.setdefault(entry.name, entry)
            if first.value != entry.value:
                self._broken[entry.name] = (
                    f"system {entry.name!r}: packages {_package(first)!r} and {_package(entry)!r} both bring one of "
                    "that name; remove one of them"
                )
        return found

    def _load_all(self) -> None:
        for name in self._offered:
            self._load(name)

    def _load(self, name: str) -> None:
        entry = self._offered.get(name)
        if entry is None or name in self._loaded or name in self._broken:
            return
        try:
            self._loaded[name] = _checked(name, entry.load(), self._ours)
        except Exception as error:  # Whatever a stranger's import raises must not take the others along.
            reason = " ".join(str(error).split()) or "no reason given"
            self._broken[name] = (
                f"system {name!r} of package {_package(entry)!r} cannot be used ({type(error).__name__}: {reason}); "
                "update or remove that package"
            )


def _package(entry: Any) -> str:
    """Which package an entry point is of."""
    return str(entry.dist.name if entry.dist is not None else entry.value)


def _checked(name: str, found: object, ours: Mapping[str, System]) -> System:
    if not isinstance(found, System):
        raise TypeError(f"its entry point gives a {type(found).__name__}, not a System")
    if found.name != name:
        raise ValueError(f"its entry point has another name than the system, {found.name!r}")
    if name in ours:
        raise ValueError("Topicweave has a system of that name")
    return found


SYSTEMS = Systems(
    (
        WEAVE,
        SPIDERCAST,
        OMEN,
        VITIS,
        RAPPEL,
        MAGNET,
        similarity.SIMILARITY,
        random_overlay.RANDOM,
        ring_per_topic.RING_PER_TOPIC,
        rvr.RVR,
        scribe.SCRIBE,
        opt.OPT,
        strawman.STRAWMAN,
        GOSSIPSUB,
        BROKER,
    )
)


def find_system(name: str) -> System:
    try:
        return SYSTEMS[name]
    except KeyError:
        pass
    if reason := SYSTEMS.why_not(name):
        raise TopicweaveError(reason)
    raise UnknownName("system", name, list(SYSTEMS))
