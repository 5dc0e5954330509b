"""The Python client: it uses a node in another process, over HTTP and WebSocket. It needs msgspec and
websockets, and nothing heavier.

async with RemoteNode("127.0.0.1:8000") as node:
    await node.subscribe("news")
    await node.publish("news", b"hello")
    async for event in node.events():
        ...
"""

from typing import TYPE_CHECKING, Any

from topicweave.client.through import events_through, publish_through
from topicweave.client.words import EventJson, Gap, Incomplete, ReceiptJson

if TYPE_CHECKING:
    from topicweave.client.remote import RemoteNode

__all__ = ["EventJson", "Gap", "Incomplete", "ReceiptJson", "RemoteNode", "events_through", "publish_through"]


def __getattr__(name: str) -> Any:
    """What needs websockets comes when it is asked for: a cluster's nodes run studies without."""
    if name == "RemoteNode":
        from topicweave.client.remote import RemoteNode

        return RemoteNode
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
