"""Tables that are added to: whole files only, one table for many writers, nothing lost between them."""

from pathlib import Path

import pytest

from tests.telemetry.recordings import NODES, TOPICS, record_little, record_much
from topicweave.errors import TopicweaveError
from topicweave.telemetry import MemoryTelemetry, PartsTelemetry, Tables
from topicweave.telemetry.schema import SCHEMAS
from topicweave.telemetry.writer import BATCH_ROWS


def test_parts_hold_what_memory_holds(tmp_path: Path) -> None:
    memory = MemoryTelemetry("run", NODES, TOPICS)
    parts = PartsTelemetry(tmp_path, "run", NODES, TOPICS)
    for telemetry in (memory, parts):
        record_little(telemetry)
    parts.rotate()
    early = Tables.load(tmp_path)
    assert early == memory.tables(), "readers have it before the end"
    for telemetry in (memory, parts):
        record_much(telemetry, BATCH_ROWS + 1)
    parts.close()
    assert Tables.load(tmp_path) == memory.tables()
    assert len(list((tmp_path / "deliveries.parquet").iterdir())) == 4, "none, few, a batch, the rest"
    record_little(parts)
    with pytest.raises(TopicweaveError, match="is closed"):
        parts.rotate()


def test_writers_share_a_table_and_come_back(tmp_path: Path) -> None:
    for writer in ("a", "b", "a", "_ / odd"):
        with PartsTelemetry(tmp_path, "run", NODES, TOPICS, writer=writer) as telemetry:
            record_little(telemetry)
    assert Tables.load(tmp_path).deliveries.num_rows == 8
    names = sorted(path.name for path in (tmp_path / "control.parquet").iterdir())
    assert names == [
        "%5f%20%2f%20odd-000001.parquet",
        "%5f%20%2f%20odd-000002.parquet",
        "a-000001.parquet",
        "a-000002.parquet",
        "a-000003.parquet",
        "b-000001.parquet",
        "b-000002.parquet",
    ]


def test_a_failed_block_takes_back_its_own_parts_only(tmp_path: Path) -> None:
    with PartsTelemetry(tmp_path, "run", NODES, TOPICS) as telemetry:
        record_little(telemetry)

    def fail() -> None:
        with PartsTelemetry(tmp_path, "run", NODES, TOPICS) as telemetry:
            record_little(telemetry)
            telemetry.rotate()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert Tables.load(tmp_path).deliveries.num_rows == 2


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TopicweaveError, match=r"cannot write telemetry to .*file: Not a directory"):
        PartsTelemetry(tmp_path / "file", "run", NODES, TOPICS)


def test_every_table_is_there_from_the_start(tmp_path: Path) -> None:
    PartsTelemetry(tmp_path, "run", NODES, TOPICS)
    tables = Tables.load(tmp_path)
    assert all(getattr(tables, name).num_rows == 0 for name in SCHEMAS)
