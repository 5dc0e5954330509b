"""Twenty nodes in one process, all wanting one topic: bursts of 100 events of 128 bytes by rotating publishers.

Counted are deliveries at the other nineteen. Each contestant says when its mesh is up (a probe of every node
reached all) before the bursts begin; the figures are those of the best burst, so that a hiccup of the machine
is nobody's fault.
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
import time
from pathlib import Path

from benchmarks.live.bursts import BURST, DUE, NODES, PATIENCE, Mesh
from benchmarks.live.figures import Figures, Tally, stamped

TOPIC = "bench"


def topicweave(signed: bool, bursts: int) -> Figures:
    from topicweave.live import Settings
    from topicweave.live.authority import issue, new_swarm
    from topicweave.live.node import run
    from topicweave.live.swarm import run_swarm

    best: list[Figures] = []

    async def main() -> None:
        with tempfile.TemporaryDirectory() as folder:
            keys = None
            settings = Settings(insecure=True, preset="local")
            if signed:
                swarm = new_swarm(Path(folder) / "swarm")
                keys = [str(issue(swarm, f"node-{number}")) for number in range(NODES)]
                settings = Settings(keys=keys[0], preset="local")
            async with run_swarm([[TOPIC]] * NODES, settings, keys=keys) as nodes:
                mesh = Mesh(nodes, TOPIC)
                await mesh.up()
                best.append(await mesh.best_burst(bursts))
                mesh.close()

    run(main)
    return best[0]


def isolated() -> bool:
    """Whether this process sees no network but loopback."""
    devices = Path("/proc/net/dev")
    names = (
        [line.split(":")[0].strip() for line in devices.read_text().splitlines()[2:]]
        if devices.exists()
        else [""]
    )
    return set(names) <= {"lo"}


def iroh(bursts: int) -> Figures:
    """iroh-gossip (signed and encrypted always). It calls relays on the Internet, so it runs only where there
    is none.
    """
    if not isolated():
        raise RuntimeError("left out: iroh calls out to relays; needs a network namespace with loopback only")
    import iroh as library

    best: list[Figures] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        library.iroh_ffi.uniffi_set_event_loop(loop)
        nodes = []
        for _ in range(NODES):
            options = library.NodeOptions(
                node_discovery=library.NodeDiscoveryConfig.NONE,
                ipv4_addr="127.0.0.1:0",
                ipv6_addr="[::1]:0",
                gc_interval_millis=0,
                blob_events=None,
                enable_docs=False,
                secret_key=None,
                protocols=None,
            )
            nodes.append(await library.Iroh.memory_with_options(options))
        addresses = [await node.net().node_addr() for node in nodes]
        for place, node in enumerate(nodes):
            for other, address in enumerate(addresses):
                if other != place:
                    await node.net().add_node_addr(address)
        tally = Tally()
        probes: set[tuple[int, bytes]] = set()

        class Callback(library.GossipMessageCallback):  # type: ignore[misc]  # the library has no types
            def __init__(self, number: int) -> None:
                self.number = number

            async def on_message(self, message: object) -> None:
                if message.type() == library.MessageType.RECEIVED:  # type: ignore[attr-defined]  # the library has no types
                    content = message.as_received().content  # type: ignore[attr-defined]  # the library has no types
                    if content.startswith(b"probe"):
                        probes.add((self.number, content))
                    else:
                        tally.add(content)

        topic = bytes(32)
        ids = [await node.net().node_id() for node in nodes]
        senders = await asyncio.gather(
            *(
                node.gossip().subscribe(topic, [other for other in ids[:3] if other != own], Callback(number))
                for number, (node, own) in enumerate(zip(nodes, ids, strict=True))
            )
        )
        deadline = time.monotonic() + PATIENCE
        while True:
            probes.clear()
            for number, sender in enumerate(senders):
                await sender.broadcast(b"probe %d %f" % (number, time.monotonic()))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(5.0):
                    while len(probes) < NODES * (NODES - 1):
                        await asyncio.sleep(0.01)
                    break
            if time.monotonic() > deadline:
                raise RuntimeError(f"the mesh did not come up ({len(probes)} probes arrived)")
        for _ in range(bursts):
            tally.restart()
            for number in range(BURST):
                await senders[number % NODES].broadcast(stamped(number))
            deadline = time.monotonic() + PATIENCE
            while len(tally.ages) < DUE and time.monotonic() < deadline:
                await asyncio.sleep(0.001)
            best.append(tally.figures(DUE))

    asyncio.run(main())
    return max(best, key=lambda one: (one.arrived, one.per_second))
