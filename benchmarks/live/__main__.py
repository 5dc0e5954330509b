"""`python -m benchmarks.live [--quick] [mesh | fan-out | topics | subscribe | slow-reader | start | mqtt …]`:
live nodes beside others, in one run. A rival that is not there is named, with the reason.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable

from rich.console import Console

from benchmarks.live import fan_out, gossipsub, mesh, mqtt, slow_reader, start, subscribing, topics
from benchmarks.live.contest import attempt
from benchmarks.live.figures import Figures
from benchmarks.sheet import WIDTH, Column, Sheet
from topicweave.systems.registry import SYSTEMS

BURST = (
    Column("arrived", ".1%", "more"),
    Column("deliveries/s", ",.0f", "more"),
    Column("p50 ms", ".1f", "less"),
    Column("p99 ms", ".1f", "less"),
)


def _figures(burst: Figures) -> tuple[float, ...]:
    return burst.arrived, burst.per_second, burst.p50 * 1e3, burst.p99 * 1e3


def meshes(quick: bool) -> list[Sheet]:
    bursts = 2 if quick else 10
    title = f"20 nodes in one process, bursts of 100 events of 128 bytes, best of {bursts}"
    sheet = Sheet("mesh", title, 1, Column("mesh"), *BURST)
    for name, function, arguments in (
        ("topicweave, unsigned", mesh.topicweave, (False, bursts)),
        ("topicweave, TLS and signed", mesh.topicweave, (True, bursts)),
        ("iroh-gossip 0.35", mesh.iroh, (bursts,)),
        ("py-libp2p GossipSub", gossipsub.libp2p, (2,)),
    ):
        result = attempt(function, *arguments)
        if isinstance(result, str):
            sheet.leave_out(name, result)
        else:
            sheet.add(name, *_figures(result))
    return [sheet]


def fan_outs(quick: bool) -> list[Sheet]:
    events = 20_000 if quick else 200_000
    title = f"one publisher process, {events:,} events of 128 bytes: deliveries/s"
    columns = [
        column
        for readers in ("1 subscriber", "10 subscribers")
        for column in (Column(readers, ",.0f", "more"), Column("arrived", ".1%", "more"))
    ]
    sheet = Sheet("fan-out", title, 1, Column("from whom"), *columns)
    rates = {}
    for name, function in (
        ("topicweave, unsigned", fan_out.topicweave),
        ("topicweave, TLS and signed", fan_out.topicweave_signed),
        ("nats-py, nats-server", fan_out.nats),
        ("pyzmq PUB/SUB", fan_out.pyzmq),
    ):
        # Signing takes most of the time of a signed event: a tenth of them tells as much.
        count = events // 10 if function is fan_out.topicweave_signed else events
        found = [attempt(function, subscribers, count) for subscribers in (1, 10)]
        why = [one for one in found if isinstance(one, str)]
        if why:
            sheet.leave_out(name, why[0])
        else:
            rates[name] = [rate.per_second for rate in found]
            sheet.add(name, *(figure for rate in found for figure in rate))
    ours, theirs = rates.get("topicweave, unsigned"), rates.get("nats-py, nats-server")
    if ours and theirs:
        ratios = [f"{one / other:.2f}" for one, other in zip(ours, theirs, strict=True)]
        beside = f"topicweave, unsigned / NATS: {ratios[0]} with one subscriber, {ratios[1]} with ten"
        sheet.note = "\n".join(filter(None, [beside, sheet.note]))
    return [sheet]


def many_topics(quick: bool) -> list[Sheet]:
    most, bursts = (500, 2) if quick else (5000, 5)
    swarm = Column("system"), Column("topics", ",d")
    costs = Sheet(
        "topics",
        "20 nodes in one process that want the same topics: coming up, and at rest",
        2,
        *swarm,
        Column("up s", ".1f", "less"),
        Column("core per node", ".2%", "less"),
        Column("kB/s per node", ".1f", "less"),
    )
    title = f"the same nodes, bursts of 100 events of 128 bytes, best of {bursts}"
    sheet = Sheet("topics bursts", title, 2, *swarm, *BURST)
    for system, count in (("spidercast", 1), ("spidercast", most), ("omen", most)):
        result = attempt(topics.many_topics, system, count, bursts)
        if isinstance(result, str):
            costs.leave_out(f"{system}, {count:,} topics", result)
        else:
            costs.add(system, count, result.up, result.processor, result.bytes / 1e3)
            sheet.add(system, count, *_figures(result.burst))
    return [costs, *([sheet] if sheet.rows else [])]


def subscriptions(quick: bool) -> list[Sheet]:
    title = f"subscribing to {subscribing.TOPICS:,} topics at once: milliseconds of CPU"
    columns = Column("all", ".0f", "less"), Column("longest step", ".0f", "less")
    sheet = Sheet("subscribe", title, 1, Column("system"), *columns)
    for system in ("spidercast", "rappel") if quick else SYSTEMS:
        result = attempt(subscribing.subscribing, system)
        if isinstance(result, str):
            sheet.leave_out(system, result)
        else:
            sheet.add(system, *(1e3 * seconds for seconds in result))
    return [sheet]


def slow_readers(quick: bool) -> list[Sheet]:
    seconds = 16.0 if quick else 80.0
    sheet = Sheet(
        "slow-reader",
        "a reader beside one that stalls 0.95 s of each second: events/s",
        1,
        Column("reader"),
        Column("both read", ",.0f", "more"),
        Column("one stalls", ",.0f", "more"),
        Column("lost", ".1%", "less"),
    )
    result = attempt(slow_reader.slow_reader, seconds)
    if isinstance(result, str):
        sheet.leave_out("topicweave", result)
    else:
        sheet.add("topicweave", result.alone, result.beside, result.lost)
    return [sheet]


def starts(quick: bool) -> list[Sheet]:
    runs = 3 if quick else 10
    columns = Column("median", ".2f", "less"), Column("slowest", ".2f", "less")
    title = f"from the command to a listening node, {runs} runs: seconds"
    sheet = Sheet("start", title, 1, Column("command"), *columns)
    result = attempt(start.start_times, runs)
    if isinstance(result, str):
        sheet.leave_out("topicweave node", result)
    else:
        sheet.add("topicweave node", statistics.median(result), result[-1])
    return [sheet]


def mqtt_doors(quick: bool) -> list[Sheet]:
    count, clients = (2_000, 100) if quick else (50_000, 1000)
    bursts = Sheet(
        "mqtt",
        f"MQTT clients, {count:,} messages of 128 bytes",
        2,
        Column("messages"),
        Column("server"),
        Column("arrived", ".1%", "more"),
        Column("deliveries/s", ",.0f", "more"),
        Column("CPU µs per delivery", ".1f", "less"),
    )
    crowds = Sheet(
        "mqtt crowd",
        f"{clients:,} MQTT clients",
        1,
        Column("server"),
        Column("connect and subscribe, per second", ",.0f", "more"),
        Column("MB of the server", ".0f", "less"),
    )
    for name in mqtt.SERVERS:
        found = [
            (f"QoS {qos}, 1 to {readers}", attempt(mqtt.fan_out, name, readers, count // readers, qos))
            for qos in (0, 1)
            for readers in (1, 10)
        ]
        crowd = attempt(mqtt.crowd, name, clients, count)
        if isinstance(crowd, str):
            crowds.leave_out(name, crowd)
        else:
            crowds.add(name, crowd.joins, crowd.megabytes)
        found.append((f"{clients:,} clients, a topic each", getattr(crowd, "rate", crowd)))
        for what, rate in found:
            if isinstance(rate, str):
                bursts.leave_out(f"{what}, {name}", rate)
            else:
                bursts.add(what, name, *rate)
    return [bursts, crowds]


PARTS: dict[str, Callable[[bool], list[Sheet]]] = {
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
    console = Console(width=WIDTH, highlight=False)
    for part in options.parts or PARTS:
        for sheet in PARTS[part](options.quick):
            console.print(sheet.shown())


if __name__ == "__main__":
    main()
