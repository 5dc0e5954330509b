"""A swarm of processes on this machine, one node each, and what the page's buttons do to it: SIGKILL,
SIGSTOP, firewalls, and back again.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import shutil
import signal
import sys
import tempfile
from collections.abc import Coroutine, Iterable, Sequence
from pathlib import Path

import msgspec

from topicweave.errors import BadInput
from topicweave.live.clock import Clock
from topicweave.live.dashboard.nursery import ChildOrder, Seedling
from topicweave.live.dashboard.picture import Picture
from topicweave.live.dashboard.watch import key_of
from topicweave.live.dashboard.words import NodeKey, NodeTick, Order
from topicweave.live.settings import Settings
from topicweave.live.swarm import CONTACTS
from topicweave.model.ids import ring_id

ORDERS = ("kill", "stop", "restart", "partition", "heal")
AT_ONCE = 5
"""Nodes that start at the same time."""
PATIENCE = 30.0
"""Seconds that a node may take to start."""
MOST_LINE = 1 << 22

_encode = msgspec.json.Encoder().encode
_tick = msgspec.json.Decoder(NodeTick).decode


class _Child:
    """A node's process, or the place of one that is gone."""

    def __init__(self, name: str, topics: Sequence[str]) -> None:
        self.name, self.topics = name, tuple(topics)
        self.key = key_of(ring_id(name))
        self.pid, self.listen = 0, ""
        self.stopped = False
        self.part = 0
        self.writer: asyncio.StreamWriter | None = None
        self.up = asyncio.Event()

    def tell(self, told: ChildOrder) -> None:
        if self.writer is not None and not self.stopped:
            self.writer.write(_encode(told) + b"\n")


