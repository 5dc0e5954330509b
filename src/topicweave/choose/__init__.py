"""Choosing a system from Python: compare all systems on your subscriptions, get advice, or simulate one."""

from topicweave.choose.advising import advise
from topicweave.choose.comparing import compare
from topicweave.choose.simulating import Delivery, SimulatedSwarm, simulate
from topicweave.choose.sources import read_workload

__all__ = ["Delivery", "SimulatedSwarm", "advise", "compare", "read_workload", "simulate"]
