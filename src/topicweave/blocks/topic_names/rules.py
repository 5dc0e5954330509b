"""What the name directory decides, as functions of plain data.

A prefix is levels with `/` after each, so that no two look alike: `""` is the root, `"a/"` all below `a`, and
`a` itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache

from topicweave.blocks.name_messages import NamesSaid
from topicweave.model.ids import RING_SIZE, TopicId, ring_id
from topicweave.model.patterns import MOST_BYTES, MOST_LEVELS, ONE, REST, has_signs

ROOT = ""


@lru_cache(maxsize=16_384)
def place_of(prefix: str) -> int:
    """The point of a prefix on the ring of homes: another one than that of the topic of this name."""
    return ring_id(f"names\0{prefix}")


def prefixes_of(name: str) -> Iterator[str]:
    """Where a name may be kept, from above.

    >>> list(prefixes_of("zone/7/door"))
    ['zone/', 'zone/7/', 'zone/7/door/']
    """
    end = name.find("/")
    while end >= 0:
        yield name[: end + 1]
        end = name.find("/", end + 1)
    yield f"{name}/"


def label_of(name: str, prefix: str) -> str | None:
    """The level of a name that follows a prefix; None for the name that the prefix itself is.

    >>> label_of("zone/7/door", "zone/"), label_of("zone/7", "zone/"), label_of("zone", "zone/"), label_of("zone", "")
    ('7', '7', None, 'zone')
    """
    if len(name) < len(prefix):
        return None
    end = name.find("/", len(prefix))
    return name[len(prefix) :] if end < 0 else name[len(prefix) : end]


def rest_of(name: str, prefix: str) -> str:
    """What travels of a name beside its prefix: all that follows the last level of it.

    >>> rest_of("zone/7", "zone/"), rest_of("zone", "zone/"), rest_of("zone/", "zone/")
    ('/7', '', '/')
    """
    return name[len(prefix) - 1 :]


def named(prefix: str, rest: str) -> str | None:
    """The name again; None if there is none such.

    >>> named("zone/", "/7"), named("zone/", ""), named("zone/", "7"), named("zone/", "/+")
    ('zone/7', 'zone', None, None)
    """
    name = prefix[:-1] + rest
    return name if (not rest or rest[0] == "/") and is_name(name) else None


def parent_of(prefix: str) -> tuple[str, str]:
    """The prefix above, and the label below it.

    >>> parent_of("zone/7/"), parent_of("zone/"), parent_of("/")
    (('zone/', '7'), ('', 'zone'), ('', ''))
    """
    end = prefix.rfind("/", 0, len(prefix) - 1) + 1
    return prefix[:end], prefix[end:-1]


def start_of(pattern: str) -> str:
    """Where a pattern's walk begins: names are kept below their first level, or deeper.

    >>> start_of("zone/+/door"), start_of("+/door"), start_of("#"), start_of("/a")
    ('zone/', '', '', '/')
    """
    first = pattern.split("/", 1)[0]
    return ROOT if first in (ONE, REST) else f"{first}/"


def next_level(pattern: str, prefix: str) -> str | None:
    """The level of a pattern that stands for the label below a prefix; None if the pattern ends above it.

    >>> next_level("zone/+/door", "zone/"), next_level("zone/#", "zone/7/"), next_level("zone/7", "zone/7/")
    ('+', '#', None)
    """
    levels, depth = pattern.split("/"), prefix.count("/")
    if depth < len(levels):
        return levels[depth]
    return REST if levels[-1] == REST else None


def is_label(label: str) -> bool:
    return "/" not in label and not has_signs(label) and "\0" not in label and len(label) <= MOST_BYTES


def is_prefix(prefix: str) -> bool:
    """Whether homes can be asked for it.

    >>> is_prefix(""), is_prefix("zone/"), is_prefix("zone"), is_prefix("+/")
    (True, True, False, False)
    """
    ends_well = prefix == ROOT or prefix.endswith("/")
    return (
        ends_well
        and not has_signs(prefix)
        and "\0" not in prefix
        and len(prefix) <= MOST_BYTES + 1
        and prefix.count("/") <= MOST_LEVELS
    )


def is_name(name: str) -> bool:
    return (
        0 < len(name) <= MOST_BYTES
        and name.count("/") < MOST_LEVELS
        and not has_signs(name)
        and "\0" not in name
    )


def is_sound(said: NamesSaid) -> bool:
    """Whether an announcement's parts fit together."""
    count = len(said.names)
    return (
        is_prefix(said.prefix)
        and said.prefix != ROOT
        and len(said.ages) == count
        and len(said.topics) in (0, count)
        and len(said.places) in (0, count)
        and is_term(said.term)
        and all(0 <= topic < RING_SIZE for topic in said.topics)
    )


def is_term(term: float) -> bool:
    return 0.0 <= term < 1e6


def digest_of(names: Iterable[str], labels: Iterable[str] = ()) -> int:
    """Of a set of names, and of labels, in any order: equal sets have equal digests.

    >>> digest_of(["a", "b"]) == digest_of(["b", "a"]) != digest_of(["a"], ["b"])
    True
    """
    digest = 0
    for name in names:
        digest ^= mark_of(name)
    for label in labels:
        digest ^= mark_of(f"{label}\0")
    return digest


@lru_cache(maxsize=65_536)
def mark_of(name: str) -> int:
    return ring_id(name)


def fullest_label(names: Collection[str], prefix: str, least: int) -> str | None:
    """The label below a prefix that most names have, if these are enough to be worth a home of their own.

    >>> fullest_label(["z", "z/1/a", "z/1/b", "z/2"], "z/", 2), fullest_label(["z/1", "z/2"], "z/", 2)
    ('1', None)
    """
    counts: dict[str, int] = {}
    for name in names:
        label = label_of(name, prefix)
        if label is not None:
            counts[label] = counts.get(label, 0) + 1
    if not counts:
        return None
    label = min(counts, key=lambda one: (-counts[one], one))
    return label if counts[label] >= least else None


def true_topic(name: str, told: TopicId | None, private: bool) -> TopicId:
    """The topic of a name. What somebody tells of it counts only where the name does not say it.

    >>> true_topic("news", 7, private=True), true_topic("news", 7, private=False) == ring_id("news")
    (7, True)
    """
    return told if private and told is not None else ring_id(name)
