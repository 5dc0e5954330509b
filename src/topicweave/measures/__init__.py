"""What the tables of a run say: the definition of every measure, in memory, over arrays.

Measures take pyarrow tables with the columns of `topicweave.telemetry.schema` and a subscriptions table (node,
topic) of names. `measure_run` gives them all.
"""

from topicweave.measures.similarity import tdi
from topicweave.measures.summary import measure_run

__all__ = ["measure_run", "tdi"]