class Supervisor:
    """Runs the swarm; its picture is told everything."""

    def __init__(
        self, settings: Settings, interests: Sequence[Sequence[str]], rate: float, seed: int, picture: Picture
    ) -> None:
        self._settings = settings
        self._rate = rate
        self._rng = random.Random(f"supervisor/{seed}")
        self._picture = picture
        self._children = {
            child.key: child
            for child in (_Child(f"node-{number:03d}", topics) for number, topics in enumerate(interests))
        }
        self.clock = Clock()
        self._folder = Path()
        self._server: asyncio.Server | None = None
        self._nursery: asyncio.subprocess.Process | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._closing = False

    async def start(self) -> None:
        """The first node is up when this returns; the others follow."""
        if not hasattr(os, "fork"):
            raise BadInput("a dashboard of a swarm needs an operating system that forks: Linux or macOS")
        self._folder = Path(tempfile.mkdtemp(prefix="topicweave-"))
        path = str(self._folder / "supervisor")
        self._server = await asyncio.start_unix_server(self._attend, path, limit=MOST_LINE)
        self._nursery = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "topicweave.live.dashboard.nursery", path),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
        self._bear(_encode(self._settings))
        first, *others = self._children.values()
        await self._plant([first])
        if not first.up.is_set():
            raise BadInput("the first node did not start; its messages are above")
        self._spawn(self._plant_all(others))
        if self._rate > 0:
            self._spawn(self._keep_publishing())

    async def stop(self) -> None:
        self._closing = True
        for task in list(self._tasks):
            task.cancel()
        if self._nursery is not None and self._nursery.stdin is not None:
            self._nursery.stdin.close()  # It ends all of them, and itself.
            await self._nursery.wait()
        if self._server is not None:
            self._server.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    # Nodes come and go.

    def _spawn(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _bear(self, line: bytes) -> None:
        assert self._nursery is not None
        assert self._nursery.stdin is not None
        self._nursery.stdin.write(line + b"\n")

    async def _plant_all(self, children: Sequence[_Child]) -> None:
        for start in range(0, len(children), AT_ONCE):
            await self._plant(children[start : start + AT_ONCE])

    async def _plant(self, children: Sequence[_Child]) -> None:
        up = [child for child in self._children.values() if child.writer and not child.stopped]
        for child in children:
            there = [one.listen for one in up if one.part == child.part]
            join = self._rng.sample(there, min(CONTACTS, len(there)))
            self._bear(_encode(Seedling(child.name, child.topics, tuple(join))))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                for child in children:
                    await child.up.wait()

    async def _attend(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One node's process, from its first tick to its end."""
        child: _Child | None = None
        try:
            while line := await reader.readline():
                tick = _tick(line)
                if child is None:
                    child = self._children[tick.node]
                    child.pid, child.listen, child.writer = tick.pid, tick.listen, writer
                    self._picture.take(tick)
                    self._picture.set_part(child.key, child.part)
                    self._wall([child])
                    child.up.set()
                elif not child.stopped:
                    self._picture.take(tick)
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()
            if child is not None:
                child.writer, child.pid, child.stopped = None, 0, False
                child.up.clear()
                if not self._closing:
                    self._picture.set_state(child.key, "killed")
                    self._picture.say(self.clock.now, "loss", f"{child.name} is gone")

    async def _keep_publishing(self) -> None:
        while True:
            await asyncio.sleep(self._rng.expovariate(self._rate))
            up = [child for child in self._children.values() if child.writer and not child.stopped]
            if up:
                child = self._rng.choice(up)
                if child.topics:
                    child.tell(ChildOrder(publish=self._rng.choice(child.topics)))

    # The buttons.

    async def obey(self, order: Order) -> str:
        unknown = [key for key in order.nodes if key not in self._children]
        if unknown:
            raise BadInput(f"no node {unknown[0]!r} in this swarm")
        chosen = [self._children[key] for key in order.nodes]
        if not chosen and order.order in ("kill", "stop", "restart"):
            raise BadInput(f"choose the nodes to {order.order}")
        done: list[str]
        if order.order in ("partition", "heal"):
            done = self._divide(chosen) if order.order == "partition" else self._heal()
        else:
            act = {"kill": self._kill, "stop": self._stop, "restart": self._restart}[order.order]
            done = [child.name for child in chosen if act(child)]
        text = f"{order.order}: {', '.join(done[:10])}{' …' if len(done) > 10 else ''}" if done else ""
        if not text:
            return f"{order.order}: nothing to do"
        self._picture.say(self.clock.now, "order", text)
        return text

    def _kill(self, child: _Child) -> bool:
        return self._signal(child, signal.SIGKILL)

    def _stop(self, child: _Child) -> bool:
        if child.stopped or not self._signal(child, signal.SIGSTOP):
            return False
        child.stopped = True
        self._picture.set_state(child.key, "stopped")
        return True

    def _restart(self, child: _Child) -> bool:
        if child.writer is None:
            self._spawn(self._plant([child]))
            return True
        if not child.stopped:
            return False
        child.stopped = False
        self._wall([child])  # It may have changed meanwhile.
        return self._signal(child, signal.SIGCONT)

    def _signal(self, child: _Child, number: signal.Signals) -> bool:
        """Only to a process that is there: its connection is open, so its number is nobody else's."""
        if child.writer is None or not child.pid:
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(child.pid, number)
        return True

    def _divide(self, chosen: Sequence[_Child]) -> list[str]:
        """Those chosen, or half of all, on one side of a firewall that drops everything without a word."""
        if not chosen:
            everybody = list(self._children.values())
            chosen = self._rng.sample(everybody, len(everybody) // 2)
        apart = {child.key for child in chosen}
        return self._set_parts({child.key: int(child.key in apart) for child in self._children.values()})

    def _heal(self) -> list[str]:
        divided = [child.name for child in self._children.values() if child.part]
        self._set_parts(dict.fromkeys(self._children, 0))
        return divided

    def _set_parts(self, parts: dict[NodeKey, int]) -> list[str]:
        for child in self._children.values():
            child.part = parts[child.key]
            self._picture.set_part(child.key, child.part)
        self._wall(self._children.values())
        return [child.name for child in self._children.values() if child.part]

    def _wall(self, children: Iterable[_Child]) -> None:
        """Tell them who is behind the firewall."""
        sides = [[child.key for child in self._children.values() if child.part == part] for part in (0, 1)]
        for child in children:
            child.tell(ChildOrder(wall=sides[1 - child.part] if sides[1] else []))
