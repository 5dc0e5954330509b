"""Choosing a system from Python: compare all of them on your subscriptions, ask for advice, play with one."""

from topicweave.choose.advising import advise
from topicweave.choose.comparing import compare
from topicweave.choose.simulating import Delivery, SimulatedSwarm, simulate
from topicweave.choose.sources import read_workload

__all__ = ["Delivery", "SimulatedSwarm", "advise", "compare", "read_workload", "simulate"]
