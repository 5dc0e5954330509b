"""The designs with NumPy alone, by a full matrix of weights: for the few dozen nodes of an OMen shadow set.

Taking an edge costs a few passes over the matrix, so time grows with the square of the nodes for each edge. A
node that repairs an overlay needs no more than this; `compiled` is for whole networks.
"""

from __future__ import annotations

import numpy as np

from topicweave.designs.problem import NO_EDGES, Edges, Problem


def design(problem: Problem, rho: float) -> Edges:
    """The edges that make the instance topic-connected, as `reference.design` gives them."""
    instance = problem.instance
    nodes = instance.nodes
    if not nodes or not len(instance.topic):
        return NO_EDGES
    wanted, column = np.unique(instance.topic, return_inverse=True)
    component = np.full((nodes, len(wanted)), -1, np.int64)
    # Labels need only differ within a topic; from 0 on, so that -1 stands for "does not want it".
    component[instance.node, column] = problem.labels - problem.labels.min()
    weights = np.zeros((nodes, nodes), np.int32)
    for topic in component.T:
        members = np.flatnonzero(topic >= 0)
        weights[np.ix_(members, members)] += topic[members, np.newaxis] != topic[members]
    degrees, ceiling = problem.degrees.copy(), problem.ceiling
    taken: list[tuple[int, int]] = []
    while True:
        # The first greatest of a symmetric matrix is the lexicographically lowest pair.
        place = int(weights.argmax())
        weight = int(weights.flat[place])
        if not weight:
            return np.array(taken, np.int64) if taken else NO_EDGES
        if rho > 0:
            below = degrees < ceiling
            gentle = np.where(below[:, np.newaxis] & below, weights, 0)
            other = int(gentle.argmax())
            gentle_weight = int(gentle.flat[other])
            if gentle_weight and not weight > rho * gentle_weight:
                place = other
        u, v = divmod(place, nodes)
        taken.append((u, v))
        degrees[u] += 1
        degrees[v] += 1
        ceiling = max(ceiling, int(degrees[u]), int(degrees[v]))
        mine, theirs = component[u], component[v]
        for joined in np.flatnonzero((mine >= 0) & (theirs >= 0) & (mine != theirs)):
            labels = component[:, joined]
            here, there = np.flatnonzero(labels == mine[joined]), np.flatnonzero(labels == theirs[joined])
            weights[np.ix_(here, there)] -= 1
            weights[np.ix_(there, here)] -= 1
            component[there, joined] = mine[joined]
