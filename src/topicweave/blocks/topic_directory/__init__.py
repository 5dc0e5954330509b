"""The topic directory: every topic has a home that knows some of its subscribers and introduces them. See
docs/membership.md.
"""

from topicweave.blocks.topic_directory.directory import TopicDirectory
from topicweave.blocks.topic_directory.parameters import DirectoryParameters
from topicweave.blocks.topic_directory.parts import Parts

__all__ = ["DirectoryParameters", "Parts", "TopicDirectory"]
