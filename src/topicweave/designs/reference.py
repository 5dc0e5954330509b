"""The designs by definition: all weights anew for every edge. What the other engines are checked and measured
against.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from topicweave.designs.problem import NO_EDGES, Edges, Problem


def design(problem: Problem, rho: float) -> Edges:
    """The edges that make the instance topic-connected (OMen Alg. 1, line 3: the LowODA rule)."""
    instance = problem.instance
    component: list[dict[int, int]] = [
        dict(
            zip(
                instance.interest(node).tolist(),
                problem.labels[instance.offsets[node] : instance.offsets[node + 1]].tolist(),
                strict=True,
            )
        )
        for node in range(instance.nodes)
    ]
    degree, highest = problem.degrees.tolist(), problem.ceiling
    taken: list[tuple[int, int]] = []
    while True:
        weights = {
            (u, v): sum(
                component[u][topic] != component[v][topic] for topic in component[u].keys() & component[v]
            )
            for u, v in combinations(range(instance.nodes), 2)
        }
        weights = {edge: weight for edge, weight in weights.items() if weight}
        if not weights:
            return np.array(taken, np.int64) if taken else NO_EDGES
        raised = {edge: max(highest, degree[edge[0]] + 1, degree[edge[1]] + 1) for edge in weights}
        least = min(raised.values())
        # max() keeps the first of equals, and the pairs come in lexicographic order.
        heaviest = max(weights, key=weights.__getitem__)
        gentlest = max((edge for edge in weights if raised[edge] == least), key=weights.__getitem__)
        u, v = heaviest if weights[heaviest] > rho * weights[gentlest] else gentlest
        taken.append((u, v))
        degree[u] += 1
        degree[v] += 1
        highest = max(highest, degree[u], degree[v])
        for topic in component[u].keys() & component[v]:
            old, new = component[v][topic], component[u][topic]
            for labels in component:
                if labels.get(topic) == old:
                    labels[topic] = new
