"""Magnet: a ring on which similar subscribers are neighbours, and trees that keep that locality (DEBS 2010)."""

from topicweave.systems.magnet.home_trees import CONTROL_KINDS, degree_limit
from topicweave.systems.magnet.node import MagnetNode
from topicweave.systems.magnet.parameters import MagnetParameters
from topicweave.systems.system import System

MAGNET = System(
    name="magnet",
    summary="similar subscribers are neighbours on an OSCAR ring; one tree per topic along greedy routes from its home",
    source="Magnet (DEBS 2010) §3",
    parameters=MagnetParameters,
    build=MagnetNode,
    connects_topics=True,
    needs="nothing",
    degree_limit=degree_limit,
    control_kinds=CONTROL_KINDS,
    # Views, a place, a better one, fingers three times over.
    settles_within=60.0,
)

__all__ = ["CONTROL_KINDS", "MAGNET", "MagnetNode", "MagnetParameters"]
