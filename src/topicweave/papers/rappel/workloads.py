"""The workloads of Rappel §6: one feed, and feeds drawn from real subscriptions as §6.1.2 says.

Node names sort in the order of the network's hosts: landmarks, then publishers, then subscribers. A publisher
subscribes to its own feed.
"""

from __future__ import annotations

import random
from typing import Literal

import msgspec

from topicweave.data.reading import real_workload
from topicweave.data.sampling import subscribers_of_popular
from topicweave.model.workload import Workload

FeedGraph = Literal["livejournal", "twitter", "github"]

LANDMARKS = 18


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


class SingleFeed(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="single-feed"):
    """§6.2: one publisher; `others` are nodes that want nothing (§6.4)."""

    subscribers: int
    others: int = 0

    @property
    def nodes(self) -> int:
        return LANDMARKS + 1 + self.subscribers + self.others

    def load(self) -> Workload:
        return feeds_workload([[0]] * self.subscribers + [[]] * self.others, 1)


class FeedSample(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="feed-sample"):
    """§6.1.2, with as many seeds as it takes to get so many subscribers (see `sampling.subscribers_of_popular`).

    Of Twitter there are only the followers of a hundred users, so all of these are feeds and the subscribers are drawn.
    """

    source: FeedGraph
    subscribers: int = 5582
    feeds: int = 100
    seed: int = 0

    @property
    def nodes(self) -> int:
        return LANDMARKS + self.feeds + self.subscribers

    @property
    def data_sets(self) -> tuple[str, ...]:
        return (data_set_of(self.source),)

    def load(self) -> Workload:
        sample, popular = subscribers_of_popular(
            subscriptions_of(self.source),
            subscribers=self.subscribers,
            publishers=self.feeds,
            seed=self.seed,
        )
        place = {feed: number for number, feed in enumerate(popular)}
        number = [place[name] for name in sample.topic_names]
        lists = [[number[feed] for feed in sample.interests(user)] for user in range(sample.nodes)]
        return feeds_workload(lists, len(popular))


class CommunityFeeds(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="community-feeds"):
    """A small likeness of real subscriptions, for runs without data: most of a subscriber's feeds are of its
    own community.

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


def subscriptions_of(source: FeedGraph) -> Workload:
    """Who subscribes to what; of Twitter, who follows one of a hundred users."""
    return real_workload(data_set_of(source))


def data_set_of(source: FeedGraph) -> str:
    return {"twitter": "twitter-followers"}.get(source, source)


FeedsWorkload = SingleFeed | FeedSample | CommunityFeeds
