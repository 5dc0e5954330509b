"""What Excel writes above a table, and cells that go over several lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.data.test_tables import read
from topicweave.data.formats import LineOptions
from topicweave.data.reading import read_rows
from topicweave.errors import BadInput

FOUND = {"ann": ["a,b"], "bob": ["c"]}


@pytest.mark.parametrize("first", ["sep=;\r\n", '"sep=;"\n', "SEP=; \n", "\ufeffsep=;\n"])
def test_a_first_line_may_name_the_separator(tmp_path: Path, first: str) -> None:
    found, understood = read(tmp_path, f"{first}user;topic\nann;a,b\nbob;c\n")
    assert found == FOUND
    assert understood.shape == "columns between semicolons, with a header"
    (note,) = understood.notes
    assert note.startswith("the first line, ")
    assert note.endswith(", names the separator")
    with pytest.raises(BadInput, match="line 4: 3 columns, not 2"):
        read(tmp_path, f"{first}user;topic\nann;a\nbob;c;d\n")


def test_what_is_given_goes_before_it(tmp_path: Path) -> None:
    assert read(tmp_path, "sep=;\nuser|topic\nann|a,b\nbob|c\n", delimiter="|")[0] == FOUND
    assert read(tmp_path, "sep=\t\nuser\ttopic\nann\ta,b\nbob\tc\n")[0] == FOUND
    assert read(tmp_path, "sep=;x\nann;x\n", header=False)[0] == {"sep=": ["x"], "ann": ["x"]}


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ('user,topic\nann,"x\ny"\nbob,z\n', "line 2: a cell that goes on in line 3: 'ann,\"x'"),
        ('user,topic\nann,x\nbob,"x ""1""\r\n\r\ny"\r\ncid,x\n', "line 3: a cell that goes on in line 5"),
        ('user;topic;more\nann;"x\nz";y\nbob;z;y\n', "line 2: a cell that goes on in line 3"),
        (
            'ann,a,b,c\nbob,a\ncid,"b\nc",a\neve,a,b\ndan,a,b\nfay,a,b,c,d\n',
            "line 3: a cell that goes on in line 4",
        ),
    ],
)
def test_line_breaks_in_cells_are_refused(tmp_path: Path, text: str, where: str) -> None:
    with pytest.raises(BadInput) as error:
        read(tmp_path, text)
    assert where in str(error.value)
    assert "line breaks in cells are not read; put each row on one line" in str(error.value)


def test_a_byte_order_mark_is_no_part_of_a_name(tmp_path: Path) -> None:
    """Of imported files, too, in memory and on Spark."""
    (tmp_path / "my.csv").write_bytes(b"\xef\xbb\xbfann,x\nbob,x\n")
    rows = read_rows("pairs", tmp_path / "my.csv", LineOptions(",")).rows
    assert rows["node"].to_pylist() == ["ann", "bob"]


@pytest.mark.parametrize(
    "text",
    [
        "user,topic\rann,a\rann,b\rbob,a\r",
        "ann a\rann b\rbob a",
        "who topics\rann a b\rbob a\r",
        "\ufeffann: a, b\rbob: a\r",
    ],
)
def test_lines_may_end_in_carriage_returns_alone(tmp_path: Path, text: str) -> None:
    assert read(tmp_path, text)[0] == {"ann": ["a", "b"], "bob": ["a"]}


def test_imported_lines_too(tmp_path: Path) -> None:
    (tmp_path / "my.csv").write_bytes(b"\xef\xbb\xbfuser,topic,more\rann,x,1\rbob,x,2\rcid\r")
    read_in = read_rows("pairs", tmp_path / "my.csv", LineOptions(",", header=True, max_rejects=0.5))
    assert read_in.rows["node"].to_pylist() == ["ann", "bob"]
    assert read_in.rows["line"].to_pylist() == [2, 3]
    assert [wrong.line for wrong in read_in.wrong] == [4]
