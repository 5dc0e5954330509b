"""What friends cover, how roles overlap, and how far coordinates are off (figures 5 and 9)."""

from __future__ import annotations

import math
import random

import numpy as np

from topicweave.blocks.bloom import may_contain
from topicweave.model.ids import NodeId
from topicweave.papers.rappel.workloads import LANDMARKS
from topicweave.papers.rappel.world import FeedWorld, quantiles
from topicweave.runs.run import Result


def coverage(world: FeedWorld) -> Result:
    """How many nodes are covered by their friends: all feeds (true, not by filter), and of those with several feeds."""
    return _summary(_covered(world))


def _covered(world: FeedWorld) -> list[tuple[int, int]]:
    """(feeds wanted, of these covered by friends) of every node up."""
    interests = {node.id: node.subscriptions for node in world.nodes().values()}
    interests |= {
        world.workload.node_ids[LANDMARKS + feed]: {topic}
        for feed, topic in enumerate(world.workload.topic_ids)
    }
    found = []
    for node in world.nodes().values():
        if node.subscriptions:
            covered: set[int] = set()
            for friend in node.friendship.friends:
                covered |= node.subscriptions & interests.get(friend, set())
            found.append((len(node.subscriptions), len(covered)))
    return found


def friends(world: FeedWorld) -> Result:
    pairs = _covered(world)
    result = _summary(pairs)
    result["by_feeds"] = [
        {
            "feeds": feeds,
            "nodes": len(covered),
            "perfect": float(np.mean([one == feeds for one in covered])),
            "covered_p50": float(np.median(covered)),
            "covered_min": min(covered),
        }
        for feeds in sorted({feeds for feeds, _ in pairs})
        if (covered := [one for all_, one in pairs if all_ == feeds])
    ]
    shares = [one / all_ for all_, one in pairs if all_ > 1]
    result["coverage_quantiles"] = np.percentile(shares or [1.0], range(0, 101, 5)).tolist()
    overlaps = []
    false_positives = tests = 0
    for node in world.nodes().values():
        roles: dict[NodeId, int] = dict.fromkeys(node.friendship.friends, 1)
        for peer, _ in node.trees.links():
            roles[peer] = roles.get(peer, 0) + 1
        if len(node.subscriptions) > 1 and roles:
            overlaps.append(sum(roles.values()) / len(roles))
        for topic in world.workload.topic_ids:
            for friend, known in node.friendship.friends.items():
                index = world.index[friend]
                host = world.simulation.hosts[index].node
                if host is not None and topic not in host.subscriptions:
                    tests += 1
                    false_positives += may_contain(known.bloom, topic)
        if tests > 2_000_000:
            break
    everyone = []
    for node in world.nodes().values():
        distinct = {*node.friendship.friends, *(peer for peer, _ in node.trees.links())}
        roles_count = len(node.friendship.friends) + sum(1 for _ in node.trees.links())
        if distinct:
            everyone.append(roles_count / len(distinct))
    result["overlap"] = quantiles("ratio", np.array(everyone))
    result["overlap_above_1"] = float(np.mean(np.array(everyone) > 1.0)) if everyone else math.nan
    result["overlap_above_1_multi"] = float(np.mean(np.array(overlaps) > 1.0)) if overlaps else math.nan
    result["overlap_quantiles"] = np.percentile(everyone or [1.0], range(0, 101, 5)).tolist()
    result["false_positives"] = false_positives / max(tests, 1)
    result["friends_mean"] = float(np.mean([len(node.friendship.friends) for node in world.nodes().values()]))
    return result


def coordinate_error(world: FeedWorld) -> Result:
    """Relative error of the coordinates against the medians of the network, over random pairs."""
    nodes = list(world.nodes().items())
    rng = random.Random("pairs")
    errors = []
    for _ in range(min(20_000, len(nodes) ** 2)):
        (one, first), (other, second) = rng.choice(nodes), rng.choice(nodes)
        if one != other:
            true = float(world.network.rtt_ms[one, other]) / 2000.0
            guess = math.dist(first.place.coordinate, second.place.coordinate)
            errors.append(abs(guess - true) / max(true, 1e-3))
    return quantiles("relative_error", np.array(errors))


def _summary(pairs: list[tuple[int, int]]) -> Result:
    several = [(all_, one) for all_, one in pairs if all_ > 1]
    return {
        "perfect": float(np.mean([all_ == one for all_, one in pairs])) if pairs else math.nan,
        "perfect_multi": float(np.mean([all_ == one for all_, one in several])) if several else math.nan,
        "share_mean": float(np.mean([one / all_ for all_, one in pairs])) if pairs else math.nan,
        "share_mean_multi": float(np.mean([one / all_ for all_, one in several])) if several else math.nan,
    }
