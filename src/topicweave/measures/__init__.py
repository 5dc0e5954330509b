"""Measures: each is defined here once, as array work over the tables of a run.

A measure takes pyarrow tables with the columns of `topicweave.telemetry.schema`, and a subscriptions table (node,
topic) of names. `measure_run` computes all measures.
"""

from topicweave.measures.similarity import tdi
from topicweave.measures.summary import measure_run

__all__ = ["measure_run", "tdi"]
