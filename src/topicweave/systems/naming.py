"""Any system with a name directory beside it: a node of it takes part in finding topics by patterns."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from topicweave.blocks.topic_names import NameDirectory, NamesParameters, attach_names
from topicweave.blocks.views import InterestView
from topicweave.model.ids import NodeId, TopicId
from topicweave.port import Node, World
from topicweave.systems.system import System


def with_names(
    system: System,
    made: Callable[[NodeId, NameDirectory], None],
    parameters: NamesParameters | None = None,
    private: bool = False,
) -> System:
    """The same system; `made` is handed the directory of every node that is built."""

    def build(
        world: World, node_id: NodeId, subscriptions: Iterable[TopicId], view: InterestView, settings: Any
    ) -> Node:
        node = system.build(world, node_id, subscriptions, view, settings)
        made(node_id, attach_names(node, view, parameters, private))
        return node

    return replace(system, build=build)
