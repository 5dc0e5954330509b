"""The settings of the name directory (seconds unless said otherwise)."""

from __future__ import annotations

import msgspec


class NamesParameters(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How names are said, kept and watched, and how many at most."""

    tick: float = 1.0
    soon: float = 0.2
    """Within this, news for the same watcher are put together."""
    renew: float = 60.0
    """How often a node says its names again, and a home that there are names below it."""
    lasts: float = 2.0
    """A name that was said is kept for so many times `renew`."""
    watch_renew: float = 30.0
    """How often a watcher asks whether what it knows is right."""
    ask_timeout: float = 3.0
    """After so long without an answer, names are said again, to a successor of the home."""
    grace: float = 15.0
    """A name that a home does not list any more, though nobody said that it ended, is believed for so long."""

    split_at: int = 1024
    """A home with more names than this below a prefix gives those of the fullest label a home of their own;"""
    split_least: int = 16
    """if there are so many of them, at least."""
    names: int = 4096
    """Names below a prefix that a home keeps, at most."""
    names_each: int = 2048
    """Of one publisher, at most."""
    labels: int = 4096
    """Labels of a prefix with homes of their own, at most."""
    publishers: int = 8
    """Publishers of a name that a home knows, at most."""
    watchers: int = 1024
    """Watchers of a prefix that a home tells of news; others find them when they ask again."""
    patterns: int = 256
    """Different patterns of these."""
    page: int = 128
    """Names in one answer; what is longer comes in pages."""
    budget: float = 20.0
    """Pages per second that a home gives one asker, with 10 seconds' worth at once, and the rest of an answer
    on credit.
    """
    hot: float = 20.0
    """Renewals per second that a home wants for one prefix."""

    own: int = 16_384
    """Names that a node says, at most."""
    found: int = 65_536
    """Names that a node knows by its patterns, at most;"""
    walked: int = 8192
    """and prefixes that it watches for them."""

    def __post_init__(self) -> None:
        if not 0 < self.tick <= self.ask_timeout <= min(self.renew, self.watch_renew) or self.lasts < 1:
            raise ValueError("need 0 < tick <= ask_timeout <= renew, watch_renew, and lasts of 1 or more")
        if not 0 < self.split_least <= self.split_at <= self.names or not 0 < self.page <= 1024:
            raise ValueError("need 0 < split_least <= split_at <= names, and pages of 1 to 1024 names")
