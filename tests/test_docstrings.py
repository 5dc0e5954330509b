"""The examples in docstrings are true."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path

import pytest

import topicweave

SOURCE = Path(topicweave.__file__).parent
PACKAGES = ("blocks", "measures", "model", "sim", "systems", "telemetry", "testing", "workloads")


def with_examples() -> list[str]:
    return [
        ".".join(("topicweave", *file.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__")
        for package in PACKAGES
        for file in sorted((SOURCE / package).rglob("*.py"))
        if ">>> " in file.read_text()
    ]


@pytest.mark.parametrize("module", with_examples())
def test_they_are_true(module: str) -> None:
    outcome = doctest.testmod(import_module(module))
    assert outcome.attempted
    assert outcome.failed == 0
