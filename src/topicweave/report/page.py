"""A comparison as one HTML page: the answer on the first screen, then the table, the figures, the overlays,
and all that it takes to get the same again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape
from itertools import groupby

import topicweave
from topicweave.report.advice import PREFERENCES, Advice, weigh
from topicweave.report.columns import COLUMNS, NOBODY_MARKED, Column, column_marks, who_is_marked
from topicweave.report.comparison import Comparison, Entry, as_text, membership_in_words, times_in_words
from topicweave.report.figure import Figure, colour_of, dash_of
from topicweave.report.figures import figures
from topicweave.report.findings import findings, kept_to
from topicweave.report.overlay_picture import Picture, as_data, colours_of_topics, overlay_svg
from topicweave.report.skeleton import (
    EXTRA,
    PlotlyMissing,
    facts_markup,
    figure_markup,
    file_name,
    framed,
    library_version,
    whole_page,
)
from topicweave.report.workload_figures import histogram_figures
from topicweave.systems.registry import SYSTEMS

__all__ = ["EXTRA", "PlotlyMissing", "comparison_page"]

_BORDER = {"solid": "solid", "dash": "dashed", "dot": "dotted"}


def comparison_page(comparison: Comparison) -> str:
    """The whole page, with the advice on top if it was made for that. Raises `PlotlyMissing`."""
    prefer = comparison.prefer
    advice = weigh(comparison, PREFERENCES[prefer], prefer) if prefer else None
    drawn = figures(comparison)
    of_workload = histogram_figures(comparison.workload)
    pictures = _pictures(comparison.entries)
    name = comparison.workload["name"]
    title = f"Systems compared on {name}" if advice is None else _advice_title(advice, name)
    return whole_page(
        title,
        file_name(name),
        [
            *_summary(comparison, title, advice),
            *_table(comparison),
            *_figures(comparison, drawn),
            *_overlays(comparison, pictures),
            *_about_workload(comparison, of_workload),
            *_settings(comparison),
            *_reproduce(comparison),
        ],
        [*drawn, *of_workload],
        {_picture_name(place): as_data(picture) for place, picture in pictures.items()},
    )


def _advice_title(advice: Advice, name: str) -> str:
    return f"Advice on {name}: {'no system fits' if advice.chosen is None else f'take {advice.chosen.label}'}"


def _summary(comparison: Comparison, title: str, advice: Advice | None) -> Iterator[str]:
    yield f"<h1>{escape(title)}</h1>"
    yield f'<p class="about">{escape(_in_a_line(comparison))}</p>'
    sections = ("Comparison", "Figures", "Overlays", "Workload", "Run", "The same again")
    links = (f'<li><a href="#{file_name(section)}">{section}</a></li>' for section in sections)
    yield f'<nav aria-label="Sections"><ul>{"".join(links)}</ul></nav>'
    said = findings(comparison)
    if advice is None:
        headline, *said = said
        yield f'<p class="headline">{escape(headline.text)}</p>'
    else:
        yield from _answer(advice)
    yield '<dl class="findings">'
    for finding in said:
        yield f"<div><dt>{escape(finding.about)}</dt><dd>{escape(finding.text)}</dd></div>"
    yield "</dl>"
    if asked := kept_to(comparison.entries, comparison.constraints):
        yield f'<ul class="asked">{"".join(f"<li>{escape(sentence)}</li>" for sentence in asked)}</ul>'
    if comparison.cuts:
        yield f'<p class="caution">To keep within the budget of time, this is {escape("; ".join(comparison.cuts))}.</p>'


def _answer(advice: Advice) -> Iterator[str]:
    """What to take, and why; what belongs to a sentence is a list below it."""
    headline, *reasons = advice.reasons
    yield f'<p class="headline">{escape(headline)}</p>'
    for listed, lines in groupby(reasons, key=lambda line: line.startswith(" ")):
        if listed:
            yield f'<ul class="asked">{"".join(f"<li>{escape(line.strip())}</li>" for line in lines)}</ul>'
        else:
            yield from (f"<p>{escape(line)}</p>" for line in lines)


def _in_a_line(comparison: Comparison) -> str:
    workload, seeds = comparison.workload, comparison.setting.seeds
    return (
        f"{workload['nodes']:,} nodes, {workload['topics']:,} topics, {workload['subscriptions']:,} subscriptions; "
        f"the same {comparison.setting.events:,} events for every system"
        + (f", {comparison.deliveries:,.0f} deliveries; " if comparison.deliveries else "; ")
        + f"{'seed' if len(seeds) == 1 else 'seeds'} {', '.join(map(str, seeds))}."
    )


def _heading(section: str) -> str:
    return f'<h2 id="{file_name(section)}">{section}</h2>'


def _table(comparison: Comparison) -> Iterator[str]:
    entries = comparison.entries
    yield _heading("Comparison")
    # A region that scrolls must be reachable by keyboard.
    yield '<div class="wide" role="region" aria-label="Comparison" tabindex="0"><table class="sortable">'
    yield '<thead><tr><th scope="col" aria-sort="none"><button type="button">system<i></i></button></th>'
    for column in COLUMNS:
        yield (
            f'<th scope="col" aria-sort="none" title="{escape(column.meaning)}">'
            f'<button type="button">{_column_name(column)}</button></th>'
        )
    yield "</tr></thead><tbody>"
    marks = {column.measure: column_marks(column, entries) for column in COLUMNS}
    for place, entry in enumerate(entries):
        cells = (_cell(column, entry, marks[column.measure][place]) for column in COLUMNS)
        label = escape(entry.label)
        yield f'<tr><th scope="row" data-value="{label}">{label}</th>{"".join(cells)}</tr>'
    yield "</tbody></table></div>"
    marked = who_is_marked(entries)
    yield (
        '<p class="note">Press a heading to sort. '
        + (
            f'<span class="best">best</span> and <span class="worst">worst</span> in a column, {marked}. '
            if marked
            else f"{NOBODY_MARKED.capitalize()}. "
        )
        + "Means over the seeds, ± half of the 95% confidence interval where it can be seen. "
        "Links, messages, bytes and memory are per node; times are virtual. "
        f"Membership is {escape(membership_in_words(comparison.setting.membership))}.</p>"
    )
    yield "<details><summary>What the columns mean</summary>"
    yield from facts_markup({_plain_name(column): column.meaning for column in COLUMNS})
    yield "</details>"
    if known := {entry.system: SYSTEMS[entry.system] for entry in entries if entry.system in SYSTEMS}:
        yield "<details><summary>What the systems do</summary>"
        yield from facts_markup(
            {name: f"{system.summary} ({system.source})" for name, system in known.items()}
        )
        yield "</details>"


def _column_name(column: Column) -> str:
    """The <i> takes the arrow of the sorting order."""
    if column.group.endswith("-"):  # One word in two lines where room is scarce; here it need not be.
        return f"{escape(column.group.removesuffix('-') + column.title)}<i></i>"
    return f"{escape(column.group)}<i></i>" + (
        f" <small>{escape(column.title)}</small>" if column.title else ""
    )


def _plain_name(column: Column) -> str:
    if column.group.endswith("-"):
        return column.group.removesuffix("-") + column.title
    return f"{column.group} {column.title}".strip()


def _cell(column: Column, entry: Entry, mark: str) -> str:
    value = entry.measure(column.measure)
    text = escape(column.cell(value))
    marked = f'<span class="{mark}" title="{mark}">{text}</span>' if mark else text
    spread = column.spread(entry.interval(column.measure))
    return f'<td data-value="{_sorted_by(value)}">{marked}{f"<small>{spread}</small>" if spread else ""}</td>'


def _sorted_by(value: float) -> str:
    """As JavaScript reads numbers; nothing for what has no value."""
    if math.isnan(value):
        return ""
    return repr(value) if math.isfinite(value) else "Infinity"


def _figures(comparison: Comparison, drawn: list[Figure]) -> Iterator[str]:
    yield _heading("Figures")
    yield '<ul class="legend" aria-label="Systems: press to hide or show">'
    for place, entry in enumerate(comparison.entries):
        label = escape(entry.label)
        stroke = f"border-top-color:{colour_of(place)};border-top-style:{_BORDER[dash_of(place)]}"
        yield (
            f'<li><button type="button" aria-pressed="true" data-name="{label}">'
            f'<span class="stroke" style="{stroke}"></span>{label}</button></li>'
        )
    yield "</ul>"
    yield '<p class="note">Press a system to hide it or to show it again, in all figures.</p>'
    yield "<noscript><p>The figures are drawn by JavaScript; the table above holds the same results.</p></noscript>"
    for question, under in groupby(drawn, key=lambda figure: figure.question):
        yield f'<h3>{escape(question)}</h3><div class="figures">'
        for figure in under:
            yield from figure_markup(figure, comparison.command)
        yield "</div>"


def _pictures(entries: Sequence[Entry]) -> dict[int, Picture]:
    """By the system's place; of those whose runs left one with anything on it."""
    found = ((place, entry.first("picture")) for place, entry in enumerate(entries))
    return {place: picture for place, picture in found if picture and picture["nodes"]}


