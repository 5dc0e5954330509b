"""Magnet's trees: one per topic, from its home down the routes of a ring. `trees` states the rules."""

from topicweave.blocks.topic_trees.trees import TopicTrees, TreeParameters

__all__ = ["TopicTrees", "TreeParameters"]
