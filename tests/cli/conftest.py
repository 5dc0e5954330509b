"""Small workloads, so that every test here takes seconds."""

from pathlib import Path

import pytest

from topicweave.workloads import generate


@pytest.fixture(scope="session")
def workload(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """40 nodes, 12 topics."""
    folder = tmp_path_factory.mktemp("workloads") / "small"
    generate(40, 12, min_size=2, max_size=5, seed=1).save(folder)
    return folder
