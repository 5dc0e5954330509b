"""SpiderCast (DEBS 2007), §3: figures 6 to 14.

All runs go through the message-level simulator, every node created at once, as §3 says. The paper gives no
times for its protocol; ours are those of `SpiderCastParameters`, with mending of parted topics off (it is
ours, not the paper's).
"""

from __future__ import annotations

from topicweave.papers.spidercast.choices import disconnect, links, ties
from topicweave.papers.spidercast.membership import fig10, fig11
from topicweave.papers.spidercast.overlays import fig6, fig7, fig8, fig9
from topicweave.papers.spidercast.rivals import fig12, fig13, fig14
from topicweave.papers.spidercast.why import why
from topicweave.papers.study import Study

_TITLES = {
    fig6: ("skewed popularity: partitioned topics and degree by coverage", "§3.3, Figure 6"),
    fig7: ("four popularity distributions: degree, tdi(20), diameter", "§3.4, Figure 7"),
    fig8: ("scaling with nodes, topics and subscriptions", "§3.5, Figure 8"),
    fig9: ("lists of unequal size", "§3.6, Figure 9"),
    fig10: ("partial membership views, by decree and by gossip", "§3.7, Figure 10"),
    fig11: ("churn: connectivity, degree, messages per join or leave", "§3.8, Figure 11"),
    fig12: ("mean degree against similarity and random overlays", "§3.9.1, Table 12"),
    fig13: ("connected components against similarity and random overlays", "§3.9.1, Figure 13"),
    fig14: ("mean degree against a ring per topic", "§3.9.2, Figure 14"),
    disconnect: ("DISCONNECT to the letter beside ours", "§2.3.1"),
    links: ("topics that a greedy and a random link serve", "§2.1"),
    ties: ("ties between equally good peers that go to the first", "§2.2, Figure 5"),
    why: ("diameters, views, rings, similarity and long lists: what they hang on", "§3.4 to §3.9"),
}

STUDIES = [
    Study(
        f"spidercast/{plan.__name__}",
        title,
        f"SpiderCast (DEBS 2007) {section}",
        plan,
        level="data" if plan is why else "messages",
    )
    for plan, (title, section) in _TITLES.items()
]

__all__ = ["STUDIES"]
