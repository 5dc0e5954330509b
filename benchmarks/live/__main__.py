"""`python -m benchmarks.live [--quick] [mesh | fan-out | topics | subscribe | slow-reader | start | mqtt …]`:
live nodes beside others, in one run.
"""

from __future__ import annotations

import argparse
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.live import fan_out, gossipsub, mesh, mqtt, slow_reader, start, subscribing, topics
from benchmarks.live.contest import attempt
from benchmarks.live.figures import Figures
from topicweave.systems.registry import SYSTEMS

FIGURES = ("arrived", "deliveries/s", "p50 ms", "p99 ms")


def meshes(quick: bool) -> Table:
    bursts = 2 if quick else 10
    table = Table(title="20 nodes in one process, bursts of 100 events of 128 bytes, best of " + str(bursts))
    for column in ("mesh", *FIGURES):
        table.add_column(column, justify="left" if column == "mesh" else "right")
    for name, function, arguments in (
        ("topicweave, unsigned", mesh.topicweave, (False, bursts)),
        ("topicweave, TLS and signed", mesh.topicweave, (True, bursts)),
        ("iroh-gossip 0.35", mesh.iroh, (bursts,)),
        ("py-libp2p GossipSub", gossipsub.libp2p, (2,)),
    ):
        result = attempt(function, *arguments)
        if isinstance(result, str):
            table.add_row(name, result)
        else:
            table.add_row(name, *_figures(result))
    return table


def _figures(result: Figures) -> tuple[str, ...]:
    times = (f"{result.p50 * 1e3:.1f}", f"{result.p99 * 1e3:.1f}")
    return f"{result.arrived:.1%}", f"{result.per_second:,.0f}", *times


def fan_outs(quick: bool) -> Table:
    events = 20_000 if quick else 200_000
    table = Table(title=f"one publisher process, {events:,} events of 128 bytes: deliveries/s")
    for column in ("", "1 subscriber", "10 subscribers"):
        table.add_column(column, justify="right" if column else "left")
    rates: dict[str, list[float]] = {}
    for name, function in (
        ("topicweave, unsigned", fan_out.topicweave),
        ("topicweave, TLS and signed", fan_out.topicweave_signed),
        ("nats-py, nats-server", fan_out.nats),
        ("pyzmq PUB/SUB", fan_out.pyzmq),
    ):
        # Signing takes most of the time of a signed event: a tenth of them tells as much.
        count = events // 10 if function is fan_out.topicweave_signed else events
        cells = [attempt(function, subscribers, count) for subscribers in (1, 10)]
        rates[name] = [_rate(cell) for cell in cells]
        table.add_row(name, *cells)
    ours, theirs = rates["topicweave, unsigned"], rates["nats-py, nats-server"]
    ratios = [f"{one / other:.2f}" if other else "" for one, other in zip(ours, theirs, strict=True)]
    table.add_row("topicweave, unsigned / NATS", *ratios)
    return table


def _rate(cell: str) -> float:
    """Deliveries per second that a cell tells of; 0 if it tells why there are none."""
    number = cell.split(maxsplit=1)[0].replace(",", "")
    return float(number) if number.isdigit() else 0.0


def many_topics(quick: bool) -> Table:
    most, bursts = (500, 2) if quick else (5000, 5)
    table = Table(
        title="20 nodes in one process that want the same topics: coming up, at rest, and the same bursts"
    )
    for column in ("system", "topics", "up s", "core per node", "kB/s per node", *FIGURES):
        table.add_column(column, justify="left" if column == "system" else "right")
    for system, count in (("spidercast", 1), ("spidercast", most), ("omen", most)):
        result = attempt(topics.many_topics, system, count, bursts)
        if isinstance(result, str):
            table.add_row(system, f"{count:,}", result)
        else:
            table.add_row(
                system,
                f"{count:,}",
                f"{result.up:.1f}",
                f"{result.processor:.2%}",
                f"{result.bytes / 1e3:.1f}",
                *_figures(result.burst),
            )
    return table


