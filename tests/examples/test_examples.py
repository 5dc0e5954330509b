"""Every example runs as it stands, and shows what it says."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import pytest

from tests.live.together import PROCESS_PATIENCE, processes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"


def python(*words: str | Path, cwd: Path, path: Path | None = None) -> str:
    """What a program prints, in a process of its own."""
    environment = {**os.environ, **({"PYTHONPATH": str(path)} if path else {})}
    ended = subprocess.run(
        [sys.executable, *map(str, words)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env=environment,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_all_are_listed() -> None:
    listed = (EXAMPLES / "README.md").read_text()
    for entry in EXAMPLES.iterdir():
        if entry.name == "__pycache__":
            continue  # Python's, once another test has imported an example
        if entry.suffix in (".py", ".ipynb") or entry.is_dir():
            assert f"]({entry.name}{'/' if entry.is_dir() else ''})" in listed


def test_simulate(tmp_path: Path) -> None:
    lines = python(EXAMPLES / "simulate.py", cwd=tmp_path).splitlines()
    printed = sorted(line.split(" ", 1)[1] for line in lines)
    assert printed == ["ann b'hello'", "bob b'hello'", "eve b'hello'"]


def test_the_readme_has_it_word_for_word() -> None:
    readme = (ROOT / "README.md").read_text()
    blocks = [block.split("```")[0] for block in readme.split("```python\n")[1:]]
    body = (EXAMPLES / "simulate.py").read_text().split('"""\n\n', 1)[1]
    assert body in blocks


def test_any_file_and_the_page_has_its_table(tmp_path: Path) -> None:
    printed = python(EXAMPLES / "any_file.py", cwd=tmp_path)
    assert len(printed.splitlines()) == 2 + 12
    assert printed in (ROOT / "docs" / "workloads.md").read_text()


def test_compare(tmp_path: Path) -> None:
    printed = python(EXAMPLES / "compare.py", tmp_path / "out", cwd=tmp_path)
    for system in ("spidercast", "vitis", "broker"):
        assert any(line.startswith(system) for line in printed.splitlines())
    report = Path(printed.splitlines()[-1].removeprefix("report: "))
    assert report.read_text().startswith("<!DOCTYPE html>")


def test_notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its cells, one after another; what a cell ends with is shown, as a notebook shows it."""
    monkeypatch.chdir(tmp_path)
    book = json.loads((EXAMPLES / "notebook.ipynb").read_text())
    names: dict[str, Any] = {"__name__": "notebook"}
    shown: list[Any] = []
    for cell in book["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            tree = ast.parse("".join(cell["source"]))
            last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
            exec(compile(tree, "cell", "exec"), names)
            if isinstance(last, ast.Expr):
                shown.append(eval(compile(ast.Expression(last.value), "cell", "eval"), names))
    table, frame, heard = shown
    assert "<table" in table._repr_html_()
    assert set(frame.index.get_level_values("system")) == {"spidercast", "rvr"}
    number, _, total, *_ = heard.split()
    assert number == total != "0"


class Chatter:
    """Somebody in the chat, in a process of its own."""

    def __init__(self, *words: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(EXAMPLES / "live_chat.py"), *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in: IO[str] = self._process.stdin
        self._out: IO[str] = self._process.stdout

    def says(self, text: str) -> None:
        self._in.write(text + "\n")
        self._in.flush()

    def reads(self) -> str:
        return self._out.readline().strip()

    def goes(self) -> int:
        self._in.close()
        return self._process.wait(timeout=PROCESS_PATIENCE)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


@pytest.fixture
def ann() -> Iterator[Chatter]:
    chatter = Chatter("ann")
    yield chatter
    chatter.kill()


def test_live_chat(ann: Chatter) -> None:
    place = ann.reads().split()[3].rstrip(";")
    bob = Chatter("bob", "--join", place)
    try:
        assert bob.reads().startswith("bob is at 127.0.0.1:")
        bob.says("hello ann")
        assert ann.reads() == "bob: hello ann"
        ann.says("hello bob")
        assert bob.reads() == "ann: hello bob"
        assert bob.goes() == 0
    finally:
        bob.kill()
    assert ann.goes() == 0


def test_remote_client(tmp_path: Path) -> None:
    with processes() as start:
        node = start("--insecure", "--preset", "local", "--http", "127.0.0.1:0")
        printed = python(EXAMPLES / "remote_client.py", node.where()["http"], "news", "hello", cwd=tmp_path)
    assert printed.splitlines() == ["number 0, taken by 0 neighbours", "news: hello"]


def test_spark_sweep(spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = importlib.util.spec_from_file_location("spark_sweep", EXAMPLES / "spark_sweep.py")
    assert spec is not None
    assert spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    example.run(spark, tmp_path / "out")
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == 2 * 3 + 1
    assert printed[-1].startswith("6 runs, 0 failed")
    assert all("1.00 ± 0.00" in line for line in printed if line.startswith("hit_ratio"))


# A system of one's own.


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example's package, as pip installs it: a folder for PYTHONPATH."""
    folder = tmp_path_factory.mktemp("installed")
    source, site = folder / "source", folder / "site"
    shutil.copytree(EXAMPLES / "custom_system", source)
    options = ["--quiet", "--no-deps", "--no-index", "--no-build-isolation"]
    python("-m", "pip", "install", *options, "--target", site, source, cwd=folder)
    return site


