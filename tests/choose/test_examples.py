"""The examples in the docstrings."""

import doctest
from pathlib import Path
from types import ModuleType

import pytest

from topicweave.choose import advising, comparing, planning, simulating, sources, variants


@pytest.mark.parametrize("module", [advising, comparing, planning, simulating, sources, variants])
def test_they_are_true(module: ModuleType, tmp_path: Path) -> None:
    outcome = doctest.testmod(module, extraglobs={"folder": tmp_path})
    assert outcome.attempted
    assert outcome.failed == 0


def test_the_readme_simulates() -> None:
    """The README's simulation, as it stands there."""
    text = (Path(__file__).parents[2] / "README.md").read_text()
    code = text.split("## Simulate it")[1].split("```python\n")[1].split("```")[0]
    printed: list[tuple[object, ...]] = []
    exec(code, {"print": lambda *words: printed.append(words)})
    assert sorted((node, payload) for _, node, payload in printed) == [
        ("ann", b"hello"),
        ("bob", b"hello"),
        ("eve", b"hello"),
    ]
