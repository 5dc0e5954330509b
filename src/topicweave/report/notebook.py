"""A comparison as a notebook shows it: the table, and what to know of it."""

from __future__ import annotations

from html import escape

from topicweave.report.columns import COLUMNS, column_marks
from topicweave.report.comparison import Comparison, Entry
from topicweave.report.constraints import complaints
from topicweave.report.terminal import SIGNS, legend

# Weight and sign as well as colour; a notebook may be light or dark.
_STYLES = {"best": "font-weight:bold;color:#1a7f37", "worst": "color:#cf222e", "": ""}


def comparison_markup(comparison: Comparison) -> str:
    marks = {column.measure: column_marks(column, comparison.entries) for column in COLUMNS}
    headings = "".join(
        f'<th title="{escape(column.meaning)}">{escape(column.group)}<br>{escape(column.title)}</th>'
        for column in COLUMNS
    )
    rows = [
        _row(entry, {measure: of_all[place] for measure, of_all in marks.items()})
        for place, entry in enumerate(comparison.entries)
    ]
    below = [*legend(comparison), *comparison.notes]
    below += [
        f"✗ {entry.label}: {'; '.join(broken)}"
        for entry in comparison.entries
        if (broken := complaints(entry, comparison.constraints))
    ]
    return (
        f"<table><thead><tr><th>system</th>{headings}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
        + "".join(f"<p><small>{escape(text)}</small></p>" for text in below)
    )


def _row(entry: Entry, marks: dict[str, str]) -> str:
    cells = []
    for column in COLUMNS:
        mark = marks[column.measure]
        text = (
            SIGNS[mark]
            + column.cell(entry.measure(column.measure))
            + column.spread(entry.interval(column.measure))
        )
        style = f' style="{_STYLES[mark]}"' if mark else ""
        cells.append(f"<td{style}>{escape(text)}</td>")
    return f"<tr><th>{escape(entry.label)}</th>{''.join(cells)}</tr>"
