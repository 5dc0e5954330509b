"""The topic directory: every topic has a home that knows some of its subscribers and introduces them. See docs/membership.md."""

from topicweave.blocks.topic_directory.directory import Parts, TopicDirectory
from topicweave.blocks.topic_directory.parameters import DirectoryParameters

__all__ = ["DirectoryParameters", "Parts", "TopicDirectory"]