def _picture_name(place: int) -> str:
    return f"overlay-{place + 1}"


def _overlays(comparison: Comparison, pictures: dict[int, Picture]) -> Iterator[str]:
    yield _heading("Overlays")
    if not pictures:
        yield "<p>No overlay was pictured.</p>"
        return
    yield (
        "<p>Who is linked with whom: a node picked at random and what surrounds it, with all links among those drawn. "
        "A node has the colour of the topic that it shares with most of its neighbours here, and so has a link between two of "
        "a colour. A diamond is a relay: it was handed events that it did not want. Larger nodes have more links.</p>"
    )
    yield '<div class="figures pictures">'
    colours = colours_of_topics(pictures.values())
    for (place, picture), own in zip(pictures.items(), colours, strict=True):
        entry = comparison.entries[place]
        svg = overlay_svg(picture, own, f"The overlay of {entry.label}")
        name = _picture_name(place)
        yield from framed(
            name,
            entry.label,
            _picture_caption(entry, picture, comparison.workload["nodes"]),
            f'<div class="picture" id="{name}">{svg}</div>',
            f"picture of the run with seed {comparison.setting.seeds[0]}; layout: Fruchterman and Reingold",
            comparison.command,
        )
    yield "</div>"


def _picture_caption(entry: Entry, picture: Picture, nodes: int) -> str:
    system = SYSTEMS.get(entry.system)
    shown, links = len(picture["nodes"]), len(picture["links"])
    about = f"{system.summary[0].upper()}{system.summary[1:]}. " if system else ""
    return f"{about}{shown:,} of {nodes:,} nodes, {links:,} links among them."


