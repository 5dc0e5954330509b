from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.telemetry.recordings import NODES, TOPICS, record_little, record_much
from topicweave.errors import BadInput
from topicweave.telemetry import MemoryTelemetry, ParquetTelemetry, Tables
from topicweave.telemetry.schema import SCHEMAS


def recorded(run: str, rows: int) -> Tables:
    telemetry = MemoryTelemetry(run, NODES, TOPICS)
    record_much(telemetry, rows)
    return telemetry.tables()


def plain(table: pa.Table) -> pa.Table:
    """As Spark writes it: names not dictionary-encoded."""
    types = [
        (field.name, pa.string() if pa.types.is_dictionary(field.type) else field.type)
        for field in table.schema
    ]
    return table.cast(pa.schema(types))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with ParquetTelemetry(tmp_path, "r", NODES, TOPICS) as telemetry:
        record_little(telemetry)
    return tmp_path


def test_folders_of_part_files_without_dictionaries_are_read_alike(tmp_path: Path) -> None:
    tables = recorded("r", 20)
    for table in SCHEMAS:
        rows = plain(getattr(tables, table)).select(SCHEMAS[table].names[::-1])
        part_files = tmp_path / f"{table}.parquet"
        part_files.mkdir()
        (part_files / "_SUCCESS").touch()
        pq.write_table(rows.slice(0, 5), part_files / "part-0.parquet", store_schema=False)
        pq.write_table(rows.slice(5), part_files / "part-1.parquet", store_schema=False)
    assert Tables.load(tmp_path) == tables


def test_runs_are_told_apart() -> None:
    first, second = recorded("a", 5), recorded("b", 7)
    both = Tables(
        **{table: pa.concat_tables([getattr(first, table), getattr(second, table)]) for table in SCHEMAS}
    )
    assert both.runs() == ["a", "b"]
    assert both.of_run("b").deliveries.to_pylist() == second.deliveries.to_pylist()
    assert both.of_run("b").runs() == ["b"]
    assert both.of_run("c").runs() == []


def test_a_missing_table(folder: Path) -> None:
    (folder / "control.parquet").unlink()
    with pytest.raises(BadInput, match=r"control\.parquet: no such telemetry table"):
        Tables.load(folder)


def test_a_cut_table(folder: Path) -> None:
    whole = (folder / "links.parquet").read_bytes()
    (folder / "links.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(BadInput, match=r"links\.parquet: not a whole Parquet table"):
        Tables.load(folder)


def replace(folder: Path, table: str, column: str, values: pa.Array | None) -> None:
    path = folder / f"{table}.parquet"
    rows = pq.read_table(path)
    place = rows.column_names.index(column)
    rows = rows.remove_column(place) if values is None else rows.set_column(place, column, values)
    pq.write_table(rows, path)


def test_a_missing_column(folder: Path) -> None:
    replace(folder, "deliveries", "wanted", None)
    with pytest.raises(BadInput, match=r"deliveries\.parquet: needs one column 'wanted'"):
        Tables.load(folder)


def test_a_column_of_another_type(folder: Path) -> None:
    replace(folder, "deliveries", "hops", pa.array(["one", "two"]))
    with pytest.raises(BadInput, match=r"deliveries\.parquet: column 'hops': string does not fit int32"):
        Tables.load(folder)


def test_a_cell_without_value(folder: Path) -> None:
    replace(folder, "deliveries", "sender", pa.array(["ann", None]))
    with pytest.raises(BadInput, match=r"deliveries\.parquet: row 2, column 'sender': null"):
        Tables.load(folder)
