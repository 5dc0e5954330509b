"""Publish and subscribe through a node that runs elsewhere, from a program that needs none of a node's libraries.

topicweave node --insecure --http 127.0.0.1:8000
python examples/remote_client.py 127.0.0.1:8000 news "hello from afar"
"""

import asyncio
import sys

from topicweave.client import RemoteNode


async def main(address: str, topic: str, text: str) -> None:
    async with RemoteNode(address) as node:
        await node.subscribe(topic)
        receipt = await node.publish(topic, text.encode())
        print(f"number {receipt.sequence}, taken by {receipt.neighbours} neighbours")
        async for event in node.events():
            print(f"{event.topic}: {event.text}")
            if event.text == text:
                break


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:4]))