def _about_workload(comparison: Comparison, drawn: list[Figure]) -> Iterator[str]:
    facts = comparison.workload
    rows = {
        "source": facts["source"],
        "nodes": f"{facts['nodes']:,}",
        "topics": f"{facts['topics']:,}",
        "subscriptions": f"{facts['subscriptions']:,}",
        "topics per node": _spread(
            facts["topics_per_node"], facts["topics_per_node_max"], facts["topics_per_node_min"]
        ),
    }
    if "subscribers_per_topic" in facts:
        audiences = [value for value, _ in facts.get("audiences", ())]
        rows["subscribers per topic"] = _spread(
            facts["subscribers_per_topic"], facts["subscribers_per_topic_max"], min(audiences, default=0)
        )
        rows["topics with one subscriber"] = f"{facts['lonely_topics']:,}"
    rows["joins and leaves"] = f"{facts['changes']:,}" if facts["changes"] else "none: everybody stays"
    rows["fingerprint"] = facts["fingerprint"]
    yield _heading("Workload")
    yield from facts_markup(rows)
    if drawn:
        yield '<h3>Who wants how much</h3><div class="figures">'
        for figure in drawn:
            yield from figure_markup(figure, comparison.command)
        yield "</div>"


def _spread(average: float, most: int, least: int) -> str:
    return f"{least:,} each" if least == most else f"{least:,} to {most:,}, {average:,.1f} on average"


def _settings(comparison: Comparison) -> Iterator[str]:
    setting = comparison.setting
    yield _heading("Run")
    yield from facts_markup(
        {
            "world": "simulator, virtual time",
            "seeds": ", ".join(map(str, setting.seeds)),
            "events": f"{setting.events:,}, on topics by their rates, from random subscribers",
            "overlay looked at after": _settled(setting.settle),
            "times": times_in_words(setting.preset),
            "membership": membership_in_words(setting.membership),
            "latency": setting.latency,
            "messages that get lost": f"{setting.loss:.3g} of all" if setting.loss else "none",
            "joins and leaves": setting.churn or "none: everybody stays",
            "crash in the end": (
                f"{comparison.crashing}, the one with the most links first of all"
                if setting.crash
                else "none"
            ),
            "left out for the budget": "; ".join(comparison.cuts) or "nothing",
            "versions": f"Topicweave {topicweave.__version__}, figures by plotly.js {library_version()}",
        }
    )
    yield '<h3>Parameters</h3><div class="columns">'
    for entry in comparison.entries:
        yield f"<details><summary>{escape(entry.label)}</summary>"
        yield from facts_markup({name: as_text(value) for name, value in entry.settings.items()})
        yield "</details>"
    yield "</div>"


def _settled(seconds: float | None) -> str:
    return "as long as each system takes to settle" if seconds is None else f"{seconds:g} s"


def _reproduce(comparison: Comparison) -> Iterator[str]:
    yield _heading("The same again")
    yield "<p>A run is a function of its inputs and its seed. With the same version, this command gives this page, to the byte:</p>"
    yield f"<pre><code>{escape(comparison.command)}</code></pre>"
    yield (
        "<p>It writes every measure to <code>compare.json</code> (<code>systems[].measures</code>, with "
        "<code>intervals</code> and <code>replications</code>), and what each run left, with the lists that the figures are drawn "
        "from, to <code>runs/*.json</code> (<code>result</code>). Below each figure, <em>Data</em> names what it is drawn from.</p>"
    )
