"""Nothing is lost: a commit counts what is there, and a kill between any two steps costs nothing that was finished."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.pipeline.folders import rows
from topicweave.data.places import Place
from topicweave.errors import TopicweaveError
from topicweave.pipeline import packing, parts
from topicweave.pipeline.generate import generate
from topicweave.pipeline.parts import add_part, finish, finished, write_table
from topicweave.pipeline.staging import mark_of, read_about, staged, table_files, write_about

NUMBERS = pa.schema([("name", pa.string()), ("value", pa.int64())])

EACH_STEP = """
import json, os, shutil, signal, sys
from hashlib import sha256
from pathlib import Path
from tests.pipeline.folders import contents
from topicweave.pipeline import generate as module
from topicweave.data.places import Place
from topicweave.pipeline.packing import code_mark

import pandas  # PyArrow would in every process; code_mark: once for all, too
code_mark()
folder = Path(sys.argv[1])
old, new, out = (folder / name for name in ("old", "new", "out"))
kill_at, steps = None, 0

def killing(method):
    def killed(self, *arguments):
        global steps
        if steps == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        result = method(self, *arguments)
        if steps + 1 == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        steps += 2
        return result
    return killed

for name in ("take", "delete"):
    setattr(Place, name, killing(getattr(Place, name)))

def in_a_process_of_its_own(work):
    pid = os.fork()
    if pid == 0:
        try:
            os._exit(work() or 0)
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(99)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

def make(where, seed, step=None):
    def work():
        global kill_at
        kill_at = step
        module.generate("vitis-high", {"nodes": 20}, seed, where, overwrite=True)
    return in_a_process_of_its_own(work)

def which():
    tables = json.loads((out / "about.json").read_bytes())["tables"]
    for name, table in tables.items():
        for part in table["parts"]:
            assert sha256((out / name / part["name"]).read_bytes()).hexdigest() == part["sha256"]
    return 1 + [json.loads((one / "about.json").read_bytes())["tables"] for one in (old, new)].index(tables)

assert make(old, 1) == make(new, 2) == 0
whole = contents(new)
for replaced in (True, False):
    for step in range(1000):
        shutil.rmtree(out, ignore_errors=True)
        if replaced:
            shutil.copytree(old, out)
        code = make(out, 2, step)
        held = which() if replaced else 0
        parts = {file: file.stat().st_mtime_ns for file in out.glob("*.parquet/part-*")}
        receipts = [json.loads(file.read_bytes())["name"] for file in out.glob("_work/note-*/0*")]
        finished = (out / "about.json").exists() and not replaced
        again = None if finished else make(out, 2)
        same = again is None or contents(out) == whole
        remade = [file.name for file, time in parts.items() if file.name in receipts and file.exists() and file.stat().st_mtime_ns != time]
        print(json.dumps([replaced, step, code, held, again, same, remade]))
        if code == 0:
            break
"""


def test_a_kill_between_any_two_steps_loses_nothing(tmp_path: Path) -> None:
    """A folder is made, or replaced, and its process killed before and after every change to the storage."""
    life = subprocess.run(
        [sys.executable, "-c", EACH_STEP, str(tmp_path)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert life.returncode == 0, life.stderr
    attempts = [json.loads(line) for line in life.stdout.splitlines()]
    for replaced in (True, False):
        mine = [attempt for attempt in attempts if attempt[0] is replaced]
        assert [code for _, _, code, *_ in mine] == [-signal.SIGKILL] * (len(mine) - 1) + [0]
        assert len(mine) > 15, "so many steps there are"
        for _, step, _, _, again, same, remade in mine:
            assert again in (0, None), f"the same command goes on after a kill at step {step}: {life.stderr}"
            assert same, f"and makes what it would have made, after a kill at step {step}"
            assert not remade, f"without what was finished, after a kill at step {step}"
    held = [held for replaced, _, _, held, *_ in attempts if replaced]
    assert set(held) == {1, 2}, "at any time the old tables or the new ones, whole"
    assert held == sorted(held), "and never the old ones again"


def numbers(spark: SparkSession, count: int) -> Any:
    return spark.range(count).selectExpr("concat('n', id) name", "id value")


def test_a_table_is_what_its_tasks_told_and_the_driver_saw(spark: SparkSession, tmp_path: Path) -> None:
    with staged(tmp_path / "out", {"a": 1}, False, {"source": "abc"}) as staging:
        table = staging.table("topics")
        assert write_table(numbers(spark, 1000), table, NUMBERS, "name", ("name",)) == 1000
        (table.folder / "part-00009-stray.parquet").put(b"of a command that was killed")
        write_about(staging, {"command": "test"})
    about = read_about(tmp_path / "out")
    assert about["made"]["spark"] == spark.version
    assert about["made"]["parents"] == {"source": "abc"}
    (part,) = about["tables"]["topics.parquet"]["parts"]
    file = tmp_path / "out" / "topics.parquet" / part["name"]
    assert (part["rows"], part["bytes"]) == (1000, file.stat().st_size)
    assert [place.local for place in table_files(tmp_path / "out", "topics")] == [file]
    assert {one.name for one in file.parent.iterdir()} == {file.name}
    assert len(rows(tmp_path / "out", "topics")) == 1000


def test_what_a_task_wrote_and_the_driver_does_not_see_is_an_error(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a worker that writes to a disk of its own: rows were counted, and tables of none were left."""
    honest = parts.run_writer

    def lost(frame: Any, writer: Callable[[Iterator[Any]], Iterator[Any]]) -> Any:
        told = honest(frame, writer)
        for part in told:
            os.unlink(tmp_path / "out" / "topics.parquet" / part.name)
        return told

    def cut(frame: Any, writer: Callable[[Iterator[Any]], Iterator[Any]]) -> Any:
        return [part._replace(rows=part.rows + 1) for part in honest(frame, writer)]

    for harm, words in (
        (lost, r"1,000 rows there, and this machine cannot read it"),
        (cut, "lost something"),
    ):
        monkeypatch.setattr(parts, "run_writer", harm)
        with pytest.raises(TopicweaveError, match=words), staged(tmp_path / "out", {}, False) as staging:
            write_table(numbers(spark, 1000), staging.table("topics"), NUMBERS, "name", ("name",))
        assert not (tmp_path / "out" / "about.json").exists()


