"""Spark's Python workers for tests: they begin with all libraries loaded, and with these out of the garbage
collector's sight.

After every task a worker collects garbage, all of it. What is loaded ahead and frozen is not looked at each time.
"""

import gc

import numpy as np
import pandas  # noqa: F401
import pyarrow.compute
import pyarrow.parquet  # noqa: F401
from pyspark import daemon, worker  # noqa: F401

import topicweave.pipeline.graphs.api
import topicweave.pipeline.measuring.sources  # noqa: F401
from topicweave.pipeline.measuring.kernels import numbered_pairs

if __name__ == "__main__":
    numbered_pairs(np.arange(2), np.arange(2))  # Numba's own start
    gc.freeze()
    daemon.manager()
