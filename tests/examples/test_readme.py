"""The Python of the README runs as it is written."""

from __future__ import annotations

import ast
import asyncio
from pathlib import Path
from typing import Any

import pytest

import topicweave
from tests.live.together import run

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
BLOCKS = [block.split("```")[0] for block in README.split("```python\n")[1:]]


def block_with(call: str) -> str:
    (found,) = (block for block in BLOCKS if call in block)
    return found


def test_every_block_is_run_here_or_is_an_example() -> None:
    """`tests/examples/test_examples.py` runs the one that simulates."""
    calls = ("topicweave.compare(", "topicweave.connect(", "topicweave.simulate(")
    assert sorted(BLOCKS) == sorted(map(block_with, calls))


def test_compare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    wants = [f"n{node},t{(node * step) % 5}" for node in range(12) for step in (1, 2)]
    Path("my.csv").write_text("\n".join(["node,topic", *wants, ""]))
    names: dict[str, Any] = {}
    exec(compile(block_with("topicweave.compare("), "README.md", "exec"), names)
    result = names["result"]
    assert [entry.system for entry in result.entries] == ["spidercast", "vitis"]
    assert result.setting.seeds == (0, 1, 2)
    assert "<table" in result._repr_html_()
    assert Path("report.html").read_text().startswith("<!DOCTYPE html>")


class Enough(Exception):
    """Ends the endless loop of the block."""


@pytest.mark.timeout(300)
def test_live() -> None:
    """With a node at a free port that greets back."""
    block = block_with("topicweave.connect(")
    assert block.count("127.0.0.1:7000") == 1
    printed: list[tuple[str, bytes, str]] = []

    def show(*words: Any) -> None:
        printed.append(words)
        if words[1] == b"welcome":
            raise Enough

    async def greet_back(node: topicweave.LiveNode) -> None:
        async for event in node.events():
            if event.publisher != node.name:
                await node.publish("news", b"welcome", wait_for=1)

    async def main() -> None:
        async with topicweave.connect(insecure=True, subscribe=["news"]) as other:
            greeting = asyncio.create_task(greet_back(other))
            written = block.replace("127.0.0.1:7000", str(other.address))
            code = compile(written, "README.md", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            names: dict[str, Any] = {"print": show}
            with pytest.raises(Enough):
                await eval(code, names)
            greeting.cancel()
            assert names["receipt"].accepted == 1
            assert printed == [
                ("news", b"hello", names["node"].name),
                ("news", b"welcome", other.name),
            ]

    run(main)