def test_who_sees_other_storage_or_comes_too_late_writes_nothing(tmp_path: Path) -> None:
    with staged(tmp_path / "out", {}, False) as staging:
        table = staging.table("topics")
        blind = table._replace(mark=Place(tmp_path / "elsewhere" / "attempt"))
        with pytest.raises(TopicweaveError, match=r"worker .*: does not see .*elsewhere/attempt"):
            add_part(blind, 0, NUMBERS, [])
        late = table._replace(attempt=b"of a driver that was killed")
        with pytest.raises(TopicweaveError, match="another command writes there"):
            add_part(late, 0, NUMBERS, [])
        assert finish(table, [add_part(table, 0, NUMBERS, [])]) == 0
        assert finished(table) == 0


def test_what_other_code_or_other_input_began_is_not_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def resumed(parents: dict[str, str]) -> bool:
        class Killed(Exception):
            pass

        with suppress(Killed), staged(Place(tmp_path / "out"), {"n": 1}, False, parents) as staging:
            found = staging.resumed
            raise Killed
        return found

    assert [resumed({"w": "a"}), resumed({"w": "a"}), resumed({"w": "b"})] == [False, True, False]
    monkeypatch.setattr(packing, "code_mark", lambda: "other")
    assert [resumed({"w": "b"}), resumed({"w": "b"})] == [False, True]


def test_two_commands_do_not_write_one_folder(tmp_path: Path) -> None:
    with staged(tmp_path / "out", {}, False) as staging:
        finish(staging.table("topics"), [add_part(staging.table("topics"), 0, NUMBERS, [])])
        with pytest.raises(TopicweaveError, match="another process is writing it"):
            generate("vitis-high", {"nodes": 10}, 0, tmp_path / "out")


def test_a_folders_mark_changes_with_its_tables_and_not_with_their_making(tmp_path: Path) -> None:
    for name, seed in (("one", 1), ("same", 1), ("other", 2)):
        generate("vitis-high", {"nodes": 60}, seed, tmp_path / name)
    one, same, other = (mark_of(tmp_path / name) for name in ("one", "same", "other"))
    assert one == same != other
    hand_made = tmp_path / "by hand"
    hand_made.mkdir()
    pq.write_table(pa.table({"node": ["a"], "topic": ["x"]}), hand_made / "subscriptions.parquet")
    first = mark_of(hand_made)
    pq.write_table(pa.table({"node": ["a"], "topic": ["xyz"]}), hand_made / "subscriptions.parquet")
    assert mark_of(hand_made) != first


@pytest.mark.parametrize(
    ("text", "shown", "name"),
    [
        ("s3://bucket/a/b?region=x", "s3://bucket/a/b?region=x", "b"),
        ("s3:/bucket/a", "s3://bucket/a", "a"),
        ("/a/b/", "/a/b", "b"),
        ("file:///a/b", "/a/b", "b"),
    ],
)
def test_places_are_paths_or_uris(text: str, shown: str, name: str) -> None:
    place = Place(text)
    assert (str(place), place.name) == (shown, name)
    assert str(place / "c").partition("?")[0] == f"{shown.partition('?')[0]}/c"
    assert json.dumps(str(Place(str(place)))) == json.dumps(str(place))
