"""What a comparison says, in a few sentences."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from topicweave.report.columns import milliseconds, one_decimal, percent, thousands, whole
from topicweave.report.comparison import Comparison, Entry
from topicweave.report.constraints import Constraint, complaints, fits


class ReportFinding(NamedTuple):
    about: str
    text: str


HUB = 10.0
"""A node with so many times the average of links is one that all depend on."""


def findings(comparison: Comparison) -> list[ReportFinding]:
    """The answers to what one asks first, the most important one on top.

    Beyond reach only those who reach everybody are spoken of: to be quick with a few is no merit.
    """
    entries = comparison.entries
    complete = [entry for entry in entries if entry.reaches_everybody]
    if not _with("hit_ratio", entries):
        complete = list(entries)  # Nobody's reach is known: what else was measured is told of all.
    latency = "{lowest}: 95% of the deliveries within {low} ms. Slowest: {highest} ({high} ms)."
    control = "Least: {lowest}, {low} bytes per node and second. Most: {highest} ({high})."
    busiest = "The node with the most links has {low} with {lowest}, and {high} with {highest}."
    memory = "Least: {lowest}, {low} kB per node. Most: {highest} ({high} kB)."
    said = {
        "Reach": _reach(entries, comparison.constraints),
        "Missed": _missed(entries) if complete else iter(()),
        "Settling": _settling(entries),
        "Links": _fewest_links(entries),
        "Busiest node": _extremes(complete, "degree_max", whole, busiest),
        "Repair": _repair(complete, comparison.crashing),
        "Noise": _noise(complete),
        "Topics": _topics_apart(entries, comparison.shared_topics),
        "Speed": _extremes(complete, "latency_p95", milliseconds, latency),
        "Control traffic": _extremes(complete, "control_bytes", whole, control),
        "Memory": _extremes(complete, "memory_bytes", thousands, memory),
    }
    return [ReportFinding(about, text) for about, sentences in said.items() for text in sentences]


def kept_to(entries: Sequence[Entry], constraints: Sequence[Constraint]) -> list[str]:
    """Who keeps to what was asked for, and who breaks it how."""
    if not constraints:
        return []
    fitting = [entry for entry in entries if fits(entry, constraints)]
    options = " ".join(constraint.option for constraint in constraints)
    return [
        f"Keep to {options}: {_labels(fitting)}." if fitting else f"No system keeps to {options}.",
        *(
            f"✗ {entry.label}: {'; '.join(broken)}."
            for entry in entries
            if (broken := complaints(entry, constraints))
        ),
    ]


def _reach(entries: Sequence[Entry], constraints: Sequence[Constraint]) -> Iterator[str]:
    """Who delivers, and at how many links: the question that a comparison is made for. Nobody is praised who breaks
    what was asked for.
    """
    measured = _with("hit_ratio", entries)
    if not measured:
        return
    complete = [entry for entry in measured if entry.reaches_everybody]
    if len(complete) > 1:
        fitting = [entry for entry in complete if fits(entry, constraints)]
        who = "All systems" if len(complete) == len(entries) else _labels(complete)
        among = "of those that keep to what was asked for, " if len(fitting) < len(complete) else ""
        if fitting:
            chosen = min(fitting, key=_links)
            then = f"{among}{chosen.label} does so with the fewest: {_links_text(chosen)}."
        else:
            then = "none of them keeps to what was asked for."
        yield f"{who} deliver every event to everybody who wants it; {then}"
    elif complete:
        only = "Only " if len(entries) > 1 else ""
        but = "" if fits(complete[0], constraints) else "; it does not keep to what was asked for"
        yield (
            f"{only}{complete[0].label} delivers every event to everybody who wants it, "
            f"with {_links_text(complete[0])}{but}."
        )
    else:
        chosen = max(measured, key=lambda entry: entry.measure("hit_ratio"))
        nobody = "No system delivers every event to everybody who wants it: " if len(entries) > 1 else ""
        made = f"makes {percent(chosen.measure('hit_ratio'))} of the expected deliveries"
        yield f"{nobody}{chosen.label} {made}, with {_links_text(chosen)}."


def _settling(entries: Sequence[Entry]) -> Iterator[str]:
    """Who was still changing when it was looked at: its figures are not those of a finished overlay."""
    never = [entry for entry in entries if entry.measure("settled_after") == math.inf]
    if never:
        longest = max(entry.measure("settle_seconds") for entry in never)
        yield (
            f"Did not settle with every seed, in up to {whole(longest)} virtual seconds: {_labels(never)}; "
            "what is said of it is said of an overlay that was still changing."
        )


def _missed(entries: Sequence[Entry]) -> Iterator[str]:
    """Who does not reach everybody, the best of them first."""
    missing = [entry for entry in _with("hit_ratio", entries) if not entry.reaches_everybody]
    missing.sort(key=lambda entry: -entry.measure("hit_ratio"))
    if missing:
        shares = [f"{entry.label} makes {percent(entry.measure('hit_ratio'))}" for entry in missing]
        rank = "it is not ranked below" if len(missing) == 1 else "they are not ranked below"
        yield f"{_listed(shares)} of the expected deliveries; {rank}."


def _fewest_links(entries: Sequence[Entry]) -> Iterator[str]:
    """Where nothing was published; else `_reach` says it."""
    if _with("hit_ratio", entries) or not _with("degree_mean", entries):
        return
    fewest = _alike(min(entries, key=_links), "degree_mean", one_decimal, entries)
    if len(fewest) < len(entries):
        yield f"Fewest: {_labels(fewest)}, {_links_text(fewest[0])}."


def _topics_apart(entries: Sequence[Entry], topics: int) -> Iterator[str]:
    """Out of the topics that have two subscribers or more: a single one can't be apart."""
    apart = [
        f"{entry.label} ({entry.measure('partitioned_topics'):.0f} of {topics})"
        for entry in entries
        if entry.measure("partitioned_topics") > 0
    ]
    if apart:
        yield f"Topics whose subscribers are not connected through subscribers alone: {_listed(apart)}."
    else:
        yield "No topic falls apart: the subscribers of each are connected through subscribers alone."


