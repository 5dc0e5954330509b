"""The workloads of Rappel §6: one feed, and feeds drawn from real subscriptions as §6.1.2 says.

Node names sort in the order of the network's hosts: landmarks, then publishers, then subscribers. A publisher subscribes to its own feed.
"""

from __future__ import annotations

import lzma
import random
from collections.abc import Iterator
from typing import Literal

import msgspec

from topicweave.data.mending_workloads import data_file
from topicweave.errors import BadInput
from topicweave.model.workload import Workload

Source = Literal["livejournal", "twitter", "github"]

LANDMARKS = 18

FILES = {
    "livejournal": ("subscriptions/soc-LiveJournal1Adj.txt.xz", "\t"),
    "twitter": ("subscriptions/twitter_followers_100users.csv.xz", ","),
    "github": ("subscriptions/github_watch_2009.txt.xz", ":"),
}


def landmark_name(number: int) -> str:
    return f"a-landmark-{number:02d}"


def publisher_name(number: int) -> str:
    return f"b-publisher-{number:03d}"


def subscriber_name(number: int) -> str:
    return f"c-subscriber-{number:05d}"


def feed_name(number: int) -> str:
    return f"feed-{number:03d}"


def feeds_workload(lists: list[list[int]], feeds: int) -> Workload:
    """Landmarks, one publisher per feed, and a subscriber per list of feed numbers."""
    interests: dict[str, list[str]] = {landmark_name(number): [] for number in range(LANDMARKS)}
    interests |= {publisher_name(number): [feed_name(number)] for number in range(feeds)}
    interests |= {
        subscriber_name(number): [feed_name(feed) for feed in sorted(wanted)]
        for number, wanted in enumerate(lists)
    }
    return Workload.from_lists(interests)


class SingleFeed(msgspec.Struct, frozen=True, tag="single-feed"):
    """§6.2: one publisher; `others` are nodes that want nothing (§6.4)."""

    subscribers: int
    others: int = 0

    @property
    def nodes(self) -> int:
        return LANDMARKS + 1 + self.subscribers + self.others

    def load(self) -> Workload:
        return feeds_workload([[0]] * self.subscribers + [[]] * self.others, 1)


class FeedSample(msgspec.Struct, frozen=True, tag="feed-sample"):
    """§6.1.2: random seed feeds, all who subscribe to at least one of them, and of what these subscribe to the most wanted feeds.

    Seeds are added until there are `subscribers`; who wants none of the chosen feeds is left out, and the rest is cut to the number.
    Of Twitter there are only the followers of a hundred users, so all of these are feeds and the subscribers are drawn.
    """

    source: Source
    subscribers: int = 5582
    feeds: int = 100
    seed: int = 0

    @property
    def nodes(self) -> int:
        return LANDMARKS + self.feeds + self.subscribers

    def load(self) -> Workload:
        lists, popular = sample_feeds(self)
        number = {feed: place for place, feed in enumerate(popular)}
        return feeds_workload(
            [[number[feed] for feed in wanted if feed in number] for wanted in lists], len(popular)
        )


class CommunityFeeds(msgspec.Struct, frozen=True, tag="community-feeds"):
    """A small likeness of real subscriptions, for runs without data: most of a subscriber's feeds are of its own community.

    Communities are equally large sets of feeds; within one, and among all, low numbers are more popular (1 / rank).
    """

    subscribers: int = 200
    feeds: int = 20
    communities: int = 4
    most: int = 8
    seed: int = 0

    @property
    def nodes(self) -> int:
        return LANDMARKS + self.feeds + self.subscribers

    def load(self) -> Workload:
        rng = random.Random(f"communities/{self.seed}")
        size = self.feeds // self.communities
        lists = []
        for _ in range(self.subscribers):
            home = rng.randrange(self.communities) * size
            wanted: set[int] = set()
            for _ in range(rng.randint(1, self.most)):
                inside = rng.random() < 0.8
                first, count = (home, size) if inside else (0, self.feeds)
                weights = [1.0 / (place + 1) for place in range(count)]
                wanted.add(first + rng.choices(range(count), weights)[0])
            lists.append(sorted(wanted))
        return feeds_workload(lists, self.feeds)


def sample_feeds(spec: FeedSample) -> tuple[list[list[int]], list[int]]:
    """The subscribers' lists and the feeds, most wanted first."""
    following: dict[int, set[int]] = {}
    followers: dict[int, list[int]] = {}
    for user, feed in subscriptions_of(spec.source):
        if feed not in following.setdefault(user, set()):
            following[user].add(feed)
            followers.setdefault(feed, []).append(user)
    rng = random.Random(f"feeds/{spec.source}/{spec.seed}")
    order = sorted(followers)
    rng.shuffle(order)
    universe: set[int] = set()
    popular: list[int] = []
    kept: list[int] = []
    enough = spec.subscribers
    for place, seed in enumerate(order, start=1):
        universe.update(followers[seed])
        if len(universe) < enough and place < len(order):
            continue
        enough = 1 + int(
            1.1 * len(universe)
        )  # if these are too few: counting all anew for every seed takes long
        counts: dict[int, int] = {}
        for user in universe:
            for feed in following[user]:
                counts[feed] = counts.get(feed, 0) + 1
        popular = sorted(counts, key=lambda feed: (-counts[feed], feed))[: spec.feeds]
        chosen = set(popular)
        kept = sorted(user for user in universe if following[user] & chosen)
        if len(kept) >= spec.subscribers:
            break
    if len(kept) > spec.subscribers:
        kept = sorted(rng.sample(kept, spec.subscribers))
    chosen = set(popular)
    return [sorted(following[user] & chosen) for user in kept], popular


def subscriptions_of(source: str) -> Iterator[tuple[int, int]]:
    """(user, feed) of a data set."""
    file, separator = FILES[source]
    path = data_file(file)
    with lzma.open(path, "rt", encoding="ascii") as lines:
        for number, line in enumerate(lines, start=1):
            user, _, rest = line.strip().partition(separator)
            if not user.isdigit():
                if number == 1:
                    continue  # a header
                raise BadInput(f"{path}, line {number}: not a user's number: {user!r}")
            for feed in rest.split(","):
                if feed:
                    yield int(user), int(feed)


FeedsWorkload = SingleFeed | FeedSample | CommunityFeeds
