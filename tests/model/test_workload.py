"""Workloads as values: made from lists and tables, asked, saved and loaded again."""

import doctest
import hashlib
import os
import pickle
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from topicweave.errors import BadInput
from topicweave.model import workload as workload_module
from topicweave.model.ids import ring_id
from topicweave.model.workload import Workload

LISTS = {"alice": ["sport", "news"], "bob": ["sport"], "al": []}
RATES = {"news": 2.0, "sport": 0.5, "void": 0.0}
CHURN = [(7.0, "bob", "leave"), (3.0, "al", "join"), (3.0, "alice", "leave"), (9.5, "bob", "join")]
HOSTS = {"alice": (1.0, 2.0), "bob": (-3.5, 0.0), "al": (0.0, 4.0)}


@pytest.fixture
def full() -> Workload:
    return Workload.from_lists(LISTS, RATES, CHURN, HOSTS)


def digests(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


def test_a_notebook_shows_facts(full: Workload) -> None:
    shown = full._repr_html_()
    assert shown.startswith("<table>")
    for name, value in {
        "nodes": "3",
        "topics": "3",
        "subscriptions": "3",
        "subscribers per topic": "1.0",
    }.items():
        assert f"<th>{name}</th><td>{value}</td>" in shown
    assert "<td>0.0</td>" in Workload.from_lists({"al": []})._repr_html_()


def test_the_examples_in_the_docstrings() -> None:
    outcome = doctest.testmod(workload_module)
    assert outcome.attempted > 0
    assert outcome.failed == 0


class TestValue:
    def test_names_are_ordered_by_length_then_text(self, full: Workload) -> None:
        assert full.node_names == ("al", "bob", "alice")
        assert full.topic_names == ("news", "void", "sport")

    def test_numbered_names_have_their_number_as_index(self) -> None:
        names = [f"n{number}" for number in range(120)]
        random.Random(1).shuffle(names)
        workload = Workload.from_lists({name: ["t"] for name in names})
        assert workload.node_names == tuple(f"n{number}" for number in range(120))

    def test_counts(self, full: Workload) -> None:
        assert (full.nodes, full.topics) == (3, 3)

    def test_interests_and_subscribers(self, full: Workload) -> None:
        assert [full.interests(node).tolist() for node in range(3)] == [[], [2], [0, 2]]
        assert [full.subscribers(topic).tolist() for topic in range(3)] == [[2], [], [1, 2]]

    def test_subscription_pairs(self, full: Workload) -> None:
        nodes, topics = full.subscription_pairs()
        assert list(zip(nodes.tolist(), topics.tolist(), strict=True)) == [(1, 2), (2, 0), (2, 2)]

    def test_rates(self, full: Workload) -> None:
        assert full.rates.tolist() == [2.0, 0.0, 0.5]
        assert Workload.from_lists(LISTS).rates.tolist() == [1.0, 1.0]

    def test_churn_is_ordered_by_time_then_node(self, full: Workload) -> None:
        assert full.churn.tolist() == [(3.0, 0, 1), (3.0, 2, 0), (7.0, 1, 0), (9.5, 1, 1)]
        assert Workload.from_lists(LISTS).churn.size == 0

    def test_nodes_start_in_the_state_opposite_to_their_first_change(self, full: Workload) -> None:
        assert full.initially_up().tolist() == [False, True, True]
        assert Workload.from_lists(LISTS).initially_up().tolist() == [True, True, True]

    def test_hosts(self, full: Workload) -> None:
        assert full.hosts is not None
        assert full.hosts.tolist() == [[0.0, 4.0], [-3.5, 0.0], [1.0, 2.0]]
        assert Workload.from_lists(LISTS).hosts is None

    def test_identifiers_are_those_of_the_names(self, full: Workload) -> None:
        assert full.node_ids == [ring_id("al"), ring_id("bob"), ring_id("alice")]
        assert full.topic_ids == [ring_id("news"), ring_id("void"), ring_id("sport")]

    def test_colliding_identifiers_are_refused(self, full: Workload, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(workload_module, "ring_ids", lambda names: [len(name) // 4 for name in names])
        with pytest.raises(BadInput, match=r"^nodes 'al' and 'bob' have the same identifier; rename"):
            full.node_ids  # noqa: B018
        with pytest.raises(BadInput, match=r"^topics 'news' and 'void' have the same identifier; rename"):
            full.topic_ids  # noqa: B018

    def test_arrays_cannot_be_written(self, full: Workload) -> None:
        assert full.hosts is not None
        arrays: list[Any] = [
            full.offsets,
            full.topic_index,
            full.rates,
            full.churn,
            full.hosts,
            full.interests(2),
        ]
        for array in arrays:
            with pytest.raises(ValueError, match=r"read-only"):
                array[:] = array

    @pytest.mark.parametrize(
        "other",
        [
            Workload.from_lists({**LISTS, "al": ["void"]}, RATES, CHURN, HOSTS),
            Workload.from_lists({**LISTS, "alice": ["news"]}, RATES, CHURN, HOSTS),
            Workload.from_lists(LISTS, {**RATES, "news": 2.5}, CHURN, HOSTS),
            Workload.from_lists(LISTS, RATES, CHURN[1:], HOSTS),
            Workload.from_lists(LISTS, RATES, CHURN, {**HOSTS, "bob": (-3.5, 0.5)}),
            Workload.from_lists(LISTS, RATES, CHURN),
            "a workload",
        ],
    )
    def test_equality_sees_every_field(self, full: Workload, other: object) -> None:
        same = Workload.from_lists(LISTS, RATES, CHURN, HOSTS)
        assert full == same
        assert hash(full) == hash(same)
        assert full != other

    def test_survives_pickling(self, full: Workload) -> None:
        assert pickle.loads(pickle.dumps(full)) == full

    def test_the_order_rows_come_in_does_not_matter(self, full: Workload) -> None:
        shuffled = Workload.from_lists(
            {"bob": ["sport"], "al": [], "alice": ["news", "sport"]},
            dict(reversed(RATES.items())),
            CHURN[::-1],
            dict(reversed(HOSTS.items())),
        )
        assert shuffled == full


names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=3)
numbers = st.floats(-1e6, 1e6)


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    lists = draw(st.dictionaries(names, st.lists(names, unique=True, max_size=5), min_size=1, max_size=5))
    topics = sorted({topic for wanted in lists.values() for topic in wanted})
    rates = draw(st.none() | st.fixed_dictionaries({topic: st.floats(0, 1e6) for topic in topics}))
    hosts = draw(st.none() | st.fixed_dictionaries({node: st.tuples(numbers, numbers) for node in lists}))
    churn = []
    for node in draw(st.lists(st.sampled_from(sorted(lists)), unique=True)):
        times = sorted(draw(st.lists(st.floats(0, 1e6), unique=True, max_size=4)))
        flip = draw(st.booleans())
        churn += [(time, node, ("join", "leave")[(step + flip) % 2]) for step, time in enumerate(times)]
    return Workload.from_lists(lists, rates, draw(st.permutations(churn)), hosts)


class TestFolder:
    @given(workloads())
    def test_loading_gives_what_was_saved(
        self, tmp_path_factory: pytest.TempPathFactory, workload: Workload
    ) -> None:
        folder = tmp_path_factory.mktemp("round") / "trip"
        workload.save(folder)
        assert Workload.load(folder) == workload

    def test_tables_that_add_nothing_are_not_written(self, tmp_path: Path, full: Workload) -> None:
        full.save(tmp_path / "full")
        Workload.from_lists({"a": ["t"]}).save(tmp_path / "bare")
        tables = ["churn.parquet", "hosts.parquet", "subscriptions.parquet", "topics.parquet"]
        assert sorted(os.listdir(tmp_path / "full")) == tables
        assert sorted(os.listdir(tmp_path / "bare")) == tables[2:]

    def test_a_node_that_wants_nothing_and_has_no_place_is_kept(self, tmp_path: Path) -> None:
        Workload.from_lists(LISTS).save(tmp_path / "w")
        assert pq.read_table(tmp_path / "w" / "hosts.parquet").column_names == ["node"]
        assert Workload.load(tmp_path / "w").node_names == ("al", "bob", "alice")

    def test_the_files_hold_plain_columns_in_the_words_of_the_design(
        self, tmp_path: Path, full: Workload
    ) -> None:
        full.save(tmp_path / "w")
        tables = {name: pq.read_table(tmp_path / "w" / f"{name}.parquet") for name in full.tables()}
        assert {
            name: [f"{field.name} {field.type}" for field in table.schema] for name, table in tables.items()
        } == {
            "subscriptions": ["node string", "topic string"],
            "topics": ["topic string", "rate double"],
            "churn": ["time double", "node string", "change string"],
            "hosts": ["node string", "x double", "y double"],
        }
        assert tables["churn"].to_pylist()[0] == {"time": 3.0, "node": "al", "change": "join"}
        assert tables["churn"].to_pylist()[1] == {"time": 3.0, "node": "alice", "change": "leave"}

    def test_equal_workloads_give_equal_bytes(self, tmp_path: Path, full: Workload) -> None:
        full.save(tmp_path / "a")
        same = Workload.from_lists(
            dict(reversed(LISTS.items())), RATES, CHURN, {**HOSTS, "bob": (-3.5, -0.0)}
        )
        same.save(tmp_path / "b")
        Workload.load(tmp_path / "a").save(tmp_path / "c")
        assert digests(tmp_path / "a") == digests(tmp_path / "b") == digests(tmp_path / "c")

    def test_saving_refuses_to_overwrite_unless_told(self, tmp_path: Path, full: Workload) -> None:
        small = Workload.from_lists({"a": ["t"]})
        full.save(tmp_path / "w")
        with pytest.raises(BadInput, match=r"w: not empty .*; choose another folder or allow overwriting"):
            small.save(tmp_path / "w")
        assert Workload.load(tmp_path / "w") == full
        small.save(tmp_path / "w", overwrite=True)
        assert Workload.load(tmp_path / "w") == small

    def test_saving_never_replaces_what_is_not_a_workload(self, tmp_path: Path, full: Workload) -> None:
        (tmp_path / "thesis.txt").write_text("three years")
        with pytest.raises(BadInput, match=r"holds 'thesis.txt' besides a workload"):
            full.save(tmp_path, overwrite=True)
        with pytest.raises(BadInput, match=r"thesis.txt: a file"):
            full.save(tmp_path / "thesis.txt", overwrite=True)
        assert (tmp_path / "thesis.txt").read_text() == "three years"

    def test_saving_fills_an_empty_folder_and_makes_missing_ones(
        self, tmp_path: Path, full: Workload
    ) -> None:
        (tmp_path / "empty").mkdir()
        for folder in (tmp_path / "empty", tmp_path / "far" / "away"):
            full.save(folder)
            assert Workload.load(folder) == full

    @pytest.mark.parametrize("failing_call", ["write_table", "rename"])
    def test_a_failed_save_leaves_the_old_workload_and_nothing_else(
        self, tmp_path: Path, full: Workload, monkeypatch: pytest.MonkeyPatch, failing_call: str
    ) -> None:
        full.save(tmp_path / "w")
        before = digests(tmp_path / "w")
        real_rename = Path.rename

        def no_space(*_: object, **__: object) -> None:
            raise OSError("no space left")

        def fail_on_the_new_folder(path: Path, target: Path) -> Path:
            if path.name == "new":
                no_space()
            return real_rename(path, target)

        if failing_call == "rename":
            monkeypatch.setattr(Path, "rename", fail_on_the_new_folder)
        else:
            monkeypatch.setattr(pq, "write_table", no_space)
        with pytest.raises(OSError, match=r"no space left"):
            Workload.from_lists({"a": ["t"]}).save(tmp_path / "w", overwrite=True)
        assert digests(tmp_path / "w") == before
        assert os.listdir(tmp_path) == ["w"]

    def test_only_subscriptions_are_needed(self, tmp_path: Path) -> None:
        pq.write_table(
            pa.table({"node": ["a"], "topic": ["t"], "since": [2009]}), tmp_path / "subscriptions.parquet"
        )
        assert Workload.load(tmp_path) == Workload.from_lists({"a": ["t"]})

    def test_part_files_as_spark_writes_them(self, tmp_path: Path) -> None:
        folder = tmp_path / "subscriptions.parquet"
        folder.mkdir()
        parts = [
            pa.table({"node": ["b"], "topic": ["t"]}),
            pa.table({"node": ["a", "b"], "topic": ["t", "u"]}),
        ]
        for number, part in enumerate(parts):
            pq.write_table(part, folder / f"part-0000{number}-c0ffee.snappy.parquet")
        pq.write_table(parts[0].slice(0, 0), folder / "part-00002-c0ffee.snappy.parquet")
        (folder / "_SUCCESS").touch()
        (folder / ".part-00000-c0ffee.snappy.parquet.crc").write_bytes(b"crc")
        assert Workload.load(str(tmp_path)) == Workload.from_lists({"a": ["t"], "b": ["t", "u"]})

    @pytest.mark.parametrize(
        "column",
        [
            pa.array([7, 10, 7], pa.int8()),
            pa.array([7, 10, 7], pa.int64()),
            pa.array([7, 10, 7], pa.uint64()),
            pa.array(["7", "10", "7"], pa.large_string()),
            pa.array(["7", "10", "7"]).dictionary_encode(),
            pa.array([7, 10, 7]).dictionary_encode(),
        ],
        ids=lambda column: str(column.type),
    )
    def test_names_come_as_text_or_integers(self, tmp_path: Path, column: Any) -> None:
        pq.write_table(pa.table({"node": column, "topic": [1, 1, 2]}), tmp_path / "subscriptions.parquet")
        expected = Workload.from_lists({"7": ["1", "2"], "10": ["1"]})
        assert Workload.load(tmp_path) == expected
        assert expected.node_names == ("7", "10")

    @pytest.mark.parametrize("type_", [pa.int32(), pa.float32(), pa.float64(), pa.decimal128(21, 2)], ids=str)
    def test_numbers_come_in_any_type(self, tmp_path: Path, type_: Any) -> None:
        Workload.from_lists({"a": ["t"]}).save(tmp_path / "w")
        pq.write_table(
            pa.table({"topic": ["t"], "rate": pa.array([3]).cast(type_)}), tmp_path / "w" / "topics.parquet"
        )
        assert Workload.load(tmp_path / "w").rates.tolist() == [3.0]

    def test_a_large_workload_is_indexed_right(self) -> None:
        generator = np.random.default_rng(5)
        pairs = np.unique(generator.integers(0, 300, size=(5000, 2)), axis=0)
        workload = Workload.from_tables(pa.table({"node": pairs[:, 0], "topic": pairs[:, 1]}))
        nodes, topics = workload.subscription_pairs()
        named = {
            (workload.node_names[node], workload.topic_names[topic])
            for node, topic in zip(nodes, topics, strict=True)
        }
        assert named == {(str(node), str(topic)) for node, topic in pairs.tolist()}
        assert len(nodes) == len(pairs)
        for topic in range(workload.topics):
            assert workload.subscribers(topic).tolist() == nodes[topics == topic].tolist()
