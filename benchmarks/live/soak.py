"""A soak: `python -m benchmarks.live.soak --minutes 60`. Processes that publish and read while everything
goes wrong at once.

kill -9 and restart, SIGSTOP, full disks, clock jumps and hostile peers, at random times. In the end there is
quiet, and then every event that was published must have been delivered to, or announced as missed by, every
node, or stand as unaccepted in its receipt. Memory of the processes is sampled. Not a part of CI.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

from topicweave.blocks.broadcast_tree import Push
from topicweave.live.catch_up_messages import TYPES
from topicweave.live.settings import Address
from topicweave.live.wire import MAGIC, VERSIONS, Codec, Hello, hello_frame
from topicweave.model.ids import ring_id
from topicweave.port import Message
from topicweave.testing.hostile import HostileMessages

SHOWN = 20
QUIET = 45.0
"""Seconds without faults and events in the end."""


class Node:
    """A process that comes back."""

    def __init__(self, folder: Path, number: int, ports: list[int], rate: float) -> None:
        self.name = f"soak-{number}"
        self.folder = folder / self.name
        self.folder.mkdir()
        self.listen = f"127.0.0.1:{ports[number]}"
        self._seeds = ",".join(f"127.0.0.1:{port}" for port in ports[:2])
        self._rate = rate
        self.process: subprocess.Popen[bytes] | None = None
        self.memory: list[int] = []

    def start(self) -> None:
        script = Path(__file__).with_name("soak_node.py")
        command = [sys.executable, str(script), str(self.folder), self.name, self.listen, self._seeds]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen([*command, str(self._rate)], stderr=log, stdout=log)

    def bend(self, **how: float) -> None:
        partial = self.folder / "bend.partial"
        partial.write_text(json.dumps(how))
        partial.replace(self.folder / "bend")

    def signal(self, number: int) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)

    def ended(self) -> bool:
        """Whether the process ended by itself, which it should not; its last words are shown."""
        if self.process is None or self.process.poll() is None:
            return False
        words = (self.folder / "log").read_text().splitlines()[-1:]
        print(f"{self.name} ended by itself with {self.process.returncode}: {words}")
        return True

    def sample(self) -> None:
        if self.process is not None:
            with contextlib.suppress(OSError, IndexError):
                pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
                self.memory.append(pages * os.sysconf("SC_PAGE_SIZE"))


class Journal(NamedTuple):
    published: dict[tuple[int, int], int]
    delivered: set[tuple[str, int, int]]
    missed: set[tuple[str, int, int]]


def read_journal(file: Path, nodes: list[Node]) -> Journal:
    # A publisher that a node was never connected to is told by its id.
    names = {f"{ring_id(node.name):016x}": node.name for node in nodes}
    journal = Journal({}, set(), set())
    for line in file.read_text().splitlines():
        kind, *words = line.split()
        words[0] = names.get(words[0], words[0])
        if kind == "P":
            epoch, sequence, accepted = map(int, words)
            journal.published[epoch, sequence] = accepted
        elif kind == "D":
            journal.delivered.add((words[0], int(words[1]), int(words[2])))
        elif kind == "G":
            first, last = int(words[2]), int(words[3])
            journal.missed.update(
                (words[0], int(words[1]), n) for n in range(first, min(last, first + 10**6) + 1)
            )
    return journal


def attack(port: int, rng: random.Random) -> None:
    """A peer that says hello and then anything."""
    name = f"attacker-{rng.randrange(5)}"
    hello = Hello(
        *(MAGIC, VERSIONS, "topicweave", "spidercast", ring_id(name), name, Address("127.0.0.1", 9)),
        *(rng.getrandbits(60), 0.0, 0, b""),
    )
    types: list[type[Message]] = [Push, *TYPES]
    codec = Codec(types, 1000, 10_000)
    hostile = HostileMessages(types, [ring_id(name)], [ring_id("other")], rng.randrange(1 << 30))
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=2.0) as victim:
        victim.sendall(hello_frame(hello))
        for _ in range(20):
            victim.sendall(codec.batch([codec.encode(hostile.draw()) for _ in range(5)]))
        victim.sendall(rng.randbytes(50))


def trouble(nodes: list[Node], ports: list[int], rng: random.Random) -> str:
    """One thing goes wrong, for a moment or until the next."""
    node = rng.choice(nodes)
    what = rng.choice(("kill", "stop", "disk", "clock", "attack", "attack"))
    if what == "kill":
        node.signal(signal.SIGKILL)
        assert node.process is not None
        node.process.wait()
        time.sleep(rng.uniform(0.0, 3.0))  # noqa: TID251 - it is away for a while
        node.start()
    elif what == "stop":
        node.signal(signal.SIGSTOP)
        time.sleep(rng.uniform(0.5, 6.0))  # noqa: TID251
        node.signal(signal.SIGCONT)
    elif what == "disk":
        node.bend(pages=1)
        time.sleep(rng.uniform(0.5, 5.0))  # noqa: TID251
        node.bend()
    elif what == "clock":
        node.bend(ahead=rng.choice((-86_400.0, -60.0, 60.0, 86_400.0)))
    else:
        attack(rng.choice(ports), rng)
    return what


def free_ports(count: int, rng: random.Random) -> list[int]:
    """Below those that outgoing connections take: a node must find its own free when it comes back."""
    ports: list[int] = []
    while len(ports) < count:
        port = rng.randrange(15_000, 30_000)
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            ports.append(port)
    return ports


def verdict(nodes: list[Node]) -> dict[str, int]:
    """What became of every event at every node."""
    journals = {node.name: read_journal(node.folder / "journal", nodes) for node in nodes}
    counts: dict[str, int] = defaultdict(int)
    for publisher, journal in journals.items():
        for (epoch, sequence), accepted in journal.published.items():
            counts["published"] += 1
            counts["unaccepted"] += not accepted
            for reader, theirs in journals.items():
                event = (publisher, epoch, sequence)
                if reader == publisher:
                    continue
                if event in theirs.delivered:
                    counts["delivered"] += 1
                elif event in theirs.missed:
                    counts["announced as missed"] += 1
                elif not accepted:
                    counts["unaccepted and not delivered"] += 1
                else:
                    counts["lost without a word"] += 1
                    if counts["lost without a word"] <= SHOWN:
                        print(f"lost without a word: {publisher} {epoch} {sequence} at {reader}")
    return dict(counts)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--nodes", type=int, default=6)
    parser.add_argument("--rate", type=float, default=5.0, help="events per second of each node")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="a new folder for logs and journals")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    ports = free_ports(options.nodes, rng)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(exist_ok=not options.keep)
        nodes = [Node(folder, number, ports, options.rate) for number in range(options.nodes)]
        troubles: dict[str, int] = defaultdict(int)
        try:
            for node in nodes:
                node.start()
            time.sleep(5.0)  # noqa: TID251
            end = time.monotonic() + 60.0 * options.minutes
            while time.monotonic() < end:
                time.sleep(rng.expovariate(0.5))  # noqa: TID251
                troubles[trouble(nodes, ports, rng)] += 1
                for node in nodes:
                    node.sample()
                    if node.ended():
                        node.start()
            for node in nodes:
                node.bend(quiet=1)
            time.sleep(QUIET)  # noqa: TID251
        finally:
            for node in nodes:
                node.signal(signal.SIGTERM)
            for node in nodes:
                if node.process is not None:
                    try:
                        node.process.wait(15)
                    except subprocess.TimeoutExpired:
                        node.process.kill()
        counts = verdict(nodes)
        print(json.dumps({"troubles": dict(troubles), **counts}))
        for node in nodes:
            quarter = max(1, len(node.memory) // 4)
            first, last = sum(node.memory[:quarter]) / quarter, sum(node.memory[-quarter:]) / quarter
            print(
                f"{node.name}: {first / 2**20:.0f} MiB in the first quarter, {last / 2**20:.0f} in the last"
            )
        if counts.get("lost without a word"):
            sys.exit(1)


if __name__ == "__main__":
    main()
