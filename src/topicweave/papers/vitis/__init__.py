"""Vitis (IPDPS 2011), §IV: figures 4 to 7 and 10 to 12, and what the paper leaves open."""

from topicweave.papers.study import Study
from topicweave.papers.vitis.real import departures, fig10, fig11, fig12, fig12_4000, opt
from topicweave.papers.vitis.settings import READINGS
from topicweave.papers.vitis.synthetic import fig4, fig5, fig6, fig7, levels, readings, ring
from topicweave.papers.vitis.why import crowds, users, why

ORACLE = "OPT's nodes know all others (in vitis/opt also by gossip, with T-Man and without)"
_TITLES = {
    fig4: ("friends against small-world links: overhead and delay", "§IV-B, Figure 4"),
    fig5: ("distribution of overhead over nodes", "§IV-B, Figure 5"),
    fig6: ("routing table size: overhead and delay", "§IV-C, Figure 6"),
    fig7: ("skewed publication rates", "§IV-D, Figure 7"),
    fig10: ("real subscriptions: hit ratio, overhead and delay of Vitis, RVR and OPT", "§IV-E, Figure 10"),
    fig11: ("real subscriptions: degrees of unbounded OPT", "§IV-E, Figure 11"),
    fig12: ("churn by a real trace, and a flash crowd", "§IV-F, Figure 12"),
    fig12_4000: ("figure 12 with 4,000 hosts, a third of its span", "§IV-F, Figure 12"),
    departures: ("who goes falls silent, or says goodbye", "§IV-F"),
    opt: ("OPT with other K, and by what its nodes know", "§IV, §IV-E"),
    ring: ("how soon the ring is right", "§III-A1"),
    readings: ("what the paper leaves open: hop bound, small-world targets, relays that hand on", "§III"),
    users: ("OPT with 80 topics per node, as the paper's users have", "§IV-E, Figure 11"),
    crowds: ("larger flash crowds", "§IV-F, Figure 12"),
    why: ("what Vitis' figures hang on, one thing changed at a time", "§IV"),
    levels: ("by messages and cycle by cycle: the same overlays", "ours"),
}

STUDIES = [
    Study(
        f"vitis/{plan.__name__}",
        title,
        f"Vitis (IPDPS 2011) {section}",
        plan,
        scales=("smoke", "tenth", "paper"),
        oracle=ORACLE if plan in (fig10, fig11, opt, users) else "",
    )
    for plan, (title, section) in _TITLES.items()
]

__all__ = ["READINGS", "STUDIES"]
