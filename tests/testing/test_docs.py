"""The page about testing says what is true."""

from __future__ import annotations

from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "testing.md").read_text()
BLOCKS = [block.split("```")[0] for block in PAGE.split("```python\n")[1:]]


@pytest.mark.parametrize("words", ["pair(", "run_scenario(", "run_campaign("])
def test_the_code_on_the_page_runs(words: str) -> None:
    (code,) = (block for block in BLOCKS if words in block)
    exec(code, {})


def test_every_scenario_and_kind_of_fault_is_on_the_page() -> None:
    from topicweave.testing import shipped_scenarios
    from topicweave.testing.scenario_files import KINDS, ScenarioFile

    for name in (*shipped_scenarios(), *KINDS, *ScenarioFile.__struct_fields__):
        assert f"`{name}`" in PAGE or f"[[{name}]]" in PAGE
