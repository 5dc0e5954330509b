"""What mending costs: time (§6.6), topic diameters (§6.7), messages (§6.8); Figures 10 to 12."""

from __future__ import annotations

from statistics import fmean
from typing import Any

from topicweave.papers.omen.runs import Lists, mended, samples
from topicweave.papers.study import Plan, Results, Row, Scale


def fig10(scale: Scale, seed: int) -> Plan:
    """Repair time: OMen's as a share of the designs', all by our own code in the same run."""
    workloads: dict[str, tuple[Lists, int]] = {
        name: (lists, 300) for name, lists in samples(scale, seed, "facebook", how_many=1).items()
    }
    if scale == "paper":
        large = samples(scale, seed, "livejournal", 10_000, 1)
        workloads |= {name: (lists, 100) for name, lists in large.items()}
    names = ("omen", "omen-g", "lowoda-inc", "lowoda-re", "spidercast(3,1)")
    plans: dict[str, dict[str, Any]] = {"omen": {"warm_up": 6}}
    runs = {
        (name, system): mended(*(system, lists, scale, seed, rounds), **plans.get(system, {}))
        for name, (lists, rounds) in workloads.items()
        for system in names
    }

    def rows_of(results: Results) -> list[Row]:
        rows = []
        for name in workloads:
            mine = results[name, "omen"]
            again = results[name, "lowoda-re"]["rebuild_seconds"]
            further = results[name, "lowoda-inc"]["repair_seconds_per_event"]
            where = {"workload": name, "system": "omen"}
            paper = 0.0001 if "10K" in name else 0.002
            whole, choice = mine["repair_seconds_per_event"], mine["choice_seconds_per_event"]
            rows += [
                Row({**where, "system": "lowoda-re"}, "repair_time", None, again),
                Row({**where, "system": "lowoda-inc"}, "repair_time", None, further),
                Row(
                    {**where, "system": "omen-g"},
                    "repair_time",
                    None,
                    results[name, "omen-g"]["repair_seconds_per_event"],
                ),
                Row(where, "repair_time", None, whole),
                Row(where, "repair_time / LowODA-Re's", paper, whole / again),
                Row(where, "repair_time / LowODA-Inc's", "shorter", whole / further),
                Row(where, "edge choice alone / LowODA-Re's", paper, choice / again),
                Row(
                    where,
                    "repair_time / OMen-G's",
                    0.0467,
                    whole / results[name, "omen-g"]["repair_seconds_per_event"],
                ),
                Row(
                    {**where, "system": "spidercast(3,1)"},
                    "repair_time",
                    None,
                    results[name, "spidercast(3,1)"]["repair_seconds_per_event"],
                ),
            ]
            rows += [
                Row(
                    {"workload": name, "system": system, "event": event},
                    "repair_time",
                    None,
                    results[name, system][f"seconds_per_{event}"],
                )
                for system in ("omen", "omen-g", "lowoda-inc", "spidercast(3,1)")
                for event in ("join", "leave")
            ]
        return rows

    return Plan(runs, rows_of)


def fig11(scale: Scale, seed: int) -> Plan:
    """Topic diameters: between LowODA-Re's and SpiderCast's."""
    workloads = samples(scale, seed, "twitter", how_many=2)
    names = ("omen", "lowoda-re", "spidercast(3,1)", "spidercast(4,0)")
    runs = {
        (name, system): mended(*(system, lists, scale, seed, 500), diameters=True)
        for name, lists in workloads.items()
        for system in names
    }

    def rows_of(results: Results) -> list[Row]:
        rows = []
        for name in workloads:
            mean = {
                system: fmean(look["topic_diameter_mean"] for look in results[name, system]["looks"])
                for system in names
            }
            most = {
                system: fmean(look["topic_diameter_max"] for look in results[name, system]["looks"])
                for system in names
            }
            where = {"workload": name}
            rows += [
                Row({**where, "system": system}, "topic_diameter_mean", None, mean[system])
                for system in names
            ]
            rows += [
                Row(
                    {**where, "system": "omen", "round": look["round"]},
                    "topic_diameter_mean",
                    None,
                    look["topic_diameter_mean"],
                )
                for look in results[name, "omen"]["looks"]
            ]
            rows += [
                Row(
                    {**where, "system": "omen"},
                    "topic_diameter_mean - SpiderCast(3,1)'s",
                    1.45,
                    mean["omen"] - mean["spidercast(3,1)"],
                ),
                Row(
                    {**where, "system": "omen"},
                    "topic_diameter_max - SpiderCast(3,1)'s",
                    3.67,
                    most["omen"] - most["spidercast(3,1)"],
                ),
                Row(
                    {**where, "system": "omen"},
                    "topic_diameter_mean",
                    "between SpiderCast(3,1)'s and LowODA-Re's",
                    f"{mean['spidercast(3,1)']:.2f}, {mean['omen']:.2f}, {mean['lowoda-re']:.2f}",
                ),
            ]
        return rows

    return Plan(runs, rows_of)


def fig12(scale: Scale, seed: int) -> Plan:
    """Messages per churn event, gossip and failure detection apart."""
    workloads = samples(scale, seed, "twitter", how_many=2)
    kinds: dict[str, tuple[str, dict[str, Any]]] = {
        "omen": ("omen", {"labels": True}),
        "omen, labels spread": ("omen", {"labels": True, "components": "spread"}),
        "omen, components of the shadow set": ("omen", {"components": "shadow"}),
        "spidercast(3,1)": ("spidercast(3,1)", {}),
        "spidercast(4,0)": ("spidercast(4,0)", {}),
    }
    runs = {
        (name, kind): mended(*(system, lists, scale, seed, 300), **plan)
        for name, lists in workloads.items()
        for kind, (system, plan) in kinds.items()
    }

    def rows_of(results: Results) -> list[Row]:
        rows = []
        for name in workloads:
            for kind in kinds:
                result = results[name, kind]
                where = {"workload": name, "system": kind}
                rows += [
                    Row(where, f"messages per {what}", None, result[f"messages_per_{what}"])
                    for what in ("join", "leave")
                ]
                rows += [
                    Row({**where, "event": what, "lists": lists_of}, "messages", None, sent)
                    for what in ("join", "leave")
                    for lists_of, (_, sent) in zip(
                        ("short", "middling", "long"), result[f"messages_by_size_{what}"], strict=False
                    )
                ]
                if result["label_messages_per_leave"]:
                    labels = result["label_messages_per_leave"]
                    rows.append(Row(where, "messages that spread labels, per leave", None, labels))
            theirs = results[name, "spidercast(3,1)"]["messages_per_event"]
            for kind in ("omen", "omen, components of the shadow set"):
                mine = results[name, kind]["messages_per_event"]
                where = {"workload": name, "system": kind}
                rows.append(Row(where, "messages per event / SpiderCast(3,1)'s", "fewer", mine / theirs))
        return rows

    return Plan(runs, rows_of)
