"""Lines of text files as Spark rows, with file and line number: plain, .gz and .xz, and members of a .tar.

A compressed file is read by one task, since it can only be read from its start. A plain file is cut into pieces of
64 MiB, one task each; a first pass counts the pieces' lines, so that every line still knows its number.

A line that is wrong becomes a row that says so; so does a file that cannot be read. No exception leaves a task.
"""

from __future__ import annotations

import gzip
import io
import lzma
import re
import tarfile
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from topicweave.errors import BadInput

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PIECE_BYTES = 64 << 20
_BLOCK_BYTES = 4 << 20
_LONGEST_LINE = 64 << 20
_EVERY_MEMBER = "*"

ROW, REJECT, COUNT, UNREADABLE = 0, 1, 2, 3
"""What a parsed row is: data; a line that is wrong; a number of good lines; a file that cannot be read."""

BOOKKEEPING = pa.schema(
    [
        ("kind", pa.int8()),
        ("file", pa.string()),
        ("line", pa.int64()),
        ("reason", pa.string()),
        ("text", pa.string()),
    ]
)


class Parsed(NamedTuple):
    """What a format makes of some lines."""

    rows: pa.Table
    """Data, with the column `at`: the place of its line among the lines given."""
    good: int
    """Lines that were understood (comments and blank lines are neither good nor wrong)."""
    wrong: list[tuple[int, str]]
    """Places of lines that were not, with reasons."""


Parse = Callable[[Any, bool], Parsed]
"""(lines as a pyarrow string array, whether the first is the first of its file): what they say."""


class Piece(NamedTuple):
    """Some lines of a file: all, or those that start between two bytes."""

    file: str
    member: str
    start: int
    end: int
    first_line: int


def source_files(path: Path) -> list[Path]:
    """The file, or the files of a folder by name; hidden ones are not meant."""
    if not path.exists():
        raise BadInput(f"{path}: no such file; give the file or folder to import")
    if not path.is_dir():
        return [path]
    files = sorted(file for file in path.rglob("*") if file.is_file() and not file.name.startswith("."))
    if not files:
        raise BadInput(f"{path}: an empty folder; give the file or folder to import")
    return files


def first_line(path: Path) -> str:
    """The first line of a file, for its header."""
    try:
        with opened(str(path), "") as stream:
            return stream.readline(_LONGEST_LINE).decode().rstrip("\r\n")
    except _UNREADABLE as error:
        raise BadInput(unreadable(str(path), error)) from None


def fingerprint(files: list[Path]) -> list[list[Any]]:
    """What tells that files are still the same: name, size, time of change."""
    try:
        return [[str(file), (status := file.stat()).st_size, status.st_mtime_ns] for file in files]
    except OSError as error:
        raise BadInput(f"{error.filename}: {error.strerror}; give a file that can be read") from None


def parsed_lines(spark: SparkSession, files: list[Path], parse: Parse, columns: pa.Schema) -> DataFrame:
    """A row for every row that `parse` makes, every wrong line and every unreadable file (see BOOKKEEPING)."""
    pieces = _pieces(spark, files)
    schema = pa.schema([*BOOKKEEPING, *columns])

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                yield from _read_piece(Piece(**row), parse, schema)

    from pyspark.sql.pandas.types import from_arrow_schema

    table = pa.Table.from_pylist([piece._asdict() for piece in pieces])
    tasks = spark.createDataFrame(table).repartitionByRange(len(pieces), "file", "member", "start")
    return tasks.mapInArrow(read, from_arrow_schema(schema))


def _pieces(spark: SparkSession, files: list[Path]) -> list[Piece]:
    """One entry per file, tar member or 64 MiB: nothing that grows with the lines."""
    whole, cut = [], []
    for file in files:
        name = str(file.absolute())
        if _is_tar(file):
            whole.append(Piece(name, _EVERY_MEMBER, 0, -1, 1))
        elif file.suffix in (".gz", ".xz") or file.stat().st_size <= PIECE_BYTES:
            whole.append(Piece(name, "", 0, -1, 1))
        else:
            size = file.stat().st_size
            cut += [
                Piece(name, "", start, min(start + PIECE_BYTES, size), 1)
                for start in range(0, size, PIECE_BYTES)
            ]
    return whole + _numbered(spark, cut)


def _numbered(spark: SparkSession, pieces: list[Piece]) -> list[Piece]:
    if not pieces:
        return []

    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for file, start, end in zip(
                *(batch[name].to_pylist() for name in ("file", "start", "end")), strict=True
            ):
                with open(file, "rb") as stream:
                    stream.seek(start)
                    newlines, left = 0, end - start
                    while left and (block := stream.read(min(left, _BLOCK_BYTES))):
                        newlines += block.count(b"\n")
                        left -= len(block)
                yield pa.RecordBatch.from_pylist([{"file": file, "start": start, "newlines": newlines}])

    table = pa.Table.from_pylist([piece._asdict() for piece in pieces])
    tasks = spark.createDataFrame(table).repartitionByRange(len(pieces), "file", "start")
    counted = tasks.mapInArrow(count, "file string, start long, newlines long").toArrow()  # one row per piece
    newlines = {(row["file"], row["start"]): row["newlines"] for row in counted.to_pylist()}
    numbered, line = [], 1
    for piece in pieces:
        line = 1 if piece.start == 0 else line
        # A line belongs to the piece it starts in: the rest of one that starts earlier is skipped there.
        numbered.append(piece._replace(first_line=line))
        line += newlines[piece.file, piece.start]
    return numbered


