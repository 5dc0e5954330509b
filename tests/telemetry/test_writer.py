import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.telemetry.recordings import NODES, TOPICS, record_little, record_much
from topicweave.errors import BadInput, TopicweaveError
from topicweave.port import Link
from topicweave.telemetry import MemoryTelemetry, ParquetTelemetry, Tables, Telemetry
from topicweave.telemetry.schema import RECORDED, SCHEMAS
from topicweave.telemetry.writer import BATCH_ROWS

FILES = {f"{table}.parquet" for table in RECORDED}


def in_memory(record: Callable[[MemoryTelemetry], None]) -> Tables:
    with MemoryTelemetry("r", NODES, TOPICS) as telemetry:
        record(telemetry)
    return telemetry.tables()


def names(folder: Path) -> set[str]:
    return {entry.name for entry in folder.iterdir()}


def python(script: str, *arguments: object, hash_seed: int = 0) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)],
        env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def earlier(tmp_path: Path) -> Path:
    """A folder that holds an earlier recording."""
    with ParquetTelemetry(tmp_path, "r", NODES, TOPICS) as telemetry:
        record_little(telemetry)
    return tmp_path


def test_rows_are_as_recorded() -> None:
    tables = in_memory(record_little)
    assert tables.links.to_pylist() == [
        {"run": "r", "time": 1.0, "node": "ann", "peer": "bob", "kind": "ring"},
        {"run": "r", "time": 1.0, "node": "ann", "peer": "zoe", "kind": "friend"},
    ]
    event = 2**63 - 1
    assert tables.publishes.to_pylist() == [
        {"run": "r", "event": event, "topic": "news", "node": "ann", "time": 1.5}
    ]
    common = {"run": "r", "event": event}
    assert tables.deliveries.to_pylist() == [
        {**common, "node": "bob", "time": 1.75, "hops": 1, "sender": "ann", "wanted": True},
        {**common, "node": "0000000000000abc", "time": 2.0, "hops": 2, "sender": "zoe", "wanted": False},
    ]
    assert tables.control.to_pylist() == [
        {"run": "r", "time": 2.0, "node": "bob", "kind": "Heartbeat", "messages": 3, "bytes": 120}
    ]


@pytest.mark.parametrize("rows", [0, 1, BATCH_ROWS, BATCH_ROWS + 1])
def test_files_and_memory_hold_the_same(tmp_path: Path, rows: int) -> None:
    with ParquetTelemetry(tmp_path, "r", NODES, TOPICS) as telemetry:
        record_much(telemetry, rows)
    loaded, kept = Tables.load(tmp_path), in_memory(lambda telemetry: record_much(telemetry, rows))
    for table, schema in SCHEMAS.items():
        assert getattr(kept, table).num_rows == rows
        assert getattr(kept, table).schema == schema
        assert getattr(loaded, table) == getattr(kept, table)


def test_names_that_become_known_during_the_run_are_used() -> None:
    names: dict[int, str] = {}
    telemetry = MemoryTelemetry("r", names, {})
    telemetry.links(0.0, 5, [Link(6, "ring")])
    names[5] = "five"
    assert telemetry.tables().links["node"].to_pylist() == ["five"]


def test_tables_can_be_taken_while_recording_goes_on() -> None:
    telemetry = MemoryTelemetry("r", NODES, TOPICS)
    record_little(telemetry)
    assert telemetry.tables().deliveries.num_rows == 2
    record_little(telemetry)
    assert telemetry.tables().deliveries.num_rows == 4


def test_a_row_group_per_batch_and_no_more_than_a_batch_in_memory(tmp_path: Path) -> None:
    with ParquetTelemetry(tmp_path, "r", NODES, TOPICS) as telemetry:
        record_much(telemetry, BATCH_ROWS - 1)
        before = (tmp_path / ".deliveries.parquet.partial").stat().st_size
        record_much(telemetry, BATCH_ROWS + 2)
        assert (tmp_path / ".deliveries.parquet.partial").stat().st_size > before
    for table in SCHEMAS:
        metadata = pq.ParquetFile(tmp_path / f"{table}.parquet").metadata
        groups = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
        assert groups == [BATCH_ROWS, BATCH_ROWS, 1]


def test_one_long_snapshot_is_cut_into_batches(tmp_path: Path) -> None:
    with ParquetTelemetry(tmp_path, "r", NODES, TOPICS) as telemetry:
        telemetry.links(0.0, 1, [Link(2, "ring")] * (2 * BATCH_ROWS + 5))
    metadata = pq.ParquetFile(tmp_path / "links.parquet").metadata
    assert [metadata.row_group(group).num_rows for group in range(3)] == [BATCH_ROWS, BATCH_ROWS, 5]


WRITE = """
import sys
from pathlib import Path
from tests.telemetry.recordings import record_much
from topicweave.telemetry import ParquetTelemetry
names = {number: f"node-{number}" for number in map(int, sys.argv[2].split(","))}
with ParquetTelemetry(Path(sys.argv[1]), "r", names, names) as telemetry:
    record_much(telemetry, 70_000)
"""


