"""A chat without a server: each line goes to everybody in the room.

python examples/live_chat.py ann --listen 127.0.0.1:7000
python examples/live_chat.py bob --join 127.0.0.1:7000
"""

import argparse
import asyncio
import sys

import topicweave
from topicweave.live import LiveNode


async def show(node: LiveNode, name: str) -> None:
    async for event in node.events():
        if event.publisher != name:
            print(f"{event.publisher}: {event.payload.decode()}", flush=True)


async def chat(name: str, room: str, listen: str, join: list[str]) -> None:
    async with topicweave.connect(
        insecure=True, name=name, listen=listen, join=join, subscribe=[room], preset="local"
    ) as node:
        print(f"{name} is at {node.address}; write lines, end with Ctrl-D", flush=True)
        showing = asyncio.create_task(show(node, name))
        while line := await asyncio.to_thread(sys.stdin.readline):
            await node.publish(room, line.strip().encode())
        showing.cancel()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name")
    parser.add_argument("--room", default="lobby")
    parser.add_argument("--listen", default="127.0.0.1:0")
    parser.add_argument("--join", action="append", default=[], metavar="ADDRESS")
    given = parser.parse_args()
    asyncio.run(chat(given.name, given.room, given.listen, given.join))
