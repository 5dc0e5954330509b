"""What an array engine is: a whole network at once, in rounds, by the rules that nodes follow.

An engine is made with all its nodes (it starts), goes on round by round (`step`), and is looked at
(`observe`). What it observes comes from `topicweave.measures`: an engine counts, it does not define. The
study `PAPER/levels` holds each engine to the nodes in the simulator.
"""

from __future__ import annotations

from typing import Any, Protocol


class BulkEngine(Protocol):
    """A network as arrays."""

    def step(self) -> bool:
        """Go on by one round; False if there is none left."""

    def observe(self) -> dict[str, Any]:
        """Measures of the network as it stands."""


def run_out(engine: BulkEngine) -> dict[str, Any]:
    """All rounds, then what is observed."""
    while engine.step():
        pass
    return engine.observe()