def test_same_rows_same_bytes(tmp_path: Path) -> None:
    """Whatever the hash seed, and in whatever order names were learned."""
    order = list(range(99))
    for hash_seed, folder in enumerate(["a", "b"]):
        done = python(WRITE, tmp_path / folder, ",".join(map(str, order)), hash_seed=hash_seed)
        assert done.returncode == 0, done.stderr
        random.Random(3).shuffle(order)
    for file in FILES:
        one, other = (tmp_path / "a" / file).read_bytes(), (tmp_path / "b" / file).read_bytes()
        assert one == other
        assert len(one) > 100_000


DIE = """
import os, signal, sys
from tests.telemetry.recordings import record_much
from topicweave.telemetry import ParquetTelemetry
telemetry = ParquetTelemetry(sys.argv[1], "r", {}, {})
record_much(telemetry, 70_000)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_recording_leaves_no_table(tmp_path: Path) -> None:
    done = python(DIE, tmp_path)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert (tmp_path / ".deliveries.parquet.partial").stat().st_size > 100_000
    assert not names(tmp_path) & FILES
    with pytest.raises(BadInput, match=r"links\.parquet: no such telemetry table"):
        Tables.load(tmp_path)
    # The next recording is not disturbed by what lies about.
    with ParquetTelemetry(tmp_path, "r", NODES, TOPICS) as telemetry:
        record_little(telemetry)
    assert names(tmp_path) == FILES
    assert Tables.load(tmp_path) == in_memory(record_little)


def record_and_fail(telemetry: Telemetry) -> None:
    record_much(telemetry, BATCH_ROWS + 1)
    raise ZeroDivisionError


def test_a_failed_block_leaves_nothing_and_keeps_the_earlier_recording(earlier: Path) -> None:
    with pytest.raises(ZeroDivisionError), ParquetTelemetry(earlier, "r", NODES, TOPICS) as telemetry:
        record_and_fail(telemetry)
    assert names(earlier) == FILES
    assert Tables.load(earlier) == in_memory(record_little)


def test_a_failed_block_forgets_what_was_kept_in_memory() -> None:
    telemetry = MemoryTelemetry("r", NODES, TOPICS)
    with pytest.raises(ZeroDivisionError), telemetry:
        record_and_fail(telemetry)
    assert telemetry.tables().deliveries.num_rows == 0


def test_a_second_recording_replaces_the_first(tmp_path: Path) -> None:
    for record in (lambda telemetry: record_much(telemetry, 10), record_little):
        with ParquetTelemetry(tmp_path, "r", NODES, TOPICS) as telemetry:
            record(telemetry)
    assert Tables.load(tmp_path) == in_memory(record_little)


def test_closing_twice_is_closing_once(tmp_path: Path) -> None:
    telemetry = ParquetTelemetry(tmp_path, "r", NODES, TOPICS)
    record_little(telemetry)
    telemetry.close()
    telemetry.close()
    telemetry.discard()
    assert Tables.load(tmp_path) == in_memory(record_little)


def test_recording_on_after_closing_is_an_error(tmp_path: Path) -> None:
    telemetry = ParquetTelemetry(tmp_path, "r", NODES, TOPICS)
    telemetry.close()
    with pytest.raises(TopicweaveError, match="is closed"):
        record_much(telemetry, BATCH_ROWS)


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(TopicweaveError, match=r"cannot write telemetry to .*file: File exists"):
        ParquetTelemetry(tmp_path / "file", "r", NODES, TOPICS)


def test_a_file_that_cannot_be_opened(tmp_path: Path) -> None:
    (tmp_path / ".deliveries.parquet.partial").mkdir()
    with pytest.raises(TopicweaveError, match=r"deliveries\.parquet: .*; make room or choose another folder"):
        ParquetTelemetry(tmp_path, "r", NODES, TOPICS)
    assert names(tmp_path) == {".deliveries.parquet.partial"}


# A limit on the size of files stands in for a full disk: it also lets through what fits and refuses the rest.
FILL = """
import random, resource, signal, sys
from topicweave.errors import TopicweaveError
from topicweave.port import Link
from topicweave.telemetry import ParquetTelemetry
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
try:
    with ParquetTelemetry(sys.argv[1], "r", {}, {}) as telemetry:
        telemetry.links(0.0, 1, [Link(2, "ring")])
        for _ in range(int(sys.argv[2])):
            telemetry.reception(random.getrandbits(63), 3, random.random(), 1, 4, True)
except TopicweaveError as error:
    print(error)
"""


def test_a_disk_that_fills_up_during_the_run_spares_the_earlier_recording(earlier: Path) -> None:
    done = python(FILL, earlier, BATCH_ROWS + 1)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        f"cannot write telemetry to {earlier}/deliveries.parquet: File too large; "
        "make room or choose another folder\n"
    )
    assert names(earlier) == FILES
    assert Tables.load(earlier) == in_memory(record_little)


def test_a_disk_that_fills_up_at_the_end_keeps_what_was_finished_and_mixes_nothing(earlier: Path) -> None:
    done = python(FILL, earlier, 30_000)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        f"cannot write telemetry to {earlier}/deliveries.parquet: File too large "
        "(finished and kept: links, publishes); make room or choose another folder\n"
    )
    assert names(earlier) == {"links.parquet", "publishes.parquet"}
    assert pq.read_table(earlier / "links.parquet").num_rows == 1
    with pytest.raises(BadInput, match=r"deliveries\.parquet: no such telemetry table"):
        Tables.load(earlier)