def _noise(entries: Sequence[Entry]) -> Iterator[str]:
    measured = _with("noise", entries)
    noisy = [
        f"{entry.label} {percent(entry.measure('noise'))}" for entry in measured if entry.measure("noise") > 0
    ]
    if noisy:
        yield f"Share of the events received that were not wanted: {_listed(noisy)}."
    elif measured:
        yield "No node received an event that it did not want."


def _repair(entries: Sequence[Entry], crashing: str) -> Iterator[str]:
    """Who goes on after the crash as if nothing had been, who needs time, who needs more than was given."""
    measured = _with("repair_time", entries)
    if not measured:
        return
    at_once = [entry for entry in measured if entry.measure("repair_time") == 0.0]
    later = [entry for entry in measured if 0.0 < entry.measure("repair_time") < math.inf]
    never = [entry for entry in measured if entry.measure("repair_time") == math.inf]
    parts = []
    if at_once:
        parts.append(f"no gap with {'any system' if len(at_once) == len(entries) else _labels(at_once)}")
    if later:
        times = [f"{entry.label} {one_decimal(entry.measure('repair_time'))} s" for entry in later]
        parts.append(f"until all are served again: {_listed(times)}")
    if never:
        parts.append(f"not repaired while it was watched: {_labels(never)}")
    yield f"When {crashing}: {'; '.join(parts)}."


def _extremes(
    entries: Sequence[Entry], measure: str, text: Callable[[float], str], sentence: str
) -> Iterator[str]:
    """The lowest and the highest, if one can tell them apart."""
    measured = _with(measure, entries)
    if not measured:
        return
    lowest = min(measured, key=lambda entry: entry.measure(measure))
    highest = max(measured, key=lambda entry: entry.measure(measure))
    low, high = text(lowest.measure(measure)), text(highest.measure(measure))
    if low != high:
        lowest_ones = _labels(_alike(lowest, measure, text, measured))
        highest_ones = _labels(_alike(highest, measure, text, measured))
        yield sentence.format(lowest=lowest_ones, low=low, highest=highest_ones, high=high)


def _alike(
    chosen: Entry, measure: str, text: Callable[[float], str], entries: Sequence[Entry]
) -> list[Entry]:
    """All that look the same as the chosen one once the measure is printed."""
    seen = text(chosen.measure(measure))
    return [entry for entry in _with(measure, entries) if text(entry.measure(measure)) == seen]


def _with(measure: str, entries: Sequence[Entry]) -> list[Entry]:
    return [entry for entry in entries if not math.isnan(entry.measure(measure))]


def _links(entry: Entry) -> float:
    return entry.measure("degree_mean")


def _links_text(entry: Entry) -> str:
    """An average hides a hub: where one node has many times as many, it says so."""
    text = f"{one_decimal(_links(entry))} links per node on average"
    most = entry.measure("degree_max")
    return f"{text}, but {whole(most)} at one node" if most > HUB * _links(entry) else text


def _labels(entries: Sequence[Entry]) -> str:
    return _listed([entry.label for entry in entries])


def _listed(names: Sequence[str]) -> str:
    """a; a and b; a, b and c."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
