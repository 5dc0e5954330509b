"""All synthetic models by name, with their parameters: those of the five papers, with the papers' own values
as defaults, and one of ours.

A model draws any range of nodes on its own, so that a process, a Spark task or a test can make any part of a
workload and the parts fit together. Nodes are called `n0`, `n1`, …, topics `t0`, `t1`, … .
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from topicweave.errors import BadInput, UnknownName
from topicweave.model.arrays import IntArray
from topicweave.model.workload import Workload
from topicweave.workloads import hierarchy, levels, magnet, omen, rare, spidercast, vitis
from topicweave.workloads.popularity import popularity
from topicweave.workloads.rates import power_law_rates

Lists = tuple[IntArray, IntArray]
"""(nodes, topics), by node, then topic."""


class Zipf(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """SpiderCast §3.1."""

    nodes: int = 1000
    topics: int = 100
    popularity: str = "rss"
    min_size: int = 10
    max_size: int = 10
    rate_exponent: float = 0.0


class Buckets(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Vitis §IV-A."""

    nodes: int = 10_000
    topics: int = 5000
    size: int = 50
    buckets: int = 100
    chosen: int = 5
    rate_exponent: float = 0.0


class Random(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Vitis §IV-A."""

    nodes: int = 10_000
    topics: int = 5000
    size: int = 50
    rate_exponent: float = 0.0


class MultiModal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Magnet §4.2."""

    nodes: int = 10_000
    topics: int = 1000
    size: int = 50
    chosen: int = 1
    categories: int = 10
    alpha: float = 1.0
    rate_exponent: float = 0.0


class Spatial(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Magnet §4.3; every node has one topic of its own."""

    nodes: int = 10_000
    average: float = 16.0
    rate_exponent: float = 0.0


class Hierarchical(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Magnet §4.4."""

    nodes: int = 2**14
    topics: int = 2**14
    average: float = 16.0
    initial_share: float = 0.1
    alpha: float = 2.0
    homophily: float = 2.0
    rate_exponent: float = 0.0


class PowerLawSizes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """OMen §6.1."""

    nodes: int = 2000
    topics: int = 200
    min_size: int = 10
    max_size: int = 90
    size_exponent: float = 2.0
    rate_exponent: float = 0.0


class Rare(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Ours: a few of some popular topics per node, and rare ones, each of which few nodes want."""

    nodes: int = 1000
    popular_topics: int = 20
    popular: int = 3
    rare: int = 2
    audience: int = 3
    rate_exponent: float = 0.0

    @property
    def topics(self) -> int:
        return self.popular_topics + rare.rare_topics(self.nodes, self.rare, max(self.audience, 1))


class Levels(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Ours: what patterns of names with levels want."""

    nodes: int = 1000
    zones: int = 20
    devices: int = 50
    whole: int = 1
    across: int = 1
    rate_exponent: float = 0.0

    @property
    def topics(self) -> int:
        return self.zones * self.devices


class Places(NamedTuple):
    x: npt.NDArray[np.float64]
    y: npt.NDArray[np.float64]


@dataclass(frozen=True)
class Model:
    """How to draw a kind of workload; `P` below is an instance of its `parameters`."""

    name: str
    summary: str
    source: str
    parameters: type[msgspec.Struct]
    lists: Callable[[Any, int, int, int, float], Lists]
    """(P, seed, first node, last node, moment): the lists of a range of nodes. `moment` is for models that grow."""
    fixed: Mapping[str, Any] = field(default_factory=dict)
    """Parameters whose default is another one in this model."""
    places: Callable[[Any, int, int, int], Places] | None = None
    growth: Callable[[Any], hierarchy.Hierarchy] | None = None
    """Of a model whose lists grow until all together are long enough: what grows."""

    def settings(self, **changes: Any) -> Any:
        """The parameters with some of them changed; values may be given as text."""
        try:
            made: Any = msgspec.convert({**self.fixed, **changes}, self.parameters, strict=False)
        except msgspec.ValidationError as error:
            known = ", ".join(one.name for one in msgspec.structs.fields(self.parameters))
            raise BadInput(f"model {self.name!r}: {error}; its parameters: {known}") from None
        if made.nodes < 1 or topics_of(made) < 1:
            raise BadInput(
                f"{made.nodes} nodes and {topics_of(made)} topics: too few; ask for at least one of each"
            )
        return made

    def check(self, parameters: Any) -> None:
        """Raise about parameters that cannot be; drawing nobody's list costs nothing and sees them all."""
        if self.growth is not None:
            hierarchy.check(self.growth(parameters))
        self.lists(parameters, 0, 0, 0, 0.0)
        power_law_rates(1, parameters.rate_exponent)


def topics_of(parameters: Any) -> int:
    """How many topics there are; in a model where every node has one of its own, as many as nodes."""
    return int(getattr(parameters, "topics", parameters.nodes))


def rates_of(parameters: Any, first: int, last: int) -> npt.NDArray[np.float64]:
    """Events per second of a range of topics."""
    return power_law_rates(topics_of(parameters), parameters.rate_exponent)[first:last]


def _growth(p: Hierarchical) -> hierarchy.Hierarchy:
    return hierarchy.Hierarchy(p.nodes, p.topics, p.average, p.initial_share, p.alpha, p.homophily)


def _zipf(p: Zipf, seed: int, first: int, last: int, _moment: float) -> Lists:
    return spidercast.draw_lists(
        first, last, popularity(p.popularity, p.topics), p.min_size, p.max_size, seed
    )


def _random(p: Random, seed: int, first: int, last: int, _moment: float) -> Lists:
    # All topics are one bucket, of which a node takes its share.
    return vitis.draw_correlated(first, last, p.topics, 1, 1, p.size, seed)


def _buckets(p: Buckets, seed: int, first: int, last: int, _moment: float) -> Lists:
    return vitis.draw_correlated(first, last, p.topics, p.buckets, p.chosen, p.size, seed)


def _multi_modal(p: MultiModal, seed: int, first: int, last: int, _moment: float) -> Lists:
    return magnet.multi_modal_lists(
        first,
        last,
        topics=p.topics,
        size=p.size,
        chosen_categories=p.chosen,
        categories=p.categories,
        alpha=p.alpha,
        seed=seed,
    )


def _spatial(p: Spatial, seed: int, first: int, last: int, _moment: float) -> Lists:
    return magnet.spatial_lists(first, last, nodes=p.nodes, average=p.average, seed=seed)


def _spatial_places(_p: Spatial, seed: int, first: int, last: int) -> Places:
    return Places(*magnet.places(first, last, seed))


def _hierarchical(p: Hierarchical, seed: int, first: int, last: int, moment: float) -> Lists:
    grown = hierarchy.grow(_growth(p), first, last, moment, seed)
    return grown.node, grown.topic


def _omen(kind: str) -> Callable[[PowerLawSizes, int, int, int, float], Lists]:
    def lists(p: PowerLawSizes, seed: int, first: int, last: int, _moment: float) -> Lists:
        chances = popularity(omen.POPULARITIES[kind], p.topics)
        return omen.sized_lists(first, last, chances, p.min_size, p.max_size, p.size_exponent, seed)

    return lists


def _rare(p: Rare, seed: int, first: int, last: int, _moment: float) -> Lists:
    return rare.rare_lists(first, last, p.nodes, p.popular_topics, p.popular, p.rare, p.audience, seed)


def _levels(p: Levels, seed: int, first: int, last: int, _moment: float) -> Lists:
    return levels.leveled_lists(first, last, p.zones, p.devices, p.whole, p.across, seed)


MODELS: dict[str, Model] = {
    model.name: model
    for model in (
        Model(
            "spidercast",
            "topics by popularity (rss, zipf:A, nyse, uniform, …), lists of min_size to max_size",
            "SpiderCast §3.1",
            Zipf,
            _zipf,
        ),
        Model("vitis-random", "topics all alike", "Vitis §IV-A", Random, _random),
        Model(
            "vitis-low",
            "low correlation: an equal share from each of 5 of 100 buckets",
            "Vitis §IV-A",
            Buckets,
            _buckets,
        ),
        Model(
            "vitis-high",
            "high correlation: an equal share from each of 2 of 100 buckets",
            "Vitis §IV-A",
            Buckets,
            _buckets,
            fixed={"chosen": 2},
        ),
        Model(
            "magnet-multi-modal",
            "chosen (b_p) of categories (b_n), power law inside",
            "Magnet §4.2",
            MultiModal,
            _multi_modal,
        ),
        Model(
            "magnet-spatial",
            "the topics of all who are near on the unit square",
            "Magnet §4.3",
            Spatial,
            _spatial,
            places=_spatial_places,
        ),
        Model(
            "magnet-hierarchical",
            "preferential attachment with homophily (lambda) in a tree of topics",
            "Magnet §4.4",
            Hierarchical,
            _hierarchical,
            growth=_growth,
        ),
        *(
            Model(
                f"omen-{kind}",
                f"{words} popularity, list sizes by a power law",
                "OMen §6.1",
                PowerLawSizes,
                _omen(kind),
            )
            for kind, words in (("uniform", "uniform"), ("zipf", "Zipf (2)"), ("expo", "exponential"))
        ),
        Model(
            "rare",
            "popular of popular_topics topics per node, and rare ones with an audience of 3 each",
            "ours: do the few who want a topic find each other?",
            Rare,
            _rare,
        ),
        Model(
            "levels",
            "all topics of whole zones, and of devices across all zones: zone/7/#, zone/+/device/3/#",
            "ours: patterns of names",
            Levels,
            _levels,
        ),
    )
}


def find_model(name: str) -> Model:
    try:
        return MODELS[name]
    except KeyError:
        raise UnknownName("workload model", name, list(MODELS)) from None


def build(name: str, seed: int = 0, **parameters: Any) -> Workload:
    """A whole workload of a model, in memory.

    >>> build("omen-zipf", seed=7, nodes=100)
    Workload(nodes=100, topics=200, subscriptions=2106, changes=0, hosts=False)
    """
    model = find_model(name)
    settings = model.settings(**parameters)
    model.check(settings)
    moment = hierarchy.stopping_time(model.growth(settings), seed) if model.growth else 0.0
    node, topic = model.lists(settings, seed, 0, settings.nodes, moment)
    topics = topics_of(settings)
    nodes = pa.array([f"n{number}" for number in range(settings.nodes)])
    names = pa.array([f"t{number}" for number in range(topics)])
    hosts: dict[str, Any] = {"node": nodes}
    if model.places is not None:
        hosts |= model.places(settings, seed, 0, settings.nodes)._asdict()
    return Workload.from_tables(
        pa.table(
            {
                "node": pa.DictionaryArray.from_arrays(node.astype(np.int32), nodes),
                "topic": pa.DictionaryArray.from_arrays(topic.astype(np.int32), names),
            }
        ),
        topics=pa.table({"topic": names, "rate": rates_of(settings, 0, topics)}),
        hosts=pa.table(hosts),
    )
