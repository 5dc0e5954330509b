"""Nothing that grows with the data comes to the driver: every place where rows do is known, and says why it may."""

import re
from pathlib import Path

import topicweave

PIPELINE = Path(topicweave.__file__).parent / "pipeline"

# File -> how many places bring rows to the driver, all of bounded size: see the comment at each.
ALLOWED = {
    "describe.py": 1,  # a histogram of counts
    "executor.py": 1,  # one row per run
    "generate.py": 3,  # one row per part; 65,536 bins; one bin
    "lines.py": 1,  # one row per 64 MiB of text
    "likeness.py": 3,  # a sample of nodes, their best peers
    "parts.py": 1,  # one row per part
    "rounds.py": 1,  # what tasks tell the driver: see who calls `here`
    "sample.py": 1,  # one row per partition
    "stream.py": 1,  # one row per run, node and window of a batch
    "stream_windows.py": 1,  # one row per window
    "sweep.py": 2,  # points of a grid
    "tables_of.py": 1,  # one row per matrix
    "workers.py": 1,  # a line per worker
}
TO_THE_DRIVER = re.compile(r"\.(collect|toArrow|toPandas|toLocalIterator)\(")


def test_every_place_that_brings_rows_to_the_driver_is_known() -> None:
    found = {}
    for file in sorted(PIPELINE.rglob("*.py")):
        calls = TO_THE_DRIVER.findall(file.read_text())
        assert "toPandas" not in calls, file.name
        if calls:
            found[file.name] = len(calls)
    assert found == ALLOWED
