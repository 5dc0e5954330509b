"""Text that is written in a language of its own: a table of Markdown, and YAML or TOML, which are not read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from topicweave.errors import BadInput

_RULE = re.compile(r"\s*\|?\s*(:?--+:?|:-:?|-:)\s*(\|\s*(:?--+:?|:-:?|-:)\s*)*\|?\s*")
_ITEM = re.compile(r"\s*-(\s+\S.*)?")
_KEY = re.compile(r"\s*[^\s,;|#][^,;|\t]*:(\s.*)?")
_SECTION = re.compile(r"\s*\[{1,2}[^\[\]]+\]{1,2}\s*")
_SET = re.compile(r"""\s*("[^"]*"|'[^']*'|[\w.-]+)(\s+=\s+\S|\s*=\s*[\["'{]).*""")
_INSTEAD = 'give JSON, {"ann": ["news", "go"]}, or a line for each subscription: ann,news'


def markdown_table(path: Path, text: str, lines: Sequence[str]) -> str:
    """A table of Markdown without its rule and its outer bars, with the header in the rule's place; empty if the
    text, which starts with these lines, is none.
    """
    rules = [place for place, line in enumerate(lines) if "|" in line and _RULE.fullmatch(line)]
    if not rules or "|" not in lines[rules[0] - 1]:
        return ""
    if rules != [1]:
        raise BadInput(f"{path}: a page of Markdown, not a table alone; give one table, from its header on")
    rows = text.split("\n")
    rule = next(place for place, row in enumerate(rows) if row.rstrip("\r") == lines[1])
    del rows[rule]
    return "\n".join(re.sub(r"^\s*\|\s?|\s?\|\s*$", "", row) for row in rows)


def refuse_other_languages(path: Path, lines: Sequence[str]) -> None:
    """Raise about YAML, whose items start with a dash, and TOML or settings, whose names stand before `=`."""
    items = sum(_ITEM.fullmatch(line) is not None for line in lines)
    keys = sum(_KEY.fullmatch(line) is not None for line in lines)
    if lines[0].rstrip() == "---" or (items and items + keys >= 0.9 * len(lines)):
        raise BadInput(f"{path}: looks like YAML, which is not read; {_INSTEAD}")
    rest = [line for line in lines if not _SECTION.fullmatch(line)]
    if rest and (
        sum(_SET.fullmatch(line) is not None for line in rest) >= 0.9 * len(rest)
        or re.match(r"\s*[\w.-]+\s*=\s*\[", rest[0])
    ):
        raise BadInput(f"{path}: looks like TOML or a file of settings, which are not read; {_INSTEAD}")
