"""The broadcast tree: events of a topic travel over a tree of links whose both ends want the topic. `tree`
states the rules.
"""

from topicweave.blocks.broadcast_tree.messages import (
    EventRun,
    Graft,
    IHave,
    Prune,
    PublisherStream,
    Push,
)
from topicweave.blocks.broadcast_tree.parameters import BroadcastTreeParameters
from topicweave.blocks.broadcast_tree.tree import NOBODY, NOT_YET, BroadcastTree

__all__ = [
    "NOBODY",
    "NOT_YET",
    "BroadcastTree",
    "BroadcastTreeParameters",
    "EventRun",
    "Graft",
    "IHave",
    "Prune",
    "PublisherStream",
    "Push",
]
