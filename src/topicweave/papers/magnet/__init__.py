"""Magnet (DEBS 2010), §4: figures 2 to 8, the Wikipedia trace, and that nothing is lost without correlation.

Cost is the number of uninterested nodes in the distribution trees, the home included, per event: averaged
over topics, or over events where topics have rates. Degree 19 (or 12) counts the distinct nodes at the other
end of a link on the overlay that the trees run over, whoever chose it: two on the ring, and both ends of 8.5
(or 5) fingers per node.

The figures are of the *converged state computed as arrays* (`topicweave.bulk.magnet.engine`), not of nodes
that exchange messages: the rows say so. `magnet/levels` sets both beside each other on networks that nodes
reach in reasonable time. In every run all trees are checked by an independent routine. Every point is the
mean over several seeds.
"""

from __future__ import annotations

from topicweave.papers.magnet.checks import levels, uncorrelated, wikipedia
from topicweave.papers.magnet.choices import rates, samples
from topicweave.papers.magnet.multi_modal import fig2, fig3a, fig3b, fig4a, fig4b, fig5
from topicweave.papers.magnet.settings import SEEDS
from topicweave.papers.magnet.structured import fig6, fig7, fig8a, fig8b
from topicweave.papers.magnet.why import why
from topicweave.papers.study import Study

ORACLE = (
    "a newcomer gets fresh uniform samples of all its topics; random walks end at any node of an arc alike"
)
_TITLES = {
    fig2: ("links per node", "§4.2, Figure 2"),
    fig3a: ("correlation, equal rates: uninterested relays", "§4.2, Figure 3(a)"),
    fig3b: ("correlation, skewed rates: uninterested relays", "§4.2, Figure 3(b)"),
    fig4a: ("topic popularity: relays saved", "§4.2, Figure 4(a)"),
    fig4b: ("subscription sizes: relays saved", "§4.2, Figure 4(b)"),
    fig5: ("messages to uninterested nodes, popular topics first", "§4.2, Figure 5"),
    fig6: ("spatial model: relays saved", "§4.3, Figure 6"),
    fig7: ("hierarchical topics: popularity", "§4.4, Figure 7"),
    fig8a: ("hierarchical topics: homophily and initFrac", "§4.4, Figure 8(a)"),
    fig8b: ("hierarchical topics: subscription sizes", "§4.4, Figure 8(b)"),
    wikipedia: ("real subscriptions: relays of the strawman above Magnet's", "§4.5"),
    uncorrelated: ("uncorrelated subscriptions: not worse than the strawman", "§1, §6"),
    samples: ("how many samples of a topic's subscribers it takes", "§3.4, §6"),
    rates: ("rates that do not go by popularity", "§4.2"),
    why: ("figure 5 by correlation and by what nodes know", "§4.2, Figure 5"),
    levels: ("by messages and as arrays: the same costs", "ours"),
}

STUDIES = [
    Study(
        f"magnet/{plan.__name__}",
        title,
        f"Magnet (DEBS 2010) {section}",
        plan,
        oracle="" if plan in (fig7, levels) else ORACLE,
        level="data" if plan is fig7 else "messages" if plan is levels else "bulk",
        seeds={} if plan is levels else SEEDS,
    )
    for plan, (title, section) in _TITLES.items()
]

__all__ = ["STUDIES"]
