"""Help: there for every command, with an example, and at once."""

import subprocess
import sys
from typing import Any

import pytest
import typer.main

import topicweave
from tests.cli.commands import call, run
from topicweave.cli.app import app

HEAVY = ("numpy", "pyarrow", "pandas", "plotly", "pyspark", "rich", "msgspec", "multiprocessing")


def commands(group: Any = None, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """All commands, those of groups within groups too."""
    below = getattr(group or typer.main.get_command(app), "commands", None)
    if below is None:
        return [path]
    return [found for name, command in below.items() for found in commands(command, (*path, name))]


def test_there_are_commands() -> None:
    assert {("compare",), ("demo",), ("study", "run"), ("campaign",), ("workload", "show")} <= set(commands())


@pytest.mark.parametrize("command", commands(), ids=" ".join)
def test_every_command_has_help_with_an_example_of_itself(command: tuple[str, ...]) -> None:
    shown = call(*command, "--help")
    assert shown.exit_code == 0
    examples = shown.stdout.partition("Example")[2]
    assert f"  topicweave {' '.join(command)}" in examples


def test_nothing_heavy_is_imported_for_help() -> None:
    program = f"""
import sys
from topicweave.cli import main
sys.argv = ["topicweave", "--help"]
try:
    main()
except SystemExit as end:
    assert end.code == 0
heavy = {HEAVY!r}
print([name for name in heavy if name in sys.modules])
"""
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "Commands:" in shown.stdout
    assert shown.stdout.splitlines()[-1] == "[]"


def test_without_a_command_there_is_help() -> None:
    shown = run()
    assert "Start here" in shown.stdout + shown.stderr


def test_version() -> None:
    shown = run("--version")
    assert (shown.returncode, shown.stdout) == (0, f"topicweave {topicweave.__version__}\n")
