"""The name directory: it finds topics by patterns of their names. See docs/patterns.md."""

from topicweave.blocks.topic_names.attaching import attach_names, ignore_names
from topicweave.blocks.topic_names.directory import NameDirectory
from topicweave.blocks.topic_names.parameters import NamesParameters

__all__ = ["NameDirectory", "NamesParameters", "attach_names", "ignore_names"]
