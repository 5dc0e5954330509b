"""Everything that can be wrong with a workload's tables: one line that says what, where and what to do."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from topicweave.errors import BadInput
from topicweave.model.workload import Workload

NAN, INF = float("nan"), float("inf")


def columns(**cells: Any) -> Any:
    return pa.table(cells)


GOOD = {
    "subscriptions": columns(node=["a", "b", "b"], topic=["t", "t", "u"]),
    "topics": columns(topic=["t", "u"], rate=[1.0, 2.0]),
    "churn": columns(time=[1.0, 2.0], node=["a", "a"], change=["leave", "join"]),
    "hosts": columns(node=["a", "b"], x=[0.0, 1.0], y=[0.0, 1.0]),
}

# name -> (table, its content, what the error says after the table's name)
CASES: dict[str, tuple[str, Any, str]] = {
    "missing_column": (
        "subscriptions",
        columns(node=["a"], tpoic=["t"]),
        ": column 'topic': missing; every subscription names a topic (text or an integer)",
    ),
    "missing_rate": ("topics", columns(topic=["t", "u"]), ": column 'rate': missing; give events per second"),
    "missing_change": ("churn", columns(time=[1.0], node=["a"]), ": column 'change': missing; write 'join'"),
    "missing_y": (
        "hosts",
        columns(node=["a", "b"], x=[0.0, 1.0]),
        ": column 'y': missing; give a finite number",
    ),
    "missing_x": (
        "hosts",
        columns(node=["a", "b"], y=[0.0, 1.0]),
        ": column 'x': missing; give a finite number",
    ),
    "missing_host": ("hosts", columns(x=[0.0], y=[1.0]), ": column 'node': missing; every row names a node"),
    "doubled_column": (
        "subscriptions",
        pa.Table.from_arrays([pa.array(["a"]), pa.array(["a"]), pa.array(["t"])], ["node", "node", "topic"]),
        ": column 'node': there 2 times; every subscription names a node",
    ),
    "null_topic": (
        "subscriptions",
        columns(node=["a", "b"], topic=["t", None]),
        ": row 2, column 'topic': null; every subscription names a topic",
    ),
    "null_in_a_dictionary": (
        "subscriptions",
        columns(node=pa.array(["a", None, "b"]).dictionary_encode(), topic=["t", "t", "t"]),
        ": row 2, column 'node': null; every subscription names a node",
    ),
    "null_everywhere": (
        "churn",
        columns(time=[1.0], node=pa.nulls(1), change=["join"]),
        ": row 1, column 'node': null; every change names a node",
    ),
    "null_rate": (
        "topics",
        columns(topic=["t", "u"], rate=[1.0, None]),
        ": row 2, column 'rate': null; give events",
    ),
    "null_time": (
        "churn",
        columns(time=[None], node=["a"], change=["join"]),
        ": row 1, column 'time': null; give seconds",
    ),
    "null_coordinate": (
        "hosts",
        columns(node=["a", "b"], x=[0.0, None], y=[0.0, 0.0]),
        ": row 2, column 'x': null; give a finite number for every node",
    ),
    "empty_name": (
        "subscriptions",
        columns(node=["a", ""], topic=["t", "t"]),
        ": row 2, column 'node': '' (empty); every",
    ),
    "node_of_wrong_type": (
        "subscriptions",
        columns(node=[1.5], topic=["t"]),
        ": column 'node': of type double; every subscription names a node (text or an integer)",
    ),
    "topic_of_wrong_type": (
        "topics",
        columns(topic=[b"t"], rate=[1.0]),
        ": column 'topic': of type binary; every row",
    ),
    "rate_of_wrong_type": (
        "topics",
        columns(topic=["t"], rate=["1"]),
        ": column 'rate': of type string; give events",
    ),
    "time_of_wrong_type": (
        "churn",
        columns(time=pa.array([1], pa.timestamp("us")), node=["a"], change=["join"]),
        ": column 'time': of type timestamp[us]; give seconds from the start",
    ),
    "coordinate_of_wrong_type": (
        "hosts",
        columns(node=["a", "b"], x=[True, False], y=[0.0, 1.0]),
        ": column 'x': of type bool; give a finite number",
    ),
    "duplicate_subscription": (
        "subscriptions",
        columns(node=["b", "a", "b", "a", "b"], topic=["t", "u", "u", "u", "t"]),
        ": row 4, column 'topic': node 'a' and topic 'u' as in row 2; keep one of the two",
    ),
    "duplicate_topic": (
        "topics",
        columns(topic=["t", "u", "t"], rate=[1.0, 1.0, 2.0]),
        ": row 3, column 'topic': topic 't' as in row 1; keep one of the two",
    ),
    "duplicate_host": (
        "hosts",
        columns(node=["a", "b", "b"], x=[0.0, 1.0, 1.0], y=[0.0, 1.0, 1.0]),
        ": row 3, column 'node': node 'b' as in row 2; keep one of the two",
    ),
    "negative_rate": (
        "topics",
        columns(topic=["t", "u"], rate=[0.0, -0.5]),
        ": row 2, column 'rate': -0.5; give events",
    ),
    "rate_not_a_number": (
        "topics",
        columns(topic=["t", "u"], rate=[NAN, 1.0]),
        ": row 1, column 'rate': nan; give events",
    ),
    "infinite_rate": (
        "topics",
        columns(topic=["t", "u"], rate=[1.0, INF]),
        ": row 2, column 'rate': inf; give events",
    ),
    "topic_missing_in_topics": (
        "topics",
        columns(topic=["t"], rate=[1.0]),
        " has no row in {folder}/topics.parquet; list every topic there, or leave that table out",
    ),
    "node_missing_in_hosts": (
        "hosts",
        columns(node=["a"], x=[0.0], y=[0.0]),
        " has no row in {folder}/hosts.parquet; list every node there, or leave that table out",
    ),
    "unknown_node_in_churn": (
        "churn",
        columns(time=[1.0, 1.0], node=["a", "zed"], change=["leave", "leave"]),
        ": row 2, column 'node': 'zed' is in no other table; give it a subscription, or",
    ),
    "bad_change_word": (
        "churn",
        columns(time=[1.0], node=["a"], change=["up"]),
        ": row 1, column 'change': 'up'; write 'join' or 'leave'",
    ),
    "negative_time": (
        "churn",
        columns(time=[-1.0], node=["a"], change=["join"]),
        ": row 1, column 'time': -1.0; give seconds",
    ),
    "time_not_a_number": (
        "churn",
        columns(time=[NAN], node=["a"], change=["join"]),
        ": row 1, column 'time': nan; give",
    ),
    "infinite_time": (
        "churn",
        columns(time=[INF], node=["a"], change=["join"]),
        ": row 1, column 'time': inf; give",
    ),
    "two_changes_at_once": (
        "churn",
        columns(time=[1.0, 1.0], node=["a", "a"], change=["leave", "join"]),
        ": row 2, column 'time': 1.0 is when node 'a' changes already; keep its changes apart in time",
    ),
    "leave_of_a_node_that_is_down": (
        "churn",
        columns(time=[5.0, 9.0, 1.0], node=["b", "a", "b"], change=["leave", "leave", "leave"]),
        ": row 1, column 'change': 'leave' of node 'b', which is down already; let joins and leaves",
    ),
    "join_of_a_node_that_is_up": (
        "churn",
        columns(time=[1.0, 2.0, 3.0, 4.0], node=["a", "b", "a", "b"], change=["join"] * 4),
        ": row 3, column 'change': 'join' of node 'a', which is up already",
    ),
    "infinite_coordinate": (
        "hosts",
        columns(node=["a", "b"], x=[0.0, 1.0], y=[0.0, -INF]),
        ": row 2, column 'y': -inf; give a finite number",
    ),
    "coordinate_not_a_number": (
        "hosts",
        columns(node=["a", "b"], x=[NAN, 1.0], y=[0.0, 1.0]),
        ": row 1, column 'x': nan; give a finite number",
    ),
}
# These two are found in the table that refers to the row, not in the one that lacks it.
FOUND_IN_SUBSCRIPTIONS = {
    "topic_missing_in_topics": ": row 3, column 'topic': 'u'",
    "node_missing_in_hosts": ": row 2, column 'node': 'b'",
}


def write(folder: Path, tables: dict[str, Any]) -> None:
    for name, table in tables.items():
        pq.write_table(table, folder / f"{name}.parquet")


def refusal(folder: Path) -> str:
    with pytest.raises(BadInput) as caught:
        Workload.load(folder)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_the_good_tables_are_good(tmp_path: Path) -> None:
    write(tmp_path, GOOD)
    assert Workload.load(tmp_path).nodes == 2


@pytest.mark.parametrize("case", CASES)
def test_refuses(case: str, tmp_path: Path) -> None:
    table, content, expected = CASES[case]
    write(tmp_path, {**GOOD, table: content})
    found_in = "subscriptions" if case in FOUND_IN_SUBSCRIPTIONS else table
    start = f"{tmp_path}/{found_in}.parquet{FOUND_IN_SUBSCRIPTIONS.get(case, '')}{expected}"
    assert refusal(tmp_path).startswith(start.replace("{folder}", str(tmp_path)))


@pytest.mark.parametrize("case", CASES)
def test_tables_in_memory_are_checked_alike(case: str) -> None:
    table, content, expected = CASES[case]
    with pytest.raises(BadInput) as caught:
        Workload.from_tables(**{**GOOD, table: content})
    found_in = "subscriptions" if case in FOUND_IN_SUBSCRIPTIONS else table
    start = f"{found_in}{FOUND_IN_SUBSCRIPTIONS.get(case, '')}{expected}"
    assert str(caught.value).startswith(start.replace("{folder}/", "").replace(".parquet", ""))


class TestFiles:
    def test_missing_folder(self, tmp_path: Path) -> None:
        assert refusal(tmp_path / "nowhere").startswith(
            f"{tmp_path}/nowhere: no such folder; a workload is a folder"
        )

    def test_missing_file(self, tmp_path: Path) -> None:
        assert refusal(tmp_path).startswith(f"{tmp_path}/subscriptions.parquet: no such file; ")

    def test_no_nodes(self, tmp_path: Path) -> None:
        write(tmp_path, {"subscriptions": GOOD["subscriptions"].slice(0, 0)})
        assert (
            refusal(tmp_path)
            == f"{tmp_path}/subscriptions.parquet: no rows; a workload has at least one node"
        )

    @pytest.mark.parametrize("table", GOOD)
    @pytest.mark.parametrize("damage", ["empty", "text", "truncated", "flipped_bit"])
    def test_damaged_file(self, tmp_path: Path, table: str, damage: str) -> None:
        Workload.from_tables(**GOOD).save(tmp_path / "w")
        path = tmp_path / "w" / f"{table}.parquet"
        whole = path.read_bytes()
        flipped = bytearray(whole)
        first_column = pq.ParquetFile(path).metadata.row_group(0).column(0)
        flipped[4 + first_column.total_compressed_size - 1] ^= (
            1  # the last byte of it, after the magic "PAR1"
        )
        path.write_bytes(
            {
                "empty": b"",
                "text": b"node,topic\na,t\n",
                "truncated": whole[:-20],
                "flipped_bit": bytes(flipped),
            }[damage]
        )
        message = refusal(tmp_path / "w")
        assert message.startswith(f"{path}: not readable as Parquet (")
        assert message.endswith("); write it again")

    def test_text_that_is_not_utf8(self, tmp_path: Path) -> None:
        latin = pa.array([b"caf\xe9"]).view(pa.string())
        write(tmp_path, {"subscriptions": columns(node=latin, topic=["t"])})
        assert "subscriptions.parquet: not readable as Parquet (" in refusal(tmp_path)

    def test_folder_without_parts(self, tmp_path: Path) -> None:
        (tmp_path / "subscriptions.parquet").mkdir()
        assert "subscriptions.parquet: a folder without part files; " in refusal(tmp_path)

    def test_unfinished_spark_write(self, tmp_path: Path) -> None:
        parts = tmp_path / "subscriptions.parquet"
        (parts / "_temporary").mkdir(parents=True)
        pq.write_table(GOOD["subscriptions"], parts / "part-00000.parquet")
        assert "subscriptions.parquet: an unfinished write (it holds '_temporary'); " in refusal(tmp_path)

    def test_rows_of_part_files_are_named_by_part(self, tmp_path: Path) -> None:
        parts = tmp_path / "subscriptions.parquet"
        parts.mkdir()
        for number, part in enumerate([GOOD["subscriptions"], columns(node=["c", "b"], topic=["t", "u"])]):
            pq.write_table(part, parts / f"part-{number}.parquet")
        assert refusal(tmp_path) == (
            f"{parts}/part-1.parquet: row 2, column 'topic': node 'b' and topic 'u' as in row 3 of "
            f"{parts}/part-0.parquet; keep one of the two"
        )

    def test_part_without_a_column(self, tmp_path: Path) -> None:
        parts = tmp_path / "subscriptions.parquet"
        parts.mkdir()
        for number, part in enumerate([GOOD["subscriptions"], columns(node=["c"])]):
            pq.write_table(part, parts / f"part-{number}.parquet")
        assert refusal(tmp_path).startswith(f"{parts}/part-1.parquet: column 'topic': missing; ")

    def test_long_and_broken_values_stay_on_one_short_line(self, tmp_path: Path) -> None:
        content = columns(time=[1.0], node=["a"], change=["line\n" * 1000])
        write(tmp_path, {**GOOD, "churn": content})
        assert len(refusal(tmp_path)) < len(str(tmp_path)) + 200


class TestLists:
    @pytest.mark.parametrize(
        ("arguments", "expected"),
        [
            (
                {"subscriptions": {"a": ["t", "u", "t"]}},
                "subscriptions: row 3, column 'topic': node 'a' and topic 't'",
            ),
            (
                {"subscriptions": {"a": "news"}},
                "subscriptions: node 'a': 'news' is one name; give a list of topics",
            ),
            (
                {"subscriptions": {"a": ["t", None]}},
                "subscriptions: row 2, column 'topic': null; every subscription",
            ),
            (
                {"subscriptions": {"a": ["t", 1.5]}},
                "subscriptions: row 2, column 'topic': 1.5 is of type float; every",
            ),
            (
                {"subscriptions": {"a": [True]}},
                "subscriptions: row 1, column 'topic': True is of type bool; every",
            ),
            (
                {"subscriptions": {"a": ["\ud800"]}},
                "subscriptions: row 1, column 'topic': '\\ud800' is not valid Unicode",
            ),
            ({"subscriptions": {}}, "hosts: no rows; a workload has at least one node"),
            ({"rates": {"t": -1}}, "topics: row 1, column 'rate': -1.0; give events per second"),
            (
                {"rates": {"t": "1"}},
                "topics: row 1, column 'rate': '1' is of type str; give events per second",
            ),
            ({"rates": {"u": 1.0}}, "subscriptions: row 1, column 'topic': 't' has no row in topics; "),
            (
                {"churn": [(1.0, "a", "join"), (2.0, "a")]},
                "churn: row 2: (2.0, 'a'); give (time, node, change)",
            ),
            ({"churn": [(1.0, "b", "join")]}, "churn: row 1, column 'node': 'b' is in no other table; "),
            (
                {"hosts": {"b": (0.0, 0.0)}},
                "hosts: no place for node 'a'; give every node one, or leave hosts out",
            ),
            ({"hosts": {"a": (0.0,)}}, "hosts: row 1: ('a', 0.0); give (node, x, y)"),
            ({"hosts": {"a": (0.0, NAN)}}, "hosts: row 1, column 'y': nan; give a finite number"),
        ],
    )
    def test_refuses(self, arguments: dict[str, Any], expected: str) -> None:
        with pytest.raises(BadInput) as caught:
            Workload.from_lists(**{"subscriptions": {"a": ["t"]}, **arguments})
        assert str(caught.value).startswith(expected)
