"""A picture of fronts: a point for each setting of each system, a line through those of one system.

There are more systems than colours: the second round of colours has squares. A point is hollow if not everybody was
reached, or if there was noise: such a setting pays less than it promises.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import NamedTuple

from topicweave.report.figure import COLOURS, GREY

BRIGHT = COLOURS[:-1]
WIDTH, HEIGHT = 720, 440
LEFT, RIGHT, TOP, BOTTOM = 64, 150, 40, 52


class Point(NamedTuple):
    x: float
    y: float
    default: bool = False
    """Drawn larger."""
    clean: bool = True
    """Everybody was reached, without noise."""


class Scale(NamedTuple):
    """A logarithmic one: from a value to a place in the picture."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return round(self.start + share * (self.end - self.start), 1)

    def marks(self) -> list[float]:
        """1, 2, 3, 5 and 7 times a power of ten."""
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        return [
            mark
            for power in powers
            for mark in (digit * 10.0**power for digit in (1, 1.5, 2, 3, 4, 5, 7))
            if self.low <= mark <= self.high
        ]


def scale_of(values: Sequence[float], start: float, end: float) -> Scale:
    return Scale(0.9 * min(values), 1.1 * max(values), start, end)


def picture(title: str, across: str, up: str, points: Mapping[str, Sequence[Point]], curve: str) -> str:
    """An SVG. `curve` is drawn as a dashed line."""
    drawn = {name: sorted(some) for name, some in points.items() if some}
    every = [point for some in drawn.values() for point in some]
    x = scale_of([point.x for point in every], LEFT, WIDTH - RIGHT)
    y = scale_of([point.y for point in every], HEIGHT - BOTTOM, TOP)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(title)}" font-family="system-ui, sans-serif" font-size="12.5">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        f'<text x="{LEFT}" y="22" font-size="15">{escape(title)}</text>',
        *_axes(x, y, across, up),
    ]
    kinds = {
        name: (BRIGHT[place % len(BRIGHT)], place >= len(BRIGHT))
        for place, name in enumerate(name for name in points if name != curve)
    } | {curve: (GREY, False)}
    for place, (name, some) in enumerate(drawn.items()):
        lines += _system(name, some, *kinds[name], x, y, name == curve)
        lines += _legend(name, *kinds[name], TOP + 12 + 20 * place)
    return "\n".join([*lines, "</svg>", ""])


def _axes(x: Scale, y: Scale, across: str, up: str) -> Iterator[str]:
    for mark in x.marks():
        at = x.at(mark)
        yield f'<line x1="{at}" x2="{at}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" stroke="#e4e6ea"/>'
        yield f'<text x="{at}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle" fill="#555">{mark:g}</text>'
    for mark in y.marks():
        at = y.at(mark)
        yield f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at}" y2="{at}" stroke="#e4e6ea"/>'
        yield f'<text x="{LEFT - 8}" y="{at + 4}" text-anchor="end" fill="#555">{mark:g}</text>'
    middle = (LEFT + WIDTH - RIGHT) / 2
    yield f'<text x="{middle}" y="{HEIGHT - 14}" text-anchor="middle" fill="#555">{escape(across)}</text>'
    high = (TOP + HEIGHT - BOTTOM) / 2
    yield (
        f'<text x="16" y="{high}" text-anchor="middle" fill="#555" '
        f'transform="rotate(-90 16 {high})">{escape(up)}</text>'
    )


def _system(
    name: str, points: Sequence[Point], colour: str, square: bool, x: Scale, y: Scale, dashed: bool
) -> Iterator[str]:
    places = [(x.at(point.x), y.at(point.y)) for point in points]
    if len(places) > 1:
        way = " ".join(f"{across},{up}" for across, up in places)
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        yield f'<polyline points="{way}" fill="none" stroke="{colour}" stroke-opacity="0.6"{dash}/>'
    if dashed:
        return
    for point, (across, up) in zip(points, places, strict=True):
        words = f"<title>{escape(f'{name}: {point.x:g}, {point.y:g}')}</title>"
        yield _mark(across, up, 6 if point.default else 3.5, colour, square, point.clean, words)


def _mark(
    across: float, up: float, radius: float, colour: str, square: bool, filled: bool, words: str = ""
) -> str:
    paint = f'fill="{colour if filled else "#fff"}" stroke="{colour}"'
    if square:
        where = f'x="{across - radius:g}" y="{up - radius:g}" width="{2 * radius:g}" height="{2 * radius:g}"'
        return f"<rect {where} {paint}>{words}</rect>"
    return f'<circle cx="{across}" cy="{up}" r="{radius}" {paint}>{words}</circle>'


def _legend(name: str, colour: str, square: bool, at: float) -> Iterator[str]:
    left = WIDTH - RIGHT + 14
    yield _mark(left, at, 5, colour, square, filled=True)
    yield f'<text x="{left + 12}" y="{at + 4}">{escape(name)}</text>'
