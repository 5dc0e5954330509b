"""A picture of a part of an overlay: nodes by the topic that they share with their neighbours, relays by their shape.

Drawn as SVG, which needs no script and can be saved as it is. Colours that depend on the page's mode are `var(--…)`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from topicweave.report.figure import COLOURS, GREY
from topicweave.report.overlay_layout import laid_out

WIDTH, MARGIN = 400, 16
ROW, LONGEST_TEXT = 18, 24
PALETTE = COLOURS[:-1]

Picture = Mapping[str, Any]
"""nodes: name, group (a place among the topics, or -1), relay; links: pairs of places; topics: names."""


def colours_of_topics(pictures: Iterable[Picture]) -> list[dict[str, str]]:
    """For each picture, the colours of its topics; a topic keeps its colour from one picture to the next if it can."""
    known: dict[str, str] = {}
    chosen = []
    for picture in pictures:
        topics = picture["topics"]
        own: dict[str, str] = {}
        for topic in topics:
            if topic in known and known[topic] not in own.values():
                own[topic] = known[topic]
        for topic in topics:
            if topic not in own:
                free = [colour for colour in PALETTE if colour not in own.values()]
                unknown = [colour for colour in free if colour not in known.values()]
                own[topic] = (unknown or free)[0]
                known.setdefault(topic, own[topic])
        chosen.append(own)
    return chosen


def overlay_svg(picture: Picture, colours: Mapping[str, str], title: str) -> str:
    """The whole picture with its legend, as one <svg>."""
    nodes, topics = picture["nodes"], picture["topics"]
    places = [
        (MARGIN + x * (WIDTH - 2 * MARGIN), MARGIN + y * (WIDTH - 2 * MARGIN))
        for x, y in laid_out(len(nodes), picture["links"]).tolist()
    ]
    top, bottom = min(y for _, y in places) - MARGIN, max(y for _, y in places) + MARGIN
    places = [(x, y - top) for x, y in places]  # A flat graph gets a flat picture.
    shades = [GREY if node["group"] < 0 else colours[topics[node["group"]]] for node in nodes]
    legend = _legend(picture, colours, bottom - top + 12)
    height = round(bottom - top + 12 + -(-len(legend) // 2) * ROW + 4)
    return "\n".join(
        [
            f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(title)}" '
            'font-family="system-ui, sans-serif" font-size="12.5">',
            *_links(picture["links"], places, shades),
            *(
                _node(node, place, shade, degree, topics)
                for node, place, shade, degree in zip(nodes, places, shades, _degrees(picture), strict=True)
            ),
            *legend,
            "</svg>",
        ]
    )


def as_data(picture: Picture) -> dict[str, list[Any]]:
    """What is drawn, to be saved: nodes (name, topic, whether a relay) and links (pairs of their places)."""
    topics = picture["topics"]
    return {
        "nodes": [
            [
                node["name"],
                topics[node["group"]] if node["group"] >= 0 else "",
                "relay" if node["relay"] else "",
            ]
            for node in picture["nodes"]
        ],
        "links": [list(link) for link in picture["links"]],
    }


def _degrees(picture: Picture) -> list[int]:
    degrees = [0] * len(picture["nodes"])
    for link in picture["links"]:
        for end in link:
            degrees[end] += 1
    return degrees


def _links(
    links: Sequence[Sequence[int]], places: Sequence[tuple[float, float]], shades: Sequence[str]
) -> Iterable[str]:
    """One path per colour: a link between two nodes of a cluster has the cluster's."""
    paths: dict[str, list[str]] = {}
    for a, b in links:
        shade = shades[a] if shades[a] == shades[b] and shades[a] != GREY else ""
        (x0, y0), (x1, y1) = places[a], places[b]
        paths.setdefault(shade, []).append(f"M{x0:.1f} {y0:.1f}L{x1:.1f} {y1:.1f}")
    for shade in sorted(paths):
        look = f'stroke="{shade}" stroke-opacity=".5"' if shade else 'style="stroke:var(--thread)"'
        yield f'<path fill="none" stroke-width=".9" {look} d="{"".join(paths[shade])}"/>'


def _node(
    node: Mapping[str, Any], place: tuple[float, float], shade: str, degree: int, topics: Sequence[str]
) -> str:
    radius = min(3.8 + 0.5 * degree**0.5, 9.0)
    words = [node["name"], f"{degree} links here"]
    words += [f"shares {topics[node['group']]}"] if node["group"] >= 0 else []
    words += ["got events that it did not want"] if node["relay"] else []
    return _mark(place, radius, shade, node["relay"], f"<title>{escape('; '.join(words))}</title>")


def _mark(place: tuple[float, float], radius: float, shade: str, relay: bool, inside: str = "") -> str:
    x, y = place
    look = f'fill="{shade}" stroke-width="1" style="stroke:var(--paper)"'
    if not relay:
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" {look}>{inside}</circle>'
    # A diamond in a ring of ink: relays are to be found at a glance.
    reach = 1.35 * radius
    look = f'fill="{shade}" stroke-width="1.6" style="stroke:var(--ink)"'
    corners = f"M{x:.1f} {y - reach:.1f}l{reach:.1f} {reach:.1f}l{-reach:.1f} {reach:.1f}l{-reach:.1f} {-reach:.1f}z"
    return f'<path d="{corners}" {look}>{inside}</path>'


def _legend(picture: Picture, colours: Mapping[str, str], top: float) -> list[str]:
    """Two columns: the topics that nodes are coloured by, with how many; then the shapes."""
    groups = [node["group"] for node in picture["nodes"]]
    items = [
        (colours[topic], False, topic, groups.count(group))
        for group, topic in enumerate(picture["topics"])
        if group in groups
    ]
    if -1 in groups:
        items.append((GREY, False, "shares none of these", groups.count(-1)))
    if relays := sum(node["relay"] for node in picture["nodes"]):
        items.append((GREY, True, "relay: does not want it", relays))
    drawn = []
    for place, (shade, relay, text, nodes) in enumerate(items):
        x, y = 10 + place % 2 * (WIDTH // 2), top + place // 2 * ROW
        label = f"{_shortened(text, LONGEST_TEXT)} ({nodes})"
        drawn.append(
            f"<g>{_mark((x, y + 6), 4.5, shade, relay)}"
            f'<text x="{x + 10}" y="{y + 10:.1f}" style="fill:var(--ink)">{escape(label)}</text></g>'
        )
    return drawn


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
