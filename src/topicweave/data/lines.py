"""Lines of text files, block by block, with their numbers, and what a format makes of them.

One piece of a file is read the same way by a Spark task and in memory. A line that is wrong is kept with its number,
text and reason; a file that cannot be read raises `BadInput`.
"""

from __future__ import annotations

import tarfile
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from typing import IO, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from topicweave.data.files import BLOCK_BYTES, LONGEST_LINE, UNREADABLE, opened, raw, unreadable
from topicweave.errors import BadInput


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


class Wrong(NamedTuple):
    """A line that does not fit its format."""

    file: str
    line: int
    reason: str
    text: str


class LineBlock(NamedTuple):
    """Some parsed lines of a file."""

    file: str
    """Of a member of an archive `ARCHIVE:MEMBER`."""
    first: int
    """The number of its first line."""
    rows: pa.Table
    good: int
    wrong: list[Wrong]


class Piece(NamedTuple):
    """Some lines of a file: all, or those that start between two bytes; of an archive those of every member."""

    file: str
    archive: bool = False
    start: int = 0
    end: int = -1
    first_line: int = 1


def parsed_blocks(piece: Piece, parse: Parse) -> Iterator[LineBlock]:
    """A piece, block after block."""
    label = piece.file
    try:
        if piece.archive:
            with raw(piece.file) as packed, tarfile.open(fileobj=packed) as archive:
                for member in archive:
                    if (stream := archive.extractfile(member)) is not None:
                        label = f"{piece.file}:{member.name}"
                        yield from _blocks(label, 1, piece, stream, parse)
        else:
            with opened(piece.file) as stream:
                first = piece.first_line + _skip_begun_line(piece, stream)
                yield from _blocks(label, first, piece, stream, parse)
    except UNREADABLE as error:
        raise unreadable(label, error) from None


def _skip_begun_line(piece: Piece, stream: IO[bytes]) -> int:
    """Unless a line starts exactly where the piece does, its first is the end of an earlier piece's last: 1."""
    if not piece.start:
        return 0
    stream.seek(piece.start - 1)
    return 0 if stream.readline() == b"\n" else 1


def _blocks(label: str, number: int, piece: Piece, stream: IO[bytes], parse: Parse) -> Iterator[LineBlock]:
    for lines in _line_blocks(piece, stream):
        if number == 1:
            lines[0] = lines[0].removeprefix(BOM_UTF8)
        texts, undecodable = _decoded(lines)
        parsed = parse(texts, number == 1)
        # Lines that cannot be decoded were shown to the format as blank ones.
        wrong = [
            Wrong(label, number + at, reason, repr(lines[at][:120])[2:-1])
            for at, reason in [*((at, "not UTF-8 text") for at in undecodable), *parsed.wrong]
        ]
        yield LineBlock(label, number, parsed.rows, parsed.good, wrong)
        number += len(lines)


def _line_blocks(piece: Piece, stream: IO[bytes]) -> Iterator[list[bytes]]:
    position = stream.tell() if piece.end >= 0 else 0
    rest, begun = b"", False
    while piece.end < 0 or position < piece.end:
        wanted = BLOCK_BYTES if piece.end < 0 else min(BLOCK_BYTES, piece.end - position)
        block = stream.read(wanted)
        if not block:
            break
        position += len(block)
        if piece.end >= 0 and position >= piece.end and not block.endswith(b"\n"):
            block += stream.readline()  # the piece's last line ends in the next piece
        rest += block
        if len(rest) > LONGEST_LINE and b"\n" not in block:
            what = "do lines end in CR alone?" if b"\r" in block else "not a text file;"
            raise BadInput(
                f"{piece.file}: a line of more than 64 MiB: {what} give lines of text that end in LF"
            )
        *lines, rest = rest.split(b"\n")
        if lines:
            begun = True
            yield lines
    if rest and (begun or piece.start):
        yield [rest]
    elif rest:  # No line ends in LF: where there are CRs, lines end in these.
        yield rest.rstrip(b"\r").split(b"\r")


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
