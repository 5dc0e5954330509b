"""The designs by name (OMen Table 1 and Table 3)."""

from __future__ import annotations

import numpy.typing as npt

from topicweave.designs import small
from topicweave.designs.problem import DEFAULT_RHO, GM, MIN_MAX, NO_EDGES, Edges, Instance, Problem

FEW_NODES = 64
"""Up to so many nodes NumPy alone is as quick as compiled code is to call."""


def design(problem: Problem, rho: float) -> Edges:
    """By whichever engine suits the size: large networks need Numba (the `pipeline` extra)."""
    if problem.instance.nodes <= FEW_NODES:
        return small.design(problem, rho)
    from topicweave.designs import compiled

    return compiled.design(problem, rho)


def gm(instance: Instance, edges: npt.ArrayLike = NO_EDGES) -> Edges:
    """The greedy merge (Chockler et al., PODC 2007): the heaviest edge until topic-connected. A low mean degree."""
    return design(Problem.of(instance, edges), GM)


def min_max_oda(instance: Instance, edges: npt.ArrayLike = NO_EDGES) -> Edges:
    """The heaviest among the edges that raise the maximum degree least. A low maximum degree."""
    return design(Problem.of(instance, edges), MIN_MAX)


def low_oda(instance: Instance, edges: npt.ArrayLike = NO_EDGES, rho: float = DEFAULT_RHO) -> Edges:
    """Both degrees low: the heaviest edge if it is worth it, else the heaviest of the gentlest (see `problem`)."""
    return design(Problem.of(instance, edges), rho)


def low_oda_re(instance: Instance, rho: float = DEFAULT_RHO) -> Edges:
    """LowODA-Re: from scratch after each churn event, whatever edges there were."""
    return low_oda(instance, rho=rho)


def low_oda_inc(instance: Instance, edges: npt.ArrayLike, rho: float = DEFAULT_RHO) -> Edges:
    """LowODA-Inc: keep the edges there are, and add what is missing over all nodes."""
    return low_oda(instance, edges, rho)
