"""Magnet's ring: nodes at places of their own choice, near neighbours and long links. `ring` states the rules."""

from topicweave.blocks.ring.parameters import RingParameters
from topicweave.blocks.ring.ring import Ring

__all__ = ["Ring", "RingParameters"]
