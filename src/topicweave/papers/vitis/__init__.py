"""Vitis (IPDPS 2011), §IV: figures 4 to 7 and 10 to 12, and what the paper leaves open."""

from topicweave.papers.study import Study
from topicweave.papers.vitis.real import fig10, fig11, fig12
from topicweave.papers.vitis.settings import READINGS
from topicweave.papers.vitis.synthetic import fig4, fig5, fig6, fig7, levels, readings, ring

_TITLES = {
    fig4: ("friends against small-world links: overhead and delay", "§IV-B, Figure 4"),
    fig5: ("distribution of overhead over nodes", "§IV-B, Figure 5"),
    fig6: ("routing table size: overhead and delay", "§IV-C, Figure 6"),
    fig7: ("skewed publication rates", "§IV-D, Figure 7"),
    fig10: ("real subscriptions: hit ratio, overhead and delay of Vitis, RVR and OPT", "§IV-E, Figure 10"),
    fig11: ("real subscriptions: degrees of unbounded OPT", "§IV-E, Figure 11"),
    fig12: ("churn by a real trace, and a flash crowd", "§IV-F, Figure 12"),
    ring: ("how soon the ring is right", "§III-A1"),
    readings: ("what the paper leaves open: hop bound, small-world targets, relays that hand on", "§III"),
    levels: ("by messages and cycle by cycle: the same overlays", "ours"),
}

_CLUSTERS = (
    "with random subscriptions and a table of 15 a topic's 100 subscribers fall into 42 clusters, each with a relay path of its own. The twelve best friends "
    "of all 10,000 nodes share 4.07 of a node's 50 topics each; even if every node had these (by brute force) there would be 41."
)
_REMARKS = {
    fig4: f"{_CLUSTERS} At a tenth of the size, where any two nodes share ten times as much, the claim comes out. From 6 to 12 friends the paths become fewer (65 to 50 per "
    "topic) but longer, since small-world links make room for friends, and overhead stays where it is.",
    fig5: f"{_CLUSTERS} Low correlation has 16 clusters per topic. So hardly any node is below a fifth.",
    fig11: "two neighbours per topic (K = 2) cover a topic without making one part of it, and nothing in OPT joins parts. At a tenth of the size the hit ratio is 0.9990 and 0.9984, the same "
    "after 30 s and 90 s, and 0.9998 with K = 3. The paper does not tell its K.",
}
"""What is known of why claims do not come out; measured at paper scale, seed 0."""

STUDIES = [
    Study(
        f"vitis/{plan.__name__}",
        title,
        f"Vitis (IPDPS 2011) {section}",
        plan,
        _REMARKS.get(plan, ""),
        scales=("smoke", "tenth", "paper"),
    )
    for plan, (title, section) in _TITLES.items()
]

__all__ = ["READINGS", "STUDIES"]
