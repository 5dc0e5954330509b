"""Coverage-guided fuzzing of everything that reads bytes of an MQTT client or of another door;
test_fuzz_mqtt.py does it for half a minute.

    python tests/live/mqtt/fuzz_mqtt.py -max_total_time=300

Whatever comes, bytes are packets or an `MqttError`; a packet that was read is written and read again as the
same; an envelope gives a payload and properties that can be sent.
"""

from __future__ import annotations

import contextlib
import sys

import atheris

with atheris.instrument_imports(include=["topicweave.live.mqtt"]):
    from topicweave.live.mqtt.codec import Reader, encode
    from topicweave.live.mqtt.envelope import MAGIC, unwrap
    from topicweave.live.mqtt.packets import V5, V311, MqttError, Publish

MOST = 1 << 16


def feed(data: bytes) -> None:
    # The first byte says the version, and in what pieces the rest arrives.
    version, step = (0, V311, V5)[data[0] % 3] if data else 0, max(1, data[0]) if data else 1
    reader = Reader(MOST, version)
    with contextlib.suppress(MqttError):
        for start in range(1, len(data), step):
            for packet in reader.feed(data[start : start + step]):
                again = list(Reader(2 * MOST, reader.version).feed(encode(packet, reader.version)))
                assert again == [packet], packet
    payload, head = unwrap(MAGIC + data)
    encode(Publish("t", payload, properties=head.properties), V5)


if __name__ == "__main__":
    atheris.Setup(sys.argv, feed)
    atheris.Fuzz()