def subscriptions(quick: bool) -> Table:
    table = Table(title=f"subscribing to {subscribing.TOPICS:,} topics at once: milliseconds of CPU")
    for column in ("system", "all", "longest step"):
        table.add_column(column, justify="left" if column == "system" else "right")
    for system in ("spidercast", "rappel") if quick else SYSTEMS:
        result = attempt(subscribing.subscribing, system)
        cells = [result] if isinstance(result, str) else [f"{1e3 * seconds:.0f}" for seconds in result]
        table.add_row(system, *cells)
    return table


def slow_readers(quick: bool) -> Table:
    seconds = 16.0 if quick else 80.0
    table = Table(title="a reader beside one that stalls 0.95 s of each second: events/s")
    for column in ("both read", "one stalls", "lost"):
        table.add_column(column, justify="right")
    result = attempt(slow_reader.slow_reader, seconds)
    if isinstance(result, str):
        table.add_row(result)
    else:
        table.add_row(f"{result.alone:,.0f}", f"{result.beside:,.0f}", f"{result.lost:.1%}")
    return table


def starts(quick: bool) -> Table:
    runs = 3 if quick else 10
    table = Table(title=f"from the command to a listening node, {runs} runs: seconds")
    for column in ("median", "slowest"):
        table.add_column(column, justify="right")
    result = attempt(start.start_times, runs)
    table.add_row(result) if isinstance(result, str) else table.add_row(*start.told(result))
    return table


def mqtt_doors(quick: bool) -> Table:
    count, clients = (2_000, 100) if quick else (50_000, 1000)
    table = Table(
        title=f"MQTT clients at one node and at Mosquitto, {count:,} messages of 128 bytes: deliveries/s"
    )
    for column in ("", "node", "Mosquitto", "node / Mosquitto", "CPU of the node / of Mosquitto"):
        table.add_column(column, justify="right" if column else "left")
    for qos in (0, 1):
        for subscribers in (1, 10):
            found = [
                attempt(mqtt.fan_out, name, subscribers, count // subscribers, qos) for name in mqtt.SERVERS
            ]
            table.add_row(f"QoS {qos}, 1 to {subscribers}", *_beside(found))
    crowds = [attempt(mqtt.crowd, name, clients, count) for name in mqtt.SERVERS]
    title = f"{clients:,} clients, a topic each"
    if any(isinstance(one, str) for one in crowds):
        table.add_row(title, *map(str, crowds))
        return table
    node, other = crowds
    table.add_row(title, *_beside([node.rate, other.rate]))
    joins = (f"{node.joins:,.0f}", f"{other.joins:,.0f}", f"{node.joins / other.joins:.2f}")
    table.add_row("they connect and subscribe, per second", *joins)
    sizes = (f"{node.megabytes:.0f}", f"{other.megabytes:.0f}", f"{node.megabytes / other.megabytes:.1f}")
    table.add_row("MB of the server", *sizes)
    return table


def _beside(found: list[Any]) -> tuple[str, ...]:
    node, other = found
    if isinstance(node, str) or isinstance(other, str):
        return str(node), str(other)
    cells = [
        f"{one.per_second:,.0f}" + ("" if one.arrived == 1 else f" ({one.arrived:.1%})") for one in found
    ]
    processor = f"{node.processor / other.processor:.1f}" if other.processor else ""
    return (*cells, f"{node.per_second / other.per_second:.2f}", processor)


PARTS = {
    "mesh": meshes,
    "fan-out": fan_outs,
    "topics": many_topics,
    "subscribe": subscriptions,
    "slow-reader": slow_readers,
    "start": starts,
    "mqtt": mqtt_doors,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.live", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="default: all")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that they work")
    options = parser.parse_args()
    console = Console()
    for part in options.parts or PARTS:
        console.print(PARTS[part](options.quick))


if __name__ == "__main__":
    main()
