"""Topic names by their levels, and patterns of them.

A name is levels with `/` between them, as in MQTT. In a pattern a level `+` stands for any one level, and a
last level `#` for what stands before it and all below. Patterns that begin with a wildcard do not match names
that begin with `$`. One place for all who ask: homes of names, doors, permissions.
"""

from __future__ import annotations

import base64
import hashlib
from functools import lru_cache

from topicweave.errors import BadInput

ONE, REST = "+", "#"
MOST_LEVELS = 128
MOST_BYTES = 1024


class BadPattern(BadInput):
    """A text that is neither the name of a topic nor a pattern of names."""


def is_pattern(text: str) -> bool:
    """Whether some level of a text is a wildcard; otherwise it is a name.

    >>> is_pattern("zone/+/door"), is_pattern("zone/7"), is_pattern("languages/c++")
    (True, False, False)
    """
    return has_signs(text) and not {ONE, REST}.isdisjoint(text.split("/"))


def has_signs(text: str) -> bool:
    """Whether a text has a sign that stands for levels, wherever it has it. No name that is announced does."""
    return ONE in text or REST in text


def check_name(name: str) -> str:
    """A name that can be announced.

    >>> check_name("sensors/7/temperature")
    'sensors/7/temperature'
    """
    _check_size(name)
    if has_signs(name):
        raise BadPattern(f"{name[:80]!r}: the name of a topic has no + and no #")
    return name


def check_pattern(pattern: str) -> str:
    """A pattern, or a name: that is a pattern which matches itself.

    >>> check_pattern("sensors/+/temperature"), check_pattern("#")
    ('sensors/+/temperature', '#')
    """
    _check_size(pattern)
    levels = pattern.split("/")
    for place, level in enumerate(levels, start=1):
        if level not in (ONE, REST) and has_signs(level):
            raise BadPattern(f"{pattern[:80]!r}: + and # stand for whole levels")
        if level == REST and place < len(levels):
            raise BadPattern(f"{pattern[:80]!r}: # is the last level of a pattern")
    return pattern


def _check_size(text: str) -> None:
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise BadPattern(f"{text[:80]!r} cannot be written as UTF-8") from None
    if not text or size > MOST_BYTES or text.count("/") >= MOST_LEVELS or "\0" in text:
        raise BadPattern(
            f"{text[:80]!r}: a topic's name or pattern has 1 to {MOST_BYTES} bytes, none of them 0, and at most {MOST_LEVELS} levels"
        )


def matches(pattern: str, name: str) -> bool:
    """Whether a pattern matches a name.

    >>> matches("a/+/c", "a/b/c"), matches("a/#", "a"), matches("a/+", "a/b/c"), matches("#", "$SYS/x")
    (True, True, False, False)
    """
    if name.startswith("$") and pattern[:1] in (ONE, REST):
        return False
    wanted, levels = pattern.split("/"), name.split("/")
    for place, level in enumerate(wanted):
        if level == REST:
            return True
        if place >= len(levels) or level not in (ONE, levels[place]):
            return False
    return len(wanted) == len(levels)


def covers(wider: str, pattern: str) -> bool:
    """Whether every name that a pattern matches is matched by another one, too: what a permission asks.

    >>> covers("zone/#", "zone/+/door"), covers("zone/+", "zone/#"), covers("#", "$SYS/#"), covers("+/+", "+/b")
    (True, False, False, True)
    >>> covers("a/#", "a/b/#"), covers("a/+/#", "a/#"), covers("+/#", "#")
    (True, False, True)
    """
    if pattern.startswith("$") and wider[:1] in (ONE, REST):
        return False
    theirs, levels = wider.split("/"), pattern.split("/")
    if theirs[-1] == REST and len(theirs) == len(levels) + 1 and levels[-1] != REST:
        theirs = theirs[:-1]  # `a/#` matches `a`
    if levels == [REST] and theirs == [ONE, REST]:
        return True  # A name has one level at least.
    for place, level in enumerate(theirs):
        if level == REST:
            return True
        if place >= len(levels) or levels[place] == REST:
            return False
        if level != ONE and level != levels[place]:
            return False
    return len(theirs) == len(levels)


def literal_of(pattern: str) -> str:
    """What all names that a pattern matches begin with, but for the one that stands above a last `#`; of a
    name, the name.

    >>> literal_of("zone/7/+/door"), literal_of("zone/#"), literal_of("#"), literal_of("zone/7")
    ('zone/7/', 'zone/', '', 'zone/7')
    """
    levels = pattern.split("/")
    for place, level in enumerate(levels):
        if level in (ONE, REST):
            return "".join(f"{one}/" for one in levels[:place])
    return pattern


def overlap(one: str, other: str) -> bool:
    """Whether some name is matched by both patterns.

    >>> overlap("a/+", "+/b"), overlap("a/#", "a"), overlap("a/b/#", "a/+")
    (True, True, True)
    >>> overlap("a/+", "a/b/c"), overlap("#", "$SYS/#")
    (False, False)
    """
    for wild, name in ((one, other), (other, one)):
        if name.startswith("$") and wild[:1] in (ONE, REST):
            return False
    ones, others = one.split("/"), other.split("/")
    for place in range(max(len(ones), len(others)) + 1):
        level = ones[place] if place < len(ones) else None
        fellow = others[place] if place < len(others) else None
        if REST in (level, fellow):
            return True
        if level is None or fellow is None:
            return level is fellow
        if ONE not in (level, fellow) and level != fellow:
            return False
    return True


def reaches_below(pattern: str, prefix: str) -> bool:
    """Whether a pattern may match a name at or below a prefix. A prefix is levels with `/` after each; `""`
    is the root.

    >>> [reaches_below("zone/+/door", prefix) for prefix in ("", "zone/", "zone/7/", "zone/7/door/")]
    [True, True, True, True]
    >>> [reaches_below("zone/+/door", prefix) for prefix in ("zone/7/lamp/", "a/")]
    [False, False]
    >>> reaches_below("zone/#", "zone/7/lamp/"), reaches_below("#", "$SYS/"), reaches_below("zone/7", "zone/7/lamp/")
    (True, False, False)
    """
    if prefix.startswith("$") and pattern[:1] in (ONE, REST):
        return False
    wanted, levels = pattern.split("/"), prefix.split("/")[:-1]
    for place, level in enumerate(levels):
        if place >= len(wanted):
            return False
        if wanted[place] == REST:
            return True
        if wanted[place] not in (ONE, level):
            return False
    return True


def hidden(text: str) -> str:
    """A name or pattern whose levels are hashed, one by one, so that patterns match as they did. A `$` in
    front stays, as wildcards do.

    Who guesses a level can tell whether it was right: this hides names from those who do not know them, not
    from those who try all words.

    >>> hidden("zone/+/#")
    'o44zvpp55djeu/+/#'
    >>> matches(hidden("zone/+/door"), hidden("zone/7/door")), matches(hidden("#"), hidden("$SYS/x"))
    (True, False)
    """
    return "/".join(level if level in (ONE, REST) else _hidden_level(level) for level in text.split("/"))


@lru_cache(maxsize=4096)
def _hidden_level(level: str) -> str:
    mark = "$" if level.startswith("$") else ""
    digest = hashlib.blake2b(level.encode(), digest_size=8, person=b"topicweave name").digest()
    return mark + base64.b32encode(digest).decode().rstrip("=").lower()
