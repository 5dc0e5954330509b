"""The settings of a node as a page: names, types, defaults and meanings, read from the code that has them."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from topicweave.live.ranges import RANGES
from topicweave.live.settings import ENVIRONMENT, Limits, LogLimits, Settings

_HEAD = f"""# Settings

This page lists all settings of a node: name, type, default, least and greatest value of a number, meaning. A node
takes them from a TOML file (`--config`), then from variables, then from flags. The later source wins. A variable's
name is `{ENVIRONMENT}` and the setting in capitals; lists are separated by commas. `topicweave config check` finds
mistakes, `topicweave config show` prints the settings that result.

`topicweave config reference` writes this page.
"""


class ListedSetting(NamedTuple):
    """One field."""

    name: str
    type: str
    default: str
    meaning: str


def settings_of(struct: type[msgspec.Struct]) -> Iterator[ListedSetting]:
    """Every field with the words below it."""
    body = ast.parse(inspect.getsource(struct)).body[0]
    assert isinstance(body, ast.ClassDef)
    for field, after in zip(body.body, [*body.body[1:], None], strict=True):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            said = after.value if isinstance(after, ast.Expr) else None
            words = said.value if isinstance(said, ast.Constant) and isinstance(said.value, str) else ""
            yield ListedSetting(
                field.target.id, ast.unparse(field.annotation), _default(struct, field), words
            )


def _default(struct: type[msgspec.Struct], field: ast.AnnAssign) -> str:
    assert isinstance(field.target, ast.Name)
    value = getattr(struct(insecure=True) if struct is Settings else struct(), field.target.id)
    if field.target.id == "insecure":
        value = False  # Set above: without keys there is no other node.
    return "" if isinstance(value, msgspec.Struct) else msgspec.json.encode(value).decode()


def page() -> str:
    """All of them, in Markdown."""
    parts = [_HEAD]
    for title, group, struct in (
        ("A node", "", Settings),
        ("`[limits]`", "limits.", Limits),
        ("`[log]`, and `[logs.TOPIC]`", "log.", LogLimits),
    ):
        parts.append(f"## {title}\n\n{inspect.cleandoc(struct.__doc__ or '')}\n")
        for one in settings_of(struct):
            default = f", `{one.default}`" if one.default else ""
            allowed = RANGES.get(f"{group}{one.name}")
            bounds = f", {allowed}" if allowed else ""
            parts.append(f"- **`{one.name}`** (`{one.type}`{default}{bounds})" + _meaning(one.meaning))
        parts.append("")
    return "\n".join(parts).rstrip() + "\n"


def _meaning(words: str) -> str:
    return "".join(f"\n  {line}" for line in _wrapped(words)) if words else ""


def _wrapped(words: str) -> list[str]:
    return textwrap.wrap(" ".join(words.split()), 110)
