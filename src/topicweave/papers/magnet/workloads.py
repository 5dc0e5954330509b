"""The real subscriptions of Magnet §4.5."""

from __future__ import annotations

import msgspec

from topicweave.data.reading import real_workload
from topicweave.data.sampling import random_topics
from topicweave.errors import UnknownName
from topicweave.model.workload import Workload

TRACES = ("wikipedia", "youtube", "github")


class TopicSample(msgspec.Struct, frozen=True, tag="topic-sample", forbid_unknown_fields=True):
    """§4.5: some random topics of a real trace, and all users that want one of them."""

    data: str
    topics: int = 3000
    seed: int = 0

    @property
    def data_sets(self) -> tuple[str, ...]:
        return (self.data,)

    def load(self) -> Workload:
        if self.data not in TRACES:
            raise UnknownName("user-topic trace", self.data, list(TRACES))
        whole = real_workload(self.data)
        sample = random_topics(whole, topics=min(self.topics, whole.topics), seed=self.seed)
        # A user and a topic of one name would be one point on the ring; and the paper publishes once on every
        # topic, whatever its rate.
        lists = {
            f"u{user}": [f"t{sample.topic_names[topic]}" for topic in sample.interests(index)]
            for index, user in enumerate(sample.node_names)
        }
        return Workload.from_lists(lists)
