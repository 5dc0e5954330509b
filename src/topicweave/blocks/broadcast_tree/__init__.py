"""The broadcast tree: events of a topic travel over a tree of links whose both ends want the topic. `tree`
states the rules.
"""

from topicweave.blocks.broadcast_tree.messages import (
    EventRun,
    Graft,
    IHave,
    Prepare,
    Prune,
    PublisherStream,
    Push,
    Spill,
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
    "Prepare",
    "Prune",
    "PublisherStream",
    "Push",
    "Spill",
]
