"""Centralized overlay designs: GM, MinMaxODA and LowODA, over all nodes or some, from scratch or from existing edges.

    from topicweave.designs import Instance, gm, low_oda

    overlay = low_oda(Instance.of_workload(workload))

`problem` states the problem. `reference` solves it by definition, `small` with NumPy alone, `compiled` with
Numba. The three give the same edges in the same order.
"""

from topicweave.designs.design import (
    gm,
    low_oda,
    low_oda_inc,
    low_oda_re,
    min_max_oda,
)
from topicweave.designs.problem import DEFAULT_RHO, Edges, Instance, Problem

__all__ = [
    "DEFAULT_RHO",
    "Edges",
    "Instance",
    "Problem",
    "gm",
    "low_oda",
    "low_oda_inc",
    "low_oda_re",
    "min_max_oda",
]
