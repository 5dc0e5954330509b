"""The systems that can be run, by name. A new system adds one line here."""

from __future__ import annotations

from topicweave.errors import UnknownName
from topicweave.systems.alternatives.broker import BROKER
from topicweave.systems.alternatives.gossipsub import GOSSIPSUB
from topicweave.systems.baselines import (
    opt,
    random_overlay,
    ring_per_topic,
    rvr,
    scribe,
    similarity,
    strawman,
)
from topicweave.systems.magnet import MAGNET
from topicweave.systems.omen import OMEN
from topicweave.systems.rappel import RAPPEL
from topicweave.systems.spidercast import SPIDERCAST
from topicweave.systems.system import System
from topicweave.systems.vitis import VITIS

SYSTEMS: dict[str, System] = {
    system.name: system
    for system in (
        SPIDERCAST,
        OMEN,
        VITIS,
        RAPPEL,
        MAGNET,
        similarity.SIMILARITY,
        random_overlay.RANDOM,
        ring_per_topic.RING_PER_TOPIC,
        rvr.RVR,
        scribe.SCRIBE,
        opt.OPT,
        strawman.STRAWMAN,
        GOSSIPSUB,
        BROKER,
    )
}


def find_system(name: str) -> System:
    try:
        return SYSTEMS[name]
    except KeyError:
        raise UnknownName("system", name, list(SYSTEMS)) from None
