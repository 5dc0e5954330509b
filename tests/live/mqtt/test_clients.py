"""The door, with whole programs of other people: paho in a thread, Mosquitto's clients, mqtt.js."""

from __future__ import annotations

import asyncio
import os
import queue
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from paho.mqtt import client as paho
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion

from tests.live.mqtt.test_door import doors
from tests.live.together import PROCESS_PATIENCE, eventually, linked, run


@pytest.mark.parametrize(
    "version", [MQTTProtocolVersion.MQTTv311, MQTTProtocolVersion.MQTTv5], ids=["3.1.1", "5"]
)
def test_pahos_own_loop(version: MQTTProtocolVersion) -> None:
    """paho in a thread of its own, as most applications run it."""

    def talk(port: int) -> list[tuple[bytes, int, bool]]:
        got: queue.Queue[tuple[bytes, int, bool]] = queue.Queue()
        ready = threading.Event()
        client = paho.Client(CallbackAPIVersion.VERSION2, "p", protocol=version)
        client.on_message = lambda _c, _u, message: got.put(
            (bytes(message.payload), message.qos, bool(message.retain))
        )
        client.on_subscribe = lambda *_: ready.set()
        client.connect("127.0.0.1", port)
        client.loop_start()
        client.publish("t", b"kept", 1, retain=True).wait_for_publish(30)
        client.subscribe("t", 2)
        assert ready.wait(30)
        seen = [got.get(timeout=30)]
        for qos in (0, 1, 2):
            client.publish("t", b"%d" % qos, qos).wait_for_publish(30)
            seen.append(got.get(timeout=30))
        client.disconnect()
        client.loop_stop()
        return seen

    async def test() -> None:
        async with doors(1) as (one,):
            assert one.mqtt is not None
            seen = await asyncio.to_thread(talk, one.mqtt.address.port)
            assert seen == [(b"kept", 2, True), (b"0", 2, False), (b"1", 2, False), (b"2", 2, False)]

    run(test)


@pytest.mark.skipif(shutil.which("mosquitto_sub") is None, reason="Mosquitto's clients are not installed")
@pytest.mark.parametrize("version", ["311", "5"])
def test_mosquittos_clients(version: str) -> None:
    async def test() -> None:
        async with doors() as (one, other):
            assert one.mqtt is not None
            assert other.mqtt is not None
            sub = await asyncio.create_subprocess_exec(
                *[
                    "mosquitto_sub",
                    "-V",
                    version,
                    "-p",
                    str(other.mqtt.address.port),
                    "-t",
                    "news",
                    "-q",
                    "2",
                    "-C",
                    "3",
                ],
                stdout=subprocess.PIPE,
            )
            await eventually(lambda: "news" in other.subscriptions, patience=PROCESS_PATIENCE)
            await one.subscribe("news")
            await eventually(lambda: linked(one, other))
            for number in range(3):
                pub = await asyncio.create_subprocess_exec(
                    *["mosquitto_pub", "-V", version, "-p", str(one.mqtt.address.port), "-t", "news"],
                    *["-m", f"hello {number}", "-q", str(number)],
                )
                assert await pub.wait() == 0
            printed, _ = await asyncio.wait_for(sub.communicate(), PROCESS_PATIENCE)
            assert printed == b"hello 0\nhello 1\nhello 2\n"

    run(test)


SCRIPT = Path(__file__).with_name("mqtt_js.mjs")
MQTT_JS = Path(os.environ.get("MQTT_JS") or Path(sys.prefix) / "mqtt-js")
"""Where `npm ci` was run, as `scripts/setup.sh --test-tools` does."""


@pytest.mark.skipif(
    not (MQTT_JS / "node_modules/mqtt").is_dir() or shutil.which("node") is None,
    reason="needs Node, and mqtt.js, which scripts/setup.sh --test-tools fetches with npm",
)
@pytest.mark.parametrize("version", [4, 5])
def test_mqtt_js(version: int) -> None:
    async def test() -> None:
        async with doors() as (one, other):
            assert one.mqtt is not None
            assert other.mqtt is not None
            ports = [str(node.mqtt.address.port) for node in (one, other) if node.mqtt]
            client = await asyncio.create_subprocess_exec(
                "node", str(SCRIPT), str(MQTT_JS), str(version), *ports, stdout=subprocess.PIPE
            )
            printed, _ = await asyncio.wait_for(client.communicate(), PROCESS_PATIENCE)
            assert printed.decode().splitlines() == [
                "retained kept true",
                "0 live false",
                "1 live false",
                "2 live false",
                "a/b/c false",
                "x false",
                "x/y/z false",
            ]

    run(test)