_UNREADABLE = (OSError, EOFError, lzma.LZMAError, zlib.error, tarfile.TarError, UnicodeDecodeError)


def unreadable(file: str, error: BaseException) -> str:
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return f"{file}: cannot be read ({reason.splitlines()[0]}); is it whole, and named for its compression?"


def _is_tar(file: Path) -> bool:
    return re.search(r"\.tar(\.(gz|xz))?$", file.name) is not None


@contextmanager
def opened(file: str, member: str) -> Iterator[IO[bytes]]:
    if member:
        with tarfile.open(file) as archive:
            stream = archive.extractfile(member)
            assert stream is not None
            yield stream
    elif file.endswith(".gz"):
        with gzip.open(file, "rb") as unpacked:
            yield io.BufferedReader(unpacked, _BLOCK_BYTES)
    elif file.endswith(".xz"):
        with lzma.open(file, "rb") as stream:
            yield stream
    else:
        with open(file, "rb") as stream:
            yield stream


def _read_piece(piece: Piece, parse: Parse, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    label, number = piece.file, piece.first_line
    try:
        if piece.member == _EVERY_MEMBER:
            # By one task: to get at a member of a compressed archive, all before it are unpacked too.
            with tarfile.open(piece.file) as archive:
                for member in archive:
                    stream = archive.extractfile(member)
                    if stream is not None:
                        label, number = f"{piece.file}:{member.name}", 1
                        for lines in _line_blocks(piece, stream):
                            number = yield from _parse_block(label, number, lines, parse, schema)
        else:
            with opened(piece.file, piece.member) as stream:
                number += _skip_begun_line(piece, stream)
                for lines in _line_blocks(piece, stream):
                    number = yield from _parse_block(label, number, lines, parse, schema)
    except _UNREADABLE as error:
        note = {
            "kind": UNREADABLE,
            "file": label,
            "line": number,
            "reason": unreadable(label, error),
            "text": "",
        }
        yield _bookkeeping([note], schema)


def _skip_begun_line(piece: Piece, stream: IO[bytes]) -> int:
    """Unless a line starts exactly where the piece does, its first is the end of an earlier piece's last: 1."""
    if not piece.start:
        return 0
    stream.seek(piece.start - 1)
    return 0 if stream.readline() == b"\n" else 1


def _line_blocks(piece: Piece, stream: IO[bytes]) -> Iterator[list[bytes]]:
    position = stream.tell() if piece.end >= 0 else 0
    rest = b""
    while piece.end < 0 or position < piece.end:
        wanted = _BLOCK_BYTES if piece.end < 0 else min(_BLOCK_BYTES, piece.end - position)
        block = stream.read(wanted)
        if not block:
            break
        position += len(block)
        if piece.end >= 0 and position >= piece.end and not block.endswith(b"\n"):
            block += stream.readline()  # the piece's last line ends in the next piece
        rest += block
        if len(rest) > _LONGEST_LINE and b"\n" not in block:
            raise OSError("a line of more than 64 MiB: not a text file")
        *lines, rest = rest.split(b"\n")
        if lines:
            yield lines
    if rest:
        yield [rest]


def _parse_block(
    label: str, number: int, lines: list[bytes], parse: Parse, schema: pa.Schema
) -> Generator[pa.RecordBatch, None, int]:
    texts, undecodable = _decoded(lines)
    parsed = parse(texts, number == 1)
    notes = [
        {
            "kind": REJECT,
            "file": label,
            "line": number + at,
            "reason": reason,
            "text": repr(lines[at][:120])[2:-1],
        }
        for at, reason in [*((at, "not UTF-8 text") for at in undecodable), *parsed.wrong]
    ]
    # Lines that cannot be decoded were shown to the format as blank ones.
    notes.append({"kind": COUNT, "file": label, "line": parsed.good, "reason": "", "text": ""})
    yield _bookkeeping(notes, schema)
    if parsed.rows.num_rows:
        count = parsed.rows.num_rows
        columns = {
            "kind": pa.repeat(pa.scalar(ROW, pa.int8()), count),
            "file": pa.repeat(pa.scalar(label), count),
            "line": pc.add(parsed.rows["at"].cast(pa.int64()), number),
            "reason": pa.repeat(pa.scalar(""), count),
            "text": pa.repeat(pa.scalar(""), count),
            **{name: parsed.rows[name] for name in schema.names[len(BOOKKEEPING) :]},
        }
        yield from pa.table(columns).cast(schema).to_batches(max_chunksize=1 << 16)
    return number + len(lines)


def _decoded(lines: list[bytes]) -> tuple[pa.Array, list[int]]:
    raw = pa.array(lines, pa.binary())
    try:
        texts = raw.cast(pa.string())
    except pa.ArrowInvalid:
        bad = [at for at, line in enumerate(lines) if not _is_text(line)]
    else:
        if not pc.any(pc.match_substring(texts, "\0")).as_py():
            return pc.ascii_rtrim(texts, "\r"), []
        bad = [at for at, line in enumerate(lines) if not _is_text(line)]
    marked = set(bad)
    texts = pa.array([b"" if at in marked else line for at, line in enumerate(lines)]).cast(pa.string())
    return pc.ascii_rtrim(texts, "\r"), bad


def _is_text(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return b"\0" not in line


def _bookkeeping(notes: list[dict[str, Any]], schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(notes, schema=schema)
