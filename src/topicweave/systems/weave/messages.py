"""What Weave's nodes say to each other beyond what SpiderCast's say."""

from __future__ import annotations

from topicweave.model.ids import TopicId
from topicweave.port import Message

MOST_TOPICS = 1024
"""That one message may name; of more the rest is ignored."""


class Meet(Message, frozen=True, array_like=True, tag="weave-meet"):
    """I have no link for these topics and let others carry them: so should their lowest subscriber. Pass it
    on downwards.
    """

    topics: tuple[TopicId, ...]


class Carries(Message, frozen=True, array_like=True, tag="weave-carries"):
    """Of the topics that I take part in, I want these not: I carry them for others, and may let them go."""

    topics: tuple[TopicId, ...]
