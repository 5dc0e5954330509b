"""Clients of nodes that run elsewhere, over HTTP and WebSocket. Needs msgspec and websockets, and nothing heavier.

async with RemoteNode("127.0.0.1:8000") as node:
    await node.subscribe("news")
    await node.publish("news", b"hello")
    async for event in node.events():
        ...
"""

from topicweave.client.remote import RemoteNode
from topicweave.client.through import events_through, publish_through
from topicweave.client.words import EventJson, Gap, Incomplete, ReceiptJson

__all__ = ["EventJson", "Gap", "Incomplete", "ReceiptJson", "RemoteNode", "events_through", "publish_through"]
