"""py-libp2p's GossipSub in the same burst as the other meshes: signed and encrypted, as it comes.

Its protection against floods (ten events per topic and second) and against many peers at one address are off,
or a burst on one machine would be refused. Each node dials three others, which gives everybody six links,
GossipSub's own degree.
"""

from __future__ import annotations

import time
from contextlib import AsyncExitStack

from benchmarks.live.bursts import BURST, DUE, NODES
from benchmarks.live.figures import Figures, Tally, stamped

TOPIC = "bench"
DIALS = (1, 2, 5)
LONGEST_BURST = 60.0


def libp2p(bursts: int) -> Figures:
    import trio
    from libp2p import new_host
    from libp2p.crypto.ed25519 import create_new_key_pair
    from libp2p.peer.peerinfo import PeerInfo
    from libp2p.pubsub.gossipsub import PROTOCOL_ID_V11, GossipSub
    from libp2p.pubsub.pubsub import Pubsub
    from libp2p.tools.anyio_service import background_trio_service
    from multiaddr import Multiaddr

    best: list[Figures] = []

    async def main() -> None:
        tally = Tally()
        probes: set[tuple[int, bytes]] = set()

        async def read(number: int, own: bytes, subscription: object) -> None:
            while True:
                message = await subscription.get()  # type: ignore[attr-defined]  # the library has no types
                if message.data.startswith(b"probe"):
                    probes.add((number, message.data))
                elif message.from_id != own:
                    tally.add(message.data)

        async with trio.open_nursery() as nursery, AsyncExitStack() as stack:
            hosts, nodes = [], []
            for _ in range(NODES):
                host = new_host(key_pair=create_new_key_pair())
                await stack.enter_async_context(host.run(listen_addrs=[Multiaddr("/ip4/127.0.0.1/tcp/0")]))
                router = GossipSub(
                    protocols=[PROTOCOL_ID_V11],
                    degree=6,
                    degree_low=4,
                    degree_high=12,
                    heartbeat_interval=1,
                    spam_protection_enabled=False,
                    eclipse_protection_enabled=False,
                )
                node = Pubsub(host, router)
                await stack.enter_async_context(background_trio_service(node))
                await stack.enter_async_context(background_trio_service(router))
                await node.wait_until_ready()
                hosts.append(host)
                nodes.append(node)
            for place, host in enumerate(hosts):
                for dial in DIALS:
                    other = hosts[(place + dial) % NODES]
                    await host.connect(PeerInfo(other.get_id(), other.get_addrs()))
            for number, node in enumerate(nodes):
                own = hosts[number].get_id().to_bytes()
                nursery.start_soon(read, number, own, await node.subscribe(TOPIC))
            for number, node in enumerate(nodes):
                await node.publish(TOPIC, b"probe %d" % number)
            # Not all probes need arrive: it loses some of each burst. The share that arrives is in the table.
            with trio.move_on_after(LONGEST_BURST / 2):
                while len(probes) < NODES * NODES:
                    await trio.sleep(0.05)
            for _ in range(bursts):
                tally.restart()
                for number in range(BURST):
                    await nodes[number % NODES].publish(TOPIC, stamped(number))
                deadline = time.monotonic() + LONGEST_BURST
                while len(tally.ages) < DUE and time.monotonic() < deadline:
                    await trio.sleep(0.01)
                best.append(tally.figures(DUE))
            nursery.cancel_scope.cancel()

    trio.run(main)
    return max(best, key=lambda one: (one.arrived, one.per_second))
