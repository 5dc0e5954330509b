"""OMen (DEBS 2016), §6: figures 3 to 6 and 8 to 12, and what Table 1 promises.

Rounds of churn on whole overlays (`topicweave.bulk.omen.engine`): each event is handled before the next, as
in the paper, whose events are minutes apart. At paper scale the subscriptions are breadth-first samples of
real social graphs and the churn is the Google cluster's, all read from TOPICWEAVE_DATASETS; Facebook's 10K
become LiveJournal's (the Facebook file holds 4,039 users), Twitter's are ego-Twitter's with the direction
lost. Hubs differ a lot from sample to sample, so there are several. At smoke scale everything is synthetic.
"""

from __future__ import annotations

from topicweave.papers.omen.backups import fig3, fig4, fig5
from topicweave.papers.omen.choices import choices
from topicweave.papers.omen.costs import fig10, fig11, fig12
from topicweave.papers.omen.degrees import fig9, table1
from topicweave.papers.omen.levels import counted, levels, trace
from topicweave.papers.omen.views import fig6, fig8
from topicweave.papers.omen.why import why
from topicweave.papers.study import Study

SAMPLED = "OMen's peer sampling is uniform"
ORACLE = "peer sampling is uniform; coordinators know the true maximum degree"
_TITLES = {
    fig3: ("backup degrees, primal-dual builder", "§6.3, Figure 3"),
    fig4: ("backup degrees, greedy builder", "§6.3, Figure 4"),
    fig5: ("degrees under churn with either builder", "§6.3, Figure 5"),
    fig6: ("local view sizes", "§6.4, Figure 6"),
    fig8: ("coverage factor: local views and degrees", "§6.4, Figure 8"),
    fig9: ("degrees under churn against LowODA and SpiderCast; concurrent churn", "§6.5, Figure 9"),
    fig10: ("repair time against LowODA", "§6.6, Figure 10"),
    fig11: ("topic diameters under churn", "§6.7, Figure 11"),
    fig12: ("messages per churn event", "§6.8, Figure 12"),
    choices: ("what the paper leaves open, one choice changed at a time", "§4, §5"),
    why: ("what OMen's figures hang on: a high start, how views come about", "§6"),
    levels: ("by messages and as arrays: the same overlays", "ours"),
    counted: ("messages per churn event, counted as nodes send them", "§6.8, Figure 12"),
    trace: ("the Google trace by messages and as arrays", "§6.1, ours"),
    table1: ("which degrees each approach keeps low", "§1, Table 1"),
}

STUDIES = [
    Study(
        f"omen/{plan.__name__}",
        title,
        f"OMen (DEBS 2016) {section}",
        plan,
        level="messages" if plan is counted else "messages and bulk" if plan in (levels, trace) else "bulk",
        oracle=SAMPLED if plan is counted else ORACLE,
        clocked=plan is fig10,
    )
    for plan, (title, section) in _TITLES.items()
]