def test_the_custom_system_is_short() -> None:
    assert len((EXAMPLES / "custom_system" / "direct_mail.py").read_text().splitlines()) < 100


def test_the_custom_system_is_listed_and_passes_a_campaign(installed: Path, tmp_path: Path) -> None:
    command = ("-m", "topicweave.cli")
    assert "direct-mail" in python(*command, "systems", cwd=tmp_path, path=installed)
    campaign = (*command, "campaign", "direct-mail", "--workers", "1")
    printed = python(*campaign, "--seeds", "3", "--nodes", "25", cwd=tmp_path, path=installed)
    assert printed.startswith("direct-mail: 3 of 3 seeds passed")
    printed = python(*campaign, "--scenario", "partition", cwd=tmp_path, path=installed)
    assert printed.startswith("direct-mail under partition: 1 of 1 seeds passed")


def test_the_custom_system_is_compared(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "my.csv").write_text(
        "node,topic\n" + "".join(f"n{n},t{topic}\n" for n in range(20) for topic in (n % 4, 4 + n % 3))
    )
    words = ("compare", "my.csv", "--systems", "direct-mail,spidercast", "--events", "10", "--workers", "1")
    out = ("--out", tmp_path / "out", "--format", "json")
    told = json.loads(python("-m", "topicweave.cli", *words, *out, cwd=tmp_path, path=installed))
    by_system = {entry["system"]: entry["measures"] for entry in told["systems"]}
    assert by_system["direct-mail"]["hit_ratio"] == 1.0
    assert by_system["direct-mail"]["noise"] == 0.0
    assert by_system["direct-mail"]["hops_max"] == 1.0
    assert by_system["spidercast"]["hops_max"] > 1.0


LIVE = """
import asyncio, topicweave

async def main():
    common = dict(insecure=True, system="direct-mail", preset="local", subscribe=["news"])
    async with topicweave.connect(name="ann", **common) as ann:
        async with topicweave.connect(name="bob", join=[str(ann.address)], **common) as bob:
            receipt = await bob.publish("news", b"hello")
            async for event in ann.events():
                print(event.publisher, event.payload.decode())
                break

asyncio.run(asyncio.wait_for(main(), 300))
"""


def test_the_custom_system_runs_live(installed: Path, tmp_path: Path) -> None:
    assert python("-c", LIVE, cwd=tmp_path, path=installed) == "bob hello\n"
