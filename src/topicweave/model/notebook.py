"""What a notebook shows of a value: a few facts, as a table."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape


def facts_markup(title: str, facts: Mapping[str, object]) -> str:
    """
    >>> facts_markup("Workload", {"nodes": "1,000"})
    '<table><caption>Workload</caption><tbody><tr><th>nodes</th><td>1,000</td></tr></tbody></table>'
    """
    rows = "".join(
        f"<tr><th>{escape(name)}</th><td>{escape(str(value))}</td></tr>" for name, value in facts.items()
    )
    return f"<table><caption>{escape(title)}</caption><tbody>{rows}</tbody></table>"
