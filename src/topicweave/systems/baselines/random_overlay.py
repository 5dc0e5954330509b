"""random(y): y links to random peers, whatever they want (SpiderCast §3.9.1). It is similarity(0, y)."""

from __future__ import annotations

from typing import Annotated

import msgspec

from topicweave.systems.baselines.similarity import SimilarityParameters, build
from topicweave.systems.spidercast.messages import CONTROL_KINDS
from topicweave.systems.spidercast.parameters import PACES, Count
from topicweave.systems.system import System

Zero = Annotated[int, msgspec.Meta(ge=0, le=0)]


class RandomParameters(SimilarityParameters, frozen=True, forbid_unknown_fields=True):
    """How many random links a node keeps. It asks nobody what others want: for similar ones there is `similarity`."""

    similar: Zero = 0
    random: Count = 10
    bridges: Zero = 0


RANDOM = System(
    name="random",
    summary="links to random nodes, whatever they want",
    source="SpiderCast (DEBS 2007) §3.9.1",
    parameters=RandomParameters,
    build=build,
    connects_topics=False,
    needs="peers",
    control_kinds=CONTROL_KINDS,
    paces=PACES,
)
